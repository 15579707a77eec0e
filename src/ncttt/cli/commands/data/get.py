"""`ncttt data get`: fetch a data set."""

from ncttt import data
from ncttt.base.progress import ProgressDisplay

EXAMPLE = "ncttt data get cifar10"


def get(name: str, *, root: str | None = None) -> None:
    """Fetch a data set and verify it; does nothing when it is there already.

    Args:
        name: Name of the set, as `ncttt data list` shows it, or the address `module:Class` of your own.
        root: Folder of the data sets; else $NCTTT_DATA, else the user's cache folder.
    """
    with ProgressDisplay("bytes", lines=False) as display:
        folder = data.get(
            name, root, progress=lambda done, total: display.update(done, total=total or None), say=display.say
        )
    print(folder)
