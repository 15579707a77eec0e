"""Tables as text: Markdown that parses to the same cells, LaTeX of sound structure, CSV of exact numbers."""

import csv
import re
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from ncttt import InputError
from ncttt.report import Line, Number, Table, paper_table, render, show
from ncttt.report.paper import TITLES

NASTY = r"50 % & a_b | #1 {x} ~ ^ \ $ <b> *c* _d_ [e] `f`"
SMALL = Table(
    "A title",
    "Corruption",
    ("nc_ttt", "tent"),
    (
        Line("Fog", (Number(70.126, 0.5, bold=True, marks=(1,)), None)),
        Line("Snow", (Number(-1.5, interval=(-2, 3.25), signed=True), Number(2, signed=True, star=True))),
    ),
    Line("Mean", (Number(1 / 3), Number(99.999))),
    footnotes=("a footnote",),
    notes=("a note",),
)
WORDS = Table(
    "", "method", ("settings", "seeds"), (Line("tent", (NASTY, Number(3, decimals=0))), Line("own", ("", None)))
)
HARD = replace(SMALL, title=NASTY, columns=(NASTY, "tent"), lines=(Line(NASTY, (None, None)),), notes=(NASTY,))
ALL = [SMALL, HARD, WORDS, *map(paper_table, TITLES)]


def is_bold(cell) -> bool:
    return isinstance(cell, Number) and cell.bold


def parsed(text):
    """Lines of a Markdown table as a renderer reads them: plain text of each cell and what of it is bold."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    lines, inside = [], False
    for token in tokens:
        inside = (inside or token.type == "table_open") and token.type != "table_close"
        if token.type == "tr_open":
            lines.append([])
        elif inside and token.type == "inline":
            kinds = {child.type for child in token.children}
            assert kinds <= {"text", "text_special", "strong_open", "strong_close"}, kinds
            shown = "".join(child.content for child in token.children)
            lines[-1].append((shown, "strong_open" in kinds))
    return lines


@pytest.mark.parametrize("table", ALL, ids=lambda table: table.title[:20])
def test_markdown_parses_to_the_same_table(table):
    header, *lines = parsed(render(table))
    assert [text for text, _ in header] == [table.corner, *table.columns]
    assert [line[0][0] for line in lines] == [line.name for line in table.all_lines]
    for line, expected in zip(lines, table.all_lines, strict=True):
        assert [bold for _, bold in line[1:]] == [is_bold(cell) for cell in expected.cells]


def test_markdown_numbers_title_and_notes():
    text = render(SMALL)
    cells = [[shown for shown, _ in line[1:]] for line in parsed(text)[1:]]
    assert cells == [["70.13 ± 0.50¹", "–"], ["-1.50 [-2.00, +3.25]", "+2.00 *"], ["0.33", "100.00"]]  # noqa: RUF001
    assert text.startswith("**A title**\n")
    assert text.endswith("¹ a footnote\n\na note\n")


def check_latex(text, columns):
    """Balanced braces and environments, and as many cells in each line as there are columns."""
    bare = re.sub(r"(?<!\\)%.*", "", text).replace("\\\\", "\n")
    bare = re.sub(r"\\[{}$&%#_]", "", bare)  # escaped signs are text
    depth = 0
    for sign in bare:
        depth += (sign == "{") - (sign == "}")
        assert depth >= 0
    assert depth == 0
    assert bare.count("$") % 2 == 0
    opened = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", bare):
        if kind == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert opened == []
    (form,) = re.findall(r"\\begin\{tabular\}\{(\w+)\}", bare)
    assert re.fullmatch("l[lr]*", form)
    assert len(form) == 1 + columns
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    for line in rows:
        assert len(re.findall(r"(?<!\\)&", line)) == columns
    return rows


@pytest.mark.parametrize("table", ALL, ids=lambda table: table.title[:20])
def test_latex_is_sound(table):
    text = render(table, "latex")
    rows = check_latex(text, len(table.columns))
    assert len(rows) == 1 + len(table.all_lines)
    bold = sum(is_bold(cell) for line in table.all_lines for cell in line.cells)
    assert text.count(r"\textbf{") == bold
    assert text.count(r"\midrule") == (1 if table.total is None else 2)
    assert re.sub(r"[ -~\n]", "", text) == ""  # ASCII alone, so that any engine reads it


def test_the_check_of_latex_can_fail():
    text = render(SMALL, "latex")
    for broken in (text.replace("{lrr}", "{lr}"), text.replace(" & --", ""), text.replace(r"\end{table}", "")):
        assert broken != text
        with pytest.raises((AssertionError, ValueError)):
            check_latex(broken, 2)


def test_latex_numbers():
    lines = render(SMALL, "latex").splitlines()
    assert r"Fog & \textbf{70.13 $\pm$ 0.50}$^{1}$ & -- \\" in lines
    assert r"Snow & $-$1.50 {[}$-$2.00, $+$3.25{]} & $+$2.00$^{*}$ \\" in lines
    assert r"nc\_ttt" in render(SMALL, "latex")


def test_texts_stand_to_the_left_and_numbers_to_the_right():
    assert "| :--- | ---: | ---: |" in render(SMALL)
    assert "| :--- | :--- | ---: |" in render(WORDS)
    assert "{lrr}" in render(SMALL, "latex")
    assert "{llr}" in render(WORDS, "latex")
    assert parsed(render(WORDS))[1][1:] == [(NASTY, False), ("3", False)]


def test_csv_of_texts():
    (_, first, second) = csv.reader(render(WORDS, "csv").splitlines())
    assert (first, second) == (["tent", NASTY, "3"], ["own", "", ""])


def test_a_table_is_shown_with_tabs_when_piped_and_drawn_for_a_terminal(capsys, monkeypatch):
    show(SMALL)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["Corruption\tnc_ttt\ttent", "Fog\t70.13 ± 0.50\t–"]  # noqa: RUF001
    assert len(lines) == 4
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show(SMALL)
    drawn = capsys.readouterr().out
    assert "│ Fog        │" in drawn
    text = render(WORDS, "terminal")
    assert "method" in text
    assert "[e]" in text  # no markup


def test_a_table_that_is_too_wide_for_its_frame_loses_the_frame_and_no_word(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    columns = ("Gaussian noise", "Defocus blur", "by statistics")
    show(Table("", "method", columns, (Line("ClusT3", (Number(10.0), Number(20.0), Number(30.0))),)))
    shown = re.sub(r"\x1b\[\d+m", "", capsys.readouterr().out)
    assert max(map(len, shown.splitlines())) <= 40
    for word in ("Gaussian", "Defocus", "statistics", "ClusT3", "10.00", "20.00", "30.00"):
        assert word in shown


def test_csv_is_exact():
    lines = list(csv.DictReader(render(SMALL, "csv").splitlines()))
    assert list(lines[0]) == ["Corruption", "nc_ttt", "nc_ttt std", "nc_ttt low", "nc_ttt high", "tent"]
    assert [line["Corruption"] for line in lines] == ["Fog", "Snow", "Mean"]
    assert float(lines[2]["nc_ttt"]) == 1 / 3
    assert (lines[0]["nc_ttt"], lines[0]["nc_ttt std"], lines[0]["tent"]) == ("70.126", "0.5", "")
    assert (float(lines[1]["nc_ttt low"]), float(lines[1]["nc_ttt high"])) == (-2, 3.25)


def test_csv_of_names_with_commas():
    (_, *lines) = csv.reader(render(HARD, "csv").splitlines())
    assert lines[0][0] == NASTY


def test_several_tables_stand_below_each_other_but_not_in_a_csv():
    assert render([SMALL, SMALL]).count("A title") == 2
    with pytest.raises(InputError, match="one table; found 2"):
        render([SMALL, SMALL], "csv")


def test_an_unknown_form_is_refused_with_the_nearest():
    with pytest.raises(InputError, match="no form 'latx' of a table; did you mean 'latex'"):
        render(SMALL, "latx")


def test_a_line_of_the_wrong_length_is_no_table():
    with pytest.raises(InputError, match="each of 2 columns; 'Fog' has 1"):
        Table("", "", ("a", "b"), (Line("Fog", (None,)),))
