"""What CIFAR-10 and CIFAR-100 share: each is published in a binary and in a Python version, and either is read."""

from collections.abc import Mapping
from pathlib import Path

from ncttt.data.files.checksums import mismatches
from ncttt.data.sets.base import OK, DataSet, Findings


class Cifar(DataSet):
    """The binary version in `folder` if it is there, else the Python version in `pickled_folder`, if that is."""

    pickled_folder: str
    pickled_hashes: Mapping[str, str]

    def where(self, root: Path) -> Path:
        binary, pickled = root / self.folder, root / self.pickled_folder
        return pickled if pickled.is_dir() and not binary.is_dir() else binary

    def pickled(self, root: Path) -> bool:
        """Whether it is the Python version that is read."""
        return self.where(root).name == self.pickled_folder

    def present(self, root: Path) -> bool:
        if self.pickled(root):
            return all((self.where(root) / name).exists() for name in self.pickled_hashes)
        return super().present(root)

    def check(self, root: Path) -> Findings:
        if self.pickled(root):
            return dict.fromkeys(self.pickled_hashes, OK) | mismatches(self.where(root), self.pickled_hashes)
        return super().check(root)
