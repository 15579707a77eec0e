"""`ncttt rows export`: the rows of a store as a file."""

from ncttt import benchmark
from ncttt.base.words import counted

EXAMPLE = "ncttt rows export runs/bench.sqlite runs/bench.csv"


def export(store: str, out: str) -> None:
    """Write the rows of a store as CSV or Parquet.

    Args:
        store: File of the rows.
        out: File to write; its name ends in .csv or .parquet.
    """
    with benchmark.Store.existing(store) as rows:
        print(f"{counted(rows.export(out), 'row')} in {out}")
