"""RDumb: ETA that begins again at the source after so many batches, whatever happened; the baseline of long streams."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ncttt.methods.base import Prediction
from ncttt.methods.eata import ETA, MeanPrediction
from ncttt.methods.shared import check_whole, number_of_classes
from ncttt.model.branched import Branched


class CountedPredictions(MeanPrediction):
    """ETA's memory, and how many batches have come since the last reset."""

    batches: Tensor

    def __init__(self, classes: int):
        super().__init__(classes)
        self.register_buffer("batches", torch.zeros((), dtype=torch.long))


@dataclass(frozen=True, kw_only=True)
class RDumb(ETA):
    """ETA that forgets all it has learned after `every` batches, those included that taught it nothing."""

    name: ClassVar[str] = "rdumb"
    title: ClassVar[str] = "RDumb"
    place: ClassVar[float] = 43

    every: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self, every=1)

    def memory(self, model: Branched) -> CountedPredictions:
        return CountedPredictions(number_of_classes(model))

    def remember(self, model: Branched, images: Tensor, prediction: Prediction) -> None:
        _memory(model).batches.add_(1)

    def forgets(self, model: Branched) -> bool:
        return bool(_memory(model).batches >= self.every)


def _memory(model: Branched) -> CountedPredictions:
    assert isinstance(model.memory, CountedPredictions)
    return model.memory
