"""Equations as MathML, which browsers draw by themselves: every block ```math of a page, when the site is built."""

from typing import Any

from latex2mathml.converter import convert

FENCES = "pymdownx.superfences"


def on_config(config: Any) -> Any:
    """Let Markdown hand blocks of mathematics to `equation`."""
    settings = config.mdx_configs.get(FENCES) or {}
    fences = [*settings.get("custom_fences", ()), {"name": "math", "class": "equation", "format": equation}]
    config.mdx_configs[FENCES] = {**settings, "custom_fences": fences}
    return config


def equation(source: str, language: str, class_name: str, *rest: Any, **settings: Any) -> str:
    """LaTeX as MathML."""
    return f'<div class="{class_name}">{convert(source.strip(), display="block")}</div>'
