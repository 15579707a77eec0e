"""Replicas started on a Ray cluster, or on a local one of its own, and stopped again."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray
from ray import serve
from ray.serve.config import AutoscalingConfig, ProxyLocation, RequestRouterConfig
from ray.serve.handle import DeploymentHandle

from ncttt.base.errors import InputError
from ncttt.serve.cluster.replica import Replica
from ncttt.serve.cluster.replicas import Replicas
from ncttt.serve.cluster.routing import ByStream
from ncttt.serve.served import Served
from ncttt.serve.settings import Settings

LOCAL: dict[str, Any] = {
    "address": "local",
    "include_dashboard": False,
    "_node_ip_address": "127.0.0.1",  # else others could reach it
    "object_store_memory": 128 << 20,
}
STARTING = 60.0  # seconds until replicas that run have answered
SAVING = 120.0  # seconds that a replica has to answer what it took and to save its streams


@contextmanager
def replicas_of(settings: Settings, replicas: tuple[int, int], address: str | None) -> Iterator[Replicas]:
    """From the smallest to the largest number of replicas until the `with` block ends; then they save and end."""
    fewest, most = replicas
    settings = _everywhere(settings)
    if not re.fullmatch(r"cpu|cuda(:\d+)?", settings.device):
        raise InputError(f"device must be cpu, cuda or cuda:N; found {settings.device!r}")
    served = Served(replace(settings, device="cpu"))  # what cannot be served is refused before anything is started
    threads, device = settings.threads or 1, settings.device.partition(":")[0]  # a replica sees its own GPU alone
    application = f"ncttt-{hashlib.blake2b(settings.state.encode(), digest_size=4).hexdigest()}"
    with _cluster(address, threads * most):
        _check_room(threads, fewest, settings.device)
        # Requests come from this process alone: Ray's own proxies would be addresses without a token and limits.
        serve.start(proxy_location=ProxyLocation.Disabled)
        try:
            replica = _deployment(fewest, most, settings).bind(replace(settings, threads=threads, device=device))
            yield Replicas(settings, served, _deployed(replica, application), application)
        finally:
            serve.delete(application)


def _deployed(replica: serve.Application, application: str) -> DeploymentHandle:
    """A handle of the replicas, which has found them."""
    try:
        handle = serve.run(replica, name=application, route_prefix=None)
        handle.text.remote().result(timeout_s=STARTING)
        return handle
    except RuntimeError as error:
        raise InputError(f"the replicas do not start: {' '.join(str(error).split())}") from None


def _deployment(fewest: int, most: int, settings: Settings) -> Any:
    scaling = AutoscalingConfig(
        min_replicas=fewest,
        max_replicas=most,
        target_ongoing_requests=max(1, settings.batch_size // 2),
        upscale_delay_s=10,
        downscale_delay_s=60,
    )
    number: dict[str, Any] = {"num_replicas": fewest} if fewest == most else {"autoscaling_config": scaling}
    by_stream: Any = ByStream  # Ray takes a class, but its types do not say so
    return serve.deployment(
        Replica,
        name="replicas",
        max_ongoing_requests=2 * settings.most_waiting,  # its own queue refuses before
        health_check_period_s=2,
        health_check_timeout_s=30,
        graceful_shutdown_wait_loop_s=0.1,
        graceful_shutdown_timeout_s=SAVING,
        request_router_config=RequestRouterConfig(request_router_class=by_stream),
        ray_actor_options={"num_cpus": settings.threads or 1, "num_gpus": int(settings.device != "cpu")},
        **number,
    )


@contextmanager
def _cluster(address: str | None, cores: int) -> Iterator[None]:
    """Be connected with a cluster; a local one ends with the `with` block."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    _check_there(address)
    place: dict[str, Any] = {"address": address} if address else {**LOCAL, "num_cpus": max(cores, os.cpu_count() or 1)}
    for name in ("ray", "ray.serve"):
        logging.getLogger(name).setLevel(logging.ERROR)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        ray.init(log_to_driver=False, configure_logging=False, **place)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InputError(f"no Ray cluster at {address or 'local'}: {' '.join(str(error).split())}") from None
    for number, handler in before.items():
        signal.signal(number, handler)  # Ray's own would leave before everything is answered
    try:
        yield
    finally:
        ray.shutdown()


def _check_there(address: str | None) -> None:
    """Ray waits for minutes for a cluster at HOST:PORT that is not there."""
    host, colon, port = (address or "").rpartition(":")
    if colon and port.isdecimal() and "/" not in host:
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        except (OSError, OverflowError) as error:
            raise InputError(f"no Ray cluster at {address}: {error}") from None


def _check_room(threads: int, fewest: int, device: str) -> None:
    """Ray waits for ever for machines that are large enough."""
    for what, needed in (("CPU", threads), ("GPU", int(device != "cpu"))):
        rooms = [node["Resources"].get(what, 0) for node in ray.nodes() if node["Alive"]]
        found = sum(int(room // needed) for room in rooms) if needed else fewest
        if found < fewest:
            raise InputError(
                f"the Ray cluster has room for {found} replicas with {needed} {what} each; asked: {fewest}"
            )


def _everywhere(settings: Settings) -> Settings:
    """The settings with paths that are the same in any working directory."""
    files = {name: getattr(settings, name) for name in ("model", "monitor") if getattr(settings, name)}
    found = {name: str(Path(path).resolve()) for name, path in files.items() if Path(path).exists()}
    return replace(settings, state=str(Path(settings.state).resolve()), **found)
