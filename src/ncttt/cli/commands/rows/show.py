"""`ncttt rows show`: the rows of a store as a table."""

EXAMPLE = "ncttt rows show runs/bench.sqlite"


def show(store: str, *, json: bool = False) -> None:
    """Show the rows of a store, mean over corruptions, and the cells that failed.

    Args:
        store: File of the rows.
        json: Print the rows as JSON, for scripts.
    """
    import json as json_module

    from ncttt.benchmark.store import Store
    from ncttt.benchmark.summary import summarise, summary_table
    from ncttt.cli.bench_output import show as show_table

    with Store(_existing(store), read_only=True) as base:
        rows, failures = base.rows(), base.failures()
    if json:
        print(json_module.dumps(rows))
        return
    if rows:
        show_table(*summary_table(summarise(rows)))
    for failure in failures:
        cell = failure["cell"]
        print(f"failed: {cell['method']} on {cell['checkpoint']}, {cell['corruption']}: {failure['error']}")


def _existing(store: str) -> str:
    from pathlib import Path

    from ncttt.base.errors import InputError

    if not Path(store).is_file():
        raise InputError(f"there is no store {store}")
    return store
