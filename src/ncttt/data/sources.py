"""Facts about the published sets: where their homes are, which files they hold and what those files hash to."""

from dataclasses import dataclass, field
from pathlib import Path

from ncttt.base.errors import InputError, nearest
from ncttt.data.checksums import CIFAR10, CIFAR10_1_V4, CIFAR10_1_V6, CIFAR10_C, CIFAR100, CIFAR100_C

TORONTO = "https://www.cs.toronto.edu/~kriz/"
ZENODO = "https://zenodo.org/records/"
CIFAR10_1 = "https://github.com/modestyachts/CIFAR-10.1/raw/master/datasets/"
MAKING = "corruptions.json"  # what `ncttt data corrupt` leaves beside its arrays
UNFINISHED = ".npy.part"  # how its arrays end until they are whole
VISDA = "http://csr.bu.edu/ftp/visda17/clf/"


@dataclass(frozen=True)
class Download:
    """One file to fetch: address, published hash (`md5:...`; None when its home publishes none), and the part
    of the set it brings when it does not bring the whole."""

    url: str
    hash: str | None
    part: str = ""

    @property
    def file(self) -> str:
        return self.url.rsplit("/", 1)[1].partition("?")[0]


@dataclass(frozen=True, kw_only=True)
class Source:
    """A published set: what to fetch, the folder of the root it ends in, and the hashes of the files there."""

    title: str
    folder: str
    splits: tuple[str, ...]
    downloads: tuple[Download, ...] = ()
    hashes: dict[str, str] = field(default_factory=dict)
    bytes: int | None = None
    archive: bool = True

    @property
    def needs(self) -> tuple[str, ...]:
        """The paths below the root that are there when the set is."""
        parts = self.hashes or [item.part for item in self.downloads]
        return tuple(f"{self.folder}/{part}" for part in parts)


SOURCES: dict[str, Source] = {
    "digits": Source(
        title="1,797 handwritten digits of scikit-learn at 32x32",
        folder="",
        splits=("train", "fit", "val", "test"),
        bytes=0,
    ),
    "cifar10": Source(
        title="CIFAR-10: 60,000 photographs at 32x32, 10 classes",
        folder="cifar-10-batches-bin",
        splits=("train", "fit", "val", "test"),
        downloads=(Download(TORONTO + "cifar-10-binary.tar.gz", "md5:c32a1d4ab5d03f1284b67883e8d87530"),),
        hashes=CIFAR10,
        bytes=170_052_171,
    ),
    "cifar100": Source(
        title="CIFAR-100: 60,000 photographs at 32x32, 100 classes",
        folder="cifar-100-python",
        splits=("train", "fit", "val", "test"),
        downloads=(Download(TORONTO + "cifar-100-python.tar.gz", "md5:eb9058c3a382ffc7106e4002c42a8d85"),),
        hashes=CIFAR100,
        bytes=169_001_437,
    ),
    "cifar10-c": Source(
        title="CIFAR-10-C: the CIFAR-10 test images under 19 corruptions at 5 severities",
        folder="CIFAR-10-C",
        splits=("test",),
        downloads=(Download(ZENODO + "2535967/files/CIFAR-10-C.tar", "md5:56bf5dcef84df0e2308c6dcbcbbd8499"),),
        hashes=CIFAR10_C,
        bytes=2_918_471_680,
    ),
    "cifar100-c": Source(
        title="CIFAR-100-C: the CIFAR-100 test images under 19 corruptions at 5 severities",
        folder="CIFAR-100-C",
        splits=("test",),
        downloads=(Download(ZENODO + "3555552/files/CIFAR-100-C.tar", "md5:11f0ed0f1191edbf9fa23466ae6021d3"),),
        hashes=CIFAR100_C,
        bytes=2_918_473_216,
    ),
    "cifar10.1-v4": Source(
        title="CIFAR-10.1 v4: 2,021 new test images for CIFAR-10",
        folder="cifar-10.1",
        splits=("test",),
        downloads=tuple(Download(CIFAR10_1 + name, known) for name, known in CIFAR10_1_V4.items()),
        hashes=CIFAR10_1_V4,
        bytes=6_216_852,
        archive=False,
    ),
    "cifar10.1-v6": Source(
        title="CIFAR-10.1 v6: 2,000 new test images for CIFAR-10, balanced",
        folder="cifar-10.1",
        splits=("test",),
        downloads=tuple(Download(CIFAR10_1 + name, known) for name, known in CIFAR10_1_V6.items()),
        hashes=CIFAR10_1_V6,
        bytes=6_152_256,
        archive=False,
    ),
    "visda-c": Source(
        title="VisDA-C: 12 classes, renderings (train) against photographs (validation, test)",
        folder="visda-c",
        splits=("train", "fit", "val", "validation", "test"),
        # Their home publishes no checksums; `check` counts the images instead.
        downloads=tuple(Download(f"{VISDA}{part}.tar", None, part) for part in ("train", "validation", "test")),
    ),
}


def present(name: str, root: Path) -> bool:
    """Whether the files of a set are there; `check` looks into them.

    >>> present("digits", Path("nowhere")), present("cifar10", Path("nowhere"))
    (True, False)
    """
    facts = source(name)
    if name == "cifar10" and (root / "cifar-10-batches-py").exists():
        return True
    if facts.folder and (root / facts.folder / MAKING).is_file():
        return generated_whole(root / facts.folder)
    return not facts.downloads or all((root / path).exists() for path in facts.needs)


def generated_whole(folder: Path) -> bool:
    """Whether `ncttt data corrupt` has finished what it began in `folder`."""
    arrays = {path.name for path in folder.glob("*.npy")}
    return "labels.npy" in arrays and len(arrays) > 1 and not unfinished(folder)


def unfinished(folder: Path) -> list[str]:
    """The names of the arrays in `folder` that a run of `ncttt data corrupt` has left unfinished."""
    return sorted(path.name for path in folder.glob(f"*{UNFINISHED}"))


def source(name: str) -> Source:
    """The facts about one set.

    >>> source("cifar10").folder
    'cifar-10-batches-bin'
    """
    if name not in SOURCES:
        raise InputError(f"no data set {name!r}{nearest(name, SOURCES)}")
    return SOURCES[name]
