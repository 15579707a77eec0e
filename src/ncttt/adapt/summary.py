"""A stream in a few figures: what adaptation changed, how far the images are from the source, and what to do."""

from __future__ import annotations

from typing import Any

from ncttt.adapt.folders import Adapted
from ncttt.base.words import counted
from ncttt.model.branched import Branched
from ncttt.model.certainty import judged

UNKNOWN = "whether adapting is needed is not known: the model was not calibrated on held-out source images"
NOT_NEEDED = "adapting is not needed: the images look like the source's"


class Tally:
    """Counts over the batches of a stream on a model."""

    def __init__(self, model: Branched):
        self.model = model
        self.images = self.batches = self.changed = self.adapted = self.stepped = self.fallbacks = self.collapses = 0
        self.unlike = self.still_unlike = 0
        self.confidence = self.evidence = self.shift = 0.0
        self.scored = False

    def add(self, batch: Adapted) -> None:
        """Count a batch."""
        look, images = judged(self.model, batch.source_logits), len(batch.files)
        self.images += images
        self.batches += 1
        self.changed += batch.changed
        self.adapted += batch.trace.stopped != "left to source"
        self.stepped += batch.trace.steps > 0
        self.fallbacks += batch.trace.fell_back
        self.collapses += batch.trace.collapsed
        unlike = look.like_source is False
        self.unlike += unlike
        self.still_unlike += unlike and self._below_source(batch.trace.shift_after, images)
        self.confidence += look.confidence * images
        self.evidence += look.evidence * images
        if batch.shift is not None:
            self.scored = True
            self.shift += batch.shift.sum().item()

    def facts(self) -> dict[str, Any]:
        """The figures as JSON values, those that are not known as None.

        Confidence and shift score come with the source's own; the evidence is in spreads of the source's, from it.
        """
        (confidence, _), (evidence, spread) = self.model.source_certainty.tolist()
        known, images = self.model.calibrated, max(1, self.images)
        score = getattr(self.model.branch, "source_score", None)
        score = None if score is None or score[0] < 0 or not self.scored else score[0].item()
        return {
            "images": self.images,
            "batches": self.batches,
            "adapted_batches": self.adapted,
            "stepped_batches": self.stepped,
            "still_unlike_batches": self.still_unlike,
            "changed": self.changed,
            "fallbacks": self.fallbacks,
            "collapses": self.collapses,
            "confidence": self.confidence / images,
            "source_confidence": confidence if known else None,
            "evidence_in_spreads": (self.evidence / images - evidence) / spread if known and spread > 0 else None,
            "shift": self.shift / images if self.scored else None,
            "source_shift": score,
            "advice": self.advice(),
        }

    def advice(self) -> str:
        """Whether adapting is needed, and what it did not mend, in a sentence."""
        if not self.model.calibrated:
            return UNKNOWN
        if not self.unlike:
            return NOT_NEEDED
        advised = f"adapting is advised: {_unlike(self.unlike, self.batches)} not look like the source's"
        if not self.still_unlike:
            return advised
        score = "scores" if self.still_unlike == 1 else "score"
        return f"{advised}, and {self.still_unlike} still {score} below them after it: trust those labels less"

    def _below_source(self, shift: float | None, images: int) -> bool:
        """Whether a batch of so many images scores, after adaptation, below what source images would."""
        level = self.model.method.source_level(self.model, images)
        return shift is not None and level is not None and shift < level


def _unlike(count: int, batches: int) -> str:
    return f"{count} of {counted(batches, 'batch', 'batches')} {'does' if count == 1 else 'do'}"
