"""Conditions on the facts of a record, for the rules of a ``RuleSampler``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pydantic import JsonValue

from claimspan.errors import ConfigError
from claimspan.metrics.catalogue import METRICS, unknown_metric
from claimspan.text.percentages import percent_hint
from claimspan_tracing.decide.chance import is_share
from claimspan_tracing.decide.facts import Facts

__all__ = [
    "Condition",
    "abstained",
    "attribute",
    "doubtful",
    "empty_retrieval",
    "failed",
    "feedback",
    "low_retrieval",
    "route",
    "slower_than",
]


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that is true of a record or not. ``&``, ``|`` and ``~`` combine conditions."""

    name: str
    """Stands in the reason of a decision."""

    test: Callable[[Facts], bool]
    """Whether it is true of a record."""

    needs_scores: bool = False
    """Whether it looks at the scores of the first judge."""

    needs_feedback: bool = False
    """Whether it looks at what users say about responses."""

    def __call__(self, facts: Facts) -> bool:
        """Whether it is true of a record."""
        return self.test(facts)

    def __and__(self, other: Condition) -> Condition:
        """Both are true."""
        return self._with(
            other, f"{self.name}&{other.name}", lambda facts: self(facts) and other(facts)
        )

    def __or__(self, other: Condition) -> Condition:
        """One of them is true, or both."""
        return self._with(
            other, f"{self.name}|{other.name}", lambda facts: self(facts) or other(facts)
        )

    def __invert__(self) -> Condition:
        """It is not true."""
        return self._with(self, f"~{self.name}", lambda facts: not self(facts))

    def _with(self, other: Condition, name: str, test: Callable[[Facts], bool]) -> Condition:
        return Condition(
            name,
            test,
            needs_scores=self.needs_scores or other.needs_scores,
            needs_feedback=self.needs_feedback or other.needs_feedback,
        )


def attribute(name: str, value: JsonValue | Callable[[JsonValue], bool] = None, /) -> Condition:
    """What the application attached to the run under a name (``metadata``).

    Args:
        name: The key in the metadata.
        value: What the attribute has to be. A text may be a pattern with ``*``, ``?`` and
            ``[...]``; a function gets the attribute and returns whether it fits. None is
            satisfied with any attribute of that name.

    Raises:
        ConfigError: The name is no text, or empty.
    """
    _check_text("name", name)

    def test(facts: Facts) -> bool:
        return name in facts.attributes and _fits(facts.attributes[name], value)

    shown = "" if value is None or callable(value) else f"={value}"
    return Condition(f"{name}{shown}", test)


def _fits(found: JsonValue, value: JsonValue | Callable[[JsonValue], bool]) -> bool:
    if value is None:
        return True
    if callable(value):
        return bool(value(found))
    if isinstance(value, str):
        return isinstance(found, str) and fnmatchcase(found, value)
    # In Python True equals 1; in JSON they are two things.
    return isinstance(found, bool) == isinstance(value, bool) and found == value


def route(pattern: str) -> Condition:
    """The name of the root run, such as ``support-bot`` or ``qa-*``.

    Raises:
        ConfigError: The pattern is no text, or empty.
    """
    _check_text("pattern", pattern)
    return Condition(f"route={pattern}", lambda facts: fnmatchcase(facts.route, pattern))


def failed() -> Condition:
    """A retriever or a generator of the pipeline raised an exception.

    A pipeline that recovered, and answered, is evaluated by this rule. One that raised itself ends
    as ``app_error``: there is no response to evaluate, and the rule shows on its span alone.
    """
    return Condition("failed", lambda facts: facts.had_error)


def abstained() -> Condition:
    """The response declines to answer. Where it makes no claim, it ends as ``no_answer``."""
    return Condition("abstained", lambda facts: facts.abstained)


def empty_retrieval() -> Condition:
    """A retriever found nothing.

    The record is evaluated where another retriever, or a second try, found something. Without any
    chunk there is nothing to compare the response with: the record ends as ``no_context``, and the
    rule shows on its span alone.
    """
    return Condition("empty_retrieval", lambda facts: facts.empty_retrieval)


def low_retrieval(*, below: float) -> Condition:
    """The best chunk has a score below a bound, on the retriever's own scale.

    Not for retrievers whose scores are distances, where less is better. Chunks without scores are
    never low.

    Raises:
        ConfigError: The bound is no number.
    """
    bound = _number("below", below)

    def test(facts: Facts) -> bool:
        return bool(facts.retrieval_scores) and max(facts.retrieval_scores) < bound

    return Condition(f"low_retrieval<{bound:g}", test)


def slower_than(seconds: float) -> Condition:
    """The pipeline took longer than so many seconds, its stream included.

    Raises:
        ConfigError: The bound is no number, or negative.
    """
    bound = _number("seconds", seconds)
    if bound < 0:
        raise ConfigError(f"seconds is {seconds!r}: give 0 or more")
    return Condition(f"slower_than={bound:g}s", lambda facts: facts.latency_seconds > bound)


def feedback(*, at_most: float = 1.0) -> Condition:
    """A user has said something about the response: ``Monitor.feedback``.

    Args:
        at_most: The best feedback that counts, 0 (bad) to 1 (good); 1.0 counts all.

    Raises:
        ConfigError: The bound is no number from 0 to 1.
    """
    bound = _share("at_most", at_most)

    def test(facts: Facts) -> bool:
        return facts.feedback is not None and facts.feedback <= bound

    return Condition(f"feedback<={bound:g}", test, needs_feedback=True)


def doubtful(*, below: float = 0.5, metric: str = "faithfulness") -> Condition:
    """The sampler's first judge gave a score below a bound.

    The first judge runs where the real judge would run, not where records are read. It is asked
    where the rate of this rule, or of one after it, would take the record, and no rule before it
    is true. A record that the first judge cannot score is not doubtful.

    Args:
        below: The bound, 0 to 1.
        metric: Which score of claimspan's counts. The first judge measures all that it can without
            a ground truth, whatever the monitor measures.

    Raises:
        ConfigError: The bound is no number from 0 to 1, or there is no such metric.
    """
    bound = _share("below", below)
    if metric not in METRICS:
        raise unknown_metric("doubtful", metric)

    def test(facts: Facts) -> bool:
        score = None if facts.first_scores is None else facts.first_scores.get(metric)
        return score is not None and score < bound

    return Condition(f"doubtful<{bound:g}", test, needs_scores=True)


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{name} is {value!r}: give a text that is not empty")


def _number(name: str, value: object) -> float:
    # NaN is not equal to itself, and no value is below it.
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise ConfigError(f"{name} is {value!r}: give a number")
    return float(value)


def _share(name: str, value: object) -> float:
    if not is_share(value):
        hint = percent_hint(value)
        raise ConfigError(f"{name} is {value!r}: give a number from 0.0 to 1.0{hint}")
    return _number(name, value)
