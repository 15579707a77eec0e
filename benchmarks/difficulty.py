"""How faithful the generated CIFAR-10-C is: errors of two networks trained elsewhere, beside a published table.

    python benchmarks/difficulty.py --resnet20 resnet20-cifar10.safetensors \\
        --resnet26gn resnet26gn-cifar10.safetensors --out results/corruption_difficulty.csv

Either network alone will do. The test images are corrupted on the fly (seed 0) and predicted with source statistics.
The errors of the ResNet-26 with GroupNorm on the official CIFAR-10-C are published, so that its errors on the generated
images tell how much easier or harder those are. The weights are state dictionaries of `ncttt.models`.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from rich.progress import track
from safetensors.torch import load_file

import ncttt
from ncttt.base.csv_files import write_csv
from ncttt.base.provenance import origin
from ncttt.data import ImageSet, batches, corrupted, load
from ncttt.data.corruptions import CORRUPTIONS, EXTRA

# Mean and standard deviation that the input of each network was normalised with.
NETWORKS = {
    "resnet20": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "resnet26gn": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
}
# Error in percent on the official CIFAR-10-C at severity 5 of the very weights that `--resnet26gn` takes, before any
# adaptation: Zhang, Levine, Finn, "MEMO: Test Time Robustness via Adaptation and Augmentation", NeurIPS 2022, appendix.
SEVERITY = 5
PUBLISHED = {
    "gaussian_noise": 48.4, "shot_noise": 44.8, "impulse_noise": 50.3, "defocus_blur": 24.1, "glass_blur": 47.7,
    "motion_blur": 24.5, "zoom_blur": 24.1, "snow": 24.1, "frost": 33.1, "fog": 28.0, "brightness": 14.1,
    "contrast": 29.7, "elastic_transform": 25.6, "pixelate": 43.7, "jpeg_compression": 28.3,
}  # fmt: skip
MEAN = "mean of 15"


def load_network(name: str, weights: Path) -> ncttt.Branched:
    """The network of that name with these weights, normalising its input itself."""
    net = ncttt.models.build(name)
    net.load_state_dict(load_file(weights))
    mean, std = NETWORKS[name]
    return ncttt.Branched(net, None, ncttt.Source(), mean=mean, std=std).eval()


@torch.inference_mode()
def errors(models: dict[str, ncttt.Branched], data: ImageSet) -> dict[str, float]:
    """Percent of images that each model gets wrong."""
    wrong = dict.fromkeys(models, 0)
    for images, labels in batches(data, 500):
        for name, model in models.items():
            wrong[name] += int((model(images).argmax(1) != labels).sum())
    return {name: 100 * count / len(data) for name, count in wrong.items()}


def measure(models: dict[str, ncttt.Branched], data: ImageSet) -> dict[str, dict[str, float]]:
    """For each model its errors on clean images, under every corruption, and on average over the fifteen."""
    found = {"clean": errors(models, data)}
    for name in track((*CORRUPTIONS, *EXTRA), "corrupting and predicting"):
        found[name] = errors(models, corrupted(data, name, SEVERITY))
    found[MEAN] = {model: float(np.mean([found[name][model] for name in CORRUPTIONS])) for model in models}
    return {model: {name: found[name][model] for name in found} for model in models}


def compare(measured: dict[str, float]) -> dict[str, float]:
    """Published mean, largest difference of one corruption, and correlation over the fifteen."""
    ours, theirs = (np.array([errors[name] for name in CORRUPTIONS]) for errors in (measured, PUBLISHED))
    furthest = int(np.abs(ours - theirs).argmax())
    return {
        "mean": float(ours.mean()),
        "published mean": float(theirs.mean()),
        f"largest difference ({CORRUPTIONS[furthest]})": float((ours - theirs)[furthest]),
        "correlation": float(np.corrcoef(ours, theirs)[0, 1]),
    }


def rows_of(measured: dict[str, dict[str, float]], images: int) -> list[dict[str, object]]:
    """A row for each network and corruption; published errors exist for one network only."""
    published = {**PUBLISHED, MEAN: float(np.mean(list(PUBLISHED.values())))}
    known = {("resnet26gn", name): error for name, error in published.items()}
    source = {"seed": 0, **origin()}
    return [
        {
            "network": network,
            "corruption": name,
            "severity": 0 if name == "clean" else SEVERITY,
            "images": images,
            "error": round(error, 2),
            "published": round(known[network, name], 2) if (network, name) in known else None,
            "difference": round(error - known[network, name], 2) if (network, name) in known else None,
            **source,
        }
        for network, errors in measured.items()
        for name, error in errors.items()
    ]


def show(rows: list[dict[str, object]], measured: dict[str, dict[str, float]]) -> None:
    """Print the errors corruption by corruption, and how they compare with the published ones."""
    for row in rows:
        numbers = [row[column] for column in ("error", "published", "difference")]
        print(f"{row['network']:<11} {row['corruption']:<18}", *("" if n is None else f"{n:8.2f}" for n in numbers))
    if "resnet26gn" in measured:
        for name, value in compare(measured["resnet26gn"]).items():
            print(f"{name}: {value:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in NETWORKS:
        parser.add_argument(f"--{name}", type=Path, help=f"weights of {name}, as safetensors")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--images", type=int, help="take the first so many test images; default all")
    parser.add_argument("--root", help="where CIFAR-10 lies; default as in `ncttt data get`")
    options = parser.parse_args()
    weights = {name: getattr(options, name) for name in NETWORKS if getattr(options, name) is not None}
    if not weights:
        parser.error(f"the weights of a network are needed: {' or '.join(f'--{name}' for name in NETWORKS)}")
    data = load("cifar10", "test", options.root)
    data = data.subset(np.arange(len(data) if options.images is None else options.images))
    measured = measure({name: load_network(name, path) for name, path in weights.items()}, data)
    rows = rows_of(measured, len(data))
    show(rows, measured)
    write_csv(options.out, list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
