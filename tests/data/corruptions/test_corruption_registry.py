"""Corruptions by name: the benchmark's order, groups, and corruptions from outside."""

import json
import subprocess
import sys

import numpy as np
import pytest

from ncttt.base.errors import InputError
from ncttt.cli import main
from ncttt.data import load
from ncttt.data.corruptions import CORRUPTIONS, EXTRA, corrupt, corruption, expand_corruptions, generate
from ncttt.data.corruptions.registry import BY_NAME

HAZE = """
import numpy as np
from ncttt.data.corruptions import corruption

@corruption(cifar=((0.1,), (0.2,), (0.3,), (0.4,), (0.5,)), imagenet=((0.2,), (0.4,), (0.6,), (0.8,), (1.0,)))
def haze(images, draws, share):
    grey = draws.uniform(0, 255)[:, None, None, None]
    return (images * (1 - share) + grey * share).astype(np.uint8)

def plain(images, draws):
    return images
"""


@pytest.fixture
def haze(tmp_path, monkeypatch):
    """The address of a corruption in a file of the current folder."""
    (tmp_path / "my_module.py").write_text(HAZE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    yield "my_module:haze"
    sys.modules.pop("my_module", None)
    BY_NAME._loaded.pop("my_module:haze", None)


def test_the_order_is_that_of_the_benchmark():
    assert (
        *("gaussian_noise", "shot_noise", "impulse_noise"),
        *("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
        *("snow", "frost", "fog", "brightness"),
        *("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
    ) == CORRUPTIONS
    assert EXTRA == ("speckle_noise", "gaussian_blur", "spatter", "saturate")
    assert tuple(BY_NAME) == CORRUPTIONS + EXTRA
    assert [name for name in BY_NAME if BY_NAME[name].extra] == list(EXTRA)


def test_names_need_no_scipy():
    code = (
        "import sys; from ncttt.data.corruptions import CORRUPTIONS, expand_corruptions; expand_corruptions('clean'); "
        "sys.exit(', '.join({'torch', 'scipy', 'PIL'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr.strip() == ""


def test_groups_are_expanded_where_they_stand():
    assert expand_corruptions(["all"]) == list(CORRUPTIONS)
    assert expand_corruptions("all,extra") == [*CORRUPTIONS, *EXTRA]
    assert expand_corruptions(["clean", "fog", "extra"]) == ["clean", "fog", *EXTRA]
    assert expand_corruptions(" fog , snow ") == ["fog", "snow"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("fogg", "no corruption 'fogg'; did you mean 'fog'"),
        ("extras", "no corruption 'extras'; did you mean 'extra'"),
        ("fog,", "no corruption ''"),
        ("fog,fog", "corruption 'fog' is named twice"),
        ("all,snow", "corruption 'snow' is named twice"),
        ("benchmark", "'benchmark': the fifteen of the benchmark are now called 'all'"),
        ([["fog"]], r"no corruption \['fog'\]"),
    ],
)
def test_wrong_names_are_named(names, said):
    with pytest.raises(InputError, match=said):
        expand_corruptions(names)


def test_clean_is_no_corruption_where_something_is_to_be_corrupted(tmp_path, capsys):
    with pytest.raises(InputError, match="no corruption 'clean'"):
        expand_corruptions("clean", clean=False)
    assert main(["data", "corrupt", "digits", "--out", str(tmp_path / "c"), "--corruptions", "clean"]) == 2
    assert "no corruption 'clean'" in capsys.readouterr().err
    assert main(["data", "sheet", "digits", "--out", str(tmp_path / "s.png"), "--corruptions", "benchmark"]) == 2
    assert "now called 'all'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_corruption_from_outside(haze):
    images = np.zeros((3, 32, 32, 3), np.uint8)
    hazy = corrupt(images, haze, 3, seed=1)
    assert hazy.max() > 0
    assert np.array_equal(hazy[1:2], corrupt(images[1:2], haze, 3, seed=1, indices=[1]))
    assert (corrupt(images, haze, 3, seed=1, constants="imagenet") >= hazy).all()
    assert expand_corruptions(f"fog,{haze}") == ["fog", haze]
    assert load("digits", "test", corruption=haze, severity=1).name == "digits test my_module:haze 1"


def test_a_set_under_a_corruption_from_outside(haze, tmp_path):
    images, labels = np.zeros((5, 32, 32, 3), np.uint8), np.arange(5)
    out = generate(images, labels, tmp_path / "c", corruptions=["fog"], severities=[2])
    generate(images, labels, out, corruptions=[haze], severities=[2], workers=2)
    assert np.array_equal(load(str(out), "all", None, haze, 2).images, corrupt(images, haze, 2))
    told = json.loads((out / "corruptions.json").read_text())
    assert told["constant_values"][haze] == [[0.1], [0.2], [0.3], [0.4], [0.5]]
    assert told["corruptions"] == ["fog", haze]


def test_a_function_without_constants_is_no_corruption(haze):
    with pytest.raises(InputError, match=r"'my_module:plain' is no corruption: expected a function decorated with"):
        corrupt(np.zeros((1, 32, 32, 3), np.uint8), "my_module:plain", 1)


def test_constants_are_given_for_each_severity():
    with pytest.raises(InputError, match="2 levels of cifar constants; expected one for each severity"):
        corruption(cifar=((1,), (2,)), imagenet=((1,),) * 5)
