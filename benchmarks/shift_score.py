"""What `Adapter.shift` tells, and why it rises for shifted images under source statistics.

    python benchmarks/shift_score.py --checkpoint cifar10-small-ncttt --out results/shift_score.csv

For clean test images and the fifteen corruptions at severities 1 and 5, under source and batch statistics: the root
mean square of the features at the tap, the mean length of the whitened projections, the mean score, and its AUROC
against clean images, low scores meaning shifted.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

import ncttt
from ncttt.base.csv_files import write_csv
from ncttt.base.provenance import origin
from ncttt.data import ImageSet, batches, corrupted, load
from ncttt.data.corruptions import CLEAN, CORRUPTIONS
from ncttt.methods.nc_ttt.branch import NoiseBranch
from ncttt.model.norm import statistics


@torch.no_grad()
def measured(model: ncttt.Branched, data: ImageSet, policy: str) -> tuple[float, float, Tensor]:
    """Size of features, length of projections and scores of one batch of all images."""
    images, _ = next(iter(batches(data, len(data))))
    assert isinstance(model.branch, NoiseBranch)
    with statistics(model.batch_norms(), policy):
        logits, features = model.forward_with_features(images)
        score = model.method.score(model, features, logits)
        projected = model.branch.each(features)[0][1]
    assert isinstance(features, torch.Tensor)
    assert score is not None
    size = features.square().mean((1, 2, 3)).sqrt().mean().item()
    return size, projected.norm(dim=2).mean().item(), score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--images", type=int, default=500)
    options = parser.parse_args()
    model = ncttt.load(options.checkpoint)
    test = load("cifar10", "test").subset(np.arange(options.images))
    rows, clean = [], {}
    for name, severity in [(CLEAN, 0), *((name, severity) for severity in (1, 5) for name in CORRUPTIONS)]:
        data = test if name == CLEAN else corrupted(test, name, severity)
        for policy in ("source", "batch"):
            size, length, scores = measured(model, data, policy)
            known = clean.setdefault(policy, scores)
            area = roc_auc_score([1] * len(known) + [0] * len(scores), torch.cat([known, scores]))
            numbers = {"features": size, "projections": length, "score": scores.mean().item(), "auroc": float(area)}
            row = {"corruption": name, "severity": severity, "statistics": policy}
            rows.append(row | {column: round(value, 4) for column, value in numbers.items()})
            print(rows[-1], flush=True)
    rows = [row | {"images": options.images, **origin()} for row in rows]
    write_csv(options.out, list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
