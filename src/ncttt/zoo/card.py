"""The card of a shared model: the README.md of its repository, written from what is recorded of it alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

TAGS = ("image-classification", "test-time-training", "test-time-adaptation")


def model_card(
    repository: str,
    described: Mapping[str, Any],
    config: Mapping[str, Any],
    results: Mapping[str, Any],
    license: str | None = None,
) -> str:
    """The card of a model; `config` and `results` are those of its training, empty where they are not known."""
    header = {
        **({"license": license} if license else {}),
        "library_name": "ncttt",
        "pipeline_tag": "image-classification",
        "tags": [*TAGS, described["method"]["name"]],
    }
    facts = "\n".join(f"| {name} | {value} |" for name, value in _facts(described, config, results))
    return f"""---
{yaml.safe_dump(header, sort_keys=False).strip()}
---

# {repository.rpartition("/")[2]}

An image classifier with what it needs to adapt to shifted images at test time, saved by ncttt.

| | |
|---|---|
{facts}

## Use

```bash
pip install 'ncttt[hub]'
ncttt pull {repository}
```

```python
import ncttt

{_loading(repository, described)}
adapter = ncttt.Adapter(model)
logits = adapter(images)  # float (B, C, H, W) in [0, 1]
```
"""


def _loading(repository: str, described: Mapping[str, Any]) -> str:
    if described["architecture"] is None:
        return f'model = ncttt.load("hf://{repository}", classifier=net)  # a module of the author\'s own architecture'
    return f'model = ncttt.load("hf://{repository}")'


def _facts(
    described: Mapping[str, Any], config: Mapping[str, Any], results: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    network = described["architecture"]
    yield "network", "the author's own" if network is None else _plain(network["name"])
    layer = described["layer"]
    yield "layer", _plain(layer if isinstance(layer, str) else ", ".join(layer or ()))
    yield "method", _plain(described["method"]["name"])
    yield "images", " x ".join(map(str, described["input_shape"])) + " (channels, height, width)"
    if described.get("classes"):
        yield "classes", _plain(", ".join(described["classes"]), 400)
    if "name" in config.get("data", {}):
        yield "trained on", _plain(f"{config['data']['name']}, {config['data'].get('images', '?')} images")
    if "epochs" in config.get("recipe", {}):
        yield "epochs", _plain(config["recipe"]["epochs"])
    if results.get("test_accuracy") is not None:
        yield "test accuracy", f"{results['test_accuracy']:.2%} on the test images, not adapted"


def _plain(value: object, length: int = 100) -> str:
    """A value in one cell of a table."""
    text = " ".join(str(value).split()).replace("|", "\\|").replace("<", "&lt;")
    return text if len(text) <= length else f"{text[:length]} ..."
