"""The report page: what it says, what it holds, and what it must not do."""

import json
import re
import subprocess
import sys
from importlib.resources import files

import pytest
from page_reader import read_page
from page_rows import many_rows, page_rows

from ncttt.base.errors import InputError
from ncttt.cli import main
from ncttt.report import paper_accuracy, write_report
from ncttt.report.page import Example, write_page

LARGEST = 1.5e6  # bytes of a page
# Names that SVG has inside a browser; nothing is fetched from there.
NAMESPACES = {f"http://www.w3.org/{name}" for name in ("1999/xlink", "2000/svg", "2000/xmlns", "XML/1998/namespace")}
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154"
    "08d763f8cfc000000301010018dd8db00000000049454e44ae426082"
)


def made(tmp_path, rows, **more):
    return read_page(write_page(rows, tmp_path / "report", **more))


def said(page) -> str:
    """The first screen."""
    return page.one("section", id="short").text


def told(page) -> str:
    """All that the page says in words, setup by setup."""
    return page.one("section", id="methods").text


def test_a_page_has_every_section_and_stands_alone(tmp_path):
    example = Example(PIXEL, "cat", "dog", "cat", "fog", "nc_ttt")
    page = made(tmp_path, page_rows(), examples=[example])
    ids = {section.attributes.get("id") for section in page.all("section")} - {None}
    assert ids == {"short", "methods", "corruptions", "shares", "cost", "steps", "drift"} | {
        "examples", "paper", "run", "repeat"
    }  # fmt: skip
    links = [link.attributes["href"] for link in page.one("nav").all("a")]
    assert {link.removeprefix("#") for link in links} == ids
    sources = [tag.attributes[name] for tag in page.all() for name in ("src", "href") if name in tag.attributes]
    assert [source for source in sources if not source.startswith(("#", "data:image/png;base64,"))] == []
    text = (tmp_path / "report" / "index.html").read_text()
    library = (files("ncttt.report.page") / "vendor" / "echarts.min.js").read_text()
    assert text.count(library) == 1
    assert re.findall(r"https?://|@import|url\(", text.replace(library, "")) == []
    assert {address.rstrip("/") for address in re.findall(r"https?://[^\"'`]+", library)} == NAMESPACES
    assert sorted(path.name for path in (tmp_path / "report").iterdir()) == [
        "index.html", "tables.csv", "tables.md", "tables.tex",
    ]  # fmt: skip


def test_the_table_has_the_mean_over_corruptions_without_clean_images(tmp_path):
    page = made(tmp_path, page_rows())
    table = page.one("section", id="methods").one("table")
    names = [header.text for header in table.one("thead").all("th")]
    lines = {
        line.one("th").text: dict(zip(names[1:], line.all("td"), strict=True)) for line in table.one("tbody").all("tr")
    }
    assert list(lines) == ["Source", "PTBN", "TENT", "NC-TTT"]
    assert [line["Needs of the source"].text for line in lines.values()] == ["nothing"] * 3 + ["own training"]
    assert lines["Source"]["Mean"].text == "41.50"
    assert lines["NC-TTT"]["Mean"].text == "64.50"
    assert float(lines["NC-TTT"]["Mean"].attributes["data-value"]) == pytest.approx(64.5)
    assert [lines["NC-TTT"][name].text for name in ("Gain", "Statistics", "Steps")] == ["+23.00", "+20.00", "+3.00"]
    assert lines["NC-TTT"]["Clean"].text == "90.00"
    assert lines["NC-TTT"]["Mended"].text == "3.00"
    assert [line for line, cells in lines.items() if cells["Mean"].all("strong")] == ["NC-TTT"]


def test_the_headline_says_who_is_best_and_what_it_is_made_of(tmp_path):
    page = made(tmp_path, page_rows())
    first = "Under 2 corruptions of CIFAR-10 at severity 5, NC-TTT has the highest accuracy of 4 methods: 64.5 %, "
    assert page.one("p", class_="lead").text == f"{first}+23.0 points over the model without adaptation."
    assert "Batch statistics alone give +20.0 points; steps on top of them: NC-TTT +3.0 and TENT +1.0." in told(page)
    assert "cannot be told here" in said(page)
    assert "Worse than no adaptation" not in told(page)


def test_the_headline_is_honest_when_the_method_hurts(tmp_path):
    page = made(tmp_path, page_rows({"source": None, "ptbn": 0.0, "nc_ttt": -0.05}, statistics=-0.1))
    assert "no method helps: without adaptation the accuracy is highest, 41.5 %; NC-TTT has 26.5 %." in said(page)
    assert "Worse than no adaptation at all: NC-TTT (-15.0) and PTBN (-10.0)." in told(page)
    assert "Batch statistics alone give -10.0 points; steps on top of them: NC-TTT -5.0." in told(page)


def test_the_headline_does_not_praise_steps_that_only_share_the_gain_of_statistics(tmp_path):
    page = made(tmp_path, page_rows({"source": None, "ptbn": 0.0, "nc_ttt": -0.01}))
    assert "PTBN has the highest accuracy of 3 methods: 61.5 %" in said(page)
    assert "; NC-TTT has 60.5 %." in said(page)
    assert "steps on top of them: NC-TTT -1.0" in told(page)


def test_a_tie_is_told_as_one(tmp_path):
    assert "PTBN (61.5 %) and TENT (61.5 %) lead 3 methods and are equally accurate" in said(
        made(tmp_path, page_rows({"source": None, "ptbn": 0.0, "tent": 0.0}))
    )


def test_a_method_that_lacks_a_corruption_is_not_ranked(tmp_path):
    rows = [one for one in page_rows() if (one["method"], one["corruption"]) != ("nc_ttt", "fog")]
    assert "TENT has the highest accuracy of 3 methods" in said(made(tmp_path, rows))


def test_whatever_rows_say_is_text_and_never_markup(tmp_path):
    bad = "<script>alert(1)</script>"
    rows = [
        one | {"method": bad, "checkpoint": '"><img src=x onerror=alert(2)>', "machine": "<b>m</b>"}
        if one["method"] == "nc_ttt"
        else one
        for one in page_rows()
    ]
    example = Example(PIXEL, "<i>cat</i>", "&amp;", "dog", "<u>", bad)
    page = made(tmp_path, rows, title="<h1>title</h1>", examples=[example])
    data, image = page.one("script", type="application/json"), page.one("img")
    assert [part for script in page.all("script") for part in script.inside if bad in part] == []
    assert not {"<", ">", "&"} & set(data.text)
    names = [line["name"] for line in json.loads(data.inside[0])["setups"][0]["lines"]]
    assert bad in names
    assert image.attributes["src"].startswith("data:image/png;base64,")
    assert page.one("h1").text == "<h1>title</h1>"
    assert bad in page.one("section", id="methods").text
    assert "<b>m</b>" in page.one("section", id="run").text
    assert page.all("i") == page.all("u") == page.one("section", id="run").all("b") == []
    policy = page.one("meta", http_equiv="Content-Security-Policy").attributes["content"]
    assert "default-src 'none'" in policy
    (scripts,) = [part for part in policy.split("; ") if part.startswith("script-src")]
    assert all(source.startswith("'sha256-") for source in scripts.split()[1:])


def test_what_rows_do_not_have_is_left_out(tmp_path):
    row = {"data": "photos", "corruption": "fog", "severity": 5, "method": "source", "accuracy": 0.5}
    page = made(tmp_path, [row])
    ids = {section.attributes.get("id") for section in page.all("section")} - {None}
    assert ids == {"short", "methods", "corruptions", "run", "repeat"}
    assert "Under fog on photos at severity 5, Source has 50.0 %; it alone was measured." in said(page)


def test_filters_are_labelled_and_tables_are_described(tmp_path):
    page = made(tmp_path, many_rows())
    form = page.one("form")
    labels = {label.text: form.one("select", id=label.attributes["for"]) for label in form.all("label")}
    assert set(labels) == {"Severity", "Protocol", "Method"}
    assert [option.text for option in labels["Severity"].all("option")] == ["all", "3", "5"]
    assert page.one("output").attributes["aria-live"] == "polite"
    for table in page.all("table"):
        assert table.one("caption").text
        assert all(header.attributes["scope"] in ("col", "row") for header in table.all("th"))
    lines = page.one("section", id="methods").one("tbody").all("tr")
    assert len(lines) == 44
    assert {line.attributes["data-severity"] for line in lines} == {"3", "5"}
    assert len(page.one("section", id="corruptions").all("table")[0].one("thead").all("th")) == 2 + 2 + 1 + 16


def test_every_chart_has_a_description_and_its_numbers_as_a_table(tmp_path):
    page = made(tmp_path, many_rows())
    figures = page.all("figure")
    assert len(figures) == 7
    for figure in figures:
        assert len(figure.one("div", role="img").attributes["aria-label"]) > 30
        assert figure.one("details").all("table")
    assert "JavaScript" in page.one("noscript").text
    assert all("open" in part.attributes for part in page.all("details"))  # for readers without scripts


def test_a_page_of_thousands_of_rows_is_small_enough_to_mail(tmp_path):
    rows = [
        one | {"seed": seed, "batch_size": size, "key": f"{one['key']}/{seed}/{size}"}
        for one in many_rows()
        for seed in range(3)
        for size in (16, 64, 128)
    ]
    assert len(rows) > 5000
    assert write_page(rows, tmp_path).stat().st_size < LARGEST
    assert write_page(many_rows(), tmp_path).stat().st_size < 1e6


@pytest.mark.parametrize("path", ["/home/me/models/last", "C:\\models\\last", "runs/last"])
def test_a_path_is_in_the_details_and_nowhere_else(tmp_path, path):
    page = made(tmp_path, [one | {"checkpoint": path, "key": f"{path}{one['key']}"} for one in page_rows()])
    assert path in page.one("section", id="run").text
    assert path not in page.one("script", type="application/json").text
    assert path not in " ".join(head.text for name in ("h1", "h2", "h3", "h4", "th") for head in page.all(name))
    assert {section.attributes["id"] for section in page.all("section") if path in section.text} == {"run", "repeat"}
    assert "own model" in page.one("section", id="run").text


def test_several_data_sets_share_a_page_and_several_tables_make_several_files(tmp_path):
    rows = page_rows() + [one | {"data": "digits", "key": f"digits/{one['key']}"} for one in page_rows()]
    page = made(tmp_path, rows)
    assert {"CIFAR-10", "digits"} <= {option.text for option in page.one("form").all("option")}
    assert (tmp_path / "report" / "tables-2.csv").is_file()


def test_curves_and_drift_have_their_numbers_as_text(tmp_path):
    page = made(tmp_path, page_rows())
    table = page.one("section", id="steps").all("table")[-1]
    assert [cell.text for cell in table.one("tfoot").all("td")] == ["61.50", "64.50"]
    lines = [[cell.text for cell in line.all("td")] for line in page.one("section", id="drift").one("tbody").all("tr")]
    assert lines[1] == ["0.610", "0.800", "64.00"]
    for drawing in page.all("div", role="img"):
        assert drawing.attributes["aria-label"]
    assert "NaN" not in page.one("script", type="application/json").text


def test_the_paper_stands_beside_rows_of_its_data_alone(tmp_path):
    text = made(tmp_path, page_rows()).one("section", id="paper").text
    assert f"{paper_accuracy('cifar10', 5, 'fog', 'nc_ttt'):.2f}" in text
    other = [one | {"data": "digits"} for one in page_rows()]
    assert made(tmp_path, other).all("section", id="paper") == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"accuracy": 63.0}, "from 0 to 1"),
        ({"accuracy": float("nan")}, "from 0 to 1"),
        ({"accuracy_at": "[1]"}, "accuracy_at is a JSON object"),
        ({"settings": "{"}, "settings of a row are a JSON object"),
        ({"data": None}, "without data"),
    ],
)
def test_rows_that_make_no_sense_are_refused(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        write_page([page_rows()[0] | changes], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_rows_and_a_file_in_place_of_the_folder_are_told(tmp_path):
    with pytest.raises(InputError, match="no rows were given"):
        write_page([], tmp_path)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="is a file"):
        write_page(page_rows(), tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_importing_reports_imports_neither_torch_nor_jinja_nor_matplotlib():
    check = "import sys, ncttt.report; print([m for m in ('torch', 'jinja2', 'matplotlib') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_command_takes_stores_and_csv_files(store, tmp_path, capsys):
    rows = page_rows()
    for one in rows:
        store.write(one)
    assert main(["rows", "export", str(store.path), str(tmp_path / "rows.csv")]) == 0
    capsys.readouterr()
    files = [str(store.path), str(tmp_path / "rows.csv")]
    assert main(["report", *files, "--out", str(tmp_path / "out"), "--title", "Mine", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rows"] == len(rows)  # each cell once, though both files have it
    assert told["findings"][0]["setup"] == "CIFAR-10, severity 5, protocol episodic, batch size 100"
    assert "NC-TTT has the highest" in told["findings"][0]["says"][0]
    assert read_page(tmp_path / "out" / "index.html").one("h1").text == "Mine"


def test_the_library_does_all_that_the_command_does(store, tmp_path):
    for one in page_rows():
        store.write(one)
    report = write_report([store.path], tmp_path / "out", title="Mine", examples=0)
    assert (report.page, len(report.rows)) == (tmp_path / "out" / "index.html", len(page_rows()))
    assert report.findings[0]["says"][0].startswith(
        "Under 2 corruptions of CIFAR-10 at severity 5, NC-TTT has the highest"
    )
    assert read_page(report.page).one("h1").text == "Mine"


def bad_inputs(tmp_path, store) -> dict:
    (tmp_path / "foreign.csv").write_text("a,b\n1,2\n")
    (tmp_path / "empty.csv").write_text(",".join(page_rows()[0]) + "\n")
    (tmp_path / "text.sqlite").write_text("no store at all, but a text that is long enough")
    (tmp_path / "file").write_text("")
    store.write(page_rows()[0])
    good = str(store.path)
    return {
        "missing": (["nowhere.sqlite"], "there is no file nowhere.sqlite; rows come from `ncttt bench"),
        "a folder": ([str(tmp_path)], "there is no file"),
        "foreign": ([str(tmp_path / "foreign.csv")], "is no export of a store"),
        "no rows": ([str(tmp_path / "empty.csv")], "has no rows"),
        "no store": ([str(tmp_path / "text.sqlite")], "is neither a store of rows nor a .csv"),
        "examples": ([good, "--examples", "-1"], "examples are 0 or more"),
        "a file as folder": ([good, "--out", str(tmp_path / "file")], "is a file"),
        "unwritable": ([good, "--out", "/proc/report"], "/proc/report"),
    }


@pytest.mark.parametrize(
    "name", ["missing", "a folder", "foreign", "no rows", "no store", "examples", "a file as folder", "unwritable"]
)
def test_what_the_user_did_wrong_is_one_clear_line(name, tmp_path, store, capsys):
    arguments, message = bad_inputs(tmp_path, store)[name]
    assert main(["report", *arguments]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert message in lines[0]


def test_an_empty_store_is_told(store, capsys):
    assert main(["report", str(store.path)]) == 2
    assert "has no rows" in capsys.readouterr().err
