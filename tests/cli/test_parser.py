"""How the parser differs from jsonargparse's own."""

from ncttt.cli.parser import Parser


def collect(
    names: list[str], *, images: tuple[str, ...], skip_bad: bool = False, sizes: list[int] | None = None
) -> None:
    """Take words.

    Args:
        names: Names.
        images: Folders.
        skip_bad: Leave out bad ones.
        sizes: Sizes.
    """


def parsed(*words: str) -> dict:
    parser = Parser(prog="ncttt")
    parser.add_function_arguments(collect, as_positional=True, as_group=False)
    return parser.parse_args(list(words)).as_dict()


def test_words_are_given_one_by_one():
    words = parsed("a", "b", "--images", "x", "y")
    assert list(words["names"]) == ["a", "b"]
    assert list(words["images"]) == ["x", "y"]


def test_flags_and_dashes():
    for flag in (["--skip-bad"], ["--skip_bad"], ["--skip-bad", "true"], ["--skip-bad=true"]):
        assert parsed("a", "--images", "x", *flag)["skip_bad"] is True
    assert parsed("a", "--images", "x")["skip_bad"] is False


def test_other_lists_are_written_as_in_yaml():
    assert parsed("a", "--images", "x", "--sizes", "[1, 2]")["sizes"] == [1, 2]


def test_help_shows_that_words_may_be_several():
    parser = Parser(prog="ncttt")
    parser.add_function_arguments(collect, as_positional=True, as_group=False)
    text = parser.format_help()
    assert text.startswith("usage: ncttt NAMES ... --images IMAGES ... [OPTIONS]\n")
