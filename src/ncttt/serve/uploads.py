"""Bodies of prediction requests, read within limits: multipart files and fields, or JSON with base64."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from ncttt.base.errors import InputError
from ncttt.base.schema import parsed_json
from ncttt.serve.answers import Asked, PredictRequest
from ncttt.serve.images import check_count, from_base64
from ncttt.serve.settings import STREAM, Settings, checked_name

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


async def read_upload(request: Request, settings: Settings) -> Upload:
    """The images and wishes in a request, or `Refused`."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        upload = await _multipart(request, settings)
    elif kind == "application/json":
        upload = await _json(request, settings)
    else:
        raise Refused(415, f"send multipart/form-data or application/json; found {kind or 'no content type'!r:.80}")
    return upload


async def asked_for(request: Request, kind: type[Asked], most: int) -> Asked:
    """A JSON body as what it must be; a sentence names the first thing that is wrong."""
    content = b"".join([chunk async for chunk in limited(request, most)])
    try:
        value = parsed_json(content, "the body")
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


async def limited(request: Request, most: int) -> AsyncGenerator[bytes, None]:
    """The body in pieces; `Refused` as soon as it is longer than allowed."""
    declared, total = request.headers.get("content-length", ""), 0
    if declared.isdecimal() and len(declared) < 20 and int(declared) > most:
        raise Refused(413, f"a body has at most {most:,} bytes; found {int(declared):,}")
    async for chunk in request.stream():
        total += len(chunk)
        if total > most:
            raise Refused(413, f"a body has at most {most:,} bytes; found more")
        yield chunk


async def _json(request: Request, settings: Settings) -> Upload:
    asked = await asked_for(request, PredictRequest, settings.most_bytes)
    assert isinstance(asked, PredictRequest)
    check_count(len(asked.images), settings.most_images)
    names = [f"images[{place}]" for place in range(len(asked.images))]
    contents = [from_base64(text, name) for text, name in zip(asked.images, names, strict=True)]
    return Upload(contents, names, asked.stream, asked.probabilities, asked.shift)


async def _multipart(request: Request, settings: Settings) -> Upload:
    pieces = limited(request, settings.most_bytes)
    parser = MultiPartParser(request.headers, pieces, max_files=settings.most_images, max_fields=8, max_part_size=4096)
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise Refused(400, f"the body is no form: {error.message:.200}") from None
    except (KeyError, ValueError, UnicodeError, AssertionError) as error:  # headers that the parser does not expect
        raise Refused(400, f"the body is no form: {error!r:.200}") from None
    try:
        files = [(name, value) for name, value in form.multi_items() if isinstance(value, UploadFile)]
        fields = {name: value for name, value in form.multi_items() if isinstance(value, str)}
        unknown = fields.keys() - {"stream", "probabilities", "shift"}
        if unknown:
            raise InputError(f"no field {min(unknown)!r:.80}; there are: stream, probabilities, shift, and files")
        check_count(len(files), settings.most_images)
        contents = [await file.read() for _, file in files]
    finally:
        await form.close()
    names = [f"image {place} ({file.filename or name:.60})" for place, (name, file) in enumerate(files, 1)]
    flags = [_flag(fields, name) for name in ("probabilities", "shift")]
    return Upload(contents, names, checked_name(fields.get("stream", STREAM)), *flags)


def _flag(fields: dict[str, str], name: str) -> bool:
    text = fields.get(name, "false")
    if text.lower() not in FLAGS:
        raise InputError(f"{name} must be true or false; found {text!r:.40}")
    return FLAGS[text.lower()]
