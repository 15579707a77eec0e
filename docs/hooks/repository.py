"""Pages and figures of the repository that stand outside this folder, as parts of the site."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

OUTSIDE = re.compile(r"\]\(((?:\.\./)*)\.\./results/")
BACK = re.compile(r"\]\(\.\./docs/")


def on_files(files: Any, config: Any) -> Any:
    """Add the changelog and the study, with its figures."""
    root = Path(config.config_file_path).parent
    files.append(File.generated(config, "changelog.md", content=(root / "CHANGELOG.md").read_text()))
    figures = [path for path in (root / "results/figures").rglob("*") if path.suffix in (".svg", ".png")]
    for path in (root / "results/README.md", *figures):
        name = path.relative_to(root).as_posix()
        files.append(File.generated(config, name, content=path.read_bytes() if path in figures else path.read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **settings: Any) -> str:
    """Links between this folder and `results/`, which on the site stands inside it."""
    if page.file.src_uri.startswith("results/"):
        return BACK.sub("](../", markdown)
    return OUTSIDE.sub(r"](\1results/", markdown)
