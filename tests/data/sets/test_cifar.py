"""CIFAR-10 and CIFAR-100 in the layouts of their home, and files that are wrong."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from ncttt.base.errors import InputError
from ncttt.data import check, list_sets, load
from ncttt.data.files.cifar_files import read_pickle
from ncttt.data.sets.cifar100 import CLASSES


def planes(images: np.ndarray) -> np.ndarray:
    return images.transpose(0, 3, 1, 2).reshape(len(images), -1)


def write_binary(root, pictures, per_file=20):
    folder = root / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    everything = pictures(6 * per_file)
    labels = np.arange(6 * per_file) % 10
    for i, name in enumerate([*(f"data_batch_{j}" for j in range(1, 6)), "test_batch"]):
        part = slice(i * per_file, (i + 1) * per_file)
        records = np.concatenate([labels[part, None].astype(np.uint8), planes(everything[part])], axis=1)
        (folder / f"{name}.bin").write_bytes(records.tobytes())
    return everything, labels


def write_binary_cifar100(root, pictures):
    """Records of coarse label, fine label and planes: 200 to train on, 40 to test."""
    folder = root / "cifar-100-binary"
    folder.mkdir(parents=True)
    images, fine = pictures(240), np.arange(240) * 7 % 100
    labels = np.stack([fine // 5, fine], axis=1).astype(np.uint8)
    for name, part in (("train", slice(200)), ("test", slice(200, None))):
        (folder / f"{name}.bin").write_bytes(np.concatenate([labels[part], planes(images[part])], axis=1).tobytes())
    return images, fine


def write_pickled(path, entries):
    # Protocol 2 and an old module name are what the official files, written by Python 2, have.
    path.parent.mkdir(parents=True, exist_ok=True)
    body = pickle.dumps(entries, protocol=2).replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    path.write_bytes(body)


def test_binary_files_of_cifar10(tmp_path, pictures):
    images, labels = write_binary(tmp_path, pictures)
    train, test = load("cifar10", "train", tmp_path), load("cifar10", "test", tmp_path)
    assert np.array_equal(train.images, images[:100])
    assert np.array_equal(test.images, images[100:])
    assert np.array_equal(train.labels, labels[:100])
    assert train.classes[:2] == ("airplane", "automobile")


def test_pickled_files_of_cifar10_give_the_same(tmp_path, pictures):
    images, labels = write_binary(tmp_path / "binary", pictures)
    for i, name in enumerate([*(f"data_batch_{j}" for j in range(1, 6)), "test_batch"]):
        part = slice(i * 20, (i + 1) * 20)
        entries = {b"data": planes(images[part]), b"labels": labels[part].tolist(), b"batch_label": b"x"}
        write_pickled(tmp_path / "pickled/cifar-10-batches-py" / name, entries)
    for split in ("train", "test"):
        one, other = load("cifar10", split, tmp_path / "binary"), load("cifar10", split, tmp_path / "pickled")
        assert np.array_equal(one.images, other.images)
        assert np.array_equal(one.labels, other.labels)


def test_cifar100_takes_fine_labels_and_the_names_of_its_meta_file(tmp_path, pictures):
    folder = tmp_path / "cifar-100-python"
    fine = np.arange(30) * 3 % 100
    entries = {b"data": planes(pictures(30)), b"fine_labels": fine.tolist(), b"coarse_labels": [0] * 30}
    write_pickled(folder / "test", entries)
    write_pickled(folder / "meta", {b"fine_label_names": [name.encode() for name in CLASSES]})
    data = load("cifar100", "test", tmp_path)
    assert np.array_equal(data.images, pictures(30))
    assert np.array_equal(data.labels, fine)
    assert data.classes == CLASSES
    assert len(CLASSES) == len(set(CLASSES)) == 100


def test_binary_files_of_cifar100(tmp_path, pictures):
    images, fine = write_binary_cifar100(tmp_path, pictures)
    assert len((tmp_path / "cifar-100-binary/test.bin").read_bytes()) == 40 * 3074
    train, test = load("cifar100", "train", tmp_path), load("cifar100", "test", tmp_path)
    assert np.array_equal(train.images, images[:200])
    assert np.array_equal(test.images, images[200:])
    assert np.array_equal(np.concatenate([train.labels, test.labels]), fine)
    assert train.classes == CLASSES
    assert len(load("cifar100", "fit", tmp_path)) + len(load("cifar100", "val", tmp_path)) == 200


def test_the_binary_version_of_cifar100_comes_first(tmp_path, pictures):
    write_pickled(tmp_path / "cifar-100-python/meta", {b"fine_label_names": [b"a"]})
    assert not list_sets(tmp_path)["cifar100"]["present"]  # its batches are missing
    for name in ("train", "test"):
        write_pickled(tmp_path / "cifar-100-python" / name, {b"data": planes(pictures(3)), b"fine_labels": [0] * 3})
    assert list_sets(tmp_path)["cifar100"]["present"]
    assert set(check("cifar100", tmp_path)) == {"train", "test", "meta"}
    assert len(load("cifar100", "test", tmp_path)) == 3
    write_binary_cifar100(tmp_path, pictures)
    assert list_sets(tmp_path)["cifar100"]["present"]
    assert set(check("cifar100", tmp_path)) == {"train.bin", "test.bin"}
    assert len(load("cifar100", "test", tmp_path)) == 40
    (tmp_path / "cifar-100-binary/train.bin").unlink()
    assert not list_sets(tmp_path)["cifar100"]["present"]


WRONG_RECORDS = [
    (lambda body: body[:-5], r"test\.bin: 122955 bytes are not a whole number of 3074-byte records; truncated\?"),
    (lambda body: body[: 40 * 3073], r"test\.bin: 122920 bytes are not a whole number of 3074-byte records"),
    (lambda body: b"", r"test\.bin: 0 bytes are not"),
    (lambda body: body[:3075] + bytes([100]) + body[3076:], r"cifar100 test: label 100 of image 1 is not in 0\.\.99"),
]


@pytest.mark.parametrize(("change", "message"), WRONG_RECORDS)
def test_wrong_binary_files_of_cifar100_are_named(tmp_path, pictures, change, message):
    write_binary_cifar100(tmp_path, pictures)
    path = tmp_path / "cifar-100-binary/test.bin"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(InputError, match=message):
        load("cifar100", "test", tmp_path)
    assert check("cifar100", tmp_path)["test.bin"] != "ok"


def test_a_missing_binary_file_of_cifar100_is_named(tmp_path, pictures):
    write_binary_cifar100(tmp_path, pictures)
    (tmp_path / "cifar-100-binary/test.bin").unlink()
    with pytest.raises(InputError, match=r"test\.bin is missing"):
        load("cifar100", "test", tmp_path)


def test_held_out_part_is_fixed_balanced_and_apart_from_the_rest(tmp_path, pictures):
    images, labels = write_binary(tmp_path, pictures, per_file=40)
    fit, val = load("cifar10", "fit", tmp_path), load("cifar10", "val", tmp_path)
    assert (len(fit), len(val)) == (180, 20)
    assert np.bincount(val.labels).tolist() == [2] * 10
    where = {image.tobytes(): i for i, image in enumerate(images)}
    fit_at = [where[image.tobytes()] for image in np.asarray(fit.images)]
    val_at = [where[image.tobytes()] for image in np.asarray(val.images)]
    assert sorted(fit_at + val_at) == list(range(200))
    assert np.array_equal(labels[val_at], val.labels)


class Trap:
    def __reduce__(self):
        return exec, ("import builtins; builtins.sprung = True",)


def test_a_malicious_pickle_is_refused_and_not_executed(tmp_path):
    write_pickled(tmp_path / "cifar-100-python/meta", {b"fine_label_names": Trap()})
    with pytest.raises(InputError, match=r"meta: it asks for (__builtin__|builtins)\.exec.*nothing was executed"):
        load("cifar100", "test", tmp_path)
    import builtins

    assert not hasattr(builtins, "sprung")


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("builtins", "eval"),
        ("builtins", "getattr"),
        ("numpy", "load"),
        ("numpy.core.multiarray", "x"),
    ],
)
def test_only_what_cifar_files_contain_can_be_named(tmp_path, module, name):
    (tmp_path / "batch").write_bytes(f"c{module}\n{name}\n.".encode())
    with pytest.raises(InputError, match=f"asks for {module}.{name}"):
        read_pickle(tmp_path / "batch")


def test_an_array_of_objects_cannot_smuggle_anything_in(tmp_path):
    write_pickled(tmp_path / "batch", {b"data": np.array([Trap()], dtype=object)})
    with pytest.raises(InputError, match="batch: it holds an array of 'O8'"):
        read_pickle(tmp_path / "batch")


class Pointers:
    """Four labels whose bytes a type with a hidden field of objects would turn into addresses."""

    class Fields:
        def __reduce__(self):
            return np.dtype, ("V8", False, True), (3, "|", None, ("a",), {"a": (np.dtype("O"), 0)}, 8, 1, 0)

    def __reduce__(self):
        rebuild = np.empty(0).__reduce__()[0]
        return rebuild, (np.ndarray, (0,), b"b"), (1, (4,), Pointers.Fields(), False, b"A" * 32)


def test_bytes_cannot_be_passed_off_as_objects(tmp_path, pictures):
    # In a process of its own: where this is possible, it ends the interpreter.
    write_pickled(tmp_path / "cifar-10-batches-py/test_batch", {b"data": planes(pictures(4)), b"labels": Pointers()})
    command = ["data", "sheet", "cifar10", "--root", str(tmp_path), "--out", str(tmp_path / "sheet.png")]
    code = f"import sys; from ncttt.cli import main; sys.exit(main({command!r}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 2
    assert "test_batch: it holds an array of" in run.stderr
    assert "nothing was executed" in run.stderr


@pytest.mark.parametrize("kind", ["u1", "i4", "i8"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("protocol", [2, 4])
def test_arrays_of_integers_are_rebuilt(tmp_path, kind, order, protocol):
    array = np.array([[1, 2, 250], [4, 5, 6]], dtype=kind, order=order)
    (tmp_path / "batch").write_bytes(pickle.dumps({b"data": array}, protocol=protocol))
    found = read_pickle(tmp_path / "batch")[b"data"]
    assert np.array_equal(found, array)
    assert found.dtype == array.dtype


# What Python 2 and its numpy wrote: strings for bytes, for the type and for the byte order.
BY_PYTHON_2 = (
    b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\nq\x04K\x00\x85U\x01b\x87Rq\x05"
    b"(K\x01K\x01K\x02\x86cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01\x87Rq\x07(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xff"
    b"K\x00tb\x89U\x02\x07\x08tbU\x06labels]q\x08K\x03au."
)


def test_a_pickle_of_python_2(tmp_path):
    (tmp_path / "batch").write_bytes(BY_PYTHON_2)
    found = read_pickle(tmp_path / "batch")
    assert found[b"data"].tolist() == [[7, 8]]
    assert found[b"labels"] == [3]


@pytest.mark.parametrize("labels", [None, 5, [[1], [1, 2]], {}, [0.5] * 4, "four", [10**30] * 4])
def test_labels_of_the_wrong_kind_are_named(tmp_path, pictures, labels):
    write_pickled(tmp_path / "cifar-10-batches-py/test_batch", {b"data": planes(pictures(4)), b"labels": labels})
    with pytest.raises(InputError, match=r"test_batch: labels must be integers \(N,\), found"):
        load("cifar10", "test", tmp_path)


@pytest.mark.parametrize("names", [None, 5, [1, 2], {b"a": 1}, b"abc"])
def test_class_names_of_the_wrong_kind_are_named(tmp_path, names):
    write_pickled(tmp_path / "cifar-100-python/meta", {b"fine_label_names": names})
    with pytest.raises(InputError, match=r"meta: `fine_label_names` must be a list of names, found"):
        load("cifar100", "test", tmp_path)


def test_truncated_files_are_named(tmp_path, pictures):
    write_binary(tmp_path, pictures)
    path = tmp_path / "cifar-10-batches-bin/test_batch.bin"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(InputError, match=r"test_batch\.bin.*truncated"):
        load("cifar10", "test", tmp_path)
    write_pickled(tmp_path / "batch", {b"data": planes(pictures(3))})
    (tmp_path / "batch").write_bytes((tmp_path / "batch").read_bytes()[:500])
    with pytest.raises(InputError, match="batch: truncated or not a pickle"):
        read_pickle(tmp_path / "batch")


def test_a_label_out_of_range_is_named(tmp_path, pictures):
    write_binary(tmp_path, pictures)
    path = tmp_path / "cifar-10-batches-bin/test_batch.bin"
    body = bytearray(path.read_bytes())
    body[3 * 3073] = 10
    path.write_bytes(body)
    with pytest.raises(InputError, match=r"label 10 of image 3 is not in 0\.\.9"):
        load("cifar10", "test", tmp_path)


def test_images_of_the_wrong_shape_in_a_pickle(tmp_path):
    folder = tmp_path / "cifar-100-python"
    write_pickled(folder / "test", {b"data": np.zeros((4, 100), np.uint8), b"fine_labels": [0] * 4})
    write_pickled(folder / "meta", {b"fine_label_names": [b"a"]})
    with pytest.raises(InputError, match=r"uint8 \(N, 3072\), found uint8 \(4, 100\)"):
        load("cifar100", "test", tmp_path)


def test_a_missing_set_says_how_to_get_it(tmp_path):
    with pytest.raises(InputError, match="ncttt data get cifar100"):
        load("cifar100", "test", tmp_path)


def test_a_missing_file_is_named(tmp_path, pictures):
    write_binary(tmp_path, pictures)
    (tmp_path / "cifar-10-batches-bin/data_batch_3.bin").unlink()
    with pytest.raises(InputError, match=r"data_batch_3\.bin is missing"):
        load("cifar10", "train", tmp_path)
