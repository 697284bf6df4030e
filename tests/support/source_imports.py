"""The sources of the packages, and the names that a source imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = [
    "BENCH",
    "CORE",
    "INTEGRATIONS",
    "ROOT",
    "TRACING",
    "imports_of",
    "modules_of",
    "sources",
]

ROOT: Final = Path(__file__).parents[2]
CORE: Final = ROOT / "core"
BENCH: Final = CORE / "bench"
TRACING: Final = ROOT / "tracing"
INTEGRATIONS: Final = ROOT / "integrations"


def imports_of(source: str) -> set[str]:
    """Dotted names of all that a source imports, at the top or within a function."""
    return {name for node in ast.walk(ast.parse(source)) for name in _imported(node)}


def _imported(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=str(module), level=0):
            yield module
        case ast.Call(
            func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str(module)), *_],
        ):
            yield module
        case _:
            pass


def modules_of(source: str) -> set[str]:
    """Like `imports_of`, but ``from package import module`` names the module, not the package."""
    names = imports_of(source)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            from_module = {f"{node.module}.{alias.name}" for alias in node.names}
            submodules = set(filter(_is_module_of_ours, from_module))
            if submodules == from_module:
                names.discard(node.module)
            names |= submodules
    return names


def _is_module_of_ours(name: str) -> bool:
    path = Path(*name.split("."))
    return any(
        (root / path).is_dir() or (root / path).with_suffix(".py").is_file()
        for root in (CORE, BENCH, TRACING, INTEGRATIONS)
    )


def sources(folder: Path) -> dict[str, str]:
    """Path in the repository to source."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*.py"))
    }
