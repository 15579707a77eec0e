"""`ncttt data list`: the data sets, and whether they are here."""

import json as json_module

MB = 1_000_000
EXAMPLE = "ncttt data list --root datasets"


def list_(*, root: str | None = None, json: bool = False) -> None:
    """Show the data sets, their splits and whether they are on disk.

    Args:
        root: Folder of the data sets; else $NCTTT_DATA, else the user's cache folder.
        json: Print one JSON object, for scripts.
    """
    from ncttt.data import data_root
    from ncttt.data.sources import SOURCES, present, unfinished

    where = data_root(root)
    rows = {
        name: {
            "present": present(name, where),
            "unfinished": bool(facts.folder and unfinished(where / facts.folder)),
            "splits": list(facts.splits),
            "bytes": facts.bytes,
            "title": facts.title,
        }
        for name, facts in SOURCES.items()
    }
    if json:
        print(json_module.dumps({"root": str(where), "sets": rows}))
        return
    print(f"root: {where}")
    for name, row in rows.items():
        size = "?" if row["bytes"] is None else f"{row['bytes'] / MB:.0f} MB"
        state = "here" if row["present"] else "unfinished" if row["unfinished"] else "-"
        print(f"{name:<13} {state:<10} {size:>8}  {row['title']}")
