"""Pages and figures of the repository that stand outside this folder, as parts of the site."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

OUTSIDE = re.compile(r"\]\(((?:\.\./)*)\.\./(results|deploy)/")
BACK = re.compile(r"\]\(\.\./docs/")


def on_files(files: Any, config: Any) -> Any:
    """Add the changelog, the study with its tables and figures, and what stands around a service."""
    root = Path(config.config_file_path).parent
    files.append(File.generated(config, "changelog.md", content=(root / "CHANGELOG.md").read_text()))
    figures = [path for path in (root / "results/figures").rglob("*") if path.suffix in (".svg", ".png")]
    tables = (root / "results/tables").glob("*.md")
    for path in (root / "results/README.md", root / "deploy/README.md", *tables, *figures):
        name = path.relative_to(root).as_posix()
        files.append(File.generated(config, name, content=path.read_bytes() if path in figures else path.read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **settings: Any) -> str:
    """Links between this folder and `results/` or `deploy/`, which on the site stand inside it."""
    if page.file.src_uri.startswith(("results/", "deploy/")):
        return BACK.sub("](../", markdown)
    return OUTSIDE.sub(r"](\1\2/", markdown)
