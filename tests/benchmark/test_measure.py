"""Rows against plain loops that know nothing of the benchmark."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, log_loss

import ncttt
import small_grid
from ncttt.benchmark import Cell, cells_of, run_cells
from ncttt.benchmark.grid import Entry
from ncttt.benchmark.measure import measure
from ncttt.benchmark.scores import calibration_error
from ncttt.data import load
from ncttt.data.batching import shuffled
from ncttt.data.corruptions import corrupt
from ncttt.data.orders import order_of


def corrupted(corruption: str, count: int = 120, severity: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """The images of a scenario, corrupted as part of their whole set."""
    data = load("digits", "test")
    places = np.sort(shuffled(len(data), 0, 0)[:count])
    images = np.asarray(data.images)
    shifted = images if corruption == "clean" else corrupt(images, corruption, severity, constants="imagenet")
    return shifted[places], data.labels[places]


def floats(images: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255


def only(checkpoint: str, entry: Entry, **changes: object) -> list[Cell]:
    return cells_of(small_grid.grid(checkpoint, methods=[entry], **changes))


@pytest.mark.parametrize("method", ["ptbn", "tent"])
def test_any_method_may_leave_batches_to_the_source(checkpoint, tmp_path, method):
    model = ncttt.load(checkpoint)
    rows = {}
    for levels in ([[0.0, 0.0], [-1e9, 0.0]], [[2.0, 0.0], [1e9, 0.0]]):
        model.source_certainty.copy_(torch.tensor(levels))
        ncttt.save(model, tmp_path / str(levels[0][0]))
        entry = Entry(method=method, checkpoint=str(tmp_path / str(levels[0][0])), stop="source")
        (cell,) = only(checkpoint, entry, corruptions=["contrast"])
        rows[levels[0][0]] = measure(cell, tmp_path).columns
    (cell,) = only(checkpoint, Entry(method=method, checkpoint=checkpoint), corruptions=["contrast"])
    assert (rows[0.0]["steps_taken"], rows[0.0]["mended"], rows[0.0]["broken"]) == (0, 0, 0)
    assert rows[2.0]["accuracy_at"] == measure(cell, tmp_path).columns["accuracy_at"]


@pytest.mark.parametrize("protocol", ["episodic", "online"])
def test_a_row_is_what_a_plain_loop_finds(checkpoint, tmp_path, protocol):
    entry = Entry(method="nc_ttt", checkpoint=checkpoint, steps=[0, 1, 3])
    (cell,) = only(checkpoint, entry, corruptions=["contrast"], protocols=[protocol], seeds=[5])
    result = measure(cell, tmp_path)

    images, labels = corrupted("contrast")
    order = shuffled(len(images), 5, 0)
    images, labels = images[order], labels[order]
    adapter = ncttt.Adapter(ncttt.load(checkpoint), protocol=protocol, seed=5)
    logits, befores, afters = [], [], []
    for start in range(0, 120, 40):
        logits.append(adapter.predict_at([0, 1, 3], floats(images[start : start + 40])))
        befores.append(adapter.trace.shift_before)
        afters.append(adapter.trace.shift_after)
    logits = torch.cat(logits, dim=1)
    predicted = logits.argmax(2).numpy()
    probabilities = logits[-1].double().softmax(1).numpy()
    source = ncttt.load(checkpoint)(floats(images)).argmax(1).numpy()

    row = result.columns
    assert (result.predicted == predicted).all()
    assert (result.right == (predicted == labels)).all()
    assert row["accuracy"] == pytest.approx((predicted[-1] == labels).mean())
    assert row["class_accuracy"] == pytest.approx(balanced_accuracy_score(labels, predicted[-1]))
    assert row["nll"] == pytest.approx(log_loss(labels, probabilities, labels=range(10)))
    at = json.loads(row["accuracy_at"])
    assert at == {
        str(count): pytest.approx((p == labels).mean()) for count, p in zip((0, 1, 3), predicted, strict=True)
    }
    assert row["mended"] == ((source != labels) & (predicted[-1] == labels)).sum()
    assert row["broken"] == ((source == labels) & (predicted[-1] != labels)).sum()
    assert row["shift_before"] == pytest.approx(np.mean(befores))
    assert row["shift_after"] == pytest.approx(np.mean(afters))
    assert (row["steps_taken"], row["fallbacks"], row["images"]) == (3, 0, 120)
    assert row["images_per_second"] > 0
    assert row["peak_memory_mib"] is None or row["peak_memory_mib"] > 10


def test_calibration_error_by_a_plain_loop():
    torch.manual_seed(0)
    logits, labels = 3 * torch.randn(500, 5), torch.randint(5, (500,))
    confidence, predicted = logits.double().softmax(1).max(1)
    expected = 0.0
    for low in range(15):
        inside = [n for n in range(500) if low / 15 < confidence[n] <= (low + 1) / 15]
        if inside:
            right = sum(bool(predicted[n] == labels[n]) for n in inside) / len(inside)
            expected += len(inside) / 500 * abs(right - sum(confidence[n].item() for n in inside) / len(inside))
    assert calibration_error(logits, labels) == pytest.approx(expected, abs=1e-9)


def test_continual_goes_on_through_all_corruptions_and_mixed_shuffles_them(checkpoint, tmp_path):
    entry = Entry(method="nc_ttt", checkpoint=checkpoint)
    continual, mixed = only(checkpoint, entry, protocols=["continual"], orders=["random", "mixed"])
    assert len(continual.scenarios) == len(mixed.scenarios) == 2
    adapter, logits, truth = ncttt.Adapter(ncttt.load(checkpoint), protocol="continual"), [], []
    for corruption in ("gaussian_noise", "contrast"):
        images, labels = corrupted(corruption)
        order = shuffled(120, 0, 0)
        for start in range(0, 120, 40):
            logits.append(adapter(floats(images[order[start : start + 40]])))
            truth.append(labels[order[start : start + 40]])
    result = measure(continual, tmp_path)
    assert (result.predicted[-1] == torch.cat(logits).argmax(1).numpy()).all()
    right = torch.cat(logits).argmax(1).numpy() == np.concatenate(truth)
    assert json.loads(result.columns["accuracy_of_parts"]) == {
        "gaussian_noise": pytest.approx(right[:120].mean()),
        "contrast": pytest.approx(right[120:].mean()),
    }
    result = measure(mixed, tmp_path)
    assert result.columns["images"] == 120
    parts = json.loads(result.columns["accuracy_of_parts"])
    assert np.mean(list(parts.values())) == pytest.approx(result.columns["accuracy"])  # equal shares


def test_online_differs_from_episodic_only_because_it_remembers(checkpoint, tmp_path):
    entry = Entry(method="nc_ttt", checkpoint=checkpoint, settings={"lr": 0.05})
    episodic, online = only(checkpoint, entry, corruptions=["contrast"], protocols=["episodic", "online"])
    one, two = (measure(cell, tmp_path).predicted[-1] for cell in (episodic, online))
    assert (one[:40] == two[:40]).mean() > 0.9  # the first batch, but for the noise
    assert (one[40:] != two[40:]).any()


@pytest.mark.parametrize("protocol", ["episodic", "online", "continual"])
def test_a_mixed_stream_runs_in_any_protocol(checkpoint, tmp_path, protocol):
    entry = Entry(method="nc_ttt", checkpoint=checkpoint, settings={"lr": 0.05})
    (cell,) = only(checkpoint, entry, protocols=[protocol], orders=["mixed(by_class)"])
    result = measure(cell, tmp_path)

    scenarios = shuffled(120, 0, 1) % 2
    images, labels = zip(*(corrupted(name) for name in ("gaussian_noise", "contrast")), strict=True)
    places = order_of(labels[0], "by_class", 0)
    adapter, predicted = ncttt.Adapter(ncttt.load(checkpoint), lr=0.05, protocol=protocol), []
    for chunk in np.split(places, 3):
        batch = np.stack([images[scenarios[place]][place] for place in chunk])
        predicted.append(adapter(floats(batch)).argmax(1).numpy())
    assert (result.predicted[-1] == np.concatenate(predicted)).all()
    assert (result.right[-1] == (np.concatenate(predicted) == labels[0][places])).all()


@pytest.mark.parametrize("protocol", ["episodic", "online", "continual"])
def test_a_sequence_of_domains_is_one_stream_that_forgets_as_its_protocol_says(checkpoint, tmp_path, protocol):
    entry = Entry(method="ptbn", checkpoint=checkpoint, settings={"norm": "stream(0.02)"})
    asked = {"corruptions": ["contrast"], "severities": [2], "sequences": ["gradual+visits(2)+clean_every(4)"]}
    (cell,) = only(checkpoint, entry, protocols=[protocol], **asked)
    levels = [("contrast", 1), ("contrast", 2), ("contrast", 1), ("clean", 0)] * 2
    assert [(scenario.corruption, scenario.severity) for scenario in cell.scenarios] == levels
    columns = cell.columns()
    assert (columns["corruption"], columns["severity"]) == ("contrast", 2)
    assert columns["order"] == "random+gradual+visits(2)+clean_every(4)"
    result = measure(cell, tmp_path)

    method = ncttt.PTBN(norm="stream(0.02)")
    adapter, predicted, truth = ncttt.Adapter(ncttt.load(checkpoint), method, protocol=protocol), [], []
    before: list = []
    for kind in levels:
        adapter.new_domain()
        images, labels = corrupted(kind[0], severity=kind[1])
        places = order_of(labels, "random", 0, before.count(kind))
        before.append(kind)
        for chunk in np.split(places, 3):
            predicted.append(adapter(floats(images[chunk])).argmax(1).numpy())
            truth.append(labels[chunk])
    assert (result.predicted[-1] == np.concatenate(predicted)).all()
    right = (np.concatenate(predicted) == np.concatenate(truth)).reshape(8, 120)
    parts = json.loads(result.columns["accuracy_of_parts"])
    clean = [number for number, kind in enumerate(levels) if kind[0] == "clean"]
    assert parts["clean"] == pytest.approx(right[clean].mean())
    assert parts["contrast"] == pytest.approx(np.delete(right, clean, 0).mean())
    assert result.columns["images"] == 960


def test_images_are_made_once_for_all_methods_and_shared_as_a_map(checkpoint, store, monkeypatch):
    from ncttt.benchmark import scenarios

    made = []
    monkeypatch.setattr(
        scenarios, "corrupt", lambda images, name, *a, **k: made.append(name) or corrupt(images, name, *a, **k)
    )
    cells = cells_of(small_grid.grid(checkpoint))
    outcome = run_cells(cells, store)
    assert (len(outcome.rows), made) == (6, ["gaussian_noise", "contrast"])
    images = cells[0].scenarios[0].images(store.path.parent / "images")
    assert isinstance(images, np.memmap)
    assert (images == corrupted("gaussian_noise")[0]).all()


def test_a_checkpoint_that_changed_under_a_running_grid_is_refused(checkpoint, tmp_path):
    model = ncttt.load(checkpoint)
    ncttt.save(model, tmp_path / "model")
    cell = cells_of(small_grid.grid(str(tmp_path / "model")))[0]
    model.classifier.fc.bias.data += 1
    ncttt.save(model, tmp_path / "model")
    with pytest.raises(ncttt.InputError, match="has changed since the grid was begun"):
        measure(cell, tmp_path)


def test_the_folder_a_process_runs_in_does_not_matter(checkpoint, tmp_path, monkeypatch):
    monkeypatch.chdir(Path(checkpoint).parent)
    cell = cells_of(small_grid.grid(Path(checkpoint).name))[2]
    monkeypatch.chdir(tmp_path)
    assert measure(cell, tmp_path).columns["images"] == 120
    assert cell.columns()["checkpoint"] == Path(checkpoint).name


def test_a_cell_leaves_the_number_of_threads_as_it_was(checkpoint, tmp_path):
    (cell, *_) = cells_of(small_grid.grid(checkpoint, threads=2))
    before = torch.get_num_threads()
    measure(cell, tmp_path)
    assert torch.get_num_threads() == before


def test_a_fast_cell_asks_for_fast_kernels(checkpoint, tmp_path, monkeypatch):
    from ncttt.benchmark import measure as module

    asked, fast_kernels = [], module.fast_kernels
    monkeypatch.setattr(module, "fast_kernels", lambda *a: asked.append(a) or fast_kernels(*a))
    module.measure(cells_of(small_grid.grid(checkpoint, fast=True))[0], tmp_path)
    assert asked == [(True, "cpu")]
