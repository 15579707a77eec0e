"""`ncttt figures`: the figures of the paper and of a benchmark, as SVG and PNG."""

import sys
from typing import Any

from ncttt.report.gallery import chosen, listing

EXAMPLE = "ncttt figures method posterior --out runs/figures"
GROUP = "show"


def figures(
    names: list[str],
    *,
    out: str = "runs/figures",
    rows: str | None = None,
    where: dict[str, Any] | None = None,
    trials: str | None = None,
    method: str | None = None,
    model: str | None = None,
    data: str = "digits",
    root: str | None = None,
    images: int = 200,
    corruption: str = "shot_noise",
    severity: int = 5,
    constants: str | None = None,
    steps: int | None = None,
) -> None:
    """Draw figures, each as SVG and PNG, and print where they are; `ncttt figures list` says which there are.

    Args:
        names: Of figures, or all, which leaves out those that lack something; LISTING.
        out: Folder to write to.
        rows: Of a benchmark: its store, or a CSV of it.
        where: Use only rows whose columns have these values, as in --where.severity 5.
        trials: File with what `ncttt tune --json` printed.
        method: That of the rows (nc_ttt by default), or one in place of the model's own.
        model: Zoo name or folder; by default the zoo's model for NC-TTT on this data.
        data: Name of a data set, or a folder of images.
        root: Folder of the data sets; else $NCTTT_DATA, else the user's cache folder.
        images: How many test images a model is shown.
        corruption: That a model is shown.
        severity: Of that corruption, from 1 to 5.
        constants: Table of the severities, cifar or imagenet; by default chosen by the size of the images.
        steps: Of the adaptation; by default 20 for tsne, and the method's own otherwise.
    """
    if names == ["list"]:
        print(listing())
        return
    chosen(names)  # an unknown one is an error before anything is read
    from ncttt.benchmark.reading import read_rows
    from ncttt.report.figures import save
    from ncttt.report.figures.layers import read_trials
    from ncttt.report.figures.making import Request, drawn
    from ncttt.report.figures.selection import rows_where

    request = Request(
        rows=None if rows is None else rows_where(read_rows(rows), where or {}),
        trials=None if trials is None else read_trials(trials),
        method=method,
        model=model,
        data=data,
        root=root,
        images=images,
        corruption=corruption,
        severity=severity,
        constants=constants,
        steps=steps,
    )
    for name, figure in drawn(names, request, say=lambda line: print(f"ncttt: {line}", file=sys.stderr)):
        print(*save(figure, out, name), sep="\n")


figures.__doc__ = (figures.__doc__ or "").replace("LISTING", listing().replace("\n", "; "))
