"""Bodies and names in requests, and how the OpenAPI description tells of them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path

from ncttt.serve.answers import PIXEL, Asked, PredictRequest
from ncttt.serve.settings import NAME

SMALL_BODY = 1 << 20  # bytes of a request without images
Name = Annotated[str, Path(pattern=f"^{NAME.pattern}$", examples=["door-2"])]  # of a stream, in a route
FORM = {
    "type": "object",
    "required": ["image"],
    "properties": {
        "image": {"type": "array", "items": {"type": "string", "format": "binary"}, "minItems": 1},
        "stream": {"type": "string", "pattern": f"^{NAME.pattern}$", "example": "door-2"},
        "probabilities": {"type": "string", "enum": ["true", "false"]},
        "shift": {"type": "string", "enum": ["true", "false"]},
    },
}


def of_images() -> dict[str, Any]:
    """The body of a request for predictions: a form with files, or JSON."""
    schema = PredictRequest.model_json_schema()
    example = {"images": [PIXEL], "stream": "door-2"}
    contents = {"multipart/form-data": {"schema": FORM}, "application/json": {"schema": schema, "example": example}}
    return {"requestBody": {"required": True, "content": contents}}


def of_json(kind: type[Asked]) -> dict[str, Any]:
    """The body of a request that is JSON of this kind."""
    schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": _inlined(schema)}}}}


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema with its definitions put where they are referred to, as a route's own body has nowhere else for them."""
    definitions = schema.pop("$defs", {})

    def put_in(value: Any) -> Any:
        if isinstance(value, dict):
            if "$ref" in value:
                return definitions[value["$ref"].rsplit("/", 1)[-1]]
            return {key: put_in(part) for key, part in value.items()}
        return [put_in(part) for part in value] if isinstance(value, list) else value

    return put_in(schema)
