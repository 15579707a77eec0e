"""No method is slower than torch-ttt's engine of its name; skipped if that is not installed."""

import importlib
from pathlib import Path

import pytest
import torch

pytest.importorskip("torch_ttt")

METHODS = ["tent", "ttt", "ttt_plus", "eata", "deyo", "memo 4", "actmad"]


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield importlib.import_module("never_slower")
    torch.set_num_threads(threads)


@pytest.mark.parametrize("method", METHODS)
def test_torch_ttt_takes_at_least_as_long(method, benchmark):
    """By 1.16 times and more on a busy machine, which is the margin for noise."""
    assert benchmark.peer_ratio(method) >= 1


def test_every_method_with_a_peer_is_compared(benchmark):
    assert sorted(benchmark.METHODS) == sorted(METHODS)


def test_a_method_that_is_slower_is_an_error_that_names_it(benchmark, monkeypatch, capsys):
    monkeypatch.setattr(benchmark, "peer_ratio", lambda label, rounds: {"tent": 1.5, "eata": 0.9}[label])
    with pytest.raises(SystemExit, match="slower than torch-ttt: eata"):
        benchmark.main(["--methods", "tent", "eata"])
    assert "eata       torch-ttt / ours 0.90" in capsys.readouterr().out
