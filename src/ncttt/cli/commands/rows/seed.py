"""`ncttt rows seed`: rows from a file into a store."""

from ncttt import benchmark
from ncttt.base.words import counted

EXAMPLE = "ncttt rows seed runs/bench.sqlite runs/bench.csv"


def seed(store: str, rows: str) -> None:
    """Copy rows from a CSV into a store, which is created if needed; cells that it has are not replaced.

    Args:
        store: File of the rows.
        rows: CSV that `ncttt rows export` wrote.
    """
    with benchmark.Store(store) as base:
        print(f"{counted(base.seed(rows), 'new row')} in {store}")
