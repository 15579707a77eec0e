"""Rows and the paper's numbers as tables: Markdown, LaTeX, CSV. Knows rows alone, and needs no torch."""

from ncttt.report.beside import beside_paper
from ncttt.report.grid import tables
from ncttt.report.paper import paper_accuracy, paper_rows, paper_table
from ncttt.report.rendering import render
from ncttt.report.significance import Comparison, compare, comparison_table
from ncttt.report.table import Line, Number, Table

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
