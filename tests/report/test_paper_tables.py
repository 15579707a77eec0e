"""The paper's tables again: its numbers, bold by what they are, and notes where print says otherwise."""

import pytest
from report_rows import number

from ncttt.report import paper_rows, paper_table
from ncttt.report.paper import TITLES


@pytest.mark.parametrize("name", TITLES)
def test_bold_is_computed_and_differs_from_print_only_where_it_is_wrong(name):
    table = paper_table(name)
    bold = [cell.bold for line in table.all_lines for cell in line.cells]
    assert bold == [row.bold != bool(row.bold_error) for row in paper_rows(name)]
    assert len(table.notes) == len({row.corruption for row in paper_rows(name) if row.bold_error})


def test_a_table_has_the_papers_shape():
    table = paper_table("cifar10c_level5")
    assert table.columns == ("ResNet50", "LAME", "PTBN", "TENT", "TTT", "TTT++", "ClusT3", "NC-TTT")
    assert [len(table.lines), table.total.name] == [15, "Average"]
    cell = number(table, "Zoom blur", "TTT++")
    assert (cell.mean, cell.deviation, cell.bold) == (88.88, 0.95, True)
    assert table.notes == ()


def test_visda_has_a_line_for_each_method():
    table = paper_table("visdac")
    assert (table.corner, table.columns, table.total) == ("Method", ("Accuracy (%)",), None)
    assert [line.name for line in table.lines][:3] == ["ResNet50", "LAME-L", "LAME-K"]


def test_a_wrong_bold_is_said():
    table = paper_table("cifar100c_level5")
    assert number(table, "Brightness", "TTT").bold
    assert not number(table, "Brightness", "NC-TTT").bold
    assert table.notes == ("Brightness: the paper prints NC-TTT (71.36) in bold; the best is TTT (73.25).",)


def test_a_second_bold_is_said():
    note = "Contrast: the paper prints ClusT3 (89.24) in bold, too; the best is NC-TTT (91.52)."
    assert note in paper_table("cifar10c_level4").notes


def test_a_misprint_is_corrected_with_a_footnote():
    table = paper_table("cifar10c_level2")
    cell = number(table, "Contrast", "NC-TTT")
    assert (cell.mean, cell.bold) == (93.50, True)
    (mark,) = cell.marks
    assert table.footnotes[mark - 1] == "NC-TTT, contrast: printed as 3.50; the printed average (90.17) needs 93.50."
    doubtful = number(table, "Average", "TTT++")
    assert "doubtful" in table.footnotes[doubtful.marks[0] - 1]
