"""Operations of the routes on streams, as functions that can be pickled: the streams may be in another process."""

from __future__ import annotations

from ncttt.serve.streams import StreamFacts, Streams, UnknownStream


def page(streams: Streams, *, first: int, most: int, part: str) -> tuple[int, list[StreamFacts]]:
    """How many streams have the part in their name, and what is known of those from the first of a number on."""
    names = [name for name in streams.names() if part.lower() in name.lower()]
    return len(names), [streams.facts(name) for name in names[first : first + most]]


def facts_if_there(streams: Streams, name: str) -> StreamFacts | None:
    """What is known of a stream; None if there is none."""
    try:
        return streams.facts(name)
    except UnknownStream:
        return None


def delete_if_there(streams: Streams, name: str) -> None:
    """Forget a stream if there is one."""
    if name in streams.names():
        streams.delete(name)
