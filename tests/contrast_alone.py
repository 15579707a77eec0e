"""NC-TTT's settings for tests of how steps are taken: its own loss alone, several steps of one size, no crops."""

from typing import Any

CONTRAST_ALONE: dict[str, Any] = {
    "copies": 1,
    "crop": 1.0,
    "mirror_mean": False,
    "entropy": 0,
    "contrast": 1,
    "step_size": "fixed",
    "steps": 4,
    "lr": 2e-3,
}
