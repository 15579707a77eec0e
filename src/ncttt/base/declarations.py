"""What the files of a package declare, read without importing them: torch and matplotlib take seconds to import."""

from __future__ import annotations

import ast
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ncttt.base.errors import InputError


class Declaration(NamedTuple):
    """A module: its docstring, the plain values that it and its classes assign, its public functions' docstrings."""

    module: str
    docstring: str
    values: dict[str, Any]
    classes: dict[str, dict[str, Any]]
    functions: dict[str, str]

    @property
    def name(self) -> str:
        """The module's own name, without those of the packages around it."""
        return self.module.rpartition(".")[2]


def declarations(package: str) -> list[Declaration]:
    """The modules and the packages directly inside a package, in the order of their names.

    >>> [declared.module for declared in declarations("ncttt.base") if "declarations" in declared.module]
    ['ncttt.base.declarations']
    """
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None, f"{package} is a file, not a package"
    places = [Path(place) for place in spec.submodule_search_locations]
    files = [file for place in places for file in (*place.glob("[!_]*.py"), *place.glob("[!_]*/__init__.py"))]
    names = {file: file.parent.name if file.name == "__init__.py" else file.stem for file in files}
    return [_declaration(f"{package}.{names[file]}", file) for file in sorted(files, key=lambda file: names[file])]


def declaration(module: str) -> Declaration:
    """One module, wherever it lies; the packages around it are imported.

    >>> declaration("ncttt.base.errors").functions["nearest"]
    'A "; did you mean ...?" suffix with the names closest to `name`, or the first few names there are.'
    """
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise InputError(f"there is no module {module!r}")
    return _declaration(module, Path(spec.origin))


def _declaration(module: str, file: Path) -> Declaration:
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError) as error:  # no Python, or no text
        raise InputError(f"{file} cannot be read as Python: {error}") from None
    classes = {node.name: _literals(node.body) for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {
        node.name: (ast.get_docstring(node) or "").split("\n\n")[0].replace("\n", " ")
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }
    return Declaration(module, ast.get_docstring(tree) or "", _literals(tree.body), classes, functions)


def _literals(body: list[ast.stmt]) -> dict[str, Any]:
    """What is assigned to names, where the value can be read without running anything."""
    values = {}
    for node in body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        with suppress(ValueError, TypeError):
            value = ast.literal_eval(node.value)
            values |= {target.id: value for target in targets if isinstance(target, ast.Name)}
    return values
