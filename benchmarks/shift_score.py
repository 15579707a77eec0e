"""Why the shift score rises for shifted images under source statistics: the size of what the discriminator sees.

    python benchmarks/shift_score.py --checkpoint cifar10-small-ncttt --out results/shift_score.csv

For clean test images and five corruptions at severity 5, under source and batch statistics: the root mean square of the
features at the tap, the mean length of the whitened projections, and the mean score.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

import ncttt
from ncttt.base.csv_files import write_csv
from ncttt.base.provenance import origin
from ncttt.data import ImageSet, batches, corrupted, load
from ncttt.data.corruptions import CLEAN
from ncttt.methods.nc_ttt.branch import NoiseBranch
from ncttt.model.norm import statistics

CORRUPTIONS = (CLEAN, "gaussian_noise", "contrast", "fog", "pixelate", "defocus_blur")


@torch.no_grad()
def measured(model: ncttt.Branched, data: ImageSet, policy: str) -> dict[str, float]:
    """Size of features, length of projections and score of one batch of all images."""
    images, _ = next(iter(batches(data, len(data))))
    assert isinstance(model.branch, NoiseBranch)
    with statistics(model.batch_norms(), policy):
        logits, features = model.forward_with_features(images)
        score = model.method.score(model, features, logits)
        projected = model.branch.each(features)[0][1]
    assert isinstance(features, torch.Tensor)
    assert score is not None
    size = features.square().mean((1, 2, 3)).sqrt().mean().item()
    return {"features": size, "projections": projected.norm(dim=2).mean().item(), "score": score.mean().item()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--images", type=int, default=300)
    options = parser.parse_args()
    model = ncttt.load(options.checkpoint)
    test = load("cifar10", "test").subset(np.arange(options.images))
    rows = []
    for name in CORRUPTIONS:
        data = test if name == CLEAN else corrupted(test, name, 5)
        for policy in ("source", "batch"):
            numbers = {column: round(value, 4) for column, value in measured(model, data, policy).items()}
            rows.append({"corruption": name, "statistics": policy, **numbers, "images": options.images, **origin()})
            print(name, policy, numbers)
    write_csv(options.out, list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
