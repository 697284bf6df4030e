"""Tells a pipeline from a function that makes one."""

from __future__ import annotations

import inspect

from claimspan.errors import ConfigError

__all__ = ["made_by"]


def made_by(found: object, *, is_pipeline: bool) -> object:
    """Return what a factory makes, and anything else as it is.

    A function that can be called with a question is a pipeline itself; one without arguments is a
    factory. It may be asynchronous.

    Args:
        found: What the user has named.
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
