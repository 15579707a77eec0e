"""Multipart forms, taken apart in memory: bodies are bounded, and most of them are one small image."""

from __future__ import annotations

from typing import NamedTuple

from python_multipart.multipart import parse_options_header

from ncttt.base.errors import InputError

HEADERS = 4096  # bytes of the headers of a part


class Part(NamedTuple):
    """A field of a form, or a file, which has a filename."""

    name: str
    filename: str | None
    content: bytes


def parts_of(body: bytes, content_type: str, most: int) -> list[Part]:
    """The parts of a form with this header, or an `InputError`.

    >>> parts_of(b'--b\\r\\nContent-Disposition: form-data; name="a"\\r\\n\\r\\n1\\r\\n--b--', "; boundary=b", 9)
    [Part(name='a', filename=None, content=b'1')]
    """
    boundary = parse_options_header(content_type)[1].get(b"boundary", b"")
    if not 1 <= len(boundary) <= 200:
        raise InputError("the body is no form: its content type names no boundary of 1 to 200 characters")
    opening, body = b"--" + boundary, body.removeprefix(b"\r\n")
    if not body.startswith(opening):
        raise InputError("the body is no form: it does not begin with the boundary that its content type names")
    pieces = body[len(opening) :].split(b"\r\n" + opening, most + 1)
    if len(pieces) > most + 1:
        raise InputError(f"the body is no form that is taken: it has more than {most} parts")
    if not pieces[-1].startswith(b"--"):
        raise InputError("the body is no form: it ends before its last boundary")
    return [_part(piece, place) for place, piece in enumerate(pieces[:-1], 1)]


def _part(piece: bytes, place: int) -> Part:
    piece = piece.lstrip(b" \t")  # that may stand behind a boundary
    end = piece.find(b"\r\n\r\n", 0, HEADERS)
    if end < 0 or not piece.startswith(b"\r\n"):
        raise InputError(f"the body is no form: part {place} has no headers, or more than {HEADERS} bytes of them")
    disposition, options = b"", {}
    for line in piece[2:end].split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-disposition":
            disposition, options = parse_options_header(value)
    if disposition != b"form-data" or b"name" not in options:
        raise InputError(f"the body is no form: part {place} does not say 'Content-Disposition: form-data; name=...'")
    filename = options.get(b"filename")
    words = [None if word is None else word.decode(errors="replace") for word in (options[b"name"], filename)]
    return Part(words[0] or "", words[1], piece[end + 4 :])
