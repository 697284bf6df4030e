"""What the user is told of a request that failed."""

from __future__ import annotations

from typing import Final

from openai import APIStatusError, OpenAIError

from claimspan.errors import JudgeError, JudgeUnavailableError

__all__ = ["failure_of", "root_cause"]

# Too slow a request, too early, too many of them: the endpoint is overloaded for now.
_PASSING: Final = frozenset({408, 425, 429})
_ADVICE: Final = {
    **dict.fromkeys((301, 302, 307, 308), "redirects are not followed, give the final base_url"),
    400: "it does not know an option, or the texts are too long for the model",
    401: "check the key",
    403: "check what the key may do",
    404: "check base_url and model",
    422: "it does not know an option",
}


def failure_of(error: Exception, n_requests: int | None) -> JudgeError:
    """The error for the user, without the text of the original, which may hold prompt or key.

    Args:
        error: What the openai package or its client has raised.
        n_requests: Requests made; None where they are not counted.
    """
    made = "" if n_requests is None else f"; requests made: {n_requests}"
    if isinstance(error, APIStatusError):
        status = error.status_code
        detail = f": {_ADVICE[status]}" if status in _ADVICE else made
        is_away = status in _PASSING or status >= 500
        kind = JudgeUnavailableError if is_away else JudgeError
        return kind(f"the endpoint answered with HTTP {status}{detail}")
    name = type(root_cause(error)).__name__
    return JudgeUnavailableError(f"the connection failed ({name}){made}")


def root_cause(error: BaseException) -> BaseException:
    """The error of the HTTP client behind the errors of the openai package."""
    while isinstance(error, OpenAIError) and error.__cause__ is not None:
        error = error.__cause__
    return error
