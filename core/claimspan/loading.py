"""Imports the object that `path.py:name` or `package.module:name` stands for on a command line."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from claimspan.errors import ConfigError

__all__ = ["load_object"]

_FORM: Final = "write path.py:name or package.module:name"


def load_object(spec: str) -> object:
    """Import a module, and return the object with a name in it, which may have dots.

    Modules beside the file, or in the working directory, can be imported, as by ``python path.py``.

    Raises:
        ConfigError: There is no such file, module or name, or importing it fails.
    """
    # From the right: a path of Windows has a colon of its own.
    where, _, name = spec.rpartition(":")
    if not where or not all(part.isidentifier() for part in name.split(".")):
        raise ConfigError(f"{spec!r} names no object: {_FORM}")
    found: object = _module(where)
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ConfigError(
                f"{where!r} has no {name!r}: give a name that the module defines"
            ) from None
    return found


def _module(where: str) -> ModuleType:
    path = Path(where)
    is_file = path.suffix == ".py"
    if is_file and not path.is_file():
        raise ConfigError(f"there is no file {where!r}: {_FORM}")
    try:
        # The command is a script, and finds nothing in the working directory by itself.
        folder = str(path.resolve().parent if is_file else Path.cwd())
        if folder not in sys.path:
            sys.path.insert(0, folder)
        return _executed(path) if is_file else importlib.import_module(where)
    # SystemExit as well: a script without a guard around its main part ends so.
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"{where!r} cannot be imported ({type(error).__name__}: {error}): correct it, or "
            "install what it imports"
        ) from error


def _executed(path: Path) -> ModuleType:
    # Not by its name alone: `json.py` would otherwise be Python's own module.
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError("it is no module")
    module = importlib.util.module_from_spec(spec)
    # Before it runs: dataclasses, pydantic and pickle look their module up by its name. One that
    # is there already stays, since others have imported from it.
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module
