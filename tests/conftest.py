"""Settings for all tests."""

import torch

# The networks here are tiny: a second thread costs more than it brings, above all when other processes run.
torch.set_num_threads(1)
