"""The numbers of the NC-TTT paper's seven tables, what is known to be wrong with them, and the tables themselves."""

from ncttt.report.paper.names import our_name, paper_names
from ncttt.report.paper.rows import PaperRow, find, paper_accuracy, paper_rows
from ncttt.report.paper.tables import TITLES, paper_table

__all__ = ["TITLES", "PaperRow", "find", "our_name", "paper_accuracy", "paper_names", "paper_rows", "paper_table"]
