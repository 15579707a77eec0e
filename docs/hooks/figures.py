"""The figures of the method, drawn when the site is built, where a page says `<!-- figure: NAME -->`."""

import re
import tempfile
from typing import Any

from mkdocs.structure.files import File

MARK = re.compile(r"<!-- figure: (\w+) -->")


def on_files(files: Any, config: Any) -> Any:
    """Draw what the pages ask for, each figure once."""
    for name in sorted({name for file in files.documentation_pages() for name in MARK.findall(file.content_string)}):
        files.append(File.generated(config, f"drawn/{name}.svg", content=drawn(name)))
    return files


def on_page_markdown(markdown: str, page: Any, **settings: Any) -> str:
    """Put the figures into the page, with what they show as the text for those who cannot see them."""
    from ncttt.report.figures import FIGURES

    up = "../" * page.file.src_uri.count("/")
    return MARK.sub(lambda found: f"![{FIGURES[found[1]].__doc__}]({up}drawn/{found[1]}.svg)", markdown)


def drawn(name: str) -> bytes:
    """A figure as SVG."""
    from ncttt.report.figures import FIGURES, save

    with tempfile.TemporaryDirectory() as folder:
        return save(FIGURES[name](), folder, name)[0].read_bytes()
