"""What is compared, by hand: names alone, checkpoints of the zoo, one setting changed, and what is wrong with it."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

import ncttt
import small_grid
from ncttt import InputError
from ncttt.benchmark import Entry, Grid, cells_of
from ncttt.benchmark.entries import changed_entries
from ncttt.cli import main

METHODS = ("source", "tent", "ttt", "ttt_plus", "clust3", "ttt_flow", "ttt_mae", "nc_ttt")


def test_a_method_without_a_checkpoint_gets_the_zoos():
    chosen = {entry.method: entry.checkpoint for entry in Grid(data="cifar10", methods=METHODS).entries}
    assert chosen == {
        "source": "cifar10-small-source",
        "tent": "cifar10-small-source",
        "ttt": "cifar10-small-ttt",
        "ttt_plus": "cifar10-small-ttt-plus",
        "clust3": "cifar10-small-clust3",
        "ttt_flow": "cifar10-small-ttt-flow",
        "ttt_mae": "cifar10-vit-ttt-mae",
        "nc_ttt": "cifar10-small-ncttt",
    }
    for data in ("cifar10-c", "cifar10.1-v6"):  # of the same classes
        assert Grid(data=data, methods=METHODS).entries == Grid(data="cifar10", methods=METHODS).entries


def test_names_mean_the_same_cells_as_entries():
    few = {"data": "digits", "images": 20, "corruptions": ["contrast"]}
    written = [Entry(method=name, checkpoint="digits-small-ncttt") for name in ("tent", "nc_ttt")]
    by_name, by_entry = cells_of(Grid(methods=["tent", "nc_ttt"], **few)), cells_of(Grid(methods=written, **few))
    assert [cell.key for cell in by_name] == [cell.key for cell in by_entry]


def test_a_checkpoint_for_all_that_name_none(checkpoint):
    own = {"method": "nc_ttt", "checkpoint": "digits-small-ncttt"}
    grid = Grid(data="digits", methods=["tent", own], checkpoint=checkpoint)
    assert [entry.checkpoint for entry in grid.entries] == [checkpoint, "digits-small-ncttt"]


@pytest.mark.parametrize(
    ("data", "method", "message"),
    [
        ("digits", "ttt", "the zoo has no model for ttt on digits; there are digits-small-ncttt; name a checkpoint"),
        ("cifar100", "tent", "the zoo has no model for methods without a branch on cifar100; name a checkpoint"),
        ("photos/test", "tent", "the zoo has no model for methods without a branch on photos/test"),
        (["digits", "cifar10"], "tent", "tent would run on cifar10-small-source and digits-small-ncttt"),
    ],
)
def test_where_the_zoo_has_none_the_choices_are_told(data, method, message):
    with pytest.raises(InputError) as refused:
        Grid(data=data, methods=[method]).entries  # noqa: B018
    assert message in str(refused.value)


ENTRIES = [
    Entry(method="tent", checkpoint="a"),
    Entry(method="nc_ttt", checkpoint="b", steps=[0, 1, 4], settings={"lr": 1.0, "moves": "norm"}),
    Entry(method="nc_ttt", checkpoint="b", label="ours"),
]


def test_one_setting_of_one_method():
    tent, first, second = changed_entries(ENTRIES, ["tent.lr=1e-3", "nc_ttt.lr=0.5", "ours.stop=source"])
    assert tent == Entry(method="tent", checkpoint="a", settings={"lr": 0.001})
    assert (first.settings, first.stop) == ({"lr": 0.5, "moves": "norm"}, None)
    assert (second.settings, second.stop) == ({"lr": 0.5}, "source")


@pytest.mark.parametrize(("text", "steps"), [("5", [5]), ("[0, 5]", [0, 5])])
def test_steps_replace_those_of_the_entry(text, steps):
    entry = Entry(method="nc_ttt", checkpoint="b", settings={"steps": 3})
    assert changed_entries([entry], [f"nc_ttt.steps={text}"]) == [Entry(method="nc_ttt", checkpoint="b", steps=steps)]


def test_a_setting_gives_the_key_that_an_entry_with_it_has(checkpoint):
    grid = small_grid.grid(checkpoint, methods=[Entry(method="tent", checkpoint=checkpoint, settings={"lr": 0.5})])
    by_hand = replace(grid, methods=changed_entries(["tent"], ["tent.lr=0.5"]), checkpoint=checkpoint)
    assert [cell.key for cell in cells_of(by_hand)] == [cell.key for cell in cells_of(grid)]


def bench(capsys, *words: str) -> str:
    assert main(["bench", "--data", "digits", "--images", "20", "--corruptions", "contrast", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--methods", "tent,tnet"], "no method 'tnet'; did you mean 'tent'"),
        (["--methods", "[{method: tent, lr: 3}]"], "{'method': 'tent', 'lr': 3}: no key 'lr'"),
        (["--methods", "[{method: tent, steps: x}]"], "'steps': 'x'}: steps must be a list of whole numbers"),
        (["--methods", "[{method: tent, protocols: online}]"], "'online'}: protocols must be a list of names"),
        (
            ["--methods", "[{method: tent, settings: 3}]"],
            "'settings': 3}: settings must be a table such as {lr: 0.001}",
        ),
        (["--methods", "[{checkpoint: x}]"], "methods: {'checkpoint': 'x'} names no method"),
        (["--methods", "tent", "--set", "tnet.lr=3"], "no method 'tnet'; did you mean 'tent'"),
        (["--methods", "tent", "--set", "tent.lrr=3"], "tent has no setting 'lrr'; did you mean 'lr'"),
        (["--methods", "tent", "--set", "tent.lr"], "a setting is changed as in tent.lr=1e-3; found 'tent.lr'"),
        (["--methods", "tent", "--set", "tent.lr=]"], "tent.lr=]: ']' is no value of YAML"),
    ],
)
def test_a_wrong_entry_is_named(words, message, capsys):
    assert message in bench(capsys, *words)


def test_the_command_line_changes_a_setting_of_a_configuration(checkpoint, tmp_path, capsys):
    (tmp_path / "grid.yaml").write_text(
        f"data: digits\nimages: 40\ncorruptions: [contrast]\nbatch_sizes: [40]\ncheckpoint: {checkpoint}\n"
        "methods: [ptbn, {method: nc_ttt, settings: {lr: 1.0}}, {method: nc_ttt, label: ours}]\n"
    )
    command = ["bench", "--config", str(tmp_path / "grid.yaml"), "--executor", "here", "--json"]
    changes = ["--set", "nc_ttt.lr=1e-3,ours.steps=1"]
    assert main([*command, "--store", str(tmp_path / "rows.sqlite"), *changes]) == 0
    rows = {row["method"]: json.loads(row["settings"]) for row in json.loads(capsys.readouterr().out)}
    assert list(rows) == ["ptbn", "nc_ttt", "ours"]
    assert (rows["nc_ttt"]["lr"], rows["ours"]["lr"], rows["ours"]["steps"]) == (1e-3, 1e-3, 1)


@pytest.fixture
def folder(tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(4):
            pixels = np.random.default_rng(number).integers(0, 256, (32, 32, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{number}.png")
    return str(tmp_path / "photos")


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (("dog", "cat"), "class 0 of {model} is 'dog', that of {data} 'cat': the same classes in another order"),
        (("cat", "bird"), "class 1 of {model} is 'bird', that of {data} 'dog': other classes"),
        (("cat", "dog"), None),
        (("0", "1"), None),
        (None, None),
    ],
)
def test_classes_of_the_model_are_those_of_the_data(folder, classes, message, tmp_path):
    model = ncttt.attach(ncttt.models.small(num_classes=2, width=4), "layer3", ncttt.Source(), torch.rand(2, 3, 32, 32))
    model.classes = classes
    ncttt.save(model, tmp_path / "model")
    checkpoint = str(tmp_path / "model")
    grid = Grid(data=folder, split="all", methods=["ptbn"], checkpoint=checkpoint, corruptions=["clean"])
    if message is None:
        assert len(cells_of(grid)) == 1
    else:
        with pytest.raises(InputError) as refused:
            cells_of(grid)
        assert message.format(model=checkpoint, data=folder) in str(refused.value)
