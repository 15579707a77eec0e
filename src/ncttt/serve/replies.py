"""Replies: what the worker found out as JSON of an answer."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from starlette.responses import Response

from ncttt.serve.feedback import Feedback
from ncttt.serve.streams import StreamFacts
from ncttt.serve.worker import Answer


def answered(
    answer: Answer, stream: str, ids: list[str], classes: tuple[str, ...], everything: bool, total: float
) -> dict[str, Any]:
    """The answer to a request for predictions, with the ids that their labels may come for."""
    trace = answer.trace
    return {
        "stream": stream,
        "predictions": _predictions(answer, ids, classes, everything),
        "outcome": answer.outcome,
        "batch": {
            "images": answer.images,
            "steps": trace.steps,
            "steps_allowed": answer.steps_allowed,
            "stopped": trace.stopped,
            "loss_first": trace.losses[0] if trace.losses else None,
            "loss_last": trace.losses[-1] if trace.losses else None,
            "shift_before": trace.shift_before,
            "shift_after": trace.shift_after,
            "confidence": trace.confidence,
            "evidence": trace.evidence,
            "changed": answer.changed,
            "collapsed": None if trace.agreement is None else trace.collapsed,
            "agreement": trace.agreement,
            "regret": trace.regret,
            "class_shift": trace.class_shift,
            "entropy": trace.entropy,
            "score": trace.score,
        },
        "drift": None if answer.drift is None else answer.drift._asdict(),
        "version": answer.version,
        "saved": answer.saved,
        "milliseconds": {
            "waiting": round(answer.waited * 1000, 3),
            "model": round(answer.seconds * 1000, 3),
            "total": round(total * 1000, 3),
        },
    }


def _predictions(answer: Answer, ids: list[str], classes: tuple[str, ...], everything: bool) -> list[dict[str, Any]]:
    shifts = [None] * len(ids) if answer.shift is None else answer.shift.tolist()
    rows = zip(ids, answer.probabilities, answer.source_probabilities, shifts, strict=True)
    return [
        {
            "id": id_,
            "label": classes[int(adapted.argmax())],
            "probability": float(adapted.max()),
            "source_label": classes[int(source.argmax())],
            "source_probability": float(source.max()),
            "probabilities": adapted.tolist() if everything else None,
            "source_probabilities": source.tolist() if everything else None,
            "shift": shift,
        }
        for id_, adapted, source, shift in rows
    ]


def of_stream(facts: StreamFacts) -> dict[str, Any]:
    """What is known of a stream as JSON values."""
    return asdict(facts) | {"drift": None if facts.drift is None else facts.drift._asdict()}


def of_score(feedback: Feedback, stream: str) -> dict[str, Any]:
    """How often both models were right on a stream, as JSON values."""
    tally = feedback.tally(stream)
    shares = {"adapted_accuracy": tally.adapted / tally.labels, "source_accuracy": tally.source / tally.labels}
    return {"stream": stream, "labels": tally.labels, **shares}


def reply(value: Any, status: int = 200) -> Response:
    """A response with these JSON values."""
    return Response(json.dumps(_finite(value), allow_nan=False), status, media_type="application/json")


def _finite(value: Any) -> Any:
    """Numbers that JSON does not have, such as an infinite loss, become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list) else value
