"""The figures of a model: what it gives before and after adaptation, and how that is drawn."""

import numpy as np
import pytest
import torch
from figure_data import confidences, drift_records, mapped, tiles
from figure_pages import page

import ncttt
from ncttt.base.errors import InputError
from ncttt.benchmark.scores import calibration_error
from ncttt.data import batches, load
from ncttt.data.corruptions import CORRUPTIONS
from ncttt.report.figures import draw_drift, draw_tsne
from ncttt.report.figures.reliability import binned
from ncttt.report.figures.shared.adapted import Confidences, confidences_of, features_of, subject_of
from ncttt.report.figures.shared.request import Request
from ncttt.report.figures.tsne import LOOKS, embed
from ncttt.report.names import spelled


@pytest.fixture(scope="module")
def model():
    return ncttt.load("digits-small-ncttt")


@pytest.fixture(scope="module")
def data():
    return load("digits", "test", corruption="shot_noise", severity=5).subset(range(40))


def test_features_are_those_behind_the_predictions(model, data):
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    found = features_of(model, model.method, data, steps=2, batch_size=20)
    adapter = ncttt.Adapter(model, steps=2)
    logits = torch.cat([adapter(images) for images, _ in batches(data, 20)])
    assert found.predicted.tolist() == logits.argmax(1).tolist()
    last = [module for module in model.classifier.modules() if isinstance(module, torch.nn.Linear)][-1]
    with torch.no_grad():
        assert torch.allclose(last(torch.from_numpy(found.features)), logits, atol=1e-4)
    still = features_of(model, ncttt.Source(), data, batch_size=20)
    assert not np.allclose(still.features, found.features, atol=1e-2)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_confidences_have_the_calibration_error_of_a_row(model, data):
    found = confidences_of(model, ncttt.PTBN(), data, batch_size=20)
    adapter = ncttt.Adapter(model, ncttt.PTBN())
    logits = torch.cat([adapter(images) for images, _ in batches(data, 20)])
    assert found.right.tolist() == (logits.argmax(1).numpy() == data.labels).tolist()
    assert binned(found).error == pytest.approx(calibration_error(logits, torch.from_numpy(data.labels)))


def test_the_map_is_one_for_both_and_the_same_each_time():
    generator = np.random.default_rng(0)
    clusters = 8 * np.eye(6)[np.arange(30) % 3] + generator.normal(size=(30, 6))
    first, second = embed(clusters, clusters + 1e-6)
    assert first.shape == second.shape == (30, 2)
    assert np.linalg.norm(first - second, axis=1).max() < 0.1 * np.ptp(first)  # what has not moved stays together
    assert np.array_equal(np.stack([first, second]), np.stack(embed(clusters, clusters + 1e-6)))
    with pytest.raises(InputError, match="8 images or more; found 3 and 3"):
        embed(clusters[:3], clusters[:3])


def test_tsne_draws_every_image_with_the_sign_of_its_class():
    before, after, labels, classes = mapped()
    panels = page("tsne").axes
    shown = [(before, before.predicted), (after, after.predicted), (before, labels), (after, labels)]
    for axes, (place, classified) in zip(panels, shown, strict=True):
        clouds = {cloud.get_label(): np.asarray(cloud.get_offsets()) for cloud in axes.collections}
        assert list(clouds) == classes
        for number, name in enumerate(classes):
            assert clouds[name] == pytest.approx(place.positions[classified == number])
    assert panels[0].get_title(loc="left").endswith("75.0 % right")
    assert panels[1].get_title(loc="left").endswith("100.0 % right")


def test_more_classes_than_signs_are_refused():
    before, after, labels, _ = mapped()
    with pytest.raises(InputError, match=f"at most {len(LOOKS)} classes can be told apart; found 100"):
        draw_tsne(before, after, labels, [str(n) for n in range(100)])


def test_reliability_draws_accuracy_and_share_of_each_bin():
    for column, (name, found) in enumerate(confidences().items()):
        above, below = page("reliability").axes[column], page("reliability").axes[column + 2]
        edges = np.linspace(0, 1, 16)
        for number, (bar, share) in enumerate(zip(above.patches, below.patches, strict=True)):
            inside = (found.confidence > edges[number]) & (found.confidence <= edges[number + 1])
            assert share.get_height() == pytest.approx(inside.mean())
            if inside.any():
                assert bar.get_height() == pytest.approx(found.right[inside].mean())
        right, error = 100 * found.right.mean(), binned(found).error
        assert above.get_title(loc="left") == f"{name}: {right:.1f} % right, ECE {error:.3f}"


@pytest.mark.parametrize("wrong", [([0.5, 1.2], [True, True]), ([0.5], [True, False]), ([], [])])
def test_what_is_no_confidence_is_refused(wrong):
    with pytest.raises(InputError, match="confidences in"):
        binned(Confidences(np.array(wrong[0]), np.array(wrong[1])))


def test_every_tile_is_where_its_names_say():
    clean, corrupted = tiles()
    seen = {}
    for axes in page("corruptions").axes:
        picture = np.asarray(axes.images[0].get_array())
        for line, label in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True):
            seen[label.get_text()] = [int(picture[round(line), round(column), 0]) for column in axes.get_xticks()]
    assert list(seen) == [*map(spelled, CORRUPTIONS), "Clean"]
    for name in CORRUPTIONS:
        assert seen[spelled(name)] == corrupted[name][:, 0, 0, 0].tolist()
    assert seen["Clean"] == [int(clean[0, 0, 0]), 255, 255, 255, 255]


def test_what_is_drawn_by_default_is_a_shift_that_matters():
    subject = subject_of(Request())
    before, after = (confidences_of(subject.model, method, subject.data) for method in (ncttt.Source(), subject.method))
    assert before.right.mean() < 0.5 < 0.8 < after.right.mean()


def test_a_drifting_stream_is_drawn_as_it_was_recorded():
    records = drift_records()
    accuracy, signal = page("drift").axes
    for line, name in zip(accuracy.lines[-3:], ("adapted", "statistics", "frozen"), strict=True):
        assert line.get_ydata() == pytest.approx([100 * getattr(record, name) for record in records])
        assert line.get_xdata()[:2] == pytest.approx([25, 75])
    written = [text.get_text() for text in accuracy.texts]
    assert written.count("80.0 %") == written.count("40.0 %") == 3
    quiet, loud = (line.get_xdata() for line in signal.lines if line.get_linestyle() == "None")
    assert len(quiet) == sum(not record.alarm for record in records)
    assert len(loud) == sum(record.alarm for record in records)


def test_a_stream_without_batches_is_not_drawn():
    with pytest.raises(InputError, match="without batches"):
        draw_drift([])
