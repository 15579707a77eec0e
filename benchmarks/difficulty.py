"""How hard the generated corruptions are for a network trained elsewhere, as rows.

    python benchmarks/difficulty.py --weights resnet20-cifar10.safetensors --out results/corruption_difficulty.csv

The weights are those of `ncttt.nets.resnet` for CIFAR-10, trained on images normalised with ImageNet's mean and
standard deviation. The test split is corrupted on the fly (seed 0) and predicted with source statistics.
"""

import argparse
import csv
from pathlib import Path

import torch
from rich.progress import track
from safetensors.torch import load_file

import ncttt
from ncttt.base.provenance import origin
from ncttt.data import ImageSet, batches, load
from ncttt.data.corruptions import CORRUPTIONS, EXTRA


@torch.inference_mode()
def accuracy(model: ncttt.Branched, data: ImageSet) -> float:
    """Percent of images predicted right."""
    right = sum(int((model(images).argmax(1) == labels).sum()) for images, labels in batches(data, 500))
    return 100 * right / len(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--severity", type=int, default=5)
    parser.add_argument("--root", help="where CIFAR-10 lies; default as in `ncttt data get`")
    options = parser.parse_args()
    net = ncttt.nets.resnet()
    net.load_state_dict(load_file(options.weights))
    model = ncttt.Branched(net, None, ncttt.Source(), mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)).eval()
    source = {"network": "resnet20", "seed": 0, **origin()}
    rows = [{"corruption": "clean", "severity": 0, "accuracy": accuracy(model, load("cifar10", "test", options.root))}]
    for name in track((*CORRUPTIONS, *EXTRA), "corrupting and predicting"):
        data = load("cifar10", "test", options.root, corruption=name, severity=options.severity)
        rows.append({"corruption": name, "severity": options.severity, "accuracy": accuracy(model, data)})
    benchmark = [row["accuracy"] for row in rows if row["corruption"] in CORRUPTIONS]
    rows.append({"corruption": "mean of 15", "severity": options.severity, "accuracy": sum(benchmark) / len(benchmark)})
    with options.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["corruption", "severity", "accuracy", *source], lineterminator="\n")
        writer.writeheader()
        writer.writerows({**row, "accuracy": f"{row['accuracy']:.2f}", **source} for row in rows)
    for row in rows:
        print(f"{row['corruption']:<18} {row['accuracy']:6.2f}")


if __name__ == "__main__":
    main()
