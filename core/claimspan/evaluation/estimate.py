"""Estimates what an evaluation will cost, before anything is spent.

The estimate is a rehearsal: records go through the real judge, whose model is replaced by one that
makes up replies. So the calls and prompts counted are the ones that the evaluation will make.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict, JsonValue

from claimspan.cost.usage import Usage
from claimspan.errors import ConfigError
from claimspan.evaluation.evaluate import aevaluate
from claimspan.judges.llm.chat import ChatReply, ChatRequest
from claimspan.judges.llm.judge import ModelJudge
from claimspan.progress import progress_bar
from claimspan.records import RagRecord
from claimspan.text.tokens import count_tokens

__all__ = ["Estimate", "aestimate"]

CLAIMS_PER_SENTENCE: Final = 1.0
"""Default; models that split sentences finely find up to 2 or 3."""


class Estimate(BaseModel):
    """Expected cost of evaluating some records with an empty cache."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    records: int
    """Number of records."""

    calls: int
    """Requests to the model, without retries."""

    input_tokens: int
    """Prompt tokens, including the schemas of the replies."""

    output_tokens: int
    """Completion tokens, without the reasoning of a model that reasons before it replies."""

    cost_usd: float | None
    """Price in US dollars; None where the price of the model is not known."""


async def aestimate(
    records: Sequence[RagRecord],
    judge: ModelJudge,
    *,
    claims_per_sentence: float = CLAIMS_PER_SENTENCE,
    progress: bool | None = None,
) -> Estimate:
    """Estimate what evaluating the records with this judge will cost.

    A question that several records share is asked once, so the estimates of parts do not add up to
    the estimate of the whole. The one unknown is how many claims the model will find in a sentence.

    Args:
        records: The records to evaluate.
        judge: The judge to evaluate them with; it sends nothing.
        claims_per_sentence: Claims that the model is expected to find in a sentence.
        progress: As in ``evaluate_many``.

    Returns:
        The expected calls, tokens and price.

    Raises:
        ConfigError: ``claims_per_sentence`` is not positive.
        MissingExtraError: ``progress=True`` without rich.
    """
    if not claims_per_sentence > 0:
        raise ConfigError(f"claims_per_sentence is {claims_per_sentence!r}: give more than 0")
    rehearsed = judge.with_chat_model(_Rehearsal(judge.model, claims_per_sentence))
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
    """Stands in for a model: makes up replies of the right form, and counts tokens."""

    def __init__(self, model: str, claims_per_sentence: float) -> None:
        self.model: Final = model
        self._claims_per_sentence = claims_per_sentence
        # Carried from sentence to sentence, so that 1.5 claims a sentence are 3 in two.
        self._claims_due = 0.0

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Make up a reply of the right form and length, with the tokens of prompt and reply."""
        asked: dict[str, dict[str, str]] = json.loads(request.messages[-1]["content"])
        if "sentences" in asked:
            at_most = asked.get("at_most")
            reply = self._claims(
                asked["sentences"],
                at_most if isinstance(at_most, int) else None,
                has_notes="notes" in str(request.schema),
            )
        else:
            # The passages of a check may have one more label, for all of them together.
            together = asked.get("together")
            labelled = [*asked["references"], *([] if together is None else [str(together)])]
            reply = _verdicts(asked["claims"], labelled)
        # A reply counts only with the id of its call.
        reply["call"] = str(asked["call"])
        content = json.dumps(reply, ensure_ascii=False, separators=(",", ":"))
        schema = "" if request.schema is None else json.dumps(dict(request.schema))
        sent = sum(count_tokens(each["content"]) for each in request.messages) + count_tokens(
            schema
        )
        return ChatReply(content, None, sent, count_tokens(content))

    def _claims(
        self, sentences: Mapping[str, str], at_most: int | None, *, has_notes: bool
    ) -> dict[str, JsonValue]:
        """Make up the expected number of claims, each as long as its sentence."""
        claims: list[JsonValue] = []
        for number, sentence in sentences.items():
            self._claims_due += self._claims_per_sentence
            due = int(self._claims_due)
            self._claims_due -= due
            texts = [sentence, *(f"{sentence} ({i})" for i in range(1, due))][:due]
            for text in texts:
                claims.append({"sentence": int(number), "text": text})
        notes: dict[str, JsonValue] = {"notes": " ".join(sentences.values())}
        return {**(notes if has_notes else {}), "claims": claims[:at_most]}


def _verdicts(claims: Mapping[str, str], labelled: Sequence[str]) -> dict[str, JsonValue]:
    # Every label is one letter, so which one makes no difference to the tokens.
    labels: list[JsonValue] = [f"{each}:N" for each in labelled]
    return {"verdicts": [{"claim": each, "labels": labels} for each in claims]}
