"""What the pages show could be run: commands parse, Python compiles, names and links exist."""

import re
from collections.abc import Sequence

import pytest
from page_contents import PAGES, ROOT, blocks, command_in, inline_commands, steps

from ncttt import InputError
from ncttt.cli.actions import options_of
from ncttt.cli.catalogue import all_commands, find
from ncttt.cli.parser import parser_of
from ncttt.methods import METHODS

COMMON = {"--help", "--version", "--debug", "--config", "--print-config"}
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_commands_parse_and_python_compiles(page, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    for step in steps(page):
        if step.words is None:
            compile(step.text, step.name, "exec")
            continue
        assert parses(step.words), f"{step.name}: {step.text}\n{capsys.readouterr().err}"


def parses(words: Sequence[str]) -> bool:
    """Whether the command line takes these words, be it to show its help or a configuration."""
    if list(words) == ["--version"]:
        return True
    try:
        command, rest = find([word for word in words if word != "--debug"] or ["--help"])
        if not command.commands:
            parser_of(command).parse_args(rest)
    except SystemExit as stop:
        return stop.code == 0
    except InputError:
        return False
    return True


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_commands_in_sentences_exist(page):
    for words in inline_commands(page):
        place, rest = all_commands(), list(words)
        while rest and rest[0] in place.commands:
            place = place.commands[rest.pop(0)]
        assert not (place.commands and rest and rest[0].isalpha() and rest[0].islower()), (
            f"no command {' '.join(words)!r}"
        )
        options = [] if place.commands else options_of(parser_of(place))
        known = COMMON | {name for action in options for name in action.option_strings}
        asked = {word.split("=")[0] for word in rest if word.startswith("--")}
        assert not {word for word in asked if not {word, word.split(".")[0]} & known}, " ".join(words)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)", page.read_text()):
        found = (page.parent / target).resolve() if target else page
        assert found.exists() or target == "changelog.md", f"{target} is not there"
        if anchor:
            assert anchor in anchors(found.read_text()), f"{target} has no {anchor}"


def anchors(text: str) -> set[str]:
    """The anchors that headings get, on GitHub as on the site."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_the_checks_see_what_there_is_to_see():
    found = [step for page in PAGES for step in steps(page)]
    assert sum(step.words is not None for step in found) > 30
    assert sum(step.words is None for step in found) > 8
    assert list(blocks("```bash\nncttt info\n```\n\n    ncttt demo\n")) == [
        (2, "bash", "ncttt info"),
        (5, "", "ncttt demo"),
    ]
    assert command_in('eval "$(ncttt completion bash)"') == ("completion", "bash")
    assert command_in("ncttt info > facts.txt") == ("info",)
    assert parses(["train", "--data", "a", "--out", "b"])
    assert not parses(["train", "--data", "a", "--out", "b", "--no-such-option", "3"])


def test_the_site_has_every_page():
    listed = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    written = {str(page.relative_to(ROOT / "docs")) for page in PAGES if page.is_relative_to(ROOT / "docs")}
    assert written - set(listed) == set()
    assert set(listed) - written == {"changelog.md", "results/README.md", "deploy/README.md"}


EQUATIONS, SETTINGS, DEPARTURES = "In equations", "Settings", "Departures from the original, and why"
WHOLE = [EQUATIONS, "What it moves and needs", SETTINGS, "Example", "When to use it", DEPARTURES]
PAGE_OF = {"eta": "eata", "source": None, "nc_ttt": None}  # ETA shares a page; source and NC-TTT have none here


@pytest.mark.parametrize("name", list(METHODS))
def test_the_page_of_a_method_has_the_headings_of_the_others(name):
    page = PAGE_OF.get(name, name.replace("_", "-"))
    if page is None:
        pytest.skip("no page of its own")
    headings = re.findall(r"^## (.+)$", (ROOT / f"docs/methods/{page}.md").read_text(), re.MULTILINE)
    if METHODS[name].needs_training():
        assert [heading for heading in headings if heading in WHOLE] == [EQUATIONS, SETTINGS, DEPARTURES]
    else:
        assert headings == WHOLE
