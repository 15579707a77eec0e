"""Counted nouns and articles of what is told to people."""


def counted(count: int, noun: str, several: str | None = None) -> str:
    """A number and its noun; `several` is the plural, where that is not the noun and an s.

    >>> counted(1, "batch", "batches"), counted(2, "batch", "batches"), counted(1200, "image")
    ('1 batch', '2 batches', '1200 images')
    """
    return f"{count} {noun if count == 1 else several or f'{noun}s'}"


def with_article(name: str) -> str:
    """A name behind a or an.

    >>> with_article("Adapter"), with_article("list"), with_article("ndarray")
    ('an Adapter', 'a list', 'an ndarray')
    """
    vowel = name[:1].lower() in "aeiou" or name[:2] == "nd"  # "nd" is spelled out
    return f"{'an' if vowel else 'a'} {name}"


def kind_of(thing: object) -> str:
    """The type of a thing with its article, as in "found an Adapter"."""
    return with_article(type(thing).__name__)
