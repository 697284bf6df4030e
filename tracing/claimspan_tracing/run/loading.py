"""Finds the object that ``path.py:name`` or ``package.module:name`` stands for."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType

from claimspan.errors import ConfigError

__all__ = ["load_object", "made_by"]


def load_object(spec: str) -> object:
    """Import a module, and return the object with a name in it.

    Args:
        spec: ``path.py:name`` or ``package.module:name``; the name may have dots. Modules beside
            the file, or in the working directory, can be imported, as by ``python path.py``.

    Raises:
        ConfigError: There is no such module or name, or importing it fails.
    """
    where, colon, name = spec.rpartition(":")
    if not colon or not where or not name:
        raise ConfigError(f"{spec!r} names no pipeline: give path.py:name or package.module:name")
    try:
        found: object = _module(where)
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"{where!r} cannot be imported ({type(error).__name__}: {error}): repair it, or give "
            "another path.py:name"
        ) from error
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ConfigError(f"{where!r} has no {name!r}: give the name of a pipeline") from None
    return found


def made_by(found: object, *, is_pipeline: bool) -> object:
    """Return what a factory makes, and anything else as it is.

    A function that can be called with a question is a pipeline itself; one without arguments is a
    factory. It may be asynchronous.

    Args:
        found: What ``load_object`` returned.
        is_pipeline: Whether a framework knows it.

    Raises:
        ConfigError: It is neither a pipeline nor a function, or the factory fails.
    """
    if is_pipeline:
        return found
    if not callable(found):
        raise ConfigError(
            f"a {type(found).__name__} is no pipeline: give a chain, an engine or a pipeline of an "
            "installed framework, a function from question to answer, or one that makes these"
        )
    if _takes_a_question(found):
        return found
    try:
        return found()
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"the function that makes the pipeline raised {type(error).__name__}: {error}"
        ) from error


def _module(where: str) -> ModuleType:
    path = Path(where)
    if path.suffix != ".py":
        _importable(Path.cwd())
        return importlib.import_module(where)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {where!r}")
    _importable(path.resolve().parent)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError("it is no module")
    module = importlib.util.module_from_spec(spec)
    # Before it runs: dataclasses and pickle look their module up by its name.
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


def _importable(directory: Path) -> None:
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))


def _takes_a_question(function: object) -> bool:
    if not callable(function):
        return False
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a function of C says nothing about itself
        return True
    try:
        signature.bind("question")
    except TypeError:
        return False
    return True
