"""What the user did wrong: one line, exit code 2, and the way out of it."""

import pytest

from ncttt.cli import main

WRONG = {
    ("trian",): "no command 'trian'; did you mean 'train'? (see ncttt --help)",
    ("data", "crrupt"): "no command 'crrupt'; did you mean 'corrupt'? (see ncttt data --help)",
    ("rows",): "rows needs a command: export, seed, show (see ncttt rows --help)",
    ("train",): "train needs --out and --data (see ncttt train --help)",
    ("data", "get"): "data get needs NAME (see ncttt data get --help)",
    ("data", "get", "a", "b"): "data get has no place for 'b'",
    ("demo", "--epohcs", "3"): "no option 'epohcs'; did you mean 'epochs'?",
    ("demo", "--epochs", "many"): "epochs must be a whole number; found 'many' (see ncttt demo --help)",
    ("demo", "--epochs"): "expected one argument",
    ("train", "--data", "a", "--out", "b", "--threads", "x"): "threads must be a whole number; found 'x'",
    ("train", "--data", "a", "--out", "b", "--mean", "x"): "mean must be a number; found \"['x']\"",
    ("train", "--data", "a", "--out", "b", "--recipe.branch", "no"): "recipe.branch must be joint or only; found 'no'",
    ("train", "--data", "a", "--out", "b", "--resume", "maybe"): "resume must be true or false; found 'maybe'",
    ("train", "--config", "nowhere.yaml"): "there is no configuration nowhere.yaml; there are: ",
    ("train", "--config", "digit"): "there is no configuration digit; did you mean 'digits'? (see ncttt train --help)",
    ("train", "--config=digit"): "there is no configuration digit; did you mean 'digits'?",
    ("bench", "--config", "severity5_online"): "there is no configuration severity5_online; did you mean 'study/",
    ("demo", "--config", "nowhere.yaml"): "nowhere.yaml (see ncttt demo --help)",
    ("train", "--recipe", "nowhere.yaml", "--data", "a"): "there is no configuration nowhere.yaml",
    ("completion", "csh"): "shell must be bash or zsh or fish or tcsh; found 'csh'",
}
CONFIGURATIONS = {
    "data: digits\nout: x\nrecipe: {epohcs: 3}\n": "no option 'recipe.epohcs'; did you mean 'recipe.epochs'",
    "data: [digits\n": "the configuration is no YAML of options",
    "- 1\n- 2\n": "the configuration is no YAML of options",
}


def complaint(capsys, words: list[str]) -> str:
    try:
        code = main(words)
    except SystemExit as stop:
        code = stop.code
    said = capsys.readouterr()
    assert code == 2
    assert said.out == ""
    assert said.err.startswith("ncttt: ")
    assert said.err.count("\n") == 1
    return said.err


@pytest.mark.parametrize("words", WRONG)
def test_one_line_says_what_is_wrong(words, capsys):
    assert WRONG[words] in complaint(capsys, list(words))


@pytest.mark.parametrize("text", CONFIGURATIONS)
def test_a_wrong_configuration(text, capsys, tmp_path):
    (tmp_path / "a.yaml").write_text(text)
    assert CONFIGURATIONS[text] in complaint(capsys, ["train", "--config", str(tmp_path / "a.yaml")])


def test_a_wrong_key_inside_a_method(capsys, tmp_path):
    (tmp_path / "a.yaml").write_text("data: digits\nmethods: [{method: source, checkpont: x}]\n")
    said = complaint(capsys, ["bench", "--config", str(tmp_path / "a.yaml")])
    assert "did you mean 'checkpoint'" in said
