"""Lists on the command line: one syntax, whichever command and option."""

import json

import pytest
from every_command import EVERY

from ncttt.cli.actions import options_of, positionals_of, spelling
from ncttt.cli.lists import items_of, takes_list
from ncttt.cli.parser import parser_of

VALUES = {"severity": ("2", "3"), "mean": ("0.25", "0.5"), "std": ("0.25", "0.5")}
NUMBERS = ("severities", "batch_sizes", "seeds", "steps", "recipe.milestones")
NEEDED = {
    "adapt": "--model m --images i --out o",
    "bench": "--data d --methods m",
    "data corrupt": "n --out o",
    "data sheet": "n --out o",
    "figures": "n",
    "paper": "table1",
    "report": "r",
    "train": "--data d --out o",
    "tune": "--data d",
}
PARSERS = {name: parser_of(EVERY[name]) for name in NEEDED}
LISTS = [(name, option.dest) for name, parser in PARSERS.items() for option in options_of(parser) if takes_list(option)]


def option_of(command: str, dest: str) -> str:
    return next(spelling(action) for action in options_of(PARSERS[command]) if action.dest == dest)


def test_every_command_with_a_list_is_here():
    takes = {
        name
        for name, command in EVERY.items()
        if not command.commands
        for action in (*options_of(parser_of(command)), *positionals_of(parser_of(command)))
        if takes_list(action)
    }
    assert takes == set(NEEDED)


@pytest.mark.parametrize(("command", "dest"), LISTS)
def test_a_list_is_written_in_any_of_four_ways(command, dest):
    one, two = VALUES.get(dest, ("2", "3") if dest in NUMBERS else ("fog", "snow"))
    option, needed = option_of(command, dest), NEEDED[command].split()
    if option in needed:
        del needed[needed.index(option) : needed.index(option) + 2]
    ways = [
        [option, f"{one},{two}"],
        [option, f"[{one}, {two}]"],
        [f"{option}=[{one},{two}]"],
        [option, one, option, two],
        [option, f"[{one},", f"{two}]"],  # as a shell cuts what stands in no quotes
    ]
    if dest not in ("corruptions",) or not positionals_of(PARSERS[command]):
        ways.append([option, one, two])
    read = [PARSERS[command].parse_args([*needed, *way])[dest] for way in ways]
    assert [list(map(str, each)) for each in read] == [[one, two]] * len(ways)


@pytest.mark.parametrize("command", ["figures", "paper", "report"])
def test_words_without_an_option_are_lists_as_well(command):
    (positional,) = positionals_of(PARSERS[command])
    for words in (["a,b"], ["[a, b]"], ["a", "b"]):
        assert list(PARSERS[command].parse_args(words)[positional.dest]) == ["a", "b"]


def test_one_value_is_a_list_of_one_or_a_word():
    chosen = PARSERS["bench"].parse_args(
        ["--data", "digits", "--methods", "tent", "--seeds", "3", "--orders", "mixed(dirichlet(0.1))"]
    )
    assert (chosen["data"], chosen["seeds"], chosen["orders"]) == ("digits", [3], ["mixed(dirichlet(0.1))"])


def test_an_argument_of_the_command_is_no_value_of_the_option_before_it():
    chosen = PARSERS["data corrupt"].parse_args(["--severity", "1,3", "--corruptions", "fog", "digits", "--out", "o"])
    assert (chosen["name"], chosen["corruptions"], chosen["severity"]) == ("digits", ["fog"], [1, 3])


def test_a_range_of_whole_numbers():
    chosen = PARSERS["bench"].parse_args(["--data", "d", "--methods", "m", "--severities", "1-3,5"])
    assert chosen["severities"] == [1, 2, 3, 5]


def test_a_table_of_lists_is_filled_by_name(tmp_path):
    (tmp_path / "a.yaml").write_text("data: digits\nadapted: {lr: [1.0], steps: [1, 4]}\n")
    chosen = PARSERS["tune"].parse_args(["--adapted.lr", "1e-3,1e-2", "--config", str(tmp_path / "a.yaml")])
    assert chosen["adapted"] == {"lr": [0.001, 0.01], "steps": [1, 4]}


def test_entries_keep_their_own_lists():
    entries = [{"method": "tent", "steps": [0, 1]}, "ptbn"]
    assert PARSERS["bench"].parse_args(["--data", "d", "--methods", json.dumps(entries)])["methods"] == entries


def test_the_name_of_a_folder_may_have_a_comma(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "may,june").mkdir()
    assert items_of(["may,june", "july,august"]) == ["may,june", "july", "august"]
