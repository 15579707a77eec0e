from .evidence import Example, ShiftedImage, Stream
from .examples import examples_of
from .headline import finding
from .report import Report, write_page, write_report
from .setups import setups_of
from .shifts import shifts_of
from .streams import streams_of
from .verdicts import Verdict, verdicts_of

__all__ = [
    "Example",
    "Report",
    "ShiftedImage",
    "Stream",
    "Verdict",
    "examples_of",
    "finding",
    "setups_of",
    "shifts_of",
    "streams_of",
    "verdicts_of",
    "write_page",
    "write_report",
]
