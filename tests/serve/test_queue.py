"""Batching: by size, by waiting time, one stream at a time, oldest first."""

import threading
import time

import numpy as np
import pytest

from ncttt.serve.batching import Call, Queue, QueueClosed, QueueFull, Room, Waiting


def request(stream: str = "a", images: int = 1, age: float = 0.0) -> Waiting:
    return Waiting(stream, np.zeros((images, 2, 2, 3), np.uint8), arrived=time.perf_counter() - age)


def test_a_full_batch_waits_no_longer():
    queue = Queue(batch_size=4, wait=60, most_waiting=100)
    for images in (1, 2, 2, 1):
        queue.put(request(images=images))
    assert [len(each.images) for each in queue.take()] == [1, 2]  # a request is not split
    assert len(queue) == 3


def test_requests_of_another_stream_are_another_batch():
    queue = Queue(batch_size=8, wait=0, most_waiting=100)
    first, other, second = request("a", age=2), request("b", age=3), request("a", age=1)
    for each in (first, other, second):
        queue.put(each)
    assert queue.take() == [other]  # it has waited longest
    assert queue.take() == [first, second]


def test_a_request_larger_than_a_batch_comes_alone():
    queue = Queue(batch_size=4, wait=0, most_waiting=100)
    large, small = request(images=9, age=1), request()
    queue.put(large)
    queue.put(small)
    assert queue.take() == [large]


def test_a_batch_is_ready_when_its_first_request_has_waited():
    queue = Queue(batch_size=8, wait=0.05, most_waiting=100)
    began = time.perf_counter()
    queue.put(request())
    assert len(queue.take()) == 1
    assert time.perf_counter() - began >= 0.045


def test_an_idle_queue_gives_nothing_after_a_while():
    assert Queue(8, 0.0, 10).take(idle=0.01) is None


def test_calls_go_first():
    queue = Queue(8, 0.0, 10)
    queue.put(request(age=9))
    future = queue.call(lambda: 3)
    taken = queue.take()
    assert isinstance(taken, Call)
    assert taken.future is future


def test_a_full_queue_refuses_and_goes_on():
    queue = Queue(8, 0.0, most_waiting=3)
    queue.put(request(images=3))
    with pytest.raises(QueueFull, match="3 images wait"):
        queue.put(request())
    queue.take()
    queue.put(request())


def test_a_closed_queue_gives_what_waits_and_then_nothing():
    queue = Queue(8, wait=60, most_waiting=10)
    waiting = request()
    queue.put(waiting)
    queue.close()
    with pytest.raises(QueueClosed):
        queue.put(request())
    assert queue.take() == [waiting]
    assert queue.take() is None


def test_a_room_takes_no_more_than_it_has_place_for():
    room = Room(10, "bytes")
    with room.share() as one, room.share() as other:
        one(4)
        other(6)
        with pytest.raises(QueueFull, match="10 bytes are being read"):
            one(1)
    with room.share() as again:
        again(10)


def test_who_waits_is_woken():
    queue, taken = Queue(2, wait=60, most_waiting=10), []
    thread = threading.Thread(target=lambda: taken.append(queue.take()))
    thread.start()
    queue.put(request())
    queue.put(request())
    thread.join(10)
    assert [len(batch) for batch in taken] == [2]
