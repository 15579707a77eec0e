"""`get`: have a published set on disk, verified, from its home or from a second source; `check` what lies there."""

from collections.abc import Callable
from pathlib import Path

from ncttt.base.errors import InputError, Unreachable
from ncttt.base.locks import alone_with
from ncttt.data.files.archives import put_in_place, scratch, unpack
from ncttt.data.files.arrays import MAKING, check_made
from ncttt.data.files.checksums import file_hash, keep_hash, kept_hashes, mismatches
from ncttt.data.files.download import Progress, WrongChecksum, download
from ncttt.data.files.folders import folder
from ncttt.data.files.image_files import LazyImages
from ncttt.data.sets.base import OK, DataSet, Download, Findings, data_root
from ncttt.data.sets.registry import DATA_SETS, data_set

Said = Callable[[str], None]


def get(
    name: str,
    root: str | Path | None = None,
    *,
    progress: Progress | None = None,
    say: Said = lambda line: None,
) -> Path:
    """Fetch the set `name` unless it is there already, verify it, and return its folder.

    `progress` is called with (bytes so far, bytes in all or 0), `say` with what is done, a line at a time.

    >>> get("digits").name  # part of scikit-learn: nothing to fetch
    'sklearn'
    """
    chosen, where = data_set(name), data_root(root)
    if not chosen.downloads:
        chosen.require(where)
        return chosen.where(where)
    folder = where / chosen.folder
    if _complete(chosen, folder):
        say(f"{name} is already in {folder}")
        return folder
    if _complete_elsewhere(chosen, where, folder):
        say(f"{name} is already in {chosen.where(where)}")
        return chosen.where(where)
    _keep_made(name, folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with alone_with(folder):
        _fetch(chosen, folder, progress, say)
    return folder


def _fetch(chosen: DataSet, folder: Path, progress: Progress | None, say: Said) -> None:
    try:
        _from_home(chosen, folder, progress, say)
    except Unreachable as error:
        say(str(error))
        _from_second_source(chosen, folder, str(error), say)


def _complete(chosen: DataSet, folder: Path) -> bool:
    if chosen.hashes:
        return folder.is_dir() and not mismatches(folder, chosen.hashes)
    return all((folder / item.part).is_dir() for item in chosen.downloads)


def _complete_elsewhere(chosen: DataSet, root: Path, folder: Path) -> bool:
    """Whether another version than the one that would be fetched is there and verified."""
    return chosen.where(root) != folder and set(chosen.check(root).values()) == {OK}


def _keep_made(name: str, folder: Path) -> None:
    # What `ncttt data corrupt` made here must not be replaced unasked.
    if (folder / MAKING).is_file():
        raise InputError(f"{folder} holds a generated {name}; move it away before fetching the published one")


def _from_home(chosen: DataSet, folder: Path, progress: Progress | None, say: Said) -> None:
    for item in chosen.downloads:
        target = folder / item.part
        if item.part and target.is_dir():
            continue
        say(f"fetching {item.url}")
        kept = folder.with_name(f"{folder.name}.checksums.json")
        known = item.hash or _first_hash(item, kept, say)
        # An archive waits beside the folder, so that an interrupted download can go on next time.
        place = (target.parent if chosen.archive else folder) / item.file
        file = _download(item, place, known, kept, progress)
        digest = file_hash(file, "sha256") if known is None else None
        if chosen.archive:
            _unpack_archive(file, target, chosen, known)
            file.unlink()
        if digest is not None:
            keep_hash(kept, item.url, digest)


def _first_hash(item: Download, kept: Path, say: Said) -> str | None:
    """What the address gave when it was fetched first."""
    first = kept_hashes(kept).get(item.url)
    verified = (
        f"the file must be that of the first fetch ({kept})" if first else f"that of this fetch is kept in {kept}"
    )
    say(f"its home publishes no checksum: {verified}")
    return first


def _download(item: Download, place: Path, known: str | None, kept: Path, progress: Progress | None) -> Path:
    try:
        return download(item.url, place, known, progress=progress)
    except WrongChecksum as error:
        if item.hash is not None:
            raise
        raise WrongChecksum(
            f"{error}; it is not the file that was fetched first: if its publisher has changed it, remove its line "
            f"from {kept}"
        ) from error


def _unpack_archive(archive: Path, target: Path, chosen: DataSet, known_hash: str | None) -> None:
    try:
        # Beside what a link leads to, because a rename cannot cross disks.
        with scratch(target.resolve().parent) as aside:
            unpack(archive, aside)
            _require(aside / target.name, chosen, str(archive))
            put_in_place(aside / target.name, target)
    except InputError:
        # Without a hash this may be any page a server sends; kept, it would be taken for the set again.
        if known_hash is None:
            archive.unlink()
        raise


def _from_second_source(chosen: DataSet, folder: Path, tried: str, say: Said) -> None:
    advice = f"fetch it elsewhere and put it into {folder}"
    if not chosen.second_source:
        raise Unreachable(f"{chosen.name} cannot be fetched; tried {tried}; {advice}")
    say(f"trying the second source of {chosen.name}: {chosen.second_source}")
    with scratch(folder.resolve().parent) as aside:
        try:
            chosen.fetch_elsewhere(aside, aside / folder.name)
        except Unreachable as error:
            raise Unreachable(f"{chosen.name} cannot be fetched; tried {tried}; {error}; {advice}") from error
        _require(aside / folder.name, chosen, f"the second source of {chosen.name}")
        put_in_place(aside / folder.name, folder)


def _require(folder: Path, chosen: DataSet, origin: str) -> None:
    if not folder.is_dir():
        raise InputError(f"{origin} holds no folder {folder.name!r}")
    if wrong := mismatches(folder, chosen.hashes):
        listed = "; ".join(f"{file}: {what}" for file, what in wrong.items())
        raise InputError(f"{origin}: {listed}")


def check(name: str, root: str | Path | None = None) -> Findings:
    """What was looked at and how it is: "ok", or what is wrong with it. Nothing is changed.

    `name` is that of a set, or the path of a folder: of images, each of which is decoded, or of corrupted arrays.

    >>> check("digits")
    {'train': 'ok', 'test': 'ok'}
    """
    place = Path(name)
    if not name or name in list(DATA_SETS) or not place.is_dir():
        return data_set(name).check(data_root(root))
    return check_made(place) if (place / MAKING).is_file() else _check_folder(place)


def _check_folder(path: Path) -> Findings:
    data = folder(path)
    assert isinstance(data.images, LazyImages)
    bad = data.images.unreadable()
    return {f"{len(data) - len(bad)} images": OK} | {str(data.images.paths[i]): why for i, why in bad.items()}
