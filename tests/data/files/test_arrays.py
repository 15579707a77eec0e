"""CIFAR-10-C, CIFAR-100-C and CIFAR-10.1 in their layout, and arrays that are wrong."""

import json

import numpy as np
import pytest

from ncttt.base.errors import InputError
from ncttt.data import check, load


@pytest.fixture
def cifar_c(tmp_path, pictures):
    folder = tmp_path / "CIFAR-10-C"
    folder.mkdir()
    for seed, name in enumerate(("fog", "gaussian_noise")):
        np.save(folder / f"{name}.npy", pictures(50, seed=seed))
    np.save(folder / "labels.npy", np.tile(np.arange(10, dtype=np.uint8), 5))
    return tmp_path


def test_a_severity_is_a_block_of_the_memory_mapped_file(cifar_c, pictures):
    data = load("cifar10-c", "test", cifar_c, corruption="gaussian_noise", severity=4)
    assert np.array_equal(data.images, pictures(50, seed=1)[30:40])
    assert data.labels.tolist() == list(range(10))
    assert data.labels.dtype == np.int64
    assert isinstance(data.images, np.memmap)


def test_a_folder_by_its_path_may_have_the_published_labels_of_one_byte(cifar_c, pictures):
    data = load(str(cifar_c / "CIFAR-10-C"), "test", corruption="fog", severity=1)
    assert np.array_equal(data.images, pictures(50)[:10])
    assert data.classes == tuple("0123456789")


def test_cifar100_c_knows_its_classes_without_cifar100(tmp_path, pictures):
    (tmp_path / "CIFAR-100-C").mkdir()
    np.save(tmp_path / "CIFAR-100-C/snow.npy", pictures(10))
    np.save(tmp_path / "CIFAR-100-C/labels.npy", np.array([98, 99] * 5))
    data = load("cifar100-c", "test", tmp_path, "snow", 5)
    assert [data.classes[label] for label in data.labels] == ["woman", "worm"]


@pytest.mark.parametrize("version", ["v4", "v6"])
def test_cifar10_1(tmp_path, pictures, version):
    (tmp_path / "cifar-10.1").mkdir()
    np.save(tmp_path / f"cifar-10.1/cifar10.1_{version}_data.npy", pictures(7))
    np.save(tmp_path / f"cifar-10.1/cifar10.1_{version}_labels.npy", np.arange(7, dtype=np.int32))
    data = load(f"cifar10.1-{version}", "test", tmp_path)
    assert np.array_equal(data.images, pictures(7))
    assert data.labels.tolist() == list(range(7))


def test_an_unknown_corruption_suggests_a_known_one(cifar_c):
    with pytest.raises(InputError, match="no corruption 'fogg'; did you mean 'fog'"):
        load("cifar10-c", "test", cifar_c, "fogg", 1)


@pytest.mark.parametrize("severity", [0, 6])
def test_severities_go_from_1_to_5(cifar_c, severity):
    with pytest.raises(InputError, match=rf"one of \(1, 2, 3, 4, 5\), found {severity}"):
        load("cifar10-c", "test", cifar_c, "fog", severity)


def test_corruption_and_severity_go_together(cifar_c):
    with pytest.raises(InputError, match="go together"):
        load("cifar10-c", "test", cifar_c, corruption="fog")


@pytest.mark.parametrize(
    "wrong",
    [np.zeros((50, 3, 32, 32), np.uint8), np.zeros((50, 32, 32, 3), np.float32), np.zeros(50, np.uint8)],
    ids=["planes", "floats", "flat"],
)
def test_wrong_shape_or_type_is_named(cifar_c, wrong):
    np.save(cifar_c / "CIFAR-10-C/fog.npy", wrong)
    with pytest.raises(InputError, match=r"fog\.npy: expected uint8 \(N, 32, 32, 3\), found " + str(wrong.dtype)):
        load("cifar10-c", "test", cifar_c, "fog", 1)


@pytest.mark.parametrize("count", [49, 45])
def test_blocks_must_be_whole_and_fit_the_labels(cifar_c, pictures, count):
    np.save(cifar_c / "CIFAR-10-C/fog.npy", pictures(count))
    with pytest.raises(InputError, match=rf"fog\.npy: {count} images and 50 labels"):
        load("cifar10-c", "test", cifar_c, "fog", 1)


def test_a_truncated_npy_file_is_an_error(cifar_c):
    path = cifar_c / "CIFAR-10-C/fog.npy"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(InputError, match=r"fog\.npy: truncated"):
        load("cifar10-c", "test", cifar_c, "fog", 1)


class Trap:
    sprung = False

    def __reduce__(self):
        return setattr, (Trap, "sprung", True)


def test_a_pickle_in_a_npy_file_is_not_executed(cifar_c):
    np.save(cifar_c / "CIFAR-10-C/fog.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="not a plain"):
        load("cifar10-c", "test", cifar_c, "fog", 1)
    assert not Trap.sprung


def test_labels_out_of_range(cifar_c):
    np.save(cifar_c / "CIFAR-10-C/labels.npy", np.full(50, 10))
    with pytest.raises(InputError, match=r"label 10 of image 0 is not in 0\.\.9"):
        load("cifar10-c", "test", cifar_c, "fog", 1)


@pytest.mark.parametrize("label", [-1, 3])
def test_a_damaged_label_is_found_whichever_severity_is_read(cifar_c, label):
    labels = np.tile(np.arange(10), 5)
    labels[37] = label
    np.save(cifar_c / "CIFAR-10-C/labels.npy", labels)
    with pytest.raises(InputError, match=rf"labels\.npy: .* found {label} for image 7 in block 4, 7 in block 1"):
        load("cifar10-c", "test", cifar_c, corruption="fog", severity=1)


def test_an_npz_file_in_disguise(cifar_c):
    with (cifar_c / "CIFAR-10-C/fog.npy").open("wb") as file:
        np.savez(file, images=np.zeros(3))
    with pytest.raises(InputError, match=r"fog\.npy: truncated, or not a plain \.npy file"):
        load("cifar10-c", "test", cifar_c, "fog", 1)


@pytest.mark.parametrize("place", range(0, 128, 5))
def test_a_damaged_header(cifar_c, place):
    path = cifar_c / "CIFAR-10-C/fog.npy"
    body = bytearray(path.read_bytes())
    body[place] = ord("(")
    path.write_bytes(body)
    try:
        load("cifar10-c", "test", cifar_c, "fog", 1)
    except InputError as error:
        assert "fog.npy" in str(error)  # noqa: PT017 - some damage only touches padding


@pytest.mark.parametrize("labels", [np.array(5), np.array(["a"] * 50), np.zeros(0, int), np.zeros(50)])
def test_labels_of_the_wrong_kind(cifar_c, labels):
    np.save(cifar_c / "CIFAR-10-C/labels.npy", labels)
    with pytest.raises(InputError, match=r"labels\.npy"):
        load("cifar10-c", "test", cifar_c, "fog", 1)


def test_a_huge_label_of_a_generated_set_names_no_millions_of_classes(cifar_c):
    np.save(cifar_c / "CIFAR-10-C/labels.npy", np.full(50, 10**12))
    with pytest.raises(InputError, match=r"labels\.npy: label 1000000000000 would mean more than 100,000 classes"):
        load(str(cifar_c / "CIFAR-10-C"), "test", corruption="fog", severity=1)


@pytest.mark.parametrize("split", ["all", "test"])
def test_a_folder_of_arrays_tells_which_corruptions_it_holds(cifar_c, split):
    with pytest.raises(InputError, match="no corruption 'snow'; there are: fog, gaussian_noise"):
        load(str(cifar_c / "CIFAR-10-C"), split, corruption="snow", severity=1)
    with pytest.raises(InputError, match="corruption and severity must be given; there are: fog, gaussian_noise"):
        load(str(cifar_c / "CIFAR-10-C"), split)


def test_an_unfinished_corruption_is_called_so(cifar_c):
    told = {"severities": [1, 2, 3, 4, 5], "corruptions": ["fog", "gaussian_noise", "snow"]}
    (cifar_c / "CIFAR-10-C/corruptions.json").write_text(json.dumps(told))
    with pytest.raises(InputError, match="snow is unfinished; run `ncttt data corrupt` again"):
        load("cifar10-c", "test", cifar_c, "snow", 1)
    findings = check("cifar10-c", cifar_c)
    assert findings["fog.npy"] == "ok"
    assert findings["snow.npy"].startswith("unfinished")


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"corruptions": 5}', '{"severities": []}', '{"severities": 5}', '{"severities": ["1"]}']
)
def test_a_description_that_makes_no_sense(cifar_c, text):
    (cifar_c / "CIFAR-10-C/corruptions.json").write_text(text)
    with pytest.raises(InputError, match=r"corruptions\.json"):
        load("cifar10-c", "test", cifar_c, "fog", 1)
