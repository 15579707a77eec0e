"""`ncttt rows export`: the rows of a store as a file."""

EXAMPLE = "ncttt rows export runs/bench.sqlite runs/bench.csv"


def export(store: str, out: str) -> None:
    """Write the rows of a store as CSV or Parquet.

    Args:
        store: File of the rows.
        out: File to write; its name ends in .csv or .parquet.
    """
    from ncttt.benchmark.store import Store

    with Store(_existing(store), read_only=True) as rows:
        print(f"{rows.export(out)} rows in {out}")


def _existing(store: str) -> str:
    from pathlib import Path

    from ncttt.base.errors import InputError

    if not Path(store).is_file():
        raise InputError(f"there is no store {store}")
    return store
