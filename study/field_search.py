"""The field's methods, tuned alike on validation streams: six trials each, chosen by accuracy over a continual stream.

    python study/field_search.py --out runs/field [--methods tent,roid] [--workers 2]

1,280 held-out training images under each of the four extra corruptions at severity 5, one after another without a
reset, in batches of 128; a method's best trial is measured again on as many fresh images. Killed, it goes on where it
was. Every trial goes to results/tuning/field.csv; the grids study/field and study/field_memo have the winners, and a
test compares them. MEMO, which is for single images, gets batches of one and forgets after each.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from ncttt.base.csv_files import write_csv
from ncttt.base.provenance import origin
from ncttt.benchmark.tuning import Tuning, tune
from ncttt.methods import METHODS

RESULTS = Path(__file__).resolve().parents[1] / "results/tuning/field.csv"
STATISTICS = ["batch", "blend(0.8)", "blend(0.5)", "stream(0.02)", "stream(0.01)", "stream(0.005)"]
ADAM, SOURCE_OR_BATCH = {"optimizer": ["adam"]}, ["source", "batch"]
RATES, SMALLER, SGD_RATES = [2e-4, 1e-3, 5e-3], [2e-5, 1e-4, 5e-4], [2e-3, 1e-2, 5e-2]
STEPS = [1, 2]
# NC-TTT's preset as it was up to version 0.3, but for rate and steps.
FOUR_STEPS: dict[str, list[Any]] = {
    "entropy": [0.1],
    "entropy_of": ["each"],
    "contrast": [1.0],
    "step_size": ["fixed"],
    "crop": [1.0],
    "mirror_mean": [False],
    "copies": [4],
}
# Six combinations of each: three rates, around the published one, and two values of what is said to matter most.
SEARCHES: dict[str, dict[str, list[Any]]] = {
    "ptbn": {"norm": STATISTICS},
    "lame": {"affinity": ["knn", "linear", "rbf"], "norm": SOURCE_OR_BATCH},
    "t3a": {"k": [20, 100, 1000], "norm": SOURCE_OR_BATCH},
    "tent": {"lr": RATES, "steps": STEPS},
    "eta": {"lr": RATES, "margin": [0.4, 0.8]},
    "eata": {"lr": RATES, "margin": [0.4, 0.8]},
    "rdumb": {"lr": RATES, "every": [50, 1000]},
    "sar": {"lr": SGD_RATES, "rho": [0.01, 0.05]},
    "deyo": {"lr": SGD_RATES, "least_drop": [0.05, 0.2]},
    "roid": {"lr": RATES, "back": [0.01, 0.05]},
    # A step for each 64 images, so two a batch; with a momentum below the published 0.05 statistics lag far behind.
    "rotta": {"lr": RATES, "momentum": [0.05, 0.2], "steps": [2]},
    "note": {"lr": [1e-4, 5e-4, 2.5e-3], "momentum": [0.01, 0.1]},
    "actmad": {"lr": [4e-4, 2e-3, 1e-2], "norm": SOURCE_OR_BATCH},
    "clust3": {"moves": ["layer2"], "lr": SMALLER, "steps": STEPS},
    "ttt_flow": {"moves": ["layer2"], **ADAM, "lr": SMALLER, "steps": STEPS},
    "nc_ttt": {"lr": RATES, "steps": STEPS, **FOUR_STEPS},
    "entropy of copies": {"moves": ["layer2"], "copies": [4], "lr": RATES, "steps": STEPS},
    "ttt_plus": {"moves": ["layer2"], **ADAM, "lr": RATES, "steps": STEPS},
    "ttt": {**ADAM, "lr": RATES, "steps": STEPS},
    "cotta": {"lr": [4e-5, 2e-4, 1e-3], "restored": [0.001, 0.01]},
    "memo": {"views": [8], "lr": [1e-3, 5e-3, 2.5e-2], "norm": ["blend(0.058823529411764705)", "prior(4)"]},
}
NAMES = {"entropy of copies": "tent"}
SINGLE = {"memo": {"protocol": "episodic", "batch_size": 1, "images": 320}}
MODELS = {"nc_ttt": "ncttt", "entropy of copies": "ncttt"}


def checkpoint_of(label: str) -> str:
    """The zoo's model that a method runs on: its own, or the one that was trained without a branch."""
    trained = METHODS[NAMES.get(label, label)].needs_training()
    return f"cifar10-small-{MODELS.get(label, label.replace('_', '-') if trained else 'source')}"


def trials(label: str, out: Path, workers: int) -> list[dict[str, Any]]:
    """The trials of a method, the best first, then the best on fresh images."""
    settings = {"images": 1280, "batch_size": 128, "protocol": "continual", "confirm": 1} | SINGLE.get(label, {})
    tuning = Tuning(
        data="cifar10",
        checkpoint=checkpoint_of(label),
        method=NAMES.get(label, label),
        adapted=SEARCHES[label],
        **settings,
    )
    result = tune(tuning, out / label.replace(" ", "-"), workers=workers)
    return [
        {
            "method": label,
            "checkpoint": tuning.checkpoint,
            "settings": json.dumps(one.trial.settings, sort_keys=True),
            "on": on,
            "accuracy": one.accuracy,
            **dict(zip(("gain", "low", "high"), one.gain.as_json().values(), strict=True)),
            "protocol": tuning.protocol,
            "batch_size": tuning.batch_size,
            "images": tuning.images,
            "seed": tuning.seed,
            **origin(),
        }
        for on, results in (("tuning", result.trials), ("fresh", result.confirmed))
        for one in results
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of rows, to go on from")
    parser.add_argument("--methods", help="names with commas; by default all")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for label in options.methods.split(",") if options.methods else SEARCHES:
        rows += trials(label, options.out, options.workers)
        print(rows[-1], flush=True)
        if not options.methods:
            write_csv(RESULTS, list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
