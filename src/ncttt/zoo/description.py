"""`model.json`: what a checkpoint says of its model beside the weights, and the rules for each of its keys."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ncttt.base.errors import InputError
from ncttt.base.schema import Rule, check_keys, is_list_of, is_number, is_whole, matching, read_json
from ncttt.data.files.resizing import SQUARE, exact
from ncttt.methods.settings import as_recorded

FORMAT = 1
SHARED = "classifier_of"  # in the description of a model of the zoo: the model whose classifier it has
PIXELS = 1 << 27  # values of an image that a model can be made for


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_layer(value: Any) -> bool:
    if value is None:  # the method reads no layer
        return True
    distinct = isinstance(value, list | tuple) and is_list_of(value, _is_name) and len(set(value)) == len(value) > 0
    return _is_name(value) or distinct


def _is_shape(value: Any) -> bool:
    sizes = is_list_of(value, lambda size: is_whole(size) and 1 <= size <= PIXELS)
    return sizes and len(value) == 3 and math.prod(value) <= PIXELS


def _is_named(value: Any) -> bool:
    return isinstance(value, dict) and _is_name(value.get("name")) and _has_no_nan(value)


def _has_no_nan(value: Any) -> bool:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return value == value and all(map(_has_no_nan, inside))


def _are_classes(value: Any) -> bool:
    return value is None or (is_list_of(value, _is_name) and len(set(value)) == len(value) > 0)


def _is_normalisation(value: Any) -> bool:
    if not isinstance(value, dict) or value.keys() != {"mean", "std"}:
        return False
    mean, std = value["mean"], value["std"]
    if mean is None or std is None:
        return mean is std
    numbers = is_list_of(mean, is_number) and is_list_of(std, is_number) and len(mean) == len(std) > 0
    return numbers and max(map(abs, mean)) <= 1 and min(std) > 0


RULES = {
    "format": Rule(f"format {FORMAT}, which this version reads", lambda value: is_whole(value) and value == FORMAT),
    "architecture": Rule("the name and settings of a network, or null", lambda v: v is None or _is_named(v)),
    "layer": Rule("the name of a layer, a list of different ones, or null", _is_layer),
    "method": Rule("the name and the settings of a method", _is_named),
    "preprocessing": Rule("mean (from -1 to 1) and std (above 0): a list each, or null", _is_normalisation),
    "input_shape": Rule("channels, height and width, each from 1", _is_shape),
    "classes": Rule("a list of different names, or null", _are_classes, optional=True),
    "channels_last": Rule("true or false", lambda value: isinstance(value, bool)),
}
WRITTEN = {
    "weights_sha256": matching("[0-9a-f]{64}", "64 hexadecimal digits"),
    "own_sha256": matching("[0-9a-f]{64}", "64 hexadecimal digits", optional=True),
    SHARED: Rule("the name of a model of the zoo", _is_name, optional=True),
}


def read_description(path: Path) -> dict[str, Any]:
    """What the file says, checked whole; what older ones do not say is as it was then."""
    described = read_json(path)
    check_keys(described, RULES | WRITTEN, str(path))
    described.setdefault("resize", SQUARE)  # the one way that there was when older ones were written
    check_description(described, str(path))
    return described | {"method": as_recorded(described["method"])}


def check_description(described: Mapping[str, Any], where: str) -> None:
    """Raise an `InputError` that names the first key whose value no model has."""
    check_keys(described, RULES, where)
    try:
        exact(described["resize"], size=1)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    mean, channels = described["preprocessing"]["mean"], described["input_shape"][0]
    if mean is not None and len(mean) not in (1, channels):
        raise InputError(
            f"{where}, preprocessing: found {len(mean)} channels; expected 1 or {channels}, as input_shape"
        )
