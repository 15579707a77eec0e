"""The figures as a reader meets them: files, settings, letters, colours, the parts of the diagram."""

import hashlib
import re
import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from colour_sight import SIGHT, lab
from drawn_texts import beyond_the_edge, boxes, crossed, drawn_texts, overlaps, smallest_letter
from figure_pages import EVERY, page
from matplotlib.colors import same_color
from matplotlib.patches import FancyBboxPatch
from PIL import Image

from ncttt.report.figures import save
from ncttt.report.figures.method import LEARNS
from ncttt.report.figures.shared import style
from ncttt.report.figures.shift import LOOKS
from ncttt.report.figures.tsne import LOOKS as LOOKS_OF_CLASSES

every_figure = pytest.mark.parametrize("name", EVERY)


@every_figure
def test_saved_as_svg_and_png(name, tmp_path):
    svg, png = save(page(name), tmp_path / "new", name)
    assert (svg.name, png.name) == (f"{name}.svg", f"{name}.png")
    assert svg.read_bytes().startswith(b"<?xml")
    assert b"<dc:date>" not in svg.read_bytes()
    with Image.open(png) as picture:
        assert picture.width == 1600


@every_figure
def test_texts_are_legible_and_do_not_overlap(name):
    figure = page(name)
    assert overlaps(figure) == []
    assert beyond_the_edge(figure) == []
    assert crossed(figure) == []
    assert min(map(smallest_letter, drawn_texts(figure))) >= 7 - 1e-9


@every_figure
def test_axes_with_numbers_have_names(name):
    figure = page(name)
    seen = {id(text) for text in drawn_texts(figure)}
    for axes in figure.axes:
        for axis, whole in ((axes.xaxis, figure.get_supxlabel()), (axes.yaxis, figure.get_supylabel())):
            shown = [label.get_text() for label in axis.get_ticklabels() if id(label) in seen]
            numbered = any(re.match(r"\$|[\N{MINUS SIGN}-]?\d", text) for text in shown)
            assert axis.get_label_text() or whole or not numbered, (name, axis)


@every_figure
def test_svg_is_reproducible_and_settings_stay(name, tmp_path):
    with matplotlib.rc_context({"font.size": 23, "svg.hashsalt": None, "axes.facecolor": "red"}):
        before = dict(matplotlib.rcParams)
        svg, _ = save(EVERY[name](), tmp_path, name)
        assert dict(matplotlib.rcParams) == before
    assert svg.read_bytes() == save(page(name), tmp_path / "again", name)[0].read_bytes()


def test_svg_is_the_same_in_another_process_without_pyplot(tmp_path):
    program = (
        "import sys, hashlib\n"
        "from ncttt.report.figures import FIGURES, Request, save\n"
        "for name in ('method', 'samples'):\n"
        "    print(hashlib.sha256(save(FIGURES[name](Request()), sys.argv[1], name)[0].read_bytes()).hexdigest())\n"
        "print('matplotlib.pyplot' in sys.modules)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "there"], capture_output=True, text=True, check=True
    )
    svgs = [save(page(name), tmp_path / "here", name)[0] for name in ("method", "samples")]
    assert ran.stdout.split() == [*(hashlib.sha256(svg.read_bytes()).hexdigest() for svg in svgs), "False"]


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_can_be_told_apart_by_the_colour_blind(sight):
    for colours in ([style.VERMILION, style.INK, style.BLUE], [style.ORANGE, style.BLUE, style.INK]):
        seen = [lab(colour, sight) for colour in colours]
        assert min(np.linalg.norm(a - b) for n, a in enumerate(seen) for b in seen[:n]) > 40
    lightness = [lab(style.PROBABILITY(p), sight)[0] for p in np.linspace(0, 1, 40)]
    assert np.all(np.diff(lightness) < 0)


@pytest.mark.parametrize("sight", SIGHT)
def test_what_has_a_colour_for_each_of_many_has_a_marker_for_each_too(sight):
    for looks in ([(look["marker"], look["color"]) for look in LOOKS.values()], LOOKS_OF_CLASSES):
        markers, colours = zip(*looks, strict=True)
        assert len(set(markers)) == len(markers)
        seen = [lab(colour, sight) for colour in colours]
        assert min(np.linalg.norm(a - b) for n, a in enumerate(seen) for b in seen[:n]) > 5
    gains = [lab(style.GAIN(part), sight) for part in (0.0, 0.5, 1.0)]
    assert min(np.linalg.norm(a - b) for n, a in enumerate(gains) for b in gains[:n]) > 40


def test_the_checks_of_texts_find_faults():
    figure = style.new_figure(height=3)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1])
    axes.set(xticks=[], yticks=[])
    places = {"crossed": (0.5, 0.5), "first": (0.1, 0.8), "second": (0.12, 0.81), "cut off": (1.12, 0.1)}
    for text, place in places.items():
        axes.text(*place, text, size=12)
    small = axes.text(0.1, 0.6, "$small_x$", size=9)
    assert crossed(figure) == ["crossed"]
    assert overlaps(figure) == [("first", "second")]
    assert beyond_the_edge(figure) == ["cut off"]
    assert smallest_letter(small) < 7


def test_method_tells_training_from_test_time():
    training, test, _ = page("method").axes
    said = [" ".join(" ".join(text.get_text().split()) for text in panel.texts) for panel in (training, test)]
    for part in ("encoder, up to the tap", "rest of the classifier", "prediction", "projector", "discriminator"):
        assert part in said[0]
        assert part in said[1]
    for part in ("in-view", "out-view", "soft label by density ratio", "joint loss", "class labels"):
        assert part in said[0]
        assert part not in said[1]
    assert [learning_parts(panel) for panel in (training, test)] == [4, 1]  # at test time the encoder alone


def learning_parts(panel) -> int:
    return sum(same_color(patch.get_facecolor(), LEARNS.fill) for patch in panel.patches)


def test_texts_of_the_diagram_fit_into_their_boxes():
    figure = page("method")
    frames = [
        patch.get_window_extent() for axes in figure.axes for patch in axes.patches if isinstance(patch, FancyBboxPatch)
    ]
    for text, box in boxes(figure):
        touched = [frame for frame in frames if frame.overlaps(box)]
        assert all(frame.contains(*corner) for frame in touched[-1:] for corner in (box.min, box.max)), text
