"""`ncttt info`: what is installed, and what there is to work with."""

import json as json_module
from typing import Any

import ncttt

EXAMPLE = "ncttt info --json"
GROUP = "begin"


def info(*, devices: bool = False, json: bool = False, root: str | None = None) -> None:
    """Show versions, methods, trained models and data sets.

    Args:
        devices: Show threads and GPUs, too, which waits for torch.
        json: Print one JSON object, for scripts.
        root: Folder of the data sets; else $NCTTT_DATA, else the user's cache folder.
    """
    facts = ncttt.info(root, devices=devices)
    if json:
        print(json_module.dumps(facts))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        lines = _lines(value)
        print(f"{name:<{width}}  {lines[0]}")
        for line in lines[1:]:
            print(f"{'':<{width}}  {line}")


def _lines(value: Any) -> list[str]:
    if isinstance(value, dict):
        width = max(map(len, value), default=0)
        return [f"{name:<{width}}  {_model(facts)}" for name, facts in value.items()] or ["-"]
    return [", ".join(value) or "-"] if isinstance(value, list) else [str(value)]


def _model(facts: dict[str, Any] | str) -> str:
    if isinstance(facts, str):
        return facts
    return f"{facts['method']}, {facts['accuracy']:.2%} on the test images of {facts['data']}, not adapted"
