from .beside import beside_paper
from .grid import tables
from .paper import paper_accuracy, paper_rows, paper_table
from .rendering import render
from .significance import Comparison, compare, comparison_table
from .table import Line, Number, Table

__all__ = [
    "Comparison",
    "Line",
    "Number",
    "Table",
    "beside_paper",
    "compare",
    "comparison_table",
    "paper_accuracy",
    "paper_rows",
    "paper_table",
    "render",
    "tables",
]
