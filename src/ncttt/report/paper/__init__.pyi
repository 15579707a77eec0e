from .comparison import vs_paper
from .rows import PaperRow, find, our_name, paper_accuracy, paper_names, paper_rows
from .tables import TITLES, paper_table

__all__ = [
    "TITLES",
    "PaperRow",
    "find",
    "our_name",
    "paper_accuracy",
    "paper_names",
    "paper_rows",
    "paper_table",
    "vs_paper",
]
