"""What an evaluation will cost, before anything is spent: a rehearsal of every call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict, JsonValue

from claimspan.cost.usage import Usage, add_usage
from claimspan.errors import ConfigError
from claimspan.evaluation.evaluate import aevaluate
from claimspan.judges.llm.completion import Completion, Prompt
from claimspan.judges.llm.judge import OpenAIJudge
from claimspan.progress import progress_bar
from claimspan.records import RagRecord
from claimspan.text.tokens import count_tokens

__all__ = ["Estimate", "aestimate"]

CLAIMS_PER_SENTENCE: Final = 1.0
"""Where nothing else is said; models that take sentences apart find up to 2 or 3."""


class Estimate(BaseModel):
    """Expected cost of evaluating some records, nothing cached."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    records: int
    """Number of records."""

    calls: int
    """Requests, retries and re-asks not counted."""

    input_tokens: int
    """Prompt tokens, schemas included."""

    output_tokens: int
    """Completion tokens, without those of a model that thinks aloud."""

    cost_usd: float | None
    """In US dollars; None where the price of the model is not known."""


async def aestimate(
    records: Sequence[RagRecord],
    judge: OpenAIJudge,
    *,
    claims_per_sentence: float = CLAIMS_PER_SENTENCE,
    progress: bool | None = None,
) -> Estimate:
    """What evaluating the records with this judge will cost.

    Every record goes through the judge as it will, with replies made up in place of the model's,
    so that calls and prompts are the ones that will be made. What several records share is asked
    once; so estimates of some records do not add up to the estimate of all. What cannot be known
    is how finely the model takes texts apart.

    Args:
        records: What is to be evaluated.
        judge: Whom it is to be evaluated by; it sends nothing.
        claims_per_sentence: Claims that the model is expected to find in a sentence.
        progress: As in ``evaluate_many``.

    Raises:
        ConfigError: ``claims_per_sentence`` is not positive.
        MissingExtraError: ``progress=True`` without rich.
    """
    if not claims_per_sentence > 0:
        raise ConfigError(f"claims_per_sentence is {claims_per_sentence!r}: give more than 0")
    rehearsed = judge.with_chat_model(_Rehearsal(claims_per_sentence))
    total = Usage()
    with progress_bar("estimating", total=len(records), show=progress) as advance:
        for record in records:
            total += (await aevaluate(record, judge=rehearsed)).usage
            advance()
    price = judge.price
    return Estimate(
        records=len(records),
        calls=total.calls,
        input_tokens=total.input_tokens,
        output_tokens=total.output_tokens,
        cost_usd=price.of(total.input_tokens, total.output_tokens) if price else None,
    )


class _Rehearsal:
    """Answers as a model would in form, and counts what it is asked."""

    def __init__(self, claims_per_sentence: float) -> None:
        self._claims_per_sentence = claims_per_sentence
        self._owed = 0.0

    async def complete(self, prompt: Prompt) -> Completion:
        """A reply of the right form and length; counts both sides as usage."""
        asked: dict[str, dict[str, str]] = json.loads(prompt.user)
        if "sentences" in asked:
            reply = self._claims(asked["sentences"], thinks_aloud="notes" in str(prompt.schema))
        else:
            reply = _verdicts(asked["claims"], asked["references"])
        reply["call"] = str(asked["call"])
        content = json.dumps(reply, ensure_ascii=False, separators=(",", ":"))
        schema = json.dumps(dict(prompt.schema))
        sent = sum(count_tokens(text) for text in (*prompt.texts, schema))
        add_usage(Usage(calls=1, input_tokens=sent, output_tokens=count_tokens(content)))
        return Completion(content)

    def _claims(self, sentences: Mapping[str, str], *, thinks_aloud: bool) -> dict[str, JsonValue]:
        """So many claims a sentence, on average, each as long as the sentence."""
        claims: list[JsonValue] = []
        for number, sentence in sentences.items():
            self._owed += self._claims_per_sentence
            due = int(self._owed)
            self._owed -= due
            texts = [sentence, *(f"{sentence} ({i})" for i in range(1, due))][:due]
            for text in texts:
                claims.append({"sentence": int(number), "text": text})
        notes: dict[str, JsonValue] = {"notes": " ".join(sentences.values())}
        return {**(notes if thinks_aloud else {}), "claims": claims}


def _verdicts(claims: Mapping[str, str], references: Mapping[str, str]) -> dict[str, JsonValue]:
    labels: list[JsonValue] = [f"{each}:N" for each in references]
    return {"verdicts": [{"claim": each, "labels": labels} for each in claims]}
