"""Where a number comes from: commit, machine and versions, to stand beside it."""

import os
import platform
import subprocess
from pathlib import Path

import torch


def origin() -> dict[str, str]:
    """Commit, processor, cores and versions."""
    here = Path(__file__).parent
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True).stdout
    return {
        "commit": commit.strip() or "unknown",
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "versions": f"Python {platform.python_version()}, torch {torch.__version__}",
    }
