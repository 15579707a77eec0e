"""`ncttt report`: rows as one page, and their tables as files."""

EXAMPLE = "ncttt report runs/bench.sqlite --out runs/report"
GROUP = "show"


def report(
    rows: list[str], *, out: str = "runs/report", title: str | None = None, examples: int = 12, json: bool = False
) -> None:
    """Write a page that shows what rows tell: one HTML file that needs no other, and the tables beside it.

    Args:
        rows: Stores of `ncttt bench`, or CSV files that `ncttt rows export` wrote; several are put together.
        out: Folder to write into.
        title: Of the page; by default the names of the data sets.
        examples: Images to show before and after, where a store has predictions and its images lie beside it.
        json: Print what was written and what came out as JSON, for scripts.
    """
    import json as json_module

    from ncttt.report.page.reading import read_all
    from ncttt.report.page.writing import write_page

    found = read_all(rows, examples)
    page = write_page(found.rows, out, title=title, examples=found.examples, comparisons=found.comparisons)
    if json:
        print(json_module.dumps({"page": str(page), "rows": len(found.rows), "findings": found.findings()}))
    else:
        print(f"{len(found.rows)} rows in {page}")
