"""Bodies of prediction requests, read within limits: multipart files and fields, or JSON with base64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request

from ncttt.base.errors import InputError
from ncttt.base.schema import parsed_json
from ncttt.serve.answers import Asked, PredictRequest
from ncttt.serve.forms import parts_of
from ncttt.serve.images import check_count, from_base64
from ncttt.serve.settings import STREAM, Settings, checked_name

FIELDS = ("stream", "probabilities", "shift")
MOST_TEXT = 100  # bytes of a field that are looked at: a name has at most 64
FLAGS = {"true": True, "1": True, "false": False, "0": False}


class Refused(Exception):
    """A request that is answered with a status and a sentence."""

    def __init__(self, status: int, detail: str):
        super().__init__(detail)
        self.status, self.detail = status, detail


@dataclass(frozen=True)
class Upload:
    """The image files of a request with what errors call them, and what is asked of them."""

    contents: list[bytes]
    names: list[str]
    stream: str
    probabilities: bool
    shift: bool


async def read_upload(request: Request, settings: Settings, take: Callable[[int], None]) -> Upload:
    """The images and wishes in a request, or `Refused`; `take` counts the bytes as they come."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        upload = await _multipart(request, settings, take)
    elif kind == "application/json":
        upload = await _json(request, settings, take)
    else:
        raise Refused(415, f"send multipart/form-data or application/json; found {kind or 'no content type'!r:.80}")
    return upload


async def asked_for(
    request: Request, kind: type[Asked], most: int, take: Callable[[int], None] = lambda count: None
) -> Asked:
    """A JSON body as what it must be; a sentence names the first thing that is wrong."""
    try:
        value = parsed_json(await body_of(request, most, take), "the body")
    except (InputError, UnicodeDecodeError) as error:
        raise Refused(400, str(error)) from None
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        raise Refused(422, sentence(error.errors())) from None


def sentence(errors: list) -> str:
    """The first of pydantic's errors as a sentence."""
    first = errors[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body") or "the body"
    return f"{place}: {first['msg'][:200]}; found {first.get('input')!r:.60}"


async def body_of(request: Request, most: int, take: Callable[[int], None]) -> bytes:
    """The whole body; `Refused` as soon as it is longer than allowed, and `QueueFull` if there is no room for it."""
    packed = request.headers.get("content-encoding", "identity")
    if packed != "identity":
        raise Refused(415, f"send the body as it is, without a content encoding; found {packed!r:.80}")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and len(declared) < 20 and int(declared) > most:
        raise Refused(413, f"a body has at most {most:,} bytes; found {int(declared):,}")
    chunks, total, more = [], 0, True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "the body ended too early")  # nobody is there to read it
        chunks.append(message.get("body", b""))
        total, more = total + len(chunks[-1]), message.get("more_body", False)
        if total > most:
            raise Refused(413, f"a body has at most {most:,} bytes; found more")
        take(len(chunks[-1]))
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def _json(request: Request, settings: Settings, take: Callable[[int], None]) -> Upload:
    asked = await asked_for(request, PredictRequest, settings.most_bytes, take)
    assert isinstance(asked, PredictRequest)
    check_count(len(asked.images), settings.most_images)
    names = [f"images[{place}]" for place in range(len(asked.images))]
    contents = [from_base64(text, name) for text, name in zip(asked.images, names, strict=True)]
    return Upload(contents, names, asked.stream, asked.probabilities, asked.shift)


async def _multipart(request: Request, settings: Settings, take: Callable[[int], None]) -> Upload:
    body = await body_of(request, settings.most_bytes, take)
    parts = parts_of(body, request.headers["content-type"], settings.most_images + len(FIELDS))
    files = [part for part in parts if part.filename is not None]
    fields = {part.name: part.content for part in parts if part.filename is None}
    unknown = fields.keys() - set(FIELDS)
    if unknown:
        raise InputError(f"no field {min(unknown)!r:.80}; there are: stream, probabilities, shift, and files")
    if len(files) + len(fields) < len(parts):
        raise InputError(f"each of the fields {', '.join(FIELDS)} can be given once")
    check_count(len(files), settings.most_images)
    names = [f"image {place} ({part.filename or part.name:.60})" for place, part in enumerate(files, 1)]
    texts = {name: content[:MOST_TEXT].decode(errors="replace") for name, content in fields.items()}
    flags = [_flag(texts, name) for name in ("probabilities", "shift")]
    return Upload([part.content for part in files], names, checked_name(texts.get("stream", STREAM)), *flags)


def _flag(fields: dict[str, str], name: str) -> bool:
    text = fields.get(name, "false")
    if text.lower() not in FLAGS:
        raise InputError(f"{name} must be true or false; found {text!r:.40}")
    return FLAGS[text.lower()]
