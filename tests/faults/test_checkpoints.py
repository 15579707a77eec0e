"""Checkpoints and trainings to resume: each damage is one error that names file, key, found and expected."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save, save_file
from torch import nn

import ncttt
from ncttt import InputError
from ncttt.cli import main
from ncttt.data import load
from ncttt.testing.cases import CLASSES, attached, images, resnet
from ncttt.training.start import warm_start

DEEP = "[" * 100_000
WRONG = {
    "format": [2, "1", True, None, 1.5],
    "architecture": [3, [], {}, {"name": 3}, "small", {"name": "small", "width": float("nan")}],
    "layer": [None, 3, [], [3], "", ["layer1", "layer1"], {"a": 1}, [["layer1"]]],
    "method": [None, [], "nc_ttt", {}, {"name": 3}, {"name": "nc_ttt", "lr": float("nan")}],
    "preprocessing": [
        None,
        [],
        {"mean": None},
        {"mean": [0.5], "std": None},
        {"mean": ["x"], "std": [1]},
        {"mean": [float("nan")], "std": [1.0]},
        {"mean": [0.5], "std": [0.0]},
        {"mean": [0.5], "std": [-1.0]},
        {"mean": [0.5], "std": [float("inf")]},
        {"mean": [0.5, 0.5], "std": [1.0, 1.0]},
        {"mean": [5.0], "std": [1.0]},
        {"mean": [], "std": []},
        {"mean": [True], "std": [True]},
    ],
    "input_shape": [
        None,
        3,
        [],
        [3, 32],
        [3, 32, 0],
        [3, -32, 32],
        [3, 32.0, 32],
        "abc",
        [3, 10**9, 10**9],
        [True] * 3,
    ],
    "resize": [None, 5, "stretch", "crop(x)", []],
    "classes": [3, "abc", [], [3] * CLASSES, ["a"] * CLASSES, ["a", "b"], [None] * CLASSES, {"a": 1}],
    "channels_last": [None, 0, "true", []],
    "weights_sha256": [None, 3, "", "0" * 63, "X" * 64, []],
    "classifier_of": [3, "", []],
}
CASES = [(name, value) for name, values in WRONG.items() for value in values]


@pytest.fixture
def folder(tmp_path) -> Path:
    model = attached("resnet", ncttt.NCTTT())
    model.classes = tuple(f"class {number}" for number in range(CLASSES))
    ncttt.save(model, tmp_path)
    return tmp_path


def describe(folder: Path, **changes) -> None:
    described = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(described | changes))


def put_weights(folder: Path, **changes: torch.Tensor) -> None:
    weights = save({**load_file(folder / "model.safetensors"), **{n.replace("__", "."): t for n, t in changes.items()}})
    (folder / "model.safetensors").write_bytes(weights)
    describe(folder, weights_sha256=hashlib.sha256(weights).hexdigest())


@pytest.mark.parametrize(("name", "value"), CASES, ids=lambda value: f"{value!r:.25}")
def test_a_value_that_no_model_has_names_file_and_key(folder, name, value):
    describe(folder, **{name: value})
    with pytest.raises(InputError, match=rf"(?s)model\.json.*{name}.*(found|expected)"):
        ncttt.load(folder)


@pytest.mark.parametrize("name", [name for name in WRONG if name not in ("resize", "classes", "classifier_of")])
def test_a_missing_key_is_named(folder, name):
    described = json.loads((folder / "model.json").read_text())
    del described[name]
    (folder / "model.json").write_text(json.dumps(described))
    with pytest.raises(InputError, match=rf"model\.json, {name}: found none; expected"):
        ncttt.load(folder)


TEXTS = {
    "deep": DEEP,
    "deep objects": '{"a":' * 100_000,
    "40 levels": "[" * 40 + "]" * 40,
    "digits": '{"format": ' + "9" * 5000 + "}",
    "bytes": b"\xff\xfe\x00",
    "nothing": "",
    "a list": "[]",
    "null": "null",
    "a text": '"model"',
    "large": " " * (17 << 20),
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_description_that_is_none_is_one_line(folder, text, capsys):
    content = TEXTS[text]
    (folder / "model.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=r"model\.json"):
        ncttt.load(folder)
    assert main(["adapt", "--model", str(folder), "--images", str(folder), "--out", str(folder / "a.csv")]) == 2
    assert "Traceback" not in capsys.readouterr().err


ARCHITECTURES = [
    {"width": "x"},
    {"width": 10**12},
    {"width": -3},
    {"width": 1.5},
    {"growth": 3},
    {"growth": [1, 2, 4, 10**9]},
    {"num_classes": 10**9},
    {"num_classes": -1},
    {"num_classes": None},
    {"width": 5},
    {"depth": 3},
    {"name": "smal"},
    {"name": "hf:../x"},
    {"pretrained": True},
]


@pytest.mark.parametrize("change", ARCHITECTURES, ids=str)
def test_a_network_that_the_weights_are_not_of_is_not_made(folder, change):
    describe(
        folder, architecture={"name": "small", "num_classes": CLASSES, "width": 4, "growth": [1, 2, 4, 8]} | change
    )
    with pytest.raises(InputError):
        ncttt.load(folder)


WEIGHT = "classifier.fc.weight"
KINDS = [torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64]


def damaged(folder: Path, name: str, change) -> None:
    tensors = load_file(folder / "model.safetensors")
    assert name in tensors
    put_weights(folder, **{name.replace(".", "__"): change(tensors[name])})


@pytest.mark.parametrize("name", [WEIGHT, "mean", "branch"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_numbers_of_another_kind_are_not_cast(folder, name, kind):
    if name == "branch":
        name = next(name for name in load_file(folder / "model.safetensors") if name.startswith("branch."))
    damaged(folder, name, lambda tensor: tensor.to(kind))
    with pytest.raises(InputError, match=name.rpartition(".")[2]):
        ncttt.load(folder)


def first_value(value: float):
    def change(tensor: torch.Tensor) -> torch.Tensor:
        tensor = tensor.clone()
        tensor.flatten()[0] = value
        return tensor.contiguous()

    return change


def running(folder: Path, end: str) -> str:
    return next(name for name in load_file(folder / "model.safetensors") if name.endswith(end))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("end", ["fc.weight", "running_mean", "running_var", "source_certainty"])
def test_values_that_no_training_gives_are_named(folder, end, value):
    damaged(folder, running(folder, end), first_value(value))
    with pytest.raises(InputError, match=rf"model\.safetensors: .*{end} holds NaN or infinite values"):
        ncttt.load(folder)


def test_negative_variances_are_named(folder):
    damaged(folder, running(folder, "running_var"), first_value(-1.0))
    with pytest.raises(InputError, match="running_var holds negative values; expected variances"):
        ncttt.load(folder)


@pytest.mark.parametrize("damage", ["missing", "shape", "more"])
def test_tensors_of_another_model_are_named(folder, damage):
    tensors = load_file(folder / "model.safetensors")
    tensors |= {"missing": {}, "shape": {WEIGHT: torch.zeros(2, 2)}, "more": {"odd": torch.zeros(1)}}[damage]
    if damage == "missing":
        del tensors["mean"]
    weights = save(tensors)
    (folder / "model.safetensors").write_bytes(weights)
    describe(folder, weights_sha256=hashlib.sha256(weights).hexdigest())
    with pytest.raises(InputError, match=r"mean|fc\.weight|odd"):
        ncttt.load(folder)


class Masked(nn.Module):
    """A network whose mask holds minus infinity, as those of attention do."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 4, 3), nn.Linear(4, CLASSES)
        self.register_buffer("mask", torch.tensor([0.0, 0.0, 0.0, -torch.inf]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc((self.conv(x).mean((2, 3)) + self.mask).softmax(1))


@pytest.mark.sound
def test_a_mask_of_the_users_may_be_infinite(tmp_path):
    model = ncttt.attach(Masked(), "conv", ncttt.NCTTT(), images(2))
    ncttt.save(model, tmp_path)
    assert torch.equal(ncttt.load(tmp_path, Masked())(images(3)), model.eval()(images(3)))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_training_does_not_start_from_weights_that_are_not_finite(tmp_path, value):
    net = resnet()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    weights = {name: tensor.clone().contiguous() for name, tensor in net.state_dict().items()}
    weights["fc.bias"][0] = value
    save_file(weights, tmp_path / "start.safetensors")
    with pytest.raises(InputError, match=r"start\.safetensors: fc.bias holds NaN or infinite values"):
        warm_start(net, tmp_path / "start.safetensors")
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())


SETTINGS = {"epochs": 1, "batch_size": 32, "optimizer": "adamw", "lr": 1e-3}


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("training")
    train(small_model(), path)
    return path


def small_model() -> ncttt.Branched:
    torch.manual_seed(0)
    net = ncttt.models.small(num_classes=10, width=4)
    return ncttt.attach(net, "layer2", ncttt.NCTTT(hidden=32, channels=8), torch.rand(2, 3, 32, 32))


def train(model: ncttt.Branched, run: Path, **settings) -> None:
    ncttt.train(model, load("digits", "fit").subset(range(64)), run=run, observers=[], **SETTINGS, **settings)


def assert_not_resumed(run: Path, message: str) -> None:
    """Refused, and neither the model nor a file of the run is changed."""
    model, files = small_model(), {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(InputError, match=message):
        train(model, run, resume=True)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    kept = [path for path in files if path.name != "environment.json"]
    assert all(path.read_bytes() == files[path] for path in kept)


def rewritten(trained: Path, folder: Path, facts=None, metadata=None, **tensors) -> Path:
    run = folder / "run"
    shutil.copytree(trained, run)
    with safe_open(trained / "state.safetensors", "pt") as file:
        whole = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
        told = json.loads(file.metadata()["facts"]) | (facts or {})
    changed = whole | {name: change(whole.get(name)) for name, change in tensors.items()}
    metadata = {"facts": json.dumps(told)} if metadata is None else metadata
    save_file({name: part for name, part in changed.items() if part is not None}, run / "state.safetensors", metadata)
    return run


EPOCH = {"number": 1, "cross_entropy": 1.0, "auxiliary": 1.0, "accuracy": 0.5}
FACTS = {
    "history": [None, 3, {}, [3], [{}], [EPOCH | {"number": 7}], [EPOCH | {"odd": 1}], [EPOCH | {"accuracy": "x"}]],
    "step": [None, -1, 1.5, "3", True, 2**80],
    "sums": [None, 3, [], [1.0, 2.0], ["a", "b", "c"], [float("nan")] * 3],
    "seconds": [None, -1.0, "x", float("inf")],
    "scaler": [None, 3, [], {"scale": "x"}, {"scale": float("nan")}],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, vs in FACTS.items() for v in vs], ids=lambda v: f"{v!r:.25}")
def test_progress_that_no_training_makes_is_named(trained, tmp_path, name, value):
    run = rewritten(trained, tmp_path, {name: value})
    assert_not_resumed(run, rf"state\.safetensors, {name}: found .*; expected")


@pytest.mark.parametrize("metadata", [{}, {"facts": DEEP}, {"facts": "{"}, {"facts": "[]"}, {"facts": "9" * 5000}])
def test_a_state_without_progress_is_named(trained, tmp_path, metadata):
    assert_not_resumed(rewritten(trained, tmp_path, metadata=metadata), r"state\.safetensors")


BIAS, MEMORY = "model.classifier.fc.bias", "optimizer.0.0.exp_avg"
STATE_TENSORS = {
    "no bias": (BIAS, lambda tensor: None),
    "a bias of another shape": (BIAS, lambda tensor: tensor[:3].clone()),
    "whole numbers": (BIAS, lambda tensor: tensor.long()),
    "truth values": (BIAS, lambda tensor: tensor.bool()),
    "complex numbers": (BIAS, lambda tensor: tensor.to(torch.complex64)),
    "nan": (BIAS, lambda tensor: tensor * torch.nan),
    "memory of another shape": (MEMORY, lambda tensor: torch.zeros(7)),
    "memory that is nan": (MEMORY, lambda tensor: tensor * torch.nan),
    "memory of whole numbers": (MEMORY, lambda tensor: tensor.long()),
    "half a memory": (MEMORY, lambda tensor: None),
    "memory of nothing": ("optimizer.0.99999.exp_avg", lambda tensor: torch.zeros(1)),
    "memory of a text": ("optimizer.0.x.exp_avg", lambda tensor: torch.zeros(1)),
    "memory of no number": ("optimizer.0.exp_avg", lambda tensor: torch.zeros(1)),
    "memory of a large number": (f"optimizer.0.{'9' * 5000}.exp_avg", lambda tensor: torch.zeros(1)),
}


@pytest.mark.parametrize("damage", STATE_TENSORS)
def test_tensors_that_no_training_has_are_named(trained, tmp_path, damage):
    name, change = STATE_TENSORS[damage]
    assert_not_resumed(rewritten(trained, tmp_path, **{name: change}), r"state\.safetensors")


@pytest.mark.parametrize("text", [name for name in TEXTS if name != "large"])
@pytest.mark.parametrize("file", ["config.json", "environment.json"])
def test_damaged_records_of_a_training_are_named(trained, tmp_path, file, text):
    run = rewritten(trained, tmp_path)
    content = TEXTS[text]
    (run / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert_not_resumed(run, file)
