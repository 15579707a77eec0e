"""Rows made by hand for pages: source, batch statistics, and methods on top, with all that a page can show."""

import json

from report_rows import row

from ncttt.data.corruptions import CORRUPTIONS

# Accuracy over that of batch statistics, and statistics over the source.
METHODS = {"source": None, "ptbn": 0.0, "tent": 0.01, "nc_ttt": 0.03}


def page_rows(
    gains: dict[str, float | None] | None = None,
    corruptions: tuple[str, ...] = ("clean", "gaussian_noise", "fog"),
    statistics: float = 0.2,
    **changes,
) -> list[dict]:
    """A row for each method and corruption; `gains` are those of the steps, and None for the source."""
    return [
        _row(method, corruption, place, gain, 0.0 if corruption == "clean" else statistics, changes)
        for method, gain in (METHODS if gains is None else gains).items()
        for place, corruption in enumerate(corruptions)
    ]


def _row(method: str, corruption: str, place: int, gain: float | None, statistics: float, changes: dict) -> dict:
    source = 0.9 if corruption == "clean" else 0.4 + 0.01 * place
    accuracy = source if gain is None else source + statistics + (0.0 if corruption == "clean" else gain)
    settings = {"name": method, "norm": "source" if method == "source" else "batch", "lr": 0.001}
    more = {
        "settings": json.dumps(settings),
        "ece": 0.1,
        "images_per_second": 500.0,
        "steps_taken": 0.0 if not gain else 10.0,
        "mended": 30,
        "broken": 10,
        "accuracy_at": json.dumps({"0": source + statistics, "10": accuracy} if gain else {"0": accuracy}),
        "shift_before": 0.6 + 0.01 * place if method == "nc_ttt" else None,
        "shift_after": 0.8 if method == "nc_ttt" else None,
        "weights": "0123456789abcdef",
        "commit": "abc1234",
        "machine": "Linux, 2 cores",
        "versions": "Python 3.11, torch 2.13",
    }
    return row(method, corruption, accuracy, **(more | changes))


def many_rows() -> list[dict]:
    """As many as a study has: fifteen corruptions and clean images, eleven methods, two severities, two protocols."""
    gains = {"source": None, "ptbn": 0.0, "lame": 0.01, "tent": 0.02, "ttt": 0.03, "ttt_plus": 0.005, "clust3": 0.05}
    gains |= {"ttt_flow": -0.05, "nc_ttt": 0.04, "nc_ttt that stops at the source": 0.035, "my own method": -0.3}
    names = ("clean", *CORRUPTIONS)
    return [
        one if one["corruption"] == "clean" else one | {"severity": severity}
        for severity, statistics in ((3, 0.25), (5, 0.15))
        for protocol in ("episodic", "online")
        for one in page_rows(gains, names[severity // 5 :], statistics, protocol=protocol)  # clean images once
    ]
