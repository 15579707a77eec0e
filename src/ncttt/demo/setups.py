"""What the demonstration shows of each data set: the model of its stream, and the shifts.

On digits no corruption of the noise family lowers accuracy by much, and batch statistics alone mend most of the others,
so the shifts were chosen where a classifier fails, batch statistics mend a part, and methods differ.
`study/demo_shifts.py` has the rule and repeats the choice, on validation images. Those of CIFAR-10 are the ones of the
figure of a drifting stream.
"""

from __future__ import annotations

from dataclasses import dataclass

from ncttt.data.sets.digits import Digits

BATCH = 50  # images that arrive, and are adapted to, at a time


@dataclass(frozen=True)
class Setup:
    """The shipped `model` that meets the stream, and the `shifts` at one `severity` of a table of `constants`."""

    model: str
    shifts: tuple[str, ...]
    severity: int = 5
    constants: str | None = None


SETUPS = {
    "digits": Setup("digits-small-ncttt", ("frost", "motion_blur", "contrast"), constants=Digits.constants),
    "cifar10": Setup("cifar10-small-ncttt", ("gaussian_noise", "defocus_blur", "contrast")),
}
