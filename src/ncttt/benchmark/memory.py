"""The largest memory that a stretch of work had: of the GPU, or of this process where the system can tell."""

from contextlib import suppress
from pathlib import Path

import torch

_CLEAR, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


def reset_peak(device: str) -> None:
    """Begin a stretch of work."""
    if torch.device(device).type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return
    with suppress(OSError):
        _CLEAR.write_text("5")  # Linux: forget the largest resident size


def peak_memory(device: str) -> float | None:
    """MiB at most since `reset_peak`; None where the system keeps no such figure."""
    if torch.device(device).type == "cuda":
        return round(torch.cuda.max_memory_allocated(device) / 2**20, 1)
    try:
        return round(int(_STATUS.read_text().split("VmHWM:")[1].split()[0]) / 1024, 1)
    except (OSError, IndexError):
        return None
