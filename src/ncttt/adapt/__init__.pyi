from .adapter import Adapter, Protocol
from .batch import Trace
from .folders import Adapted, FolderStream
from .output import PREDICTIONS, TRACE, growing_table, prediction_rows, trace_row
from .summary import Tally

__all__ = [
    "PREDICTIONS",
    "TRACE",
    "Adapted",
    "Adapter",
    "FolderStream",
    "Protocol",
    "Tally",
    "Trace",
    "growing_table",
    "prediction_rows",
    "trace_row",
]
