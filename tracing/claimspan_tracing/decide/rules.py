"""Rules: the first one that is true of a record sets the rate at which it is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from pydantic import JsonValue

from claimspan.errors import ConfigError
from claimspan.judges import default_judge
from claimspan.judges.choice import JudgeLike
from claimspan.metrics.catalogue import METRICS, unknown_metric
from claimspan_tracing.decide.sampling import (
    NUMBER,
    Decision,
    Facts,
    checked_first_judge,
    checked_share,
    is_taken,
)

__all__ = [
    "Condition",
    "Rule",
    "RuleSampler",
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

# --- conditions -----------------------------------------------------------------------------------


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
    """Whether it looks at feedback of users."""

    def __call__(self, facts: Facts) -> bool:
        """Whether it is true of a record."""
        return self.test(facts)

    def __and__(self, other: Condition) -> Condition:
        return self._with(
            other, f"{self.name}&{other.name}", lambda facts: self(facts) and other(facts)
        )

    def __or__(self, other: Condition) -> Condition:
        return self._with(
            other, f"{self.name}|{other.name}", lambda facts: self(facts) or other(facts)
        )

    def __invert__(self) -> Condition:
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
        value: The value that the attribute must have. A text may be a pattern with ``*``, ``?`` and
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
    """The response declines to answer. If it makes no claim, it ends as ``no_answer``."""
    return Condition("abstained", lambda facts: facts.abstained)


def empty_retrieval() -> Condition:
    """A retriever found nothing.

    The record is evaluated if another retriever, or a second try, found something. Without any
    chunk there is nothing to compare the response with: the record ends as ``no_context``, and the
    rule shows on its span alone.
    """
    return Condition("empty_retrieval", lambda facts: facts.empty_retrieval)


def low_retrieval(*, below: float) -> Condition:
    """The best chunk has a score below a bound, on the retriever's own scale.

    Not for retrievers that score by distance, since less is then better. Chunks without scores are
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
    bound = checked_share("at_most", at_most, NUMBER)

    def test(facts: Facts) -> bool:
        return facts.feedback is not None and facts.feedback <= bound

    return Condition(f"feedback<={bound:g}", test, needs_feedback=True)


def doubtful(*, below: float = 0.5, metric: str = "faithfulness") -> Condition:
    """The sampler's first judge gave a score below a bound.

    The first judge runs where the real judge would run, not where records are read. It is asked
    if the rate of this rule, or of one after it, would take the record, and no rule before it
    is true. A record that the first judge cannot score is not doubtful.

    Args:
        below: The bound, 0 to 1.
        metric: Which score of claimspan's counts. The first judge measures all that it can without
            a ground truth, whatever the monitor measures.

    Raises:
        ConfigError: The bound is no number from 0 to 1, or there is no such metric.
    """
    bound = checked_share("below", below, NUMBER)
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


# --- rules ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rule:
    """A rate for the records that meet a condition."""

    when: Callable[[Facts], bool]
    """A condition, or any function of the facts."""

    rate: float
    """Share of these records to evaluate, 0 to 1."""

    name: str = ""
    """Stands in the reason, as ``rule:NAME``; empty for the name of the condition or function."""

    def __post_init__(self) -> None:
        """Refuse a field that cannot be used, by a ``ConfigError``."""
        if not callable(self.when):
            raise ConfigError(
                f"Rule.when is of type {type(self.when).__name__}: give a condition such as "
                "failed(), or a function of the facts"
            )
        checked_share("Rule.rate", self.rate)
        if not isinstance(self.name, str) or not self._named():  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
            raise ConfigError("a rule with a lambda needs a name: Rule(lambda ..., 0.5, name=...)")

    @property
    def reason(self) -> str:
        """The reason of a decision by this rule."""
        return f"rule:{self._named()}"

    @property
    def needs_scores(self) -> bool:
        """Whether the rule looks at the scores of the first judge."""
        return isinstance(self.when, Condition) and self.when.needs_scores

    @property
    def needs_feedback(self) -> bool:
        """Whether the rule looks at feedback of users."""
        return isinstance(self.when, Condition) and self.when.needs_feedback

    def _named(self) -> str:
        if self.name:
            return self.name
        if isinstance(self.when, Condition):
            return self.when.name
        name = getattr(self.when, "__name__", type(self.when).__name__)
        return "" if name == "<lambda>" else str(name)


class RuleSampler:
    """Evaluates records at the rate of the first rule that is true of them.

    All that went wrong, half of one tenant's traffic, and two per cent of the rest::

        RuleSampler(
            [
                Rule(failed() | low_retrieval(below=0.3), 1.0),
                Rule(attribute("tenant", "acme"), 0.5),
                Rule(slower_than(5.0), 0.2, name="slow"),
            ],
            default=0.02,
        )

    As the first rule wins, each record has one rate, and its weight is exactly 1 / rate. The ids of
    the root span decide whether a record is in the share, as with ``RateSampler``.
    """

    def __init__(
        self, rules: Sequence[Rule], *, default: float, first_judge: JudgeLike | None = None
    ) -> None:
        """Set the rules.

        Args:
            rules: In the order in which they are tried.
            default: The rate of the records that no rule fits.
            first_judge: A cheap judge for the rules that need its scores (``doubtful``): a judge,
                or the name of one, such as ``"lexical"``.

        Raises:
            ConfigError: A value is no rule, the default is no share, there is no such judge, or a
                rule needs one that is not given.
        """
        for rule in rules:
            if not isinstance(rule, Rule):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
                raise ConfigError(
                    f"rules has a value of type {type(rule).__name__}: give Rule(condition, rate)"
                )
        self.rules: Final = tuple(rules)
        self.default: Final = checked_share("default", default)
        self.first_judge: Final = (
            default_judge(first_judge)
            if isinstance(first_judge, str)
            else checked_first_judge(first_judge)
        )
        """Scores the records that a rule may find doubtful."""
        if self.first_judge is None and any(rule.needs_scores for rule in self.rules):
            raise ConfigError("a rule needs the scores of a first judge: give first_judge")
        self.needs_feedback: Final = any(rule.needs_feedback for rule in self.rules)
        """Whether records are kept for a while to be evaluated when users complain."""

    def decide(self, facts: Facts) -> Decision:
        """Take the rate of the first rule that is true.

        Asked once more, with the scores of the first judge, it gives the rate among the records
        that were left undecided.
        """
        before: float | None = None
        for place, rule in enumerate(self.rules):
            if rule.needs_scores and facts.can_be_evaluated:
                if facts.first_scores is None:
                    return self._before_scores(facts, place)
                # The first such rule left it undecided, at the highest rate from there on.
                before = self._highest(place) if before is None else before
            if rule.when(facts):
                return _decision(facts, rule.rate, rule.reason, before)
        return _decision(facts, self.default, "default", before)

    def _before_scores(self, facts: Facts, place: int) -> Decision:
        """Leave a record undecided, unless neither this rule nor a later one would take it."""
        # Rates are nested: what the highest does not take, none of the others takes. So most
        # records never reach the first judge if the rates are small.
        highest = self._highest(place)
        if not is_taken(facts, highest):
            return Decision(sampled=False, rate=highest, reason="no rule would take it")
        return Decision(sampled=True, rate=highest, reason="undecided", undecided=True)

    def _highest(self, place: int) -> float:
        return float(max(self.default, *(rule.rate for rule in self.rules[place:])))

    def __repr__(self) -> str:
        return f"RuleSampler({len(self.rules)} rules, default={self.default})"


def _decision(facts: Facts, rate: float, reason: str, before: float | None) -> Decision:
    return Decision(sampled=is_taken(facts, rate), rate=rate / (before or 1.0), reason=reason)
