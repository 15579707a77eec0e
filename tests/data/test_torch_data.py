"""Datasets and DataLoaders of PyTorch: every form that items have, lazy reading, labels, order, one channel."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset

import ncttt
from ncttt import InputError
from ncttt.data import ImageSet, as_image_set, batches, corrupted

CLASSES = ("a", "b", "c")
PIXELS = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3)).astype(np.uint8)
LABELS = np.arange(12) % 3
FLOATS = torch.from_numpy(PIXELS).permute(0, 3, 1, 2) / 255


class Items(Dataset):
    """Items in a form of the test's own; counts how many were read."""

    def __init__(self, form, count=12):
        self.form, self.count, self.read = form, count, []

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        self.read.append(index)
        return self.form(index)


FORMS = {
    "uint8 tensor": lambda i: (torch.from_numpy(PIXELS[i]).permute(2, 0, 1), int(LABELS[i])),
    "float tensor": lambda i: (FLOATS[i], torch.tensor(LABELS[i])),
    "array": lambda i: (PIXELS[i], LABELS[i]),
    "Pillow": lambda i: (Image.fromarray(PIXELS[i]), int(LABELS[i])),
    "dict": lambda i: {"img": Image.fromarray(PIXELS[i]), "label": int(LABELS[i])},
    "double array": lambda i: [PIXELS[i] / 255, LABELS[i]],
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("workers", [0, 2])
def test_items_of_every_form_become_the_same_batches(form, workers):
    expected = list(batches(ImageSet(PIXELS, LABELS, CLASSES), 5, shuffle=True, seed=3, epoch=2))
    found = list(batches(Items(form), 5, shuffle=True, seed=3, epoch=2, workers=workers))
    for (images, labels), (others, their_labels) in zip(expected, found, strict=True):
        torch.testing.assert_close(others, images)
        assert torch.equal(their_labels, labels)
        assert others.is_contiguous(memory_format=torch.channels_last)


def test_floats_stay_as_they_are():
    images = torch.randn(4, 3, 32, 32)
    found = torch.cat([some for some, _ in batches(TensorDataset(images, torch.arange(4)), 3)])
    assert torch.equal(found, images)


def test_known_labels_are_taken_and_images_stay_unread():
    data = Items(FORMS["Pillow"])
    data.targets = LABELS.tolist()
    made = as_image_set(Subset(data, [3, 1, 2, 5]), classes=CLASSES)
    assert made.labels.tolist() == [0, 1, 2, 2]
    assert len(data.read) <= 3
    assert made.subset([1, 2]).labels.tolist() == [1, 2]
    before = len(data.read)
    np.testing.assert_array_equal(made.subset([1, 2]).images[0], PIXELS[1])
    assert data.read[before:] == [1]


def test_known_labels_that_are_not_those_of_the_items_are_not_taken():
    data = Items(FORMS["array"])
    data.targets = (LABELS + 1).tolist()
    assert as_image_set(data).labels.tolist() == LABELS.tolist()


def test_a_set_without_labels():
    data = as_image_set(Items(lambda i: FLOATS[i]))
    assert (data.labels, data.classes, len(data)) == (None, (), 12)
    assert [labels for _, labels in batches(data, 8)] == [None, None]
    assert data[-1].shape == data.subset([4])[0].shape == (3, 32, 32)
    assert as_image_set(TensorDataset(FLOATS)).labels is None
    assert len(ImageSet(PIXELS)) == 12
    with pytest.raises(InputError, match="has no labels, which a split needs"):
        ncttt.data.files.splits.held_out(ImageSet(PIXELS), "fit")


def test_a_set_is_a_dataset_of_pytorch():
    data = ImageSet(PIXELS, LABELS, CLASSES)
    images, labels = next(iter(DataLoader(data, 5)))
    expected = next(iter(batches(data, 5)))
    assert torch.equal(images, expected[0])
    assert torch.equal(labels, expected[1])
    assert data[3:5].labels.tolist() == [0, 1]
    assert len(list(data)) == 12
    with pytest.raises(IndexError):
        data[12]


@pytest.mark.parametrize(
    "images",
    [FLOATS, torch.from_numpy(PIXELS).permute(0, 3, 1, 2), torch.from_numpy(PIXELS)],
    ids=["float", "CHW", "HWC"],
)
def test_a_loader_passes_through(images):
    found = list(batches(DataLoader(TensorDataset(images, torch.from_numpy(LABELS)), 5)))
    assert [len(labels) for _, labels in found] == [5, 5, 2]
    assert torch.equal(torch.cat([some for some, _ in found]), FLOATS)
    assert torch.equal(torch.cat([labels for _, labels in found]), torch.from_numpy(LABELS))


def test_a_loader_that_shuffles_depends_on_seed_and_epoch():
    loader = DataLoader(TensorDataset(FLOATS, torch.arange(12)), 12, shuffle=True)
    orders = [next(iter(batches(loader, epoch=epoch)))[1].tolist() for epoch in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]


class Endless(IterableDataset):
    def __iter__(self):
        yield from FLOATS


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Endless(), "map-style Dataset"),
        (torch.rand(4, 3, 32, 32), "found a Tensor"),
        (Items(lambda i: (FLOATS[i][:2], 0)), "one or three channels"),
        (Items(lambda i: (FLOATS[i], FLOATS[i])), "the label of item 0"),
        (Items(lambda i: {"jpg": FLOATS[i]}), "say keys="),
        (Items(lambda i: (torch.zeros(3, 8, 8, dtype=torch.int64), 0)), "uint8 or float; found int64"),
        (Items(FORMS["array"], count=0), "is empty"),
    ],
)
def test_what_cannot_be_read_is_named(data, message):
    with pytest.raises(InputError, match=message):
        batches(data, 4)


def test_images_of_two_sizes_are_named():
    data = as_image_set(Items(lambda i: (FLOATS[i, :, : 30 + 2 * (i != 7)], 0)))
    with pytest.raises(InputError, match="image 7 of the Dataset"):
        list(batches(data, 4))


def test_datasets_are_corrupted_and_grey_ones_refused():
    expected = corrupted(ImageSet(PIXELS, LABELS, CLASSES), "fog", 3).images
    np.testing.assert_array_equal(corrupted(as_image_set(Items(FORMS["float tensor"])), "fog", 3).images[:], expected)
    with pytest.raises(InputError, match="repeat the channel"):
        corrupted(ImageSet(PIXELS[..., :1], LABELS, CLASSES), "fog", 3)
    with pytest.raises(InputError, match="leave their normalisation to the model"):
        corrupted(as_image_set(TensorDataset(FLOATS * 4 - 2)), "fog", 3).images[0]
