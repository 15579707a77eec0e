from .accuracy import tables
from .benchmark_tables import attribution_table, summary_table, tuning_table
from .figures.gallery import draw_figures
from .page.report import Report, write_report
from .paper import paper_accuracy, paper_rows, paper_table, vs_paper
from .rendering import render
from .rendering.terminal import show
from .significance import Comparison, compare, comparison_table
from .survival import survival_tables
from .table import Line, Number, Table

__all__ = [
    "Comparison",
    "Line",
    "Number",
    "Report",
    "Table",
    "attribution_table",
    "compare",
    "comparison_table",
    "draw_figures",
    "paper_accuracy",
    "paper_rows",
    "paper_table",
    "render",
    "show",
    "summary_table",
    "survival_tables",
    "tables",
    "tuning_table",
    "vs_paper",
    "write_report",
]
