"""`ncttt rows seed`: a file of rows into a store."""

EXAMPLE = "ncttt rows seed runs/bench.sqlite runs/bench.csv"


def seed(store: str, rows: str) -> None:
    """Take rows from a CSV into a store, which is made if need be; cells that it has stay as they are.

    Args:
        store: File of the rows.
        rows: CSV that `ncttt rows export` wrote.
    """
    from ncttt.benchmark.store import Store

    with Store(store) as base:
        print(f"{base.seed(rows)} new rows in {store}")
