"""Relative times: the frozen classifier is 1, and methods that take steps take longer."""

import torch

from ncttt.demo import pretrained_grid, relative_times


def test_every_method_of_the_grid_is_timed_against_the_frozen_one():
    threads = torch.get_num_threads()
    times = relative_times(pretrained_grid(50), torch.rand(50, 3, 32, 32), rounds=3)
    assert set(times) == {"source", "ptbn", "tent", "lame", "nc_ttt"}
    assert times["source"] == 1
    assert times["nc_ttt"] > 2
    assert torch.get_num_threads() == threads
