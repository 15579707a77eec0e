"""Where Winograd's gradients pay: 3x3 convolutions, forward and backward, against PyTorch's own, interleaved.

    python benchmarks/winograd.py [--rounds 15] [--threads 2] --out results/speed/winograd.csv

Shapes lie on both sides of the limits in `ncttt.nets.winograd`, which are taken away here; `used` says on which side
each lies. A ratio above one means that Winograd's gradients are faster; the median of rounds stands, with quartiles.
"""

import argparse
import csv
import statistics
import sys
import time
from pathlib import Path
from unittest import mock

import torch
from ncttt.allocation import keep_memory
from rich.progress import track
from torch import nn

from ncttt.base.provenance import origin
from ncttt.nets import winograd

SHAPES = [  # images, channels in and out, size of the maps
    *[(128, channels, channels, 8) for channels in (48, 64, 96, 128, 192)],
    *[(128, channels, channels, 16) for channels in (48, 64, 96, 128)],
    *[(128, channels, channels, 4) for channels in (96, 128, 192, 256)],
    *[(128, channels, channels, 32) for channels in (96, 128)],
    (128, 96, 192, 8),
    *[(images, 192, 192, 4) for images in (8, 32)],
    *[(32, channels, channels, 8) for channels in (128, 256)],
    (32, 512, 512, 4),
]
NO_LIMITS = {"FEWEST_CHANNELS": 1, "LARGEST_MAP": sys.maxsize, "CHANNELS_PER_TILE": sys.maxsize}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    keep_memory()  # as `ncttt train` does
    torch.set_num_threads(options.threads)
    rows = [row_of(*shape, options.rounds) | {"rounds": options.rounds, **origin()} for shape in track(SHAPES)]
    with options.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        print(*(row[name] for name in ("images", "inputs", "outputs", "size", "ratio", "used")), sep="\t")


def row_of(images: int, inputs: int, outputs: int, size: int, rounds: int) -> dict[str, object]:
    """How many times as long PyTorch's own convolution takes."""
    torch.manual_seed(0)
    values = torch.randn(images, inputs, size, size).to(memory_format=torch.channels_last).requires_grad_()
    ours = winograd.Conv3x3(inputs, outputs).to(memory_format=torch.channels_last)
    own = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False).to(memory_format=torch.channels_last)
    used = winograd._pays(values, ours.weight)
    with mock.patch.multiple(winograd, **NO_LIMITS):
        for layer in (own, ours):
            seconds(layer, values)
        ratios = [seconds(own, values) / seconds(ours, values) for _ in range(rounds)]
    low, middle, high = statistics.quantiles(ratios)
    return {
        "images": images,
        "inputs": inputs,
        "outputs": outputs,
        "size": size,
        "ratio": round(middle, 3),
        "low": round(low, 3),
        "high": round(high, 3),
        "used": used,
    }


def seconds(layer: nn.Conv2d, values: torch.Tensor, least: float = 0.05) -> float:
    """Of one forward and backward, from as many as fill a moment."""
    count, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < least or count < 2:
        layer(values).square().sum().backward()
        layer.weight.grad = values.grad = None
        count += 1
    return spent / count


if __name__ == "__main__":
    main()
