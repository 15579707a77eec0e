"""Files of models in repositories of the Hugging Face hub, which `hf://user/name` names; $HF_ENDPOINT says where it is.

Only files that a model consists of are read, by their names, and none that is too large. Nothing of them is executed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ncttt.base.errors import InputError, Unreachable

PREFIX = "hf://"
WEIGHTS, DESCRIPTION, CARD = "model.safetensors", "model.json", "README.md"
RECORDS = ("config.json", "results.json", "metrics.csv")
MEBIBYTE = 1 << 20
LIMITS = {WEIGHTS: 4096 * MEBIBYTE} | dict.fromkeys((DESCRIPTION, *RECORDS, CARD), 16 * MEBIBYTE)
SECONDS = 30
NAME = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")


class HubName(NamedTuple):
    """A repository and, if one is asked for, its branch, tag or commit."""

    repository: str
    revision: str | None


def is_hub_name(name: str | Path) -> bool:
    """Whether a model is named by its repository: only `hf://` says so, so that no mistyped folder is ever fetched."""
    return isinstance(name, str) and name.startswith(PREFIX)


def hub_name(name: str) -> HubName:
    """The repository that `user/name`, `user/name@revision` or the same after `hf://` names.

    >>> hub_name("hf://ada/digits@v1")
    HubName(repository='ada/digits', revision='v1')
    """
    match = NAME.fullmatch(name.removeprefix(PREFIX))
    if match is None:
        raise InputError(f"expected a repository as user/name or user/name@revision; found {name!r}")
    return HubName(match["repository"], match["revision"])


def fetch(name: str, folder: Path | None = None) -> Path:
    """Fetch the model of a repository into the hub's cache, or with what is recorded of it into `folder`.

    Returns the folder in which the files lie. They are not yet verified.
    """
    wanted = hub_name(name)
    files = (DESCRIPTION, WEIGHTS) if folder is None else tuple(LIMITS)
    with _answers(wanted.repository):
        hub = _api()
        found = hub.model_info(wanted.repository, revision=wanted.revision, files_metadata=True, timeout=SECONDS)
        sizes = {file.rfilename: file.size for file in found.siblings or ()}
        _check_sizes(wanted.repository, {file: sizes[file] for file in files if file in sizes})
        paths = [
            Path(hub.hf_hub_download(wanted.repository, file, revision=found.sha, local_dir=folder))
            for file in files
            if file in sizes
        ]
    return paths[0].parent


def upload(repository: str, files: Mapping[str, Path | bytes], message: str, private: bool) -> str:
    """Make the repository if there is none, and put the files there in one commit; returns its address."""
    with _answers(repository):
        hub = _api()
        hub.create_repo(repository, private=private or None, exist_ok=True)
        add = import_module("huggingface_hub").CommitOperationAdd
        hub.create_commit(repository, [add(file, content) for file, content in files.items()], commit_message=message)
        return f"{urlsplit(hub.endpoint).scheme}://{_host()}/{repository}"


def _check_sizes(repository: str, sizes: Mapping[str, int | None]) -> None:
    for file in (DESCRIPTION, WEIGHTS):
        if file not in sizes:
            raise InputError(f"{repository} holds no model of ncttt: {file} is missing")
    for file, size in sizes.items():
        if size is None or size > LIMITS[file]:
            found = "no size" if size is None else f"{size / MEBIBYTE:.0f} MiB"
            raise InputError(f"{repository}: {file} may have {LIMITS[file] // MEBIBYTE} MiB; found {found}")


def _api() -> Any:
    return import_module("huggingface_hub").HfApi(endpoint=os.environ.get("HF_ENDPOINT"), library_name="ncttt")


@contextmanager
def _answers(repository: str) -> Iterator[None]:
    """Turn what goes wrong with the hub into one line, without the token."""
    try:
        errors = import_module("huggingface_hub.errors")
    except ImportError:
        raise InputError("repositories need huggingface_hub; pip install 'ncttt[hub]'") from None
    try:
        with _quiet():
            yield
    except InputError:
        raise
    except (errors.HfHubHTTPError, errors.HFValidationError) as error:
        raise InputError(_refusal(repository, error)) from error
    except Exception as error:  # of the connection, or a broken answer
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise Unreachable(f"{_host()} cannot be used for {repository}: {_without_token(first)}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the library from printing bars and warnings of its own."""
    shown = import_module("huggingface_hub.utils")
    disabled, level = shown.are_progress_bars_disabled(), shown.logging.get_verbosity()
    shown.disable_progress_bars()
    shown.logging.set_verbosity_error()
    try:
        yield
    finally:
        shown.logging.set_verbosity(level)
        if not disabled:
            shown.enable_progress_bars()


def _refusal(repository: str, error: Exception) -> str:
    status = getattr(getattr(error, "response", None), "status_code", None)
    kind = type(error).__name__
    if kind == "RevisionNotFoundError":
        return f"{repository} on {_host()} has no such revision"
    if status in (401, 403):
        return (
            f"{_host()} answers {status} for {repository}: it does not exist, or you have no permission; "
            "log in by `hf auth login`, or set HF_TOKEN"
        )
    if status == 404:
        return f"there is no repository {repository} on {_host()}"
    if status is None:
        return f"{repository!r} is no name of a repository"
    return f"{_host()} answers {status} for {repository}"


def _host() -> str:
    """Where the hub is, without what an address may hold of passwords."""
    address = urlsplit(_api().endpoint)
    return f"{address.hostname}:{address.port}" if address.port else str(address.hostname)


def _without_token(text: str) -> str:
    token = import_module("huggingface_hub").get_token()
    return text.replace(token, "***") if token else text
