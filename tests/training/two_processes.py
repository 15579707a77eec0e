"""Run by torchrun: trains in double precision and prints the losses of every step as JSON.

In single precision the rounding of another order of summation grows with every step, whatever the code does.
"""

import json
import sys

import torch

import ncttt
from ncttt.data import load
from ncttt.training import loop
from ncttt.training.processes import mean_of_all, place, process_group
from ncttt.training.stepping import Stepper


class Recording(Stepper):
    losses_of_all: list[list[float]] = []  # noqa: RUF012

    def step(self, number: int, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        metrics = super().step(number, images.double(), labels)
        self.losses_of_all.append(mean_of_all(metrics).tolist())
        return metrics


def main(synchronise: bool) -> None:
    torch.set_num_threads(1)
    loop.Stepper = Recording
    torch.manual_seed(0)
    net = ncttt.models.small(num_classes=10, width=4)
    model = ncttt.attach(net, "layer2", ncttt.NCTTT(hidden=32), torch.rand(2, 3, 32, 32)).double()
    recipe = ncttt.Recipe(epochs=4, batch_size=64, lr=0.02, auxiliary_weight=1.0, synchronise=synchronise)
    ncttt.train(model, load("digits", "fit").subset(range(256)), recipe, observers=[])
    if place().first:
        print(json.dumps(Recording.losses_of_all))


if __name__ == "__main__":
    with process_group("cpu"):
        main(synchronise=sys.argv[1] == "synchronised")
