"""Executors: every task comes back, whatever becomes of the processes that work on it."""

import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

import small_grid
from ncttt import InputError
from ncttt.benchmark import cells_of, executors, run_cells
from ncttt.benchmark.executors import Failure, Here, Processes, executor
from ncttt.methods import PTBN


def make_here(threads, workers, address, device) -> Here:
    return Here()


def square(number: int) -> int:
    if number == 3:
        raise ValueError("three is too many")
    return number * number


class DiesOnce:
    """Kills its process the first time it meets the number 2."""

    def __init__(self, folder: Path):
        self.mark = folder / "died"

    def __call__(self, number: int) -> int:
        if number == 2 and not self.mark.exists():
            self.mark.touch()
            os._exit(1)
        return number


def dies_at_two(number: int) -> int:
    if number == 2:
        time.sleep(0.2)
        os._exit(1)
    return number


def dies(number: int) -> None:
    os._exit(1)


@pytest.mark.parametrize("runs", [Here(), Processes(2)])
def test_a_task_that_fails_does_not_stop_the_rest(runs):
    results = dict(runs.run(square, range(6)))
    assert results.pop(3) == Failure("ValueError: three is too many")
    assert results == {n: n * n for n in (0, 1, 2, 4, 5)}


def test_a_task_whose_worker_dies_is_tried_again(tmp_path):
    assert dict(Processes(2).run(DiesOnce(tmp_path), range(8))) == {n: n for n in range(8)}


def test_only_the_task_that_kills_its_worker_is_given_up():
    results = dict(Processes(2).run(dies_at_two, range(6)))
    assert results.pop(2) == Failure("the worker process died 3 times")
    assert results == {n: n for n in (0, 1, 3, 4, 5)}


def test_workers_that_cannot_start_are_told(monkeypatch):
    monkeypatch.setattr(
        executors, "fresh_pool", lambda workers: ProcessPoolExecutor(workers, initializer=dies, initargs=(0,))
    )
    with pytest.raises(InputError, match="worker processes die as they start"):
        list(Processes(2).run(square, range(50)))


def test_cells_that_kill_every_worker_are_given_up_one_by_one():
    assert set(dict(Processes(2).run(dies, range(2))).values()) == {Failure("the worker process died 3 times")}


def test_executors_by_name():
    assert isinstance(executor("here", 1), Here)
    assert executor("processes", 1, workers=3) == Processes(3)
    assert isinstance(executor("test_executors:make_here", 1), Here)
    assert executor("processes", 10_000) == Processes(1)  # more threads than cores: one at a time
    with pytest.raises(InputError, match="device 'cdua' cannot be used here"):
        executor("processes", 1, device="cdua")
    with pytest.raises(InputError, match="no executor 'rya'; did you mean 'ray'"):
        executor("rya", 1)
    with pytest.raises(InputError, match="workers must be at least 1"):
        executor("processes", 1, workers=0)


def test_a_cell_that_fails_is_recorded_with_its_error_and_mended_later(checkpoint, store, monkeypatch):
    def predict(self, model, images):
        raise RuntimeError("out of luck")

    cells = cells_of(small_grid.grid(checkpoint))
    monkeypatch.setattr(PTBN, "predict", predict)
    outcome = run_cells(cells, store)
    assert len(outcome.rows) == 4
    assert {error for _, error in outcome.failures} == {"RuntimeError: out of luck"}
    assert {failure["cell"]["method"] for failure in store.failures()} == {"ptbn"}
    monkeypatch.undo()
    assert len(run_cells(cells, store).rows) == 6
    assert store.failures() == []


def test_a_thousand_cells_have_little_overhead(tmp_path, store):
    """Everything around a method that does next to nothing, on a network that is next to nothing."""
    import ncttt

    model = ncttt.attach(ncttt.models.small(width=1), "layer1", ncttt.Source(), _example())
    ncttt.save(model, tmp_path / "tiny")
    grid = small_grid.grid(
        str(tmp_path / "tiny"),
        methods=[ncttt.benchmark.Entry(method="source", checkpoint=str(tmp_path / "tiny"))],
        images=2,
        corruptions=["contrast"],
        batch_sizes=[2],
        seeds=list(range(1001)),
    )
    cells = cells_of(grid)
    run_cells(cells[:1], store)
    adapter, images = ncttt.Adapter(model), _example()

    def seconds_a_cell(work: Callable[[], object], cells: int) -> float:
        start = time.process_time()
        work()
        return (time.process_time() - start) / cells

    # A fifth at a time, of which the best counts: what else the machine does costs processor time, too.
    parts = [cells[start : start + 200] for start in range(1, 1001, 200)]
    own = min(seconds_a_cell(lambda: [adapter(images) for _ in range(200)], 200) for _ in parts)
    overhead = min(seconds_a_cell(lambda part=part: run_cells(part, store), 200) for part in parts) - own
    assert overhead < 0.005, f"{1000 * overhead:.1f} ms a cell"


def _example():
    import torch

    return torch.rand(2, 3, 32, 32)
