"""The figures of the method, drawn when the site is built, where a page says `<!-- figure: NAME -->`."""

import re
import tempfile
from collections.abc import Callable
from typing import Any

from mkdocs.structure.files import File

from ncttt.report import figures

MARK = re.compile(r"<!-- figure: (\w+) -->")


def on_files(files: Any, config: Any) -> Any:
    """Draw what the pages ask for, each figure once."""
    for name in sorted({name for file in files.documentation_pages() for name in MARK.findall(file.content_string)}):
        files.append(File.generated(config, f"drawn/{name}.svg", content=drawn(name)))
    return files


def on_page_markdown(markdown: str, page: Any, **settings: Any) -> str:
    """Put the figures into the page, with what they show as the text for those who cannot see them."""
    up = "../" * page.file.src_uri.count("/")
    return MARK.sub(lambda mark: f"![{drawing(mark[1]).__doc__}]({up}drawn/{mark[1]}.svg)", markdown)


def drawn(name: str) -> bytes:
    """A figure as SVG."""
    with tempfile.TemporaryDirectory() as folder:
        return figures.save(drawing(name)(), folder, name)[0].read_bytes()


def drawing(name: str) -> Callable[[], Any]:
    """The function that draws a figure from nothing."""
    return getattr(figures, f"draw_{name}")
