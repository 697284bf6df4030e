"""A redactor, for whom it works, and what happens if it fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Literal

from claimspan import RagRecord
from claimspan.daemon_threads import DaemonThread, start_daemon
from claimspan.files.ground_truth import GroundTruthMatch
from claimspan_tracing.decide.sampling import Decision
from claimspan_tracing.decide.status import Status
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job, KeptSpan, Outcome
from claimspan_tracing.redact.texts import REMOVED, Swap, Texts
from claimspan_tracing.suppression import run_suppressed
from claimspan_tracing.text import MAX_TEXT_BYTES, bounded, cut

__all__ = ["AUDIENCES", "FAILED", "MARGIN_BYTES", "Audience", "Redaction", "Redactor"]

Redactor = Callable[[str], str]
"""Returns a text without what must not be seen."""

Audience = Literal["judge", "export"]
"""Who reads texts: the judge; or spans, sinks and disk."""

AUDIENCES: Final[frozenset[Audience]] = frozenset({"judge", "export"})

FAILED: Final = "[redaction failed]"
"""Stands for a text on which the redactor failed."""

REDACTOR_FAILED: Final = "the redactor failed"
"""Reason of a record that was not judged, because a text that the judge reads is missing."""

MARGIN_BYTES: Final = 8 * 1024
"""Bytes that the redactor sees of a text beyond those that are kept: what it is to find may begin
before the cut and end behind it. The longest thing that ours finds is a private key of 6.5 KB."""

SECONDS: Final = 5.0
"""How long the redactor may take for all texts of one record. The spans of other records wait."""

MAX_HANGING: Final = 4
"""Calls of the redactor that were given up and still run. With as many, no more are begun."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """A redactor, and who gets redacted texts.

    The redactor is called once for each distinct text of a record, on a thread of its own with a
    deadline, never on the application's. If it raises, returns no text, or does not return in
    time, the text is left out. A call that holds the interpreter's lock, such as a regular
    expression that backtracks without end, cannot be given up: it stops every thread.
    """

    redactor: Redactor
    """Takes out what must not be seen."""

    audiences: frozenset[Audience] = field(default=AUDIENCES)
    """Who gets redacted texts. Without ``judge``, the judge of this process alone sees them raw."""

    seconds: float = SECONDS
    """How long the redactor may take for one record."""

    _hanging: list[DaemonThread] = field(
        default_factory=list[DaemonThread], init=False, repr=False, compare=False
    )

    @property
    def spares_judge(self) -> bool:
        """Whether the judge sees raw texts."""
        return "judge" not in self.audiences

    def apply(self, job: Job, guard: Guard) -> Job:
        """Return a job with every text of it redacted, and cut to its bound.

        A record whose query, response or chunks cannot be redacted ends as ``judge_error``: a judge
        that may not see them has nothing to judge.

        Args:
            job: Read with ``MARGIN_BYTES`` beyond the bound of each text.
            guard: Counts what the redactor raises, as in the other methods.
        """
        swap = _Swap(self._results(_texts(lambda note: Texts(note).job(job)), guard))
        shown = replace(Texts(swap).job(job), redaction_failed=len(swap.failed))
        unseen = swap.failed.intersection(judged_texts(job.record))
        if unseen and job.status is None and not self.spares_judge:
            return replace(shown, status=Status.JUDGE_ERROR, reason=REDACTOR_FAILED)
        return shown

    def for_judge(self, job: Job, shown: Job) -> Job:
        """Return what the judge gets: ``shown``, or the raw job, cut to its bounds."""
        return Texts(_cut).job(job) if self.spares_judge else shown

    def apply_to_outcome(self, job: Job, outcome: Outcome, guard: Guard) -> Outcome:
        """Return what a judge made of a job, with every text of it redacted: judges quote."""
        texts = _texts(lambda note: Texts(note).outcome(outcome))
        read = judged_texts(job.record, outcome.ground_truth) if self.spares_judge else []
        found = self._results(dict.fromkeys([*texts, *read]), guard)
        swap = _Swap(found, _hidden_words(read, found))
        shown = Texts(swap).outcome(outcome)
        return replace(shown, redaction_failed=outcome.redaction_failed + len(swap.failed))

    def apply_to_text(self, text: str, guard: Guard) -> str | None:
        """Return one text redacted; None if the redactor failed on it."""
        return self._results([text], guard).get(text)

    def apply_to_spans(self, spans: Sequence[KeptSpan], guard: Guard) -> tuple[KeptSpan, ...]:
        """Return the attributes that others set on spans, with every text redacted, for a file."""
        texts = _texts(lambda note: [Texts(note).metadata(s.attributes) for s in spans])
        swap = _Swap(self._results(texts, guard))
        return tuple(replace(s, attributes=Texts(swap).metadata(s.attributes)) for s in spans)

    def apply_to_decision(self, decision: Decision, guard: Guard) -> Decision:
        """Return a decision with its reason redacted: a sampler may name the facts in it."""
        swap = _Swap(self._results([decision.reason], guard))
        return replace(decision, reason=swap(decision.reason))

    def _results(self, texts: Collection[str], guard: Guard) -> dict[str, str]:
        """The redacted texts; those on which the redactor failed are not among them."""
        self._hanging[:] = [thread for thread in self._hanging if thread.is_alive()]
        if not texts:
            return {}
        if len(self._hanging) >= MAX_HANGING:
            guard.swallow(TimeoutError("calls of the redactor hang"))
            return {}
        found: dict[str, str] = {}
        is_given_up = False

        def redact_all() -> None:
            for text in texts:
                if is_given_up:
                    return
                try:
                    found[text] = _whole(self.redactor, text)
                except BaseException as error:  # noqa: BLE001 - counted; the text is left out
                    guard.swallow(error)

        try:
            thread = start_daemon(partial(run_suppressed, redact_all), "claimspan-redactor")
        except RuntimeError:  # the interpreter is shutting down, which has a deadline of its own
            run_suppressed(redact_all)
            return found
        thread.join(self.seconds)
        is_given_up = True
        if thread.is_alive():
            self._hanging.append(thread)
            guard.swallow(TimeoutError("the redactor did not return in time"))
        return dict(found)  # what a late call still finds is not used


def _texts(visit: Callable[[Swap], object]) -> list[str]:
    """The distinct texts of a value: one chunk is output, context and part of a prompt."""
    seen: dict[str, None] = {}

    def note(text: str) -> str:
        seen[text] = None
        return text

    visit(note)
    seen.pop("", None)
    return list(seen)


class _Swap:
    """Puts redacted texts in the place of raw ones, and notes which are missing."""

    def __init__(self, found: Mapping[str, str], hidden: Collection[str] = ()) -> None:
        self._found = found
        self._hidden = hidden
        self.failed: set[str] = set()

    def __call__(self, text: str) -> str:
        if not text:
            return text
        redacted = self._found.get(text)
        if redacted is None:
            self.failed.add(text)
            return FAILED
        return _WORD.sub(self._word, redacted) if self._hidden else redacted

    def _word(self, found: re.Match[str]) -> str:
        return REMOVED if found[0] in self._hidden else found[0]


_WORD: Final = re.compile(r"\w+")


def _hidden_words(texts: Collection[str], found: Mapping[str, str]) -> set[str]:
    """The words that the redactor took out of texts, and left nowhere in them.

    A judge that reads raw texts may put half of an address into a claim, by which no redactor knows
    it. A word of two letters tells nothing.
    """
    raw = {word for text in texts for word in _WORD.findall(text)}
    left = {word for text in texts for word in _WORD.findall(found.get(text, ""))}
    return {word for word in raw - left if len(word) > 2 or not word.isalpha()}


def _whole(redactor: Redactor, text: str) -> str:
    """Redact a text, and cut it to its bound so that no half of a secret is left at the end."""
    kept = _cut(text)
    redacted = _redact(redactor, text)
    if kept != text:
        # If the two differ, something that reaches beyond the cut was recognised in the one, and
        # not in the other. The redacted text cannot just be cut: it may be shorter than the margin.
        redacted = _common_start(redacted, _redact(redactor, kept))
    return bounded(redacted, MAX_TEXT_BYTES)


def _common_start(one: str, other: str) -> str:
    pairs = enumerate(zip(one, other, strict=False))
    shorter = min(len(one), len(other))
    return one[: next((place for place, (a, b) in pairs if a != b), shorter)]


def _redact(redactor: Redactor, text: str) -> str:
    redacted = redactor(text)
    if not isinstance(redacted, str):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
        raise TypeError("the redactor returned no text")
    return redacted


def _cut(text: str) -> str:
    return cut(text, MAX_TEXT_BYTES)


def judged_texts(record: RagRecord, match: GroundTruthMatch | None = None) -> list[str]:
    """Return the texts of a record that a judge reads, with its ground truth."""
    ground_truth = [] if match is None else [match.text]
    chunks = (chunk.text for chunk in record.chunks)
    return [record.query, record.response, *chunks, *ground_truth]
