"""Counted nouns and articles, and the texts that use them."""

import pytest

import ncttt
from ncttt import InputError
from ncttt.adapt.summary import Tally
from ncttt.base.words import counted, kind_of


def test_one_and_several():
    assert [counted(count, "cell") for count in (0, 1, 2)] == ["0 cells", "1 cell", "2 cells"]
    assert (kind_of(3), kind_of([])) == ("an int", "a list")


def test_the_article_of_what_was_given_in_place_of_a_model(tmp_path):
    for other, words in ((1, "found an int"), ("x", "found a str")):
        with pytest.raises(InputError, match=words):
            ncttt.save(other, tmp_path)  # pyright: ignore[reportArgumentType]


def test_one_batch_does_what_several_do():
    tally = Tally(ncttt.load("digits-small-ncttt"))
    tally.batches = tally.unlike = 1
    assert "1 of 1 batch does not look like the source's" in tally.advice()
    tally.batches = tally.unlike = tally.still_unlike = 2
    assert "2 of 2 batches do not look like the source's, and 2 still score below" in tally.advice()
