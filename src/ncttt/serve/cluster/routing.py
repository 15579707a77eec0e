"""Routing: a stream goes to the replica whose name and its own give the largest hash, as long as that replica is there.

With another replica, or one fewer, only the streams move that it gains or had (rendezvous hashing). All who know the
same replicas agree without talking; while they do not, claims decide (`ncttt.serve.ownership`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from ray.serve.request_router import PendingRequest, ReplicaID, RequestRouter, RunningReplica

from ncttt.serve.cluster import present

EXACTLY = "="  # before the name of a replica, in place of that of a stream


class ByStream(RequestRouter):
    """The router of a Ray deployment whose requests name their stream as their multiplexed model."""

    def initialize_state(self, **settings: Any) -> None:
        present.ROUTERS[self.app_name] = self

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        key = "" if pending_request is None else pending_request.metadata.multiplexed_model_id
        names = {replica.replica_id.unique_id: replica for replica in candidate_replicas}
        return [[names[home(key, names)]]] if names else []

    def on_replica_actor_died(self, replica_id: ReplicaID) -> None:
        super().on_replica_actor_died(replica_id)
        present.DEAD.add(replica_id.unique_id)


def home(stream: str, replicas: Iterable[str]) -> str:
    """The replica that a stream belongs to, or the one that is asked for by its name.

    >>> home("door-2", ["a", "b", "c"]), home("door-2", ["b", "c"]), home("=b", ["a", "b", "c"])
    ('c', 'c', 'b')
    """
    names = list(replicas)
    if stream.startswith(EXACTLY) and stream.removeprefix(EXACTLY) in names:
        return stream.removeprefix(EXACTLY)
    return max(names, key=lambda name: hashlib.blake2b(f"{stream} {name}".encode(), digest_size=8).digest())
