"""A stream that drifts and comes back: which images it shows, and what is recorded of each batch."""

import numpy as np
import pytest
import torch

import ncttt
from ncttt.benchmark.drifting import DOMAINS, DriftingStream, follow, monitor_of, shifted_mean, summaries
from ncttt.data.corruptions import corrupt

MODEL = "digits-small-ncttt"
OPTIONS = {"images": 60, "batch_size": 25, "severity": 3, "constants": "imagenet"}


@pytest.fixture(scope="module")
def test_set():
    return ncttt.data.load("digits", "test")


@pytest.fixture(scope="module")
def records(test_set):
    model = ncttt.load(MODEL)
    monitor = monitor_of(model, ncttt.data.load("digits", "val"), 64)
    return list(follow(DriftingStream(data=test_set, **OPTIONS), model, monitor))


def test_domains_come_in_order_with_images_of_their_own(test_set):
    stream = DriftingStream(data=test_set, **OPTIONS)
    batches = list(stream)
    assert len(batches) == len(stream) == 15
    assert [batch.corruption for batch in batches[::3]] == list(DOMAINS)
    assert [len(batch.images) for batch in batches[:3]] == [25, 25, 10]
    clean, again = (torch.cat([b.images for b in batches if b.domain == number]) for number in (0, 4))
    assert not any(torch.equal(one, other) for one in clean for other in again)


def test_an_image_is_corrupted_as_elsewhere(test_set):
    stream = DriftingStream(data=test_set, **OPTIONS)
    clean = DriftingStream(data=test_set, **OPTIONS, domains=["clean"] * 5).domain(3)
    faded = corrupt(np.asarray(clean.images[:]), "contrast", 3, constants="imagenet")
    assert np.array_equal(stream.domain(3).images, faded)


def test_seeds_decide_the_stream(test_set):
    first, same, other = (
        torch.cat([batch.images for batch in DriftingStream(data=test_set, **OPTIONS, seed=seed)]) for seed in (1, 1, 2)
    )
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("wrong", [{"images": 0}, {"images": 10**6}, {"batch_size": 0}, {"domains": ()}])
def test_a_stream_that_shows_nothing_is_refused(test_set, wrong):
    with pytest.raises(ncttt.InputError, match="found"):
        DriftingStream(data=test_set, **(OPTIONS | wrong))


def test_the_record_of_a_batch_is_what_models_say_of_it(test_set, records):
    model, batch = ncttt.load(MODEL), list(DriftingStream(data=test_set, **OPTIONS))[9]
    frozen = (model.eval()(batch.images).argmax(1) == batch.labels).float().mean().item()
    statistics = (ncttt.Adapter(model, ncttt.PTBN())(batch.images).argmax(1) == batch.labels).float().mean().item()
    assert records[9].corruption == batch.corruption == "contrast"
    assert records[9].frozen == pytest.approx(frozen)
    assert records[9].statistics == pytest.approx(statistics)


def test_adaptation_helps_where_images_drift_and_the_alarm_sounds_there(records):
    domains = summaries(records)
    assert [domain.images for domain in domains] == [60] * 5
    assert shifted_mean(domains, "adapted") > shifted_mean(domains, "frozen") + 0.2
    assert domains[0].alarms == 0
    assert domains[3].alarms == 1
    assert all(abs(domain.adapted - domain.frozen) < 0.05 for domain in (domains[0], domains[4]))


def test_a_stream_of_clean_images_has_no_shifted_mean(records):
    with pytest.raises(ncttt.InputError, match="every domain of this stream is clean"):
        shifted_mean(summaries(records[:3]), "frozen")
