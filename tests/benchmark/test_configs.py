"""The configurations that ship describe what they say, and the small one runs."""

import json
from pathlib import Path

import pytest
import yaml

from ncttt import configs
from ncttt.benchmark import Tuning
from ncttt.benchmark.tuning import check_tuning
from ncttt.benchmark.tuning.run import changed
from ncttt.benchmark.tuning.trials import combinations
from ncttt.cli import main
from ncttt.training import read_job

CHECKPOINTS = Path(__file__).resolve().parents[2] / "results/checkpoints"
GRIDS = [configs.find("bench", name) for name in configs.names("bench")]
TUNINGS = {
    path.stem: yaml.safe_load(path.read_text()) for path in sorted((configs.HOME / "tune").glob("cifar10-*.yaml"))
}
OF_TRAININGS = [name for name, settings in TUNINGS.items() if "train" in settings]
OF_ADAPTATIONS = [name for name in TUNINGS if name not in OF_TRAININGS]


def test_the_digits_grid_runs(tmp_path, capsys):
    config = ["bench", "--config", "digits", "--store", str(tmp_path / "rows.sqlite")]
    less = ["--images", "50", "--batch-sizes", "[50]", "--seeds", "[0]", "--executor", "here"]
    assert main([*config, *less, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 4 * (2 * 5 + 1)
    clean = {row["method"]: row["accuracy"] for row in rows if row["corruption"] == "clean"}
    assert min(clean.values()) > 0.8


@pytest.mark.parametrize("path", GRIDS, ids=configs.names("bench"))
def test_every_grid_names_what_there_is(path):
    from ncttt import METHODS, zoo

    settings = yaml.safe_load(path.read_text())
    trainings = {f"results/checkpoints/{folder.parent.name}" for folder in CHECKPOINTS.glob("*/model.json")}
    assert trainings
    for entry in settings["methods"]:
        entry = {"method": entry} if isinstance(entry, str) else entry
        assert entry["method"] in METHODS
        named = entry.get("checkpoint", settings.get("checkpoint"))
        assert set([named] if isinstance(named, str) else named) <= set(zoo.names()) | trainings
        assert METHODS[entry["method"]](**entry.get("settings", {}))
    with pytest.raises(SystemExit, match="0"):
        main(["bench", "--config", str(path), "--print_config"])


def test_the_digits_tuning_is_one():
    settings = yaml.safe_load(configs.find("tune", "digits").read_text())
    check_tuning(Tuning(**settings), read_job(settings["train"]))


@pytest.mark.parametrize("name", OF_TRAININGS)
def test_the_tunings_of_trainings_on_cifar10_name_what_there_is(name):
    from ncttt import METHODS

    for settings, _ in combinations(Tuning(**TUNINGS[name])):
        assert METHODS[changed(read_job(TUNINGS[name]["train"]), settings).method]


def test_tunings_vary_the_training_of_the_zoo_with_half_its_epochs():
    short, whole = read_job("cifar10-one-epoch"), read_job("cifar10-ncttt")
    assert short.recipe == whole.recipe.but(epochs=whole.recipe.epochs // 2)
    assert short.method_settings == whole.method_settings
    assert (short.start, short.layer, short.method) == (whole.start, whole.layer, whole.method)


@pytest.mark.parametrize("name", OF_ADAPTATIONS)
def test_tunings_of_adaptations_name_settings_of_their_methods(name):
    from ncttt import METHODS, zoo
    from ncttt.zoo.stored import description

    tuning = Tuning(**TUNINGS[name])
    assert tuning.checkpoint in zoo.names()
    method = METHODS[tuning.method or description(tuning.checkpoint)["method"]["name"]]
    for _, adapted in combinations(tuning):
        assert method(**{key: value for key, value in adapted.items() if key != "stop"})


def test_the_tuning_of_the_paper_is_in_its_form():
    settings = yaml.safe_load(configs.find("tune", "layer-sigma").read_text())
    assert settings["trained"]["layer"] == ["layer1", "layer2", "layer3", "layer4"]
    assert settings["trained"]["method_settings.sigma_in"] == [0.01, 0.015, 0.025, 0.05]
    assert read_job(settings["train"]).method == "nc_ttt"
