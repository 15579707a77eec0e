"""DATA_SETS: what there is, in which order, and sets from outside."""

import json
import subprocess
import sys

import numpy as np
import pytest

from ncttt.base.errors import InputError
from ncttt.cli import main
from ncttt.data import DATA_SETS, batches, check, corrupted, get, list_sets, load

STRIPES = """
import numpy as np
from ncttt.data import DataSet, ImageSet

class Stripes(DataSet):
    title = "Rows or columns"
    classes = ("rows", "columns")
    splits = ("train", "fit", "val", "test")

    def read(self, root, split, **options):
        count = 40 if split == "train" else 10
        images, labels = np.zeros((count, 32, 32, 3), np.uint8), np.arange(count) % 2
        images[labels == 0, ::2], images[labels == 1, :, ::2] = 255, 255
        return ImageSet(images, labels, self.classes, name=f"stripes {split}")

class OnDisk(Stripes):
    folder = "stripes"
    hashes = {"a.bin": "md5:0cc175b9c0f1b6a831c399e269772661"}

number = 5
"""


@pytest.fixture
def stripes(tmp_path, monkeypatch):
    """The address of a data set in a file of the current folder."""
    (tmp_path / "my_stripes.py").write_text(STRIPES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    yield "my_stripes:Stripes"
    sys.modules.pop("my_stripes", None)
    for name in [name for name in DATA_SETS._loaded if name.startswith("my_stripes")]:
        del DATA_SETS._loaded[name]


def test_the_sets_are_listed_in_a_fixed_order():
    assert list(DATA_SETS) == [
        *("digits", "cifar10", "cifar100", "cifar10-c", "cifar100-c", "cifar10.1-v4", "cifar10.1-v6", "visda-c"),
        "pacs",
    ]
    assert list(list_sets("nowhere")) == list(DATA_SETS)


def test_facts_are_plain_values():
    facts = list_sets("nowhere")
    assert json.loads(json.dumps(facts)) == facts
    assert facts["cifar100"] == {
        "present": False,
        "unfinished": False,
        "splits": ["train", "fit", "val", "test"],
        "bytes": 168_513_733,
        "title": "CIFAR-100: 60,000 photographs at 32x32, 100 classes",
    }


def test_a_set_from_outside_is_loaded_and_batched(stripes):
    test, fit, val = (load(stripes, split) for split in ("test", "fit", "val"))
    assert (len(test), len(fit), len(val)) == (10, 36, 4)
    assert test.classes == ("rows", "columns")
    images, labels = next(iter(batches(test, 4)))
    assert images.shape == (4, 3, 32, 32)
    assert labels.tolist() == [0, 1, 0, 1]
    foggy = load(stripes, "test", corruption="fog", severity=3)
    assert np.array_equal(foggy.images, corrupted(test, "fog", 3).images)
    with pytest.raises(InputError, match="my_stripes:Stripes has no split 'tests'; did you mean 'test'"):
        load(stripes, "tests")


def test_a_set_from_outside_is_got_and_checked(stripes, tmp_path):
    assert get(stripes, tmp_path) == tmp_path
    assert check(stripes, tmp_path) == {}
    with pytest.raises(InputError, match=r"my_stripes:OnDisk is not in .*; put it into .*stripes"):
        get("my_stripes:OnDisk", tmp_path)
    (tmp_path / "stripes").mkdir()
    assert check("my_stripes:OnDisk", tmp_path) == {"a.bin": "missing"}
    (tmp_path / "stripes/a.bin").write_text("a")
    assert check("my_stripes:OnDisk", tmp_path) == {"a.bin": "ok"}
    assert get("my_stripes:OnDisk", tmp_path) == tmp_path / "stripes"


def test_the_commands_take_a_set_from_outside(stripes, tmp_path, capsys):
    out = tmp_path / "c"
    command = ["data", "corrupt", stripes, "--out", str(out), "--corruptions", "contrast", "--severity", "1"]
    assert main([*command, "--workers", "1"]) == 0
    assert load(str(out), "test", corruption="contrast", severity=1).labels.tolist() == [0, 1] * 5
    assert main(["data", "check", stripes, "--json"]) == 0
    assert main(["data", "sheet", stripes, "--out", str(tmp_path / "s.png"), "--corruptions", "fog"]) == 0


def test_an_installed_set_is_listed_last(stripes, monkeypatch):
    import my_stripes  # pyright: ignore[reportMissingImports]

    monkeypatch.setitem(DATA_SETS._loaders, "stripes", lambda: my_stripes.Stripes)
    assert list(list_sets("nowhere"))[-1] == "stripes"
    assert list_sets("nowhere")["stripes"]["title"] == "Rows or columns"
    assert len(load("stripes", "test")) == 10
    monkeypatch.delitem(DATA_SETS._loaded, "stripes")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "my_stripes:number",
            "is no data set: expected a subclass of ncttt.data.DataSet, an ImageSet, a Dataset of PyTorch, .*; found 5",
        ),
        ("my_stripes:Strips", "cannot load 'my_stripes:Strips'"),
        ("no_such_module:Set", "cannot load 'no_such_module:Set'"),
    ],
)
def test_a_wrong_address_is_named(stripes, name, said):
    with pytest.raises(InputError, match=said):
        load(name, "test")


def test_listing_needs_no_torch():
    code = (
        "import sys; from ncttt.cli import main; main(['data', 'list', '--json', '--root', 'nowhere']); "
        "sys.exit(', '.join({'torch', 'scipy', 'sklearn', 'PIL', 'matplotlib'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stderr.strip() == ""
    assert list(json.loads(run.stdout)["sets"]) == list(DATA_SETS)
