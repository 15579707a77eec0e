"""`ncttt rows`: what a store holds, as files and back."""


def export(store: str, out: str) -> None:
    """Write the rows of a store as CSV or Parquet.

    Args:
        store: File of the rows.
        out: File to write; its name ends in .csv or .parquet.
    """
    from ncttt.benchmark.store import Store

    with Store(_existing(store), read_only=True) as rows:
        print(f"{rows.export(out)} rows in {out}")


def seed(store: str, rows: str) -> None:
    """Take rows from a CSV into a store, which is made if need be; cells that it has stay as they are.

    Args:
        store: File of the rows.
        rows: CSV that `ncttt rows export` wrote.
    """
    from ncttt.benchmark.store import Store

    with Store(store) as base:
        print(f"{base.seed(rows)} new rows in {store}")


def show(store: str, *, json: bool = False) -> None:
    """Show the rows of a store, mean over corruptions, and the cells that failed.

    Args:
        store: File of the rows.
        json: Print the rows as JSON, for scripts.
    """
    import json as json_module

    from ncttt.benchmark.store import Store
    from ncttt.report import show as show_table
    from ncttt.report import summary_table

    with Store(_existing(store), read_only=True) as base:
        rows, failures = base.rows(), base.failures()
    if json:
        print(json_module.dumps(rows))
        return
    if rows:
        show_table(summary_table(rows))
    for failure in failures:
        cell = failure["cell"]
        print(f"failed: {cell['method']} on {cell['checkpoint']}, {cell['corruption']}: {failure['error']}")


def _existing(store: str) -> str:
    from pathlib import Path

    from ncttt.base.errors import InputError

    if not Path(store).is_file():
        raise InputError(f"there is no store {store}")
    return store
