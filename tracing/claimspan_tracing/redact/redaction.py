"""A redactor, for whom it works, what happens if it fails, and which fields hold text."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Literal

from pydantic import JsonValue

from claimspan import Chunk, Claim, Evaluation, RagRecord
from claimspan.daemon_threads import DaemonThread, start_daemon
from claimspan.files.ground_truth import GroundTruthMatch
from claimspan_tracing.decide.sampling import Decision
from claimspan_tracing.decide.status import Status
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import (
    MAX_MESSAGE_BYTES,
    GeneratorRun,
    Job,
    KeptSpan,
    Message,
    Outcome,
    RetrieverRun,
)
from claimspan_tracing.suppression import run_suppressed
from claimspan_tracing.text import MAX_TEXT_BYTES, bounded, cut

__all__ = ["AUDIENCES", "FAILED", "MARGIN_BYTES", "Audience", "Redaction", "Redactor"]

Redactor = Callable[[str], str]
"""Returns a text without what must not be seen."""

Audience = Literal["judge", "export"]
"""Who reads texts: the judge; or spans, sinks and disk."""

AUDIENCES: Final[frozenset[Audience]] = frozenset({"judge", "export"})

Swap = Callable[[str], str]
"""Returns what stands in the place of a text."""

MIN_NUMBER: Final = 10**6
"""Whole numbers from here on are long enough to be a telephone number or a card."""

REMOVED: Final = "[redacted]"
"""Stands for part of a secret in a claim, and for a claim of which nothing is left."""

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
        swap = _Swap(self._results(_texts(lambda note: with_job_texts(job, note)), guard))
        shown = replace(with_job_texts(job, swap), redaction_failed=len(swap.failed))
        unseen = swap.failed.intersection(judged_texts(job.record))
        if unseen and job.status is None and not self.spares_judge:
            return replace(shown, status=Status.JUDGE_ERROR, reason=REDACTOR_FAILED)
        return shown

    def for_judge(self, job: Job, shown: Job) -> Job:
        """Return what the judge gets: ``shown``, or the raw job, cut to its bounds."""
        return with_job_texts(job, _cut) if self.spares_judge else shown

    def apply_to_outcome(self, job: Job, outcome: Outcome, guard: Guard) -> Outcome:
        """Return what a judge made of a job, with every text of it redacted: judges quote."""
        texts = _texts(lambda note: with_outcome_texts(outcome, note))
        read = judged_texts(job.record, outcome.ground_truth) if self.spares_judge else []
        found = self._results(dict.fromkeys([*texts, *read]), guard)
        swap = _Swap(found, _hidden_words(read, found))
        shown = with_outcome_texts(outcome, swap)
        return replace(shown, redaction_failed=outcome.redaction_failed + len(swap.failed))

    def apply_to_text(self, text: str, guard: Guard) -> str | None:
        """Return one text redacted; None if the redactor failed on it."""
        return self._results([text], guard).get(text)

    def apply_to_spans(self, spans: Sequence[KeptSpan], guard: Guard) -> tuple[KeptSpan, ...]:
        """Return the attributes that others set on spans, with every text redacted, for a file."""
        texts = _texts(lambda note: [_object(s.attributes, note) for s in spans])
        swap = _Swap(self._results(texts, guard))
        return tuple(replace(s, attributes=_object(s.attributes, swap)) for s in spans)

    def apply_to_decision(self, decision: Decision, guard: Guard) -> Decision:
        """Return a decision with its reason redacted: a sampler may name the facts in it."""
        swap = _Swap(self._results([decision.reason], guard))
        return replace(decision, reason=swap(decision.reason))

    def _results(self, texts: Collection[str], guard: Guard) -> dict[str, str]:
        """The redacted texts; those on which the redactor failed are not among them."""
        batch = _Batch(self.redactor, texts, guard)
        self._hanging[:] = [thread for thread in self._hanging if thread.is_alive()]
        if not texts:
            return {}
        if len(self._hanging) >= MAX_HANGING:
            guard.swallow(TimeoutError("calls of the redactor hang"))
            return {}
        try:
            thread = start_daemon(partial(run_suppressed, batch.run), "claimspan-redactor")
        except RuntimeError:  # the interpreter is shutting down, which has a deadline of its own
            run_suppressed(batch.run)
            return batch.found
        thread.join(self.seconds)
        if thread.is_alive():
            self._hanging.append(thread)
            guard.swallow(TimeoutError("the redactor did not return in time"))
        return batch.end()


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


class _Batch:
    """Texts that are redacted one by one, until it is ended."""

    def __init__(self, redactor: Redactor, texts: Collection[str], guard: Guard) -> None:
        self._redactor = redactor
        self._texts = texts
        self._guard = guard
        self._ended = False
        self.found: dict[str, str] = {}

    def run(self) -> None:
        for text in self._texts:
            if self._ended:
                return
            try:
                self.found[text] = _whole(self._redactor, text)
            except BaseException as error:  # noqa: BLE001 - counted; the text is left out
                self._guard.swallow(error)

    def end(self) -> dict[str, str]:
        """End the batch; what a late call still finds is not used."""
        self._ended = True
        return dict(self.found)


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
    if one.startswith(other):
        return other
    differ = (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return one[: next(differ, len(one))]


def _redact(redactor: Redactor, text: str) -> str:
    redacted = redactor(text)
    if not isinstance(redacted, str):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
        raise TypeError("the redactor returned no text")
    return redacted


def _cut(text: str) -> str:
    return cut(text, MAX_TEXT_BYTES)


# --- every text of a job and of an outcome, in one place: no field may be forgotten elsewhere -----


def with_job_texts(job: Job, swap: Swap) -> Job:
    """Return a job with each of its texts put through ``swap``.

    Ids, times and counts that OpenTelemetry needs stay, and so does the trace state, which others
    have made. A chunk id that is the hash of the chunk's text becomes that of the new text.
    """
    decision = job.decision
    return replace(
        job,
        record=_record(job.record, swap),
        route=swap(job.route),
        error_type=swap(job.error_type),
        reason=swap(job.reason),
        rewritten=swap(job.rewritten),
        runs=tuple(_run(run, swap) for run in job.runs),
        decision=decision and replace(decision, reason=swap(decision.reason)),
    )


def judged_texts(record: RagRecord, match: GroundTruthMatch | None = None) -> list[str]:
    """Return the texts of a record that a judge reads, with its ground truth."""
    ground_truth = [] if match is None else [match.text]
    chunks = (chunk.text for chunk in record.chunks)
    return [record.query, record.response, *chunks, *ground_truth]


def with_outcome_texts(outcome: Outcome, swap: Swap) -> Outcome:
    """Return an outcome with each of its texts put through ``swap``."""
    match, evaluation, decision = outcome.ground_truth, outcome.evaluation, outcome.decision
    return replace(
        outcome,
        reason=swap(outcome.reason),
        # Samplers see raw facts, and may name them in their reason.
        decision=decision and replace(decision, reason=swap(decision.reason)),
        evaluation=evaluation and _evaluation(evaluation, swap),
        ground_truth=match and match.model_copy(update={"text": swap(match.text)}),
    )


def _record(record: RagRecord, swap: Swap) -> RagRecord:
    return record.model_copy(
        update={
            "query": swap(record.query),
            "response": swap(record.response),
            "chunks": tuple(_chunk(chunk, swap) for chunk in record.chunks),
            "ground_truth": _optional(record.ground_truth, swap),
            "id": _optional(record.id, swap),
            "metadata": _object(record.metadata, swap),
        }
    )


def _chunk(chunk: Chunk, swap: Swap) -> Chunk:
    text = swap(chunk.text)
    # A short text can be guessed from its hash.
    is_hash = chunk.id == Chunk.content_id(cut(chunk.text, MAX_TEXT_BYTES))
    id_ = Chunk.content_id(text) if is_hash else swap(chunk.id)
    update = {"id": id_, "text": text, "metadata": _object(chunk.metadata, swap)}
    return chunk.model_copy(update=update)


def _run(run: RetrieverRun | GeneratorRun, swap: Swap) -> RetrieverRun | GeneratorRun:
    if isinstance(run, RetrieverRun):
        return replace(
            run,
            query=swap(run.query),
            chunks=tuple(_chunk(chunk, swap) for chunk in run.chunks),
            source=swap(run.source),
            error_type=swap(run.error_type),
        )
    return replace(
        run,
        prompt=swap(run.prompt),
        completion=swap(run.completion),
        model=swap(run.model),
        provider=swap(run.provider),
        response_id=swap(run.response_id),
        response_model=swap(run.response_model),
        finish_reason=swap(run.finish_reason),
        error_type=swap(run.error_type),
        messages=tuple(_message(message, swap) for message in run.messages),
    )


def _message(message: Message, swap: Swap) -> Message:
    # Read whole if a redactor is to see it, and cut here: what it finds may lie across the cut.
    # The role is one of four words.
    return replace(message, text=cut(swap(message.text), MAX_MESSAGE_BYTES))


def _evaluation(evaluation: Evaluation, swap: Swap) -> Evaluation:
    claim = partial(_claim, swap=swap)
    return evaluation.model_copy(
        update={
            "response_claims": tuple(map(claim, evaluation.response_claims)),
            "ground_truth_claims": tuple(map(claim, evaluation.ground_truth_claims)),
            # The reasons are the judge's own words, and may quote.
            "undefined": {name: swap(why) for name, why in evaluation.undefined.items()},
            "explanations": {name: swap(why) for name, why in evaluation.explanations.items()},
            "undecided": _counts(evaluation.undecided, swap),
            "notes": _counts(evaluation.notes, swap),
            "error": _optional(evaluation.error, swap),
        }
    )


def _claim(claim: Claim, swap: Swap) -> Claim:
    update = {"text": swap(claim.text) or REMOVED, "sentence": _optional(claim.sentence, swap)}
    return claim.model_copy(update=update)


def _counts(counts: Mapping[str, int], swap: Swap) -> dict[str, int]:
    summed: dict[str, int] = {}
    for name, count in counts.items():
        new = swap(name)
        summed[new] = summed.get(new, 0) + count
    return summed


def _optional(text: str | None, swap: Swap) -> str | None:
    return None if text is None else swap(text)


def _object(value: Mapping[str, JsonValue], swap: Swap) -> dict[str, JsonValue]:
    return {swap(key): _value(item, swap) for key, item in value.items()}


def _value(value: JsonValue, swap: Swap) -> JsonValue:
    match value:
        case str():
            return swap(value)
        case bool():
            return value
        case int() if abs(value) >= MIN_NUMBER:
            text = str(value)
            new = swap(text)
            return value if new == text else new
        case list():
            return [_value(item, swap) for item in value]
        case dict():  # with its names: metadata that becomes attributes has names of the user's
            return _object(value, swap)
        case _:
            return value
