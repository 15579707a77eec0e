"""What is asked of a cluster, before Ray is imported."""

from __future__ import annotations

import os
import re
import secrets

from ncttt.base.errors import InputError


def counts(replicas: str | int) -> tuple[int, int]:
    """The smallest and the largest number of replicas.

    >>> counts(2), counts("1-4")
    ((2, 2), (1, 4))
    """
    found = re.fullmatch(r"(\d{1,4})(?:-(\d{1,4}))?", str(replicas))
    fewest, most = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= fewest <= most:
        raise InputError(f"replicas must be a number such as 2, or a range such as 1-4; found {replicas!r:.40}")
    return fewest, most


def keep_to_this_machine() -> None:
    """Let a local cluster be one of this user alone: whoever reaches a port of Ray can run code.

    All of its ports are on loopback, as Ray has them on other systems than Linux, and ask for a token.
    """
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    os.environ["RAY_AUTH_MODE"], os.environ["RAY_AUTH_TOKEN"] = "token", secrets.token_hex(32)
