from .collect import Example
from .examples import examples_of
from .headline import finding
from .report import Report, write_page, write_report
from .setups import setups_of
from .verdicts import Verdict, verdicts_of

__all__ = [
    "Example",
    "Report",
    "Verdict",
    "examples_of",
    "finding",
    "setups_of",
    "verdicts_of",
    "write_page",
    "write_report",
]
