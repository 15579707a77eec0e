"""Our corruptions against the package imagecorruptions, image for image at 32 x 32, in one process.

imagecorruptions is needed for this comparison only; keep it out of the project's environment:

    python -m venv runs/peer && runs/peer/bin/pip install imagecorruptions
    python benchmarks/corruptions.py --peer runs/peer

The peer's environment comes last on the path, so that both sides use the same numpy, scipy and Pillow. Rounds of the
two alternate, and the best round of each counts, so that a busy machine harms both alike. Functions of the peer that
no longer run on current libraries are reported and left out of the total. `--set` also times writing a whole set.
"""

import argparse
import csv
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
from scipy import ndimage

from ncttt.base.provenance import origin
from ncttt.data.corruptions import CORRUPTIONS, EXTRA, corrupt, generate


def natural_images(count: int) -> np.ndarray:
    """Images with the smooth spectrum of photographs; timings hardly depend on content, JPEG's a little."""
    noise = np.random.default_rng(0).standard_normal((count, 32, 32, 3))
    smooth = np.sum([ndimage.gaussian_filter(noise, (0, s, s, 0), mode="wrap") * s for s in (0.7, 2, 5)], axis=0)
    return np.clip(128 + 60 * smooth / smooth.std(), 0, 255).astype(np.uint8)


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peer_function(name: str, severity: int) -> Callable[[np.ndarray], object] | str:
    """The peer's corruption of one image, or why it does not run."""
    peer = import_module("imagecorruptions")

    def one(image: np.ndarray) -> object:
        return peer.corrupt(image, corruption_name=name, severity=severity)

    try:
        one(natural_images(1)[0])
    except Exception as error:  # whatever an unmaintained package raises is what we report
        return f"{type(error).__name__}: {error}"
    return one


def compare(name: str, images: np.ndarray, theirs: int, rounds: int, severity: int) -> tuple[float, float | str]:
    """Microseconds an image, ours on the batch and the peer's on the first `theirs` of it."""
    other = peer_function(name, severity)
    corrupt(images[:2], name, severity, constants="imagenet")
    ours, peers = [], []
    for _ in range(rounds):
        # The peer knows the ImageNet constants only, so both use those: equal work.
        ours.append(seconds(lambda: corrupt(images, name, severity, constants="imagenet")) / len(images))
        if not isinstance(other, str):
            peers.append(seconds(lambda: [other(image) for image in images[:theirs]]) / theirs)
    return min(ours) * 1e6, min(peers) * 1e6 if not isinstance(other, str) else other


def comparison(images: np.ndarray, theirs: int, rounds: int, severity: int) -> list[dict[str, object]]:
    """A row for each corruption, printed as it is measured, and the total over those that the peer can do."""
    print(f"{'corruption':20} {'ours us':>9} {'peer us':>9} {'ratio':>7}   (per image, 32 x 32, severity {severity})")
    rows: list[dict[str, object]] = []
    total_ours = total_peer = 0.0

    def add(name: str, ours: float, peer: float) -> None:
        print(f"{name:20} {ours:9.1f} {peer:9.1f} {peer / ours:6.1f}x")
        rows.append(
            {"corruption": name, "ours_us": f"{ours:.1f}", "peer_us": f"{peer:.1f}", "ratio": f"{peer / ours:.2f}"}
        )

    for name in CORRUPTIONS + EXTRA:
        ours, peer = compare(name, images, theirs, rounds, severity)
        if isinstance(peer, str):
            print(f"{name:20} {ours:9.1f} {'-':>9} {'-':>7}   peer fails: {peer.splitlines()[0][:60]}")
            rows.append({"corruption": name, "ours_us": f"{ours:.1f}", "peer_us": "fails", "ratio": ""})
            continue
        total_ours, total_peer = total_ours + ours, total_peer + peer
        add(name, ours, peer)
    add("total", total_ours, total_peer)
    return rows


def write_rows(rows: list[dict[str, object]], path: Path) -> None:
    with path.open("w", newline="") as file:
        source = origin()
        writer = csv.DictWriter(file, [*rows[0], *source], lineterminator="\n")
        writer.writeheader()
        writer.writerows({**row, **source} for row in rows)


def print_whole_set(count: int) -> None:
    images = natural_images(count)
    with tempfile.TemporaryDirectory() as folder:
        labels = np.zeros(count, int)
        taken = seconds(lambda: generate(images, labels, Path(folder) / "set", severities=[5]))
    print(f"15 corruptions, severity 5, {count} images, written to disk: {taken:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, help="virtual environment that holds imagecorruptions")
    parser.add_argument("--images", type=int, default=1000, help="images a round for us")
    parser.add_argument("--theirs", type=int, default=100, help="images a round for the peer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--severity", type=int, default=5)
    parser.add_argument("--out", type=Path, help="also write the rows to this CSV file")
    parser.add_argument("--set", type=int, default=0, metavar="N", help="also write a whole set of N images")
    options = parser.parse_args()
    if options.peer:
        sys.path += [str(path) for path in options.peer.glob("lib/python*/site-packages")]
        warnings.simplefilter("ignore")
        rows = comparison(natural_images(options.images), options.theirs, options.rounds, options.severity)
        if options.out:
            write_rows(rows, options.out)
    if options.set:
        print_whole_set(options.set)


if __name__ == "__main__":
    main()
