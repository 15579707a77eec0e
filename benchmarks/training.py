"""Training speed against the usual loop, interleaved in one run, and what the auxiliary branch costs.

    python benchmarks/training.py [--rounds 5]

The usual loop: per-image PIL transforms (pad, crop, flip and cutout, as the zoo's recipe has it) in a DataLoader,
contiguous tensors, normalisation in the transform, eager. Ours:
`ncttt.train`'s own step on batches that are augmented as a whole, channels last. Both take the same steps of SGD on
32-pixel images with the same network; ways are compared by the median of their ratios within a round. The DataLoader
gets the number of workers, of 0 and 2, with which it is faster. Each way has a process of its own, in which only it has
a say about memory; the others wait meanwhile. Peak memory is measured in fresh processes, workers included.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

import ncttt
from ncttt.base.provenance import origin
from ncttt.data import ImageSet, batches
from ncttt.training.stepping import Stepper

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
NETWORKS = {  # how it is made, images in a batch, steps in a turn: some seconds, as a training has no breaks
    "small": (lambda: ncttt.models.small(), 128, 40),
    "resnet50": (lambda: ncttt.models.resnet50(image_size=32), 32, 6),
}
RECIPE = ncttt.Recipe(augment="pad_crop_flip_cutout")


def images() -> ImageSet:
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 256, (20_000, 32, 32, 3), dtype=np.uint8)
    return ImageSet(pixels, generator.integers(0, 10, len(pixels)), tuple("0123456789"))


class PerImage(Dataset):
    """One picture at a time through PIL: torchvision's RandomCrop, Flip, ToTensor and Normalize, and cutout."""

    def __init__(self, data: ImageSet):
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        picture = ImageOps.expand(Image.fromarray(self.data.images[index]), border=4)
        top, left = (int(torch.randint(0, 9, (1,)).item()) for _ in range(2))
        picture = picture.crop((left, top, left + 32, top + 32))
        if torch.rand(1) < 0.5:
            picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        top, left = (int(torch.randint(0, 32, (1,)).item()) - 4 for _ in range(2))
        picture.paste((128, 128, 128), (left, top, left + 8, top + 8))
        pixels = torch.from_numpy(np.array(picture)).permute(2, 0, 1).contiguous().float().div(255)
        mean, std = (torch.as_tensor(values, dtype=pixels.dtype).view(-1, 1, 1) for values in (MEAN, STD))
        return pixels.sub_(mean).div_(std), int(self.data.labels[index])


def usual(network: str, workers: int) -> Callable[[int], None]:
    """Runs so many steps of the usual loop."""
    make, batch, _ = NETWORKS[network]
    torch.manual_seed(0)
    net = make().train()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, nesterov=True)
    loader = DataLoader(PerImage(images()), batch, shuffle=True, num_workers=workers, drop_last=True)
    source = endless(lambda epoch: loader)

    def run(steps: int) -> None:
        for _ in range(steps):
            pixels, labels = next(source)
            loss = F.cross_entropy(net(pixels), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()

    return run


def ours(network: str, method: ncttt.Method) -> Callable[[int], None]:
    """Runs so many steps of our training."""
    make, batch, _ = NETWORKS[network]
    torch.manual_seed(0)
    model = ncttt.attach(make(), "layer4", method, torch.rand(2, 3, 32, 32), MEAN, STD)
    model = model.to(memory_format=torch.channels_last).train()
    data, stepper = images(), Stepper(model, RECIPE, steps_per_epoch=10_000)
    stepper.prepare()
    source = endless(lambda epoch: batches(data, batch, shuffle=True, epoch=epoch, drop_last=True))
    numbers = iter(range(10_000))

    def run(steps: int) -> None:
        for _ in range(steps):
            stepper.step(next(numbers), *next(source))

    return run


def endless(epoch_of: Callable[[int], object]) -> Iterator:
    epoch = 0
    while True:
        yield from epoch_of(epoch)  # type: ignore[misc]
        epoch += 1


WAYS: dict[str, Callable[[str], Callable[[int], None]]] = {
    "usual, 0 workers": lambda network: usual(network, 0),
    "usual, 2 workers": lambda network: usual(network, 2),
    "ours": lambda network: ours(network, ncttt.Source()),
    "ours with branch": lambda network: ours(network, ncttt.NCTTT()),
}


class Runner:
    """A way in a process of its own, which takes so many steps when it is told to."""

    def __init__(self, way: str, network: str):
        command = [sys.executable, __file__, "--serve", way, "--network", network]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self, steps: int) -> float:
        """How long so many steps take; the other processes wait meanwhile."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        time.sleep(0.3)  # the workers of a DataLoader fill their queues again, outside the clock
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def serve(way: str, network: str) -> None:
    """Take steps as standard input asks for them, and tell the seconds."""
    run = WAYS[way](network)
    for line in sys.stdin:
        start = time.perf_counter()
        run(int(line))
        print(time.perf_counter() - start, flush=True)


def measure(network: str, rounds: int) -> dict[str, object]:
    _, batch, steps = NETWORKS[network]
    runners = {name: Runner(name, network) for name in WAYS}
    for runner in runners.values():
        runner.seconds(4)
    order = list(runners.items())
    table = [{name: way.seconds(steps) for name, way in order[:: 1 if turn % 2 else -1]} for turn in range(rounds)]
    for runner in runners.values():
        runner.end()
    speed = {name: steps * batch / statistics.median(row[name] for row in table) for name in runners}
    usual_way = max(("usual, 0 workers", "usual, 2 workers"), key=speed.__getitem__)
    return {
        "batch": batch,
        "steps in a turn": steps,
        "images/s": {name: round(value) for name, value in speed.items()},
        "ours / usual": round(statistics.median(row[usual_way] / row["ours"] for row in table), 3),
        "share of the branch in a step": round(
            statistics.median(1 - row["ours"] / row["ours with branch"] for row in table), 3
        ),
        "peak memory, MiB": {name: peak_memory(name, network) for name in (usual_way, "ours", "ours with branch")},
    }


def peak_memory(way: str, network: str) -> int:
    command = [sys.executable, __file__, "--memory-of", way, "--network", network]
    return round(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def memory_of(way: str, network: str) -> float:
    """Peak MiB of this process over two steps, and what its workers hold beside what they share (Linux only)."""
    run = WAYS[way](network)
    run(2)
    status = read(Path("/proc/self/status"))
    children = [path.parent for path in Path("/proc").glob("[0-9]*/status") if f"PPid:\t{own()}\n" in read(path)]
    return int(status.split("VmHWM:")[1].split()[0]) / 1024 + sum(private(path) for path in children)


def own() -> int:
    return int(Path("/proc/self").resolve().name)


def read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # a process that has ended since it was listed
        return ""


def private(process: Path) -> float:
    """MiB that only this process has."""
    lines = [line.split() for line in read(process / "smaps_rollup").splitlines() if line.startswith("Private_")]
    return sum(int(line[1]) for line in lines) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--network", choices=NETWORKS)
    parser.add_argument("--serve", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--memory-of", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.network)
        return
    if options.memory_of:
        print(memory_of(options.memory_of, options.network))
        return
    networks = [options.network] if options.network else list(NETWORKS)
    result = {network: measure(network, options.rounds) for network in networks}
    print(json.dumps({**result, "rounds": options.rounds, **origin()}, indent=2))


if __name__ == "__main__":
    main()
