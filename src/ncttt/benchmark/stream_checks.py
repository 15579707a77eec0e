"""Whether the streams of a grid are long enough for a method: a row of one that never learned would bear its name."""

from __future__ import annotations

from ncttt.adapt.protocols import PROTOCOLS
from ncttt.adapt.stream_length import too_short
from ncttt.base.errors import InputError
from ncttt.data.orders import parse_order
from ncttt.methods import Method


def check_long_enough(method: Method, protocol: str, order: str, *, domains: int, images: int, batch_size: int) -> None:
    """Raise an `InputError` if the method would never learn, or its memory or window never fill.

    The stream goes through so many `domains` of so many `images`, or in a mixed order through each image once.
    """
    whole, rest = divmod(images, batch_size)
    sizes = [batch_size] * whole + [rest] * (rest > 0)
    each = [sizes] * (1 if parse_order(order).mixed else domains)
    short = too_short(method, method.norm, PROTOCOLS.find(protocol), each)
    if short is not None:
        raise InputError(short)
