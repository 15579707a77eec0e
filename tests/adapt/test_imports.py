"""Adapting imports what it needs: torch for a plain module, Pillow for image files, and little of this package."""

import subprocess
import sys

ADAPTER = """
import sys
import torch
import ncttt
from torch import nn
net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 5))
assert ncttt.Adapter(net, ncttt.PTBN())(torch.rand(2, 3, 8, 8)).shape == (2, 5)
print(*sys.modules)
"""
STREAM = """
import sys
import ncttt
ncttt.FolderStream
print(*sys.modules)
"""
HELP = """
import sys
from ncttt.adapt import PROTOCOLS, adapt_folders
assert "online" in PROTOCOLS
print(*sys.modules)
"""
HEAVY = {"torch", "numpy", "PIL", "scipy", "matplotlib", "sklearn"}


def imported(script: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def own(modules: set[str]) -> set[str]:
    return {name for name in modules if name.split(".")[0] == "ncttt"}


def test_an_adapter_on_a_plain_module_needs_torch_alone():
    modules = imported(ADAPTER)
    assert "torch" in modules
    assert not (HEAVY - {"torch", "numpy"}) & modules
    assert not {name for name in own(modules) if name.startswith(("ncttt.data", "ncttt.zoo", "ncttt.training"))}
    assert len(own(modules)) <= 36


def test_a_stream_of_folders_imports_no_more_than_it_reads_with():
    modules = imported(STREAM)
    assert not {"scipy", "matplotlib", "sklearn"} & modules
    assert len(own(modules)) <= 50  # of some 340


def test_the_verb_and_the_protocols_need_no_torch():
    assert not HEAVY & imported(HELP)
