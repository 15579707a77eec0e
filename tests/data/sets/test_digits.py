"""The embedded digits and the fixed splits."""

import hashlib

import numpy as np
import pytest
from sklearn.datasets import load_digits

from ncttt.base.errors import InputError
from ncttt.data import ImageSet, load
from ncttt.data.files.splits import shares, stratified


def test_digits_are_grey_colour_images_of_full_range():
    data = load("digits", "train")
    images = np.asarray(data.images)
    assert images.shape == (1297, 32, 32, 3)
    assert images.dtype == np.uint8
    assert (images == images[..., :1]).all()
    assert (images.min(), images.max()) == (0, 255)


def test_the_original_digit_comes_back_when_the_image_is_reduced():
    # Every 8x8 original must be the block mean of exactly the image that carries its label.
    originals = load_digits().images.reshape(-1, 64) * (255 / 16)
    data = load("digits", "test")
    reduced = np.asarray(data.images)[..., 0].reshape(-1, 8, 4, 8, 4).mean(axis=(2, 4)).reshape(-1, 64)
    distances = ((reduced[:50, None] - originals[None]) ** 2).mean(-1)
    assert np.array_equal(load_digits().target[distances.argmin(1)], data.labels[:50])
    assert np.sqrt(distances.min(1)).max() < 25


def test_the_splits_are_the_same_for_ever():
    # Every published number depends on these indices; the digest changes if a single image moves.
    _, digits = stratified(load_digits().target, 500)
    _, cifar = stratified(np.arange(50_000) % 10, 5000)
    assert [hashlib.md5(held.astype("<i8").tobytes()).hexdigest()[:8] for held in (digits, cifar)] == [
        "4918de69",
        "0a18578f",
    ]


def test_train_and_test_are_balanced_and_disjoint():
    train, test = load("digits", "train"), load("digits", "test")
    assert np.ptp(np.bincount(test.labels)) <= 3
    seen = {image.tobytes() for image in np.asarray(train.images)}
    assert not any(image.tobytes() in seen for image in np.asarray(test.images))


def test_fit_and_val_are_parts_of_train():
    train = sorted(image.tobytes() for image in np.asarray(load("digits", "train").images))
    fit, val = load("digits", "fit"), load("digits", "val")
    assert (len(fit), len(val)) == (1167, 130)
    assert sorted(image.tobytes() for part in (fit, val) for image in np.asarray(part.images)) == train


def test_stratified_takes_each_class_by_its_share():
    labels = np.repeat([0, 1, 2], [600, 300, 100])
    kept, held = stratified(labels, 100)
    assert np.bincount(labels[held]).tolist() == [60, 30, 10]
    assert sorted([*kept, *held]) == list(range(1000))


def test_shares_add_up_whatever_the_rounding():
    counts = np.array([3, 3, 3, 1])
    for total in range(11):
        assert shares(counts, total).sum() == total
        assert (shares(counts, total) <= counts).all()


def test_an_unknown_split_or_set_suggests_one():
    with pytest.raises(InputError, match="digits has no split 'tests'; did you mean 'test'"):
        load("digits", "tests")
    with pytest.raises(InputError, match="no data set 'digit'; did you mean 'digits'"):
        load("digit", "test")


def test_an_image_set_checks_itself(pictures):
    with pytest.raises(InputError, match="pets: 3 images but 2 labels"):
        ImageSet(pictures(3), np.array([0, 1]), ("cat", "dog"), name="pets")
    with pytest.raises(InputError, match=r"label -1 of image 1 is not in 0\.\.1"):
        ImageSet(pictures(2), np.array([0, -1]), ("cat", "dog"))
    with pytest.raises(InputError, match="labels must be integers"):
        ImageSet(pictures(2), np.array([0.0, 1.0]), ("cat", "dog"))
