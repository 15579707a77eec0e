"""Adapting to image files: found in folders, read as they are needed, predicted with and without adaptation."""

from ncttt.adapting.choosing import chosen_method
from ncttt.adapting.stream import Adapted, FolderStream
from ncttt.adapting.summary import Tally
from ncttt.adapting.tables import PREDICTIONS, TRACE, growing_table, prediction_rows, trace_row

__all__ = [
    "PREDICTIONS",
    "TRACE",
    "Adapted",
    "FolderStream",
    "Tally",
    "chosen_method",
    "growing_table",
    "prediction_rows",
    "trace_row",
]
