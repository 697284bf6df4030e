"""Every text of a job and of an outcome, in one place: no field may be forgotten elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pydantic import JsonValue

from claimspan import Chunk, Claim, Evaluation, RagRecord
from claimspan_tracing.decide.sampling import Decision
from claimspan_tracing.job import (
    MAX_MESSAGE_BYTES,
    GeneratorRun,
    Job,
    Message,
    Outcome,
    RetrieverRun,
)
from claimspan_tracing.text import MAX_TEXT_BYTES, cut

__all__ = ["REMOVED", "Swap", "Texts"]

Swap = Callable[[str], str]
"""Returns what stands in the place of a text."""

MIN_NUMBER: Final = 10**6
"""Whole numbers from here on are long enough to be a telephone number or a card."""

REMOVED: Final = "[redacted]"
"""Stands for part of a secret in a claim, and for a claim of which nothing is left."""


@dataclass(frozen=True)
class Texts:
    """Returns jobs and outcomes with each of their texts put through a function.

    Ids, times and counts that OpenTelemetry needs stay, and so does the trace state, which others
    have made. A class below may treat names, ids, metadata and the words of a judge otherwise.
    """

    swap: Swap

    def job(self, job: Job) -> Job:
        """Return a job with other texts."""
        return replace(
            job,
            record=self._record(job.record),
            route=self._name(job.route),
            error_type=self._error_type(job.error_type),
            reason=self._told(job.reason),
            rewritten=self.swap(job.rewritten),
            runs=tuple(map(self._run, job.runs)),
            decision=self._decision(job.decision),
        )

    def outcome(self, outcome: Outcome) -> Outcome:
        """Return an outcome with other texts."""
        match, evaluation = outcome.ground_truth, outcome.evaluation
        return replace(
            outcome,
            reason=self._told(outcome.reason),
            decision=self._decision(outcome.decision),
            evaluation=evaluation and self.evaluation(evaluation),
            ground_truth=match and match.model_copy(update={"text": self.swap(match.text)}),
        )

    def evaluation(self, evaluation: Evaluation) -> Evaluation:
        """Return an evaluation with other texts."""
        undefined, explanations = evaluation.undefined, evaluation.explanations
        return evaluation.model_copy(
            update={
                "response_claims": tuple(map(self._claim, evaluation.response_claims)),
                "ground_truth_claims": tuple(map(self._claim, evaluation.ground_truth_claims)),
                # The reasons are the judge's own words, and may quote.
                "undefined": {name: self._word(why) for name, why in undefined.items()},
                "explanations": {name: self._word(why) for name, why in explanations.items()},
                "undecided": self._counts(evaluation.undecided),
                "notes": self._counts(evaluation.notes),
                "error": self._optional(evaluation.error, self._told),
            }
        )

    # What stands for the name of a run or a store, and the class of an exception; for a reason, or
    # what a provider tells of a call; for what a judge says of its verdicts; and for ids.

    def _name(self, text: str) -> str:
        return self.swap(text)

    def _error_type(self, text: str) -> str:
        return self.swap(text)

    def _told(self, text: str) -> str:
        # Samplers see raw facts, and may name them in their reason.
        return self.swap(text)

    def _word(self, text: str) -> str:
        return self.swap(text)

    def _record_id(self, id_: str) -> str | None:
        return self.swap(id_)

    def _chunk_id(self, chunk: Chunk, text: str) -> str:
        # A short text can be guessed from its hash.
        is_hash = chunk.id == Chunk.content_id(cut(chunk.text, MAX_TEXT_BYTES))
        return Chunk.content_id(text) if is_hash else self.swap(chunk.id)

    def metadata(self, value: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return an object of JSON with other texts, as names as well."""
        # Metadata that becomes attributes has names of the user's.
        return {self.swap(key): self._value(item) for key, item in value.items()}

    def _record(self, record: RagRecord) -> RagRecord:
        return record.model_copy(
            update={
                "query": self.swap(record.query),
                "response": self.swap(record.response),
                "chunks": tuple(map(self._chunk, record.chunks)),
                "ground_truth": self._optional(record.ground_truth, self.swap),
                "id": None if record.id is None else self._record_id(record.id),
                "metadata": self.metadata(record.metadata),
            }
        )

    def _chunk(self, chunk: Chunk) -> Chunk:
        text = self.swap(chunk.text)
        id_, metadata = self._chunk_id(chunk, text), self.metadata(chunk.metadata)
        return chunk.model_copy(update={"id": id_, "text": text, "metadata": metadata})

    def _run(self, run: RetrieverRun | GeneratorRun) -> RetrieverRun | GeneratorRun:
        error_type = self._error_type(run.error_type)
        if isinstance(run, RetrieverRun):
            return replace(
                run,
                query=self.swap(run.query),
                chunks=tuple(map(self._chunk, run.chunks)),
                source=self._name(run.source),
                error_type=error_type,
            )
        return replace(
            run,
            prompt=self.swap(run.prompt),
            completion=self.swap(run.completion),
            model=self._told(run.model),
            provider=self._told(run.provider),
            response_id=self._told(run.response_id),
            response_model=self._told(run.response_model),
            finish_reason=self._told(run.finish_reason),
            error_type=error_type,
            messages=tuple(map(self._message, run.messages)),
        )

    def _message(self, message: Message) -> Message:
        # Read whole if a redactor is to see it, and cut here: what it finds may lie across the cut.
        # The role is one of four words.
        return replace(message, text=cut(self.swap(message.text), MAX_MESSAGE_BYTES))

    def _decision(self, decision: Decision | None) -> Decision | None:
        return decision and replace(decision, reason=self._told(decision.reason))

    def _claim(self, claim: Claim) -> Claim:
        text = self.swap(claim.text) or REMOVED
        sentence = self._optional(claim.sentence, self.swap)
        return claim.model_copy(update={"text": text, "sentence": sentence})

    def _counts(self, counts: Mapping[str, int]) -> dict[str, int]:
        summed = Counter[str]()
        for name, count in counts.items():
            summed[self._word(name)] += count
        return dict(summed)

    def _optional(self, text: str | None, swap: Swap) -> str | None:
        return None if text is None else swap(text)

    def _value(self, value: JsonValue) -> JsonValue:
        match value:
            case str():
                return self.swap(value)
            case bool():
                return value
            case int() if abs(value) >= MIN_NUMBER:
                text = str(value)
                new = self.swap(text)
                return value if new == text else new
            case list():
                return [self._value(item) for item in value]
            case dict():
                return self.metadata(value)
            case _:
                return value
