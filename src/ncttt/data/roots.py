"""Where data sets live: the folder that was given, else `$NCTTT_DATA`, else the user's cache folder."""

import os
from pathlib import Path

VARIABLE = "NCTTT_DATA"


def data_root(root: str | Path | None = None) -> Path:
    """The folder that holds the data sets; it need not exist yet.

    >>> data_root("sets").name
    'sets'
    """
    chosen = root or os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    import pooch

    return Path(pooch.os_cache("ncttt"))
