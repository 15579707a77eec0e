"""Streams: orders, sequences of domains, visits and batches, and one clear line for what makes no sense."""

import numpy as np
import pytest
import torch

import ncttt
from ncttt import InputError, Stream
from ncttt.data import Domain, ImageSet
from ncttt.data.corruptions import corrupt
from ncttt.data.orders import Order, order_of, parse_order
from ncttt.data.planning import planned_batches
from ncttt.data.sequences import DomainSequence, parse_sequence


def pets(count: int = 60, labelled: bool = True) -> ImageSet:
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, count) if labelled else None
    images = random.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)
    return ImageSet(images, labels, ("cat", "dog", "cow"), name="pets")


def kinds(stream: Stream) -> list[tuple[str, int]]:
    return [(domain.name, domain.severity) for domain in stream.domains]


def test_orders_show_every_image_once_and_classes_in_bursts():
    labels = np.random.default_rng(0).integers(0, 10, 2000)

    def changes(order: str) -> float:
        places = order_of(labels, order, seed=3)
        assert sorted(places) == list(range(2000))
        return np.mean([len(np.unique(labels[places[start : start + 50]])) for start in range(0, 2000, 50)])

    by_class, bursts, mild, fair = (changes(o) for o in ("by_class", "dirichlet(0.05)", "dirichlet(10)", "random"))
    assert by_class < 2 < bursts < mild < fair + 0.2
    assert fair > 9
    assert (order_of(labels, "random", 1) != order_of(labels, "random", 2)).any()
    assert order_of(labels, "given", 1).tolist() == list(range(2000))


def test_orders_are_those_that_rows_were_measured_in():
    labels = np.arange(12) % 3
    assert order_of(labels, "random", 0).tolist() == [11, 3, 2, 1, 8, 6, 0, 7, 4, 10, 5, 9]
    assert order_of(labels, "by_class", 1).tolist() == [9, 0, 6, 3, 4, 7, 10, 1, 2, 5, 11, 8]
    assert order_of(labels, "dirichlet(0.1)", 2).tolist() == [3, 6, 7, 11, 8, 0, 9, 1, 5, 10, 4, 2]


@pytest.mark.parametrize("order", ["random", "by_class", "dirichlet(0.1)"])
def test_a_mixed_stream_shows_each_image_in_one_domain_and_all_equally_often(order):
    labels = np.random.default_rng(0).integers(0, 10, 300)
    batches = planned_batches([labels] * 3, "mixed" if order == "random" else f"mixed({order})", 50, seed=1)
    domains, places = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    assert places.tolist() == order_of(labels, order, 1).tolist()
    assert np.bincount(domains).tolist() == [100, 100, 100]
    assert all(len(np.unique(domains)) == 3 for domains, _ in batches)


def test_other_streams_go_through_the_domains_one_after_another():
    labels = np.random.default_rng(0).integers(0, 10, 70)
    batches = planned_batches([labels] * 2, "random", 50, seed=1)
    assert [(set(domains.tolist()), len(places)) for domains, places in batches] == [
        ({0}, 50), ({0}, 20), ({1}, 50), ({1}, 20),
    ]  # fmt: skip
    even = planned_batches([labels] * 2, "random", 50, seed=1, even=True)
    assert [len(places) for _, places in even] == [35, 35, 35, 35]


def test_orders_by_their_names():
    assert parse_order("random") == Order("random")
    assert parse_order("given") == Order("given")
    assert parse_order("dirichlet(.5)") == Order("dirichlet", (0.5,))
    assert parse_order("mixed") == Order("random", mixed=True)
    assert parse_order("mixed(by_class)") == Order("by_class", mixed=True)
    odd = ("by_clas", "dirichlet", "dirichlet(0)", "dirichlet(-1)", "mixed()", "mixed(mixed)", "by_class(1)")
    for name in (*odd, "mixed(given)"):
        with pytest.raises(InputError, match="no order"):
            parse_order(name)


@pytest.mark.parametrize(
    ("text", "sequence"),
    [
        ("once", DomainSequence()),
        ("gradual", DomainSequence(gradual=True)),
        ("visits(3)", DomainSequence(visits=3)),
        ("gradual+visits(2)+clean_every(4)", DomainSequence(True, 2, 4)),
    ],
)
def test_sequences_by_their_names(text, sequence):
    assert parse_sequence(text) == sequence
    assert str(sequence) == text


@pytest.mark.parametrize(
    "text", ["", "twice", "gradual+gradual", "visits", "visits(-1)", "visits(1.5)", "once+gradual"]
)
def test_unknown_sequences_are_refused(text):
    with pytest.raises(InputError, match="no sequence of domains"):
        parse_sequence(text)


def test_domains_of_sequences():
    stream = Stream.corrupted(pets(), ["fog", "snow"], 5, sequence="gradual", batch_size=60)
    assert kinds(stream) == [(name, level) for name in ("fog", "snow") for level in (1, 2, 3, 4, 5, 4, 3, 2, 1)]
    stream = Stream.corrupted(pets(), ["clean", "fog"], 3, sequence="visits(2)", batch_size=60)
    assert kinds(stream) == [("clean", 0), ("fog", 3)] * 2
    stream = Stream.corrupted(pets(), ["fog", "snow", "frost"], 2, sequence="clean_every(2)", batch_size=60)
    assert kinds(stream) == [("fog", 2), ("clean", 0), ("snow", 2), ("clean", 0), ("frost", 2), ("clean", 0)]


@pytest.mark.parametrize("size", [1, 7, 60])
def test_batches_are_the_images_of_their_domain_in_its_order(size):
    data = pets()
    stream = Stream.corrupted(data, ["clean", "contrast"], 4, order="by_class", batch_size=size, seed=5)
    batches = list(stream)
    assert len(batches) == len(stream) == 2 * -(-60 // size)
    places = order_of(data.labels, "by_class", 5)
    assert torch.cat([batch.labels for batch in batches]).tolist() == [*data.labels[places]] * 2
    pixels = torch.cat([batch.images for batch in batches]).mul(255).round().byte().permute(0, 2, 3, 1).numpy()
    expected = corrupt(data.images, "contrast", 4, indices=np.arange(60))
    assert np.array_equal(pixels, np.concatenate([data.images[places], expected[places]]))
    assert [number for number, batch in enumerate(batches) if batch.new_domain] == [len(stream) // 2]
    assert {batch.domain.name for batch in batches} == {"clean", "contrast"}


def test_a_draw_is_corrupted_as_the_whole_set_would_be():
    data = pets()
    stream = Stream.corrupted(data, ["gaussian_noise"], 3, images=20, batch_size=20, order="given", seed=2)
    (batch,) = stream
    whole = corrupt(data.images, "gaussian_noise", 3, indices=np.arange(60))
    found = [np.flatnonzero((whole == image).all((1, 2, 3))) for image in np.asarray(stream.domains[0].images[:])]
    assert all(len(places) == 1 for places in found)
    assert batch.labels.tolist() == [int(data.labels[places[0]]) for places in found]


def test_a_second_visit_has_the_same_images_in_another_order():
    stream = Stream.corrupted(pets(), ["fog"], sequence="visits(3)", batch_size=60)
    each = [batch.places.tolist() for batch in stream]
    assert len({tuple(places) for places in each}) == 3
    assert all(sorted(places) == list(range(60)) for places in each)
    bursts = Stream.corrupted(pets(), ["fog"], sequence="visits(2)", order="dirichlet(0.1)", batch_size=60)
    first, second = (batch.labels.tolist() for batch in bursts)
    assert first != second


def test_seeds_decide_everything():
    def shown(seed: int) -> list[list[int]]:
        settings = {"sequence": "gradual", "order": "mixed(dirichlet(0.5))", "batch_size": 16}
        stream = Stream.corrupted(pets(), ["fog"], 2, seed=seed, **settings)
        return [[*batch.places, *batch.domains] for batch in stream]

    assert shown(3) == shown(3) != shown(4)


def test_mixed_batches_have_images_of_several_domains():
    data = pets()
    stream = Stream.corrupted(data, ["clean", "contrast"], 5, order="mixed", batch_size=20)
    corrupted = corrupt(data.images, "contrast", 5, indices=np.arange(60))
    for batch in stream:
        assert not batch.new_domain
        assert set(batch.domains) == {0, 1}
        for image, domain, place in zip(batch.images, batch.domains, batch.places, strict=True):
            expected = torch.from_numpy((data.images, corrupted)[domain][place]).permute(2, 0, 1) / 255
            torch.testing.assert_close(image, expected)


def test_domains_may_be_anything_and_lack_labels():
    first, second = pets(5, labelled=False), pets(3, labelled=False)
    domains = [Domain("monday", first.images), Domain("tuesday", second.images)]
    batches = list(Stream(domains=domains, batch_size=4, even=True))
    assert [len(batch.images) for batch in batches] == [3, 2, 3]
    assert all(batch.labels is None for batch in batches)
    with pytest.raises(InputError, match="must have the same images"):
        Stream(domains=domains, order="mixed")


def test_a_loop_over_a_stream_adapts_as_one_by_hand():
    data = ncttt.data.load("digits", "test").subset(range(64))
    model = ncttt.load("digits-small-ncttt")
    stream = Stream.corrupted(data, ["fog", "contrast"], 3, batch_size=16, order="dirichlet(0.1)")
    adapter = ncttt.Adapter(model, ncttt.PTBN(norm="stream(0.05)"), protocol="online")
    logits = []
    for batch in stream:
        if batch.new_domain:
            adapter.new_domain()
        logits.append(adapter(batch.images))
    again = ncttt.Adapter(model, ncttt.PTBN(norm="stream(0.05)"), protocol="online")
    expected = []
    for name in ("fog", "contrast"):
        again.reset()
        pixels = corrupt(data.images, name, 3, indices=np.arange(64))[order_of(data.labels, "dirichlet(0.1)", 0)]
        expected += [again(part) for part in (torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255).split(16)]
    torch.testing.assert_close(torch.cat(logits), torch.cat(expected))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"batch_size": 128}, "batches of 128 images need a domain with as many; found 60 in fog"),
        ({"batch_size": 21, "images": 20}, "batches of 21 images need a domain with as many; found 20 in fog"),
        ({"images": 61}, "a domain shows 1 to 60 images of pets; found 61"),
        ({"images": 0}, "a domain shows 1 to 60 images of pets; found 0"),
        ({"batch_size": 0}, "batch_size must be a whole number"),
        ({"order": "by_clas"}, "no order 'by_clas'"),
        ({"severity": 6}, "severities go from 1 to 5; found 6"),
        ({"severity": 0}, "severities go from 1 to 5; found 0"),
        ({"sequence": "visits(0)"}, "a whole number of times from 1"),
        ({"sequence": "clean_every(1)"}, "a number from 2"),
        ({"sequence": "clean_every(0)"}, "a number from 2"),
        ({"corruptions": []}, "needs at least one domain"),
        ({"corruptions": ["fgo"]}, "fgo"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_input_is_one_clear_line(settings, why):
    with pytest.raises(InputError, match=why) as error:
        Stream.corrupted(pets(), **{"corruptions": ["fog"], "batch_size": 30, **settings})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("order", ["by_class", "dirichlet(0.1)", "mixed(by_class)"])
def test_orders_by_class_need_labels(order):
    with pytest.raises(InputError, match="follows the classes of images, and those of fog have no labels"):
        Stream.corrupted(pets(labelled=False), ["fog"], order=order, batch_size=30)


def test_fewer_images_than_a_batch_that_nobody_asked_for_are_one_batch():
    assert [len(batch.images) for batch in Stream.corrupted(pets(), ["clean"], images=20)] == [20]


def test_a_batch_size_that_one_of_the_domains_has_is_taken():
    domains = [Domain(name, pets(count).images) for name, count in (("monday", 10), ("tuesday", 40))]
    assert [len(batch.images) for batch in Stream(domains=domains, batch_size=40)] == [10, 40]
    with pytest.raises(InputError, match="batches of 41 images need a domain with as many; found 40 in tuesday"):
        Stream(domains=domains, batch_size=41)


def test_labels_are_as_many_as_images():
    with pytest.raises(InputError, match="the domain monday has 10 images and 3 labels"):
        Stream(domains=[Domain("monday", pets(10).images, np.zeros(3, np.int64))])


def test_a_stream_needs_domains_with_images():
    with pytest.raises(InputError, match="at least one domain"):
        Stream(domains=[])
    with pytest.raises(InputError, match="has no images"):
        Stream(domains=[Domain("monday", np.zeros((0, 8, 8, 3), np.uint8))])
