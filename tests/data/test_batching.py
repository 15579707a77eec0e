"""Batches: values, layout, order, workers, ranks."""

import threading

import numpy as np
import pytest
import torch

from ncttt.base.errors import InputError
from ncttt.data import ImageSet, batches, folder, load


@pytest.fixture
def data(pictures):
    return ImageSet(pictures(103), np.arange(103) % 5, tuple("abcde"))


def everything(found):
    pairs = list(found)
    return torch.cat([images for images, _ in pairs]), torch.cat([labels for _, labels in pairs])


def test_pixels_are_the_bytes_over_255_with_channels_first(data):
    images, labels = everything(batches(data, 32))
    expected = torch.from_numpy(np.asarray(data.images)).permute(0, 3, 1, 2) / 255
    assert torch.equal(images, expected)
    assert labels.tolist() == data.labels.tolist()
    assert labels.dtype == torch.int64


def test_batches_are_channels_last(data):
    for images, _ in batches(data, 32, shuffle=True, workers=2):
        assert images.is_contiguous(memory_format=torch.channels_last)


def test_length_and_last_batch(data):
    assert [len(labels) for _, labels in batches(data, 32)] == [32, 32, 32, 7]
    assert [len(labels) for _, labels in batches(data, 32, drop_last=True)] == [32, 32, 32]
    assert len(batches(data, 32)) == 4
    assert list(batches(data, 200, drop_last=True)) == []


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_the_order_is_the_same_for_any_number_of_workers(data, workers):
    alone = everything(batches(data, 8, shuffle=True, seed=3, epoch=2))
    together = everything(batches(data, 8, shuffle=True, seed=3, epoch=2, workers=workers))
    assert torch.equal(alone[0], together[0])
    assert torch.equal(alone[1], together[1])


def test_the_order_depends_on_seed_and_epoch(data):
    orders = {
        tuple(np.concatenate(batches(data, 8, shuffle=True, seed=seed, epoch=epoch).order))
        for seed, epoch in ((0, 0), (0, 1), (1, 0), (0, 0))
    }
    assert len(orders) == 3
    assert all(sorted(order) == list(range(103)) for order in orders)


def test_ranks_share_the_set_without_overlap(data):
    orders = [np.concatenate(batches(data, 8, shuffle=True, rank=rank, world=4).order) for rank in range(4)]
    assert sorted(np.concatenate(orders)) == list(range(103))


def test_with_drop_last_every_rank_has_as_many_batches(data):
    # 103 images for 4 ranks are 26, 26, 26 and 25: without care the first three had two batches of 13.
    assert {len(batches(data, 13, drop_last=True, rank=rank, world=4)) for rank in range(4)} == {1}


def test_threads_end_when_the_loop_is_left(data):
    before = threading.active_count()
    for _ in batches(data, 4, workers=3):
        break
    for thread in threading.enumerate():
        if thread.name.startswith("ThreadPoolExecutor"):
            thread.join(timeout=5)
    assert threading.active_count() <= before


def test_files_are_decoded_by_workers_in_order(class_folder):
    images, labels = everything(batches(folder(class_folder, image_size=8), 2, workers=2))
    assert (images[:, 0, 4, 4] * 255).round().tolist() == [50, 50, 50, 200, 200]
    assert labels.tolist() == [0, 0, 0, 1, 1]


def test_memory_mapped_arrays(tmp_path, data):
    np.save(tmp_path / "images.npy", data.images)
    mapped = ImageSet(np.load(tmp_path / "images.npy", mmap_mode="r"), data.labels, data.classes)
    assert torch.equal(everything(batches(mapped, 50))[0], everything(batches(data, 50))[0])


@pytest.mark.parametrize("wrong", [{"batch_size": 0}, {"batch_size": 1, "rank": 2, "world": 2}])
def test_impossible_requests(data, wrong):
    with pytest.raises(InputError, match="batches need"):
        batches(data, **wrong)


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"epoch": -1}, {"seed": 1.5}])
def test_seed_and_epoch_are_integers_from_0(data, wrong):
    ((what, number),) = wrong.items()
    with pytest.raises(InputError, match=f"batches need a {what} that is an integer from 0; found {number}"):
        batches(data, 8, shuffle=True, **wrong)


@pytest.mark.parametrize(
    "images",
    [np.zeros((2, 8, 8, 3)), np.zeros((2, 3, 8, 8), np.uint8), np.zeros((2, 8, 8), np.uint8), [1, 2]],
)
def test_images_that_are_no_bytes_in_rows_are_refused(images):
    with pytest.raises(InputError, match=r"images must be uint8 \(N, H, W, 3\)"):
        ImageSet(images, np.array([0, 1]), ("a", "b"))


def test_sets_print_what_they_are_and_batches_need_one():
    data = ImageSet(np.zeros((2, 8, 9, 3), np.uint8), np.array([0, 1]), ("a", "b"), name="toy")
    assert repr(data) == "ImageSet('toy', 2 images of 8x9, 2 classes)"
    with pytest.raises(InputError, match="found a str"):
        batches("digits", 4)
    with pytest.raises(InputError, match="sequence of names"):
        ImageSet(np.zeros((2, 8, 9, 3), np.uint8), np.array([0, 1]), 2)


def test_batches_for_a_gpu_are_pinned_where_they_are_read(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self + 100)  # it needs a GPU
    data = load("digits", "test").subset(range(4))
    plain, on_gpu = (batches(data, 4, device=device) for device in ("cpu", "cuda"))
    for here, there in zip(plain._read(plain.order[0]), on_gpu._read(on_gpu.order[0]), strict=True):
        assert torch.equal(there, here + 100)
