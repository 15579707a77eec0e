"""The long description: README.md with links that lead to the repository. All else is in pyproject.toml."""

import re
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent
RELATIVE = r"\]\((?!https?:|mailto:|#)([^)\s]+)"  # the target of a Markdown link or image


def long_description() -> str:
    """README.md, whose relative links would lead nowhere on the page of a package index."""
    repository = re.findall(r'^Repository = "(.+)"', (HERE / "pyproject.toml").read_text(), re.MULTILINE)[0]
    text = (HERE / "README.md").read_text(encoding="utf-8")
    text = re.sub("(!\\[[^]]*)" + RELATIVE, rf"\1]({repository}/raw/main/\2", text)
    return re.sub(RELATIVE, rf"]({repository}/blob/main/\1", text)


if __name__ == "__main__":
    setup(long_description=long_description(), long_description_content_type="text/markdown")
