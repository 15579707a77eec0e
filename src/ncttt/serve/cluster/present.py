"""The routers of this process: which replicas there are, as Ray tells it.

They are here and not where their class is, because Ray copies the module of that class.
"""

from __future__ import annotations

from typing import Any

ROUTERS: dict[str, Any] = {}  # by application
DEAD: set[str] = set()  # replicas whose process was found to be gone


def replicas(application: str) -> list[str]:
    """The names of the replicas of an application."""
    router = ROUTERS.get(application)
    return [replica.unique_id for replica in router.curr_replicas] if router else []
