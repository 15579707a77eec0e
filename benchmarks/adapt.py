"""What adaptation costs, as ratios measured interleaved in one process.

    python benchmarks/adapt.py [--batch 128] [--rounds 5]

ResNet-50 with the 32-pixel stem, tap `layer2`, NC-TTT's pixel head. Three ways to take one adaptation step are timed
in turn, round by round, and compared by the median of their ratios within a round: the `Adapter`'s step; a bare loop
over the same prefix (forward to the tap, discriminator, backward, optimizer); and the same loop with a full forward,
as published code does it. Peak memory is measured in processes of their own.
"""

import argparse
import copy
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

import ncttt
from ncttt.adapt.batch import Adaptation
from ncttt.base.provenance import origin

METHOD = ncttt.NCTTT(
    conditional=False,
    moves="encoder",
    copies=1,
    crop=1.0,
    mirror_mean=False,
    entropy=0,
    contrast=1,
    step_size="fixed",
    steps=4,
    lr=2e-3,
)


def make_model() -> ncttt.Branched:
    torch.manual_seed(0)
    net = ncttt.models.resnet50(num_classes=10, image_size=32).to(memory_format=torch.channels_last)
    return ncttt.attach(net, "layer2", METHOD, torch.rand(2, 3, 32, 32))


def adapter_step(model: ncttt.Branched, images: torch.Tensor) -> Callable[[], object]:
    adapter = ncttt.Adapter(model, protocol="online")
    return lambda: Adaptation(adapter._adaptable, images, level=None).advance(1)


def bare_step(model: ncttt.Branched, images: torch.Tensor, full: bool) -> Callable[[], object]:
    """A loop written for this network alone: BatchNorm in training mode without buffers, a fixed prefix."""
    net, head = copy.deepcopy(model.classifier).train(), copy.deepcopy(model.branch).heads[0].eval()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.track_running_stats, module.running_mean, module.running_var = False, None, None
    encoder = nn.Sequential(net.conv1, net.bn1, net.relu, net.layer1, net.layer2)
    net.requires_grad_(full), head.requires_grad_(False), encoder.requires_grad_(True)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=METHOD.lr)

    def step() -> None:
        maps = encoder(images)
        if full:
            net.fc(net.avgpool(net.layer4(net.layer3(maps))).flatten(1))
        logits = head.discriminate(head.project(maps)[None], None)
        loss = F.softplus(-logits).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


def reset(model: ncttt.Branched, images: torch.Tensor) -> Callable[[], object]:
    """The way back to the source after a batch."""
    return ncttt.Adapter(model, protocol="online").reset


WAYS = {
    "adapter": adapter_step,
    "bare prefix": lambda model, images: bare_step(model, images, full=False),
    "bare full forward": lambda model, images: bare_step(model, images, full=True),
    "reset": reset,
}


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def measure(batch: int, rounds: int) -> dict[str, float]:
    model = make_model()
    images = torch.rand(batch, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    ways = {name: make(model, images) for name, make in WAYS.items()}
    for run in ways.values():
        run()
    # Every other round in reverse, so that no way always follows the same neighbour.
    order = list(ways.items())
    table = [{name: seconds(run) for name, run in order[:: 1 if turn % 2 else -1]} for turn in range(rounds)]

    def ratio(top: str, bottom: str) -> float:
        return statistics.median(row[top] / row[bottom] for row in table)

    return {
        "adapter step / bare prefix step": ratio("adapter", "bare prefix"),
        "prefix step / full-forward step": ratio("bare prefix", "bare full forward"),
        "adapter step / full-forward step": ratio("adapter", "bare full forward"),
        "episodic reset / adapter step": ratio("reset", "adapter"),
        "adapter step, seconds": statistics.median(row["adapter"] for row in table),
    }


def peak_memory(way: str, batch: int) -> float:
    """Peak MiB of a fresh process while it takes two steps, model and images included (Linux only)."""
    command = [sys.executable, __file__, "--batch", str(batch), "--memory-of", way]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def memory_of(way: str, batch: int) -> float:
    model = make_model()
    images = torch.rand(batch, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    run = WAYS[way](model, images)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of building all this
    run(), run()
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory-of", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_of:
        print(memory_of(options.memory_of, options.batch))
        return
    result: dict[str, object] = dict(measure(options.batch, options.rounds))
    for way in ("adapter", "bare prefix", "bare full forward"):
        result[f"peak memory of the {way} step, MiB"] = peak_memory(way, options.batch)
    result |= {"batch": options.batch, **origin()}
    print(json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in result.items()}, indent=2))


if __name__ == "__main__":
    main()
