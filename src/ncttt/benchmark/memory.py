"""The largest memory that a stretch of work had: of the GPU, or of this process where the system can tell."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

_CLEAR, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


@dataclass
class Peak:
    """MiB at most, known after the work; None where the system keeps no such figure."""

    mib: float | None = None


@contextmanager
def measuring_peak(device: str) -> Iterator[Peak]:
    """Fill in the peak when the `with` block ends."""
    peak = Peak()
    if torch.device(device).type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        yield peak
        peak.mib = round(torch.cuda.max_memory_allocated(device) / 2**20, 1)
        return
    try:
        _CLEAR.write_text("5")  # Linux: forget the largest resident size
    except OSError:
        yield peak
        return
    yield peak
    peak.mib = round(int(_STATUS.read_text().split("VmHWM:")[1].split()[0]) / 1024, 1)
