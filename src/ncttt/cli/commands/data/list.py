"""`ncttt data list`: the data sets there are, and which are on disk."""

import json as json_module

from ncttt import data

EXAMPLE = "ncttt data list --root datasets"
MB = 1_000_000


def list_(*, root: str | None = None, json: bool = False) -> None:
    """Show the data sets, their splits and whether they are on disk.

    Args:
        root: Folder of the data sets; else $NCTTT_DATA, else the user's cache folder.
        json: Print one JSON object, for scripts.
    """
    where, sets = data.data_root(root), data.list_sets(root)
    if json:
        print(json_module.dumps({"root": str(where), "sets": sets}))
        return
    print(f"root: {where}")
    for name, facts in sets.items():
        size = "?" if facts["bytes"] is None else f"{facts['bytes'] / MB:.0f} MB"
        state = "here" if facts["present"] else "unfinished" if facts["unfinished"] else "-"
        print(f"{name:<13} {state:<10} {size:>8}  {facts['title']}")
