"""Is a branch informative? Its score against the error, and its gradient against that of the true loss, as rows.

    python study/branch.py --checkpoints cifar10-small-ncttt cifar10-small-ttt --out results/branch.csv

For clean images and each of the fifteen corruptions: the error with batch statistics, the mean in-distribution score,
how well an image's score tells it from clean ones (area under the ROC curve), and, over the parameters that adaptation
moves, the cosine of the angle between the gradient of the branch's loss and that of the true labels' loss: mean
over batches, and the share of batches in which it is positive. Beside it the same of the entropy of the predictions,
and the cosine between the two losses without labels. Labels serve only to judge.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from rich.progress import track
from sklearn.metrics import roc_auc_score
from torch import Tensor
from torch.nn import functional as F

import ncttt
from ncttt.base.csv_files import write_csv
from ncttt.base.provenance import origin
from ncttt.benchmark.draws import ImageDraw
from ncttt.benchmark.scenarios import CLEAN, Scenario
from ncttt.data.corruptions import CORRUPTIONS
from ncttt.methods.tent import mean_entropy
from ncttt.model.branched import Branched
from ncttt.model.norm import statistics

CACHE = Path("runs/cache")
COSINES = ("cosine", "positive", "entropy_cosine", "entropy_positive", "cosine_with_entropy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoints", nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--severity", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    draw = ImageDraw("cifar10", "test", options.images)
    shown = {"images": options.images, "severity": options.severity, "batch_size": options.batch_size, **origin()}
    rows = [
        {"checkpoint": name, **row, **shown}
        for name in options.checkpoints
        for row in rows_of(ncttt.load(name), draw, options.severity, options.batch_size)
    ]
    write_csv(options.out, list(rows[0]), [list(row.values()) for row in rows])
    for name in options.checkpoints:
        print(name, summary([row for row in rows if row["checkpoint"] == name]))


def rows_of(model: Branched, draw: ImageDraw, severity: int, size: int) -> Iterator[dict[str, object]]:
    """One row for clean images and one for each corruption."""
    clean = np.empty(0)
    for corruption in track((CLEAN, *CORRUPTIONS), model.method.name):
        level = 0 if corruption == CLEAN else severity
        constants = None if corruption == CLEAN else "cifar"
        scenario = Scenario(draw, draw.read().digest, corruption, level, constants)
        errors, scores, cosines = measured(model, scenario, size)
        own, entropy, both = cosines.T
        clean = scores if corruption == CLEAN else clean
        apart = (
            roc_auc_score([1] * len(clean) + [0] * len(scores), np.concatenate([clean, scores])) if len(clean) else ""
        )
        yield {
            "method": model.method.name,
            "corruption": corruption,
            "error": errors.mean(),
            "score": scores.mean() if len(scores) else "",
            "auroc": apart,
            "cosine": own.mean(),
            "positive": (own > 0).mean(),
            "entropy_cosine": entropy.mean(),
            "entropy_positive": (entropy > 0).mean(),
            "cosine_with_entropy": both.mean(),
        }


def measured(model: Branched, scenario: Scenario, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Errors and scores of images, and the three cosines of each batch."""
    images, labels = scenario.images(CACHE), np.asarray(scenario.labels(CACHE))
    errors, scores, cosines = [], [], []
    for places in np.array_split(np.random.default_rng(0).permutation(len(labels)), -(-len(labels) // size)):
        pixels = torch.from_numpy(images[places]).permute(0, 3, 1, 2).float().div_(255)
        truth = torch.from_numpy(labels[places])
        with statistics(model.batch_norms(), "batch"):
            with torch.no_grad():
                logits, features = model.forward_with_features(pixels)
                score = model.method.score(model, features, logits)
            cosines.append([cosines_of(model, pixels, truth)])
        errors.append(logits.argmax(1) != truth)
        scores.extend([] if score is None else [score])
    return tuple(
        np.concatenate([np.atleast_1d(np.asarray(part)) for part in parts] or [[]])
        for parts in (errors, scores, cosines)
    )  # type: ignore[return-value]


def cosines_of(model: Branched, images: Tensor, labels: Tensor) -> tuple[float, float, float]:
    """Of the method's loss and the true one, of the entropy and the true one, of the first two."""
    moved = list(model.method.parameters(model).values())
    for parameter in moved:
        parameter.requires_grad_(True)

    def gradient(loss: Tensor) -> Tensor:
        return torch.cat([part.flatten() for part in torch.autograd.grad(loss, moved)])

    def between(one: Tensor, other: Tensor) -> float:
        return F.cosine_similarity(one, other, dim=0).item()

    method = replace(model.method, entropy=0.0, contrast=1.0) if isinstance(model.method, ncttt.NCTTT) else model.method
    own = gradient(method.adaptation_loss(model, images).loss)
    true = gradient(F.cross_entropy(model(images), labels))
    entropy = gradient(mean_entropy(model(images)))
    return between(own, true), between(entropy, true), between(own, entropy)


def summary(rows: list[dict[str, object]]) -> dict[str, float]:
    """Correlation of score and error over the scenarios, and means over the corruptions."""
    shifted = [row for row in rows if row["corruption"] != CLEAN]
    means = {name: float(np.mean([float(str(row[name])) for row in shifted])) for name in COSINES}
    if rows[0]["score"] != "":
        scores, errors = (np.array([float(str(row[name])) for row in rows]) for name in ("score", "error"))
        means["correlation of score and error"] = float(np.corrcoef(scores, errors)[0, 1])
        means["auroc"] = float(np.mean([float(str(row["auroc"])) for row in shifted]))
    return {name: round(value, 3) for name, value in means.items()}


if __name__ == "__main__":
    main()
