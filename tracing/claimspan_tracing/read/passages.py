"""Tells which plain texts are no evidence: they only say that something is done or was said.

Other texts stand in place of evidence: frameworks note there that a tool has failed, or that a
conversation was handed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from typing import Final

from claimspan_tracing.capture.runs import Generation, RunTree

__all__ = ["acknowledges", "failures_in", "finds_nothing", "found_by_tools", "is_echo"]

MIN_ECHO: Final = 20
"""Characters of an argument from which on a result that repeats it has found nothing: a search for
a name may well find the name alone."""

MAX_TOLD: Final = 400
"""Characters of a text that tells of an exception; what is longer ends with it, or says more."""

MAX_LABEL: Final = 40
"""Characters of a label before it, as in "Reflection recorded: "."""

MAX_ARGUMENTS: Final = 20
"""Arguments of a call that are looked for in its result."""

_SENT: Final = frozenset("sent emailed mailed email mail".split())
"""Words that say so as well, of what the model itself has given."""


def is_echo(result: str, arguments: Iterable[object]) -> bool:
    """Whether the result of a tool is an argument of its call, as it is or behind a label.

    What a model writes for itself, such as a thought or a plan, would support its own answer. Nor
    is there more in a result which says that something was done with the arguments.
    """
    text = result.strip()
    given = [each.strip() for each in arguments if isinstance(each, str) and each.strip()]
    if any(len(each) >= MIN_ECHO and _repeats(text, each) for each in given):
        return True
    rest = text[: MAX_ACKNOWLEDGED + 1]
    if len(rest) > MAX_ACKNOWLEDGED:
        return False
    for each in sorted(given, key=len, reverse=True)[:MAX_ARGUMENTS]:
        rest = rest.replace(each, " ")
    return rest != text and _says_done(rest, _DONE | _SENT)


def _repeats(text: str, given: str) -> bool:
    if not text.endswith(given):
        return False
    label = text.removesuffix(given).rstrip()
    return not label or (label.endswith(":") and len(label) <= MAX_LABEL)


MAX_ACKNOWLEDGED: Final = 200
"""Characters of such a text; what is longer says more."""

MAX_WORDS: Final = 12

_DONE: Final = frozenset(
    "ok okay done success successful successfully succeeded complete completed finished saved"
    " stored recorded remembered noted logged written added created updated upserted inserted"
    " indexed ingested loaded embedded transferred handed acknowledged".split()
)
"""Words that say that something was done. Not those that may be what was asked: shipped, paid."""

_OBJECTS: Final = frozenset(
    "note notes memory memories fact facts preference preferences message messages conversation"
    " state list plan document documents doc docs chunk chunks node nodes page pages file files"
    " record records row rows item items entry entries vector vectors embedding embeddings index"
    " store vectorstore database db collection agent assistant operation request action tool call"
    " todo todos scratchpad".split()
)
"""What it was done to, which may be counted."""

_BESIDE: Final = frozenset(
    "the a an your this that it its all new was were is are has have been be to into in of from for"
    " off over back and with now i control result results null none".split()
)

_WORD: Final = re.compile(r"[^\W\d_]+")
_ID: Final = re.compile(
    r"[\s(\[]*(?<!\w)(?:\w{1,40}_)?ids?\b[\s:=#'\"]*[\w-]{1,64}['\"]?[)\]]?", re.IGNORECASE
)
"""The id of what was saved."""

_COUNT: Final = re.compile(r"(?<![\w.,-])\d{1,9}\s+(?:new\s+)?([^\W\d_]+)")
_HANDED: Final = re.compile(
    r"(?:successfully\s+)?(?:transferred|handed\s+off|handed\s+over)(?:\s+\w+){0,2}\s+to\s+(?:the\s+)?[\w-]+"
    r"(?:\s+agent)?[.!]?",
    re.IGNORECASE,
)
"""A conversation that was handed to another agent, whose name may be any word."""

_FIELDS: Final = _BESIDE | {*"status state message msg detail details error errors true".split()}
"""Names of fields that say so, and what stands beside them."""

_SIGNS: Final = re.compile(r"status(?:_code)?['\"]\s*:\s*20[0124]\b|(?P<sign>[{}'\":,_])")
"""A status of HTTP that says so, and the signs of JSON and of Python."""

_NOTE: Final = re.compile(
    r"\[cleared\]$|(?:Successfully\ )?transferred\ (?:to|back)\b|updated\ todo\ list\ to\b"
    r"|tool\ call\ limit\ exceeded\b|error:\ failed\ to\ parse\ structured\ output\b"
    r"|agent\ [^\n]{1,80}?\ is\ now\ handling\ the\ request\b|returning\ structured\ response\b"
    r"|content\ loaded!\ you\ can\ now\ search\ the\ information\ using\b"
    r"|error\ (?:invoking|executing)\ tool\b",
    re.IGNORECASE,
)
"""What frameworks write in place of a tool's result: hand-overs, bounds, their own bookkeeping, and
that a tool has failed."""


TOOL: Final = "tool"
"""Role of a message that has what a tool returned."""


def failures_in(tree: RunTree) -> Set[str]:
    """Return what the exceptions say that have ended runs of a tree."""
    return {each.failure.strip() for each in tree.runs} - {""}


def found_by_tools(generation: Generation, failures: Set[str]) -> list[object]:
    """Return what tools have found, as the prompt of a model has it.

    Args:
        generation: What the model was told.
        failures: What exceptions say; a tool that tells it has found nothing.
    """
    told = generation.tool_results
    results = [t for r, t in generation.messages if r == TOOL] if told is None else told
    return [
        each
        for each in results
        if not (isinstance(each, str) and (finds_nothing(each) or _tells(each.strip(), failures)))
    ]


def _tells(text: str, failures: Set[str]) -> bool:
    """Whether a text tells what an exception says, as it is, or with a few words around it."""
    if text in failures:
        return True
    told = (each for each in failures if len(each) >= MIN_ECHO)
    if len(text) > MAX_TOLD:
        return text.endswith((*told,))
    return any(each in text for each in told)


def finds_nothing(result: str) -> bool:
    """Whether the result of a tool is a framework's note, or says that something was done."""
    return not result.strip() or _NOTE.match(result) is not None or acknowledges(result)


def acknowledges(text: str) -> bool:
    """Whether a text says that something was done, and nothing else, as what a tool returns does.

    Of any other text each may be what was asked: "shipped" is where an order is.
    """
    if len(text) > MAX_ACKNOWLEDGED:
        return False
    text = text.strip()
    if text.startswith("{"):  # an object of JSON, or a dict as Python shows it
        plain = _SIGNS.sub(lambda found: " " if found["sign"] else "ok", _ID.sub(" ", text))
        return _says_done(plain, beside=_FIELDS)
    return _HANDED.fullmatch(text) is not None or _says_done(text)


def _says_done(text: str, done: Set[str] = _DONE, beside: Set[str] = _BESIDE) -> bool:
    plain = _COUNT.sub(_counted, _ID.sub(" ", text)).casefold()
    words: list[str] = _WORD.findall(plain)
    if not 0 < len(words) <= MAX_WORDS or re.search(r"[\d_?:;=/@]", plain):
        return False
    return done | _OBJECTS | beside >= {*words} and not done.isdisjoint(words)


def _counted(found: re.Match[str]) -> str:
    """What was counted, without the number; both if it is none of what is stored."""
    return found[1] if found[1].casefold() in _OBJECTS else found[0]
