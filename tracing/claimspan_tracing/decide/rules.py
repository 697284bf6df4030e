"""Rules: the first one that is true of a record sets the rate at which it is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from claimspan.errors import ConfigError
from claimspan.judges import Judge, default_judge
from claimspan.judges.choice import JudgeLike
from claimspan.text.percentages import percent_hint
from claimspan_tracing.decide.chance import is_share, is_taken
from claimspan_tracing.decide.conditions import Condition
from claimspan_tracing.decide.facts import Facts
from claimspan_tracing.decide.sampling import Decision

__all__ = ["Rule", "RuleSampler"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rate for the records of which a condition is true."""

    when: Callable[[Facts], bool]
    """A condition, or any function of the facts."""

    rate: float
    """Share of these records to evaluate, 0 to 1."""

    name: str = ""
    """Stands in the reason, as ``rule:NAME``; empty for the name of the condition or function."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigError: The condition cannot be called, the rate is no share, or there is no name.
        """
        if not callable(self.when):
            raise ConfigError(
                f"Rule.when is of type {type(self.when).__name__}:"
                " give a condition such as failed(), or "
                "a function of the facts"
            )
        if not is_share(self.rate):
            hint = percent_hint(self.rate)
            raise ConfigError(f"Rule.rate is {self.rate!r}: give a share between 0.0 and 1.0{hint}")
        if not isinstance(self.name, str) or not self._named():  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
            raise ConfigError("a rule with a lambda needs a name: Rule(lambda ..., 0.5, name=...)")

    @property
    def reason(self) -> str:
        """What a decision by this rule says."""
        return f"rule:{self._named()}"

    @property
    def needs_scores(self) -> bool:
        """Whether the rule looks at the scores of the first judge."""
        return isinstance(self.when, Condition) and self.when.needs_scores

    @property
    def needs_feedback(self) -> bool:
        """Whether the rule looks at what users say about responses."""
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
            default: The rate of the records of which no rule is true.
            first_judge: A cheap judge for the rules that need its scores (``doubtful``): a judge,
                or the name of one, such as ``"lexical"``.

        Raises:
            ConfigError: A rule is none, the default is no share, there is no such judge, or a rule
                needs one that is not given.
        """
        for rule in rules:
            if not isinstance(rule, Rule):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
                raise ConfigError(
                    f"rules has a value of type {type(rule).__name__}: give Rule(condition, rate)"
                )
        if not is_share(default):
            hint = percent_hint(default)
            raise ConfigError(f"default is {default!r}: give a share between 0.0 and 1.0{hint}")
        self.rules: Final = tuple(rules)
        self.default: Final = float(default)
        self.first_judge: Final = _checked_judge(first_judge)
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
        # records never reach the first judge where the rates are small.
        highest = self._highest(place)
        if not is_taken(facts, highest):
            return Decision(sampled=False, rate=highest, reason="no rule would take it")
        return Decision(sampled=True, rate=highest, reason="undecided", undecided=True)

    def _highest(self, place: int) -> float:
        """The highest rate of a rule and of all behind it."""
        return float(max(self.default, *(rule.rate for rule in self.rules[place:])))

    def __repr__(self) -> str:
        return f"RuleSampler({len(self.rules)} rules, default={self.default})"


def _decision(facts: Facts, rate: float, reason: str, before: float | None) -> Decision:
    return Decision(sampled=is_taken(facts, rate), rate=rate / (before or 1.0), reason=reason)


def _checked_judge(judge: JudgeLike | None) -> Judge | None:
    if isinstance(judge, str):
        return default_judge(judge)
    if judge is not None and not isinstance(judge, Judge):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
        raise ConfigError(
            f"first_judge is of type {type(judge).__name__}:"
            " give an object with name, extract_claims "
            "and check"
        )
    return judge
