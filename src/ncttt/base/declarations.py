"""What the files of a package declare, read without importing them: torch and matplotlib take seconds to import."""

from __future__ import annotations

import ast
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple


class Declaration(NamedTuple):
    """A module: its docstring, and the plain values that it and its classes assign, by name."""

    module: str
    docstring: str
    values: dict[str, Any]
    classes: dict[str, dict[str, Any]]


def declarations(package: str) -> list[Declaration]:
    """The modules and the packages directly inside a package, in the order of their names.

    >>> [found.module for found in declarations("ncttt.base") if "declarations" in found.module]
    ['ncttt.base.declarations']
    """
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    places = [Path(place) for place in spec.submodule_search_locations]
    files = [file for place in places for file in (*place.glob("[!_]*.py"), *place.glob("[!_]*/__init__.py"))]
    return sorted(_declaration(package, file) for file in files)


def _declaration(package: str, file: Path) -> Declaration:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    name = file.parent.name if file.name == "__init__.py" else file.stem
    classes = {node.name: _literals(node.body) for node in tree.body if isinstance(node, ast.ClassDef)}
    return Declaration(f"{package}.{name}", ast.get_docstring(tree) or "", _literals(tree.body), classes)


def _literals(body: list[ast.stmt]) -> dict[str, Any]:
    """What is assigned to single names, where the value can be read without running anything."""
    found = {}
    for node in body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(target, ast.Name):
            with suppress(ValueError):
                found[target.id] = ast.literal_eval(node.value)
    return found
