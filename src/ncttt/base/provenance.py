"""Where a number comes from: commit, machine and versions, to stand beside it."""

import os
import platform
import subprocess
from pathlib import Path

import torch

REPOSITORY = Path(__file__).parents[3]


def origin() -> dict[str, str]:
    """Commit (marked if the code was changed since), processor, cores and versions."""
    return {
        "commit": commit(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "threads": str(torch.get_num_threads()),
        "versions": f"Python {platform.python_version()}, torch {torch.__version__}",
    }


def commit() -> str:
    """The commit of the code that runs; `unknown` outside of a clone of the project."""
    if not (REPOSITORY / ".git").exists():
        return "unknown"
    number = _git("rev-parse", "--short", "HEAD")
    changed = _git(
        "status", "--porcelain", "--", "src", "benchmarks", "study", ":!src/ncttt/zoo/*/*"
    )  # models are no code
    return f"{number} with changes" if changed else number or "unknown"


def _git(*words: str) -> str:
    try:
        run = subprocess.run(["git", *words], cwd=REPOSITORY, capture_output=True, text=True)  # nosec B603 B607 # our words
        return run.stdout.strip()
    except OSError:
        return ""
