"""Loads Snowball's stemmer of one language, without those of all others.

``import snowballstemmer`` loads the tables of 36 languages, which take 2.8 MiB and ten to 40 ms.
One language takes a fortieth of both. A judge needs them in the middle of an application's work, as
soon as a text is in another language than English, or seems to be: a grammar or a listing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Final, Protocol, cast

__all__ = ["stemmer"]

# The package under a name of ours: its modules can be imported one by one, since the code of the
# package itself, which imports all of them, has not run under this name.
_PACKAGE: Final = "_claimspan_snowball"


class _Stemmer(Protocol):
    """What snowballstemmer makes for a language."""

    def stemWord(self, word: str) -> str: ...  # noqa: N802 - snowballstemmer's name


def stemmer(name: str) -> Callable[[str], str] | None:
    """Returns what stems a word in lower case; any number of threads may use it.

    Args:
        name: Snowball's name of a language: ``german``.

    Returns:
        None where Snowball, in the version that is installed, does not have the language.
    """
    make = _alone(name) or _from_package(name)
    if make is None:
        return None
    # A stemmer keeps the word that it works on, so that each thread, and each word, has its own.
    return lambda word: make().stemWord(word)


def _alone(name: str) -> Callable[[], _Stemmer] | None:
    """Returns the class of one language; None where it is not where we know it to be."""
    try:
        _know_package()
        module = import_module(f"{_PACKAGE}.{name}_stemmer")
        return cast("Callable[[], _Stemmer]", getattr(module, f"{name.title()}Stemmer"))
    except (ImportError, AttributeError):
        return None


def _know_package() -> None:
    if _PACKAGE in sys.modules:
        return
    found = find_spec("snowballstemmer")
    places = None if found is None else found.submodule_search_locations
    package = ModuleType(_PACKAGE)
    package.__path__ = list(places or ())
    # Of two threads that come here at once, both get the first one.
    sys.modules.setdefault(_PACKAGE, package)


def _from_package(name: str) -> Callable[[], _Stemmer] | None:
    """Returns what makes the stemmer by the public functions, which load all languages."""
    import snowballstemmer  # type: ignore[import-untyped]  # pure Python, without annotations

    known = cast("Callable[[], Sequence[str]]", getattr(snowballstemmer, "algorithms"))  # noqa: B009 - untyped
    if name not in known():
        return None
    made = cast("Callable[[str], _Stemmer]", getattr(snowballstemmer, "stemmer"))  # noqa: B009 - untyped
    return lambda: made(name)
