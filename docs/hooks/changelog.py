"""The changelog of the repository as a page of the site."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File


def on_files(files: Any, config: Any) -> Any:
    """Add CHANGELOG.md, which stands outside the folder of the pages."""
    text = (Path(config.config_file_path).parent / "CHANGELOG.md").read_text()
    files.append(File.generated(config, "changelog.md", content=text))
    return files
