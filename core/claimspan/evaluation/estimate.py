"""Estimates what an evaluation will cost, before anything is spent.

The estimate is a rehearsal: records go through the real judge, whose model is replaced by one that
makes up replies. So the calls and prompts counted are the ones that the evaluation will make.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict, JsonValue

from claimspan.cost.pricing import Price
from claimspan.cost.usage import Usage
from claimspan.errors import ConfigError
from claimspan.evaluation.evaluate import aevaluate, judge_for
from claimspan.evaluation.selection import MetricsLike, Selection
from claimspan.judges.calibrated import CalibratedJudge
from claimspan.judges.lexical.judge import LexicalJudge
from claimspan.judges.llm.chat import ChatReply, ChatRequest, Traits
from claimspan.judges.llm.judge import ModelJudge
from claimspan.judges.llm.prompts import CANNOT_TELL
from claimspan.judges.local.judge import LocalJudge
from claimspan.judges.protocol import Judge
from claimspan.progress import progress_bar
from claimspan.records import RagRecord
from claimspan.text.tokens import count_tokens

__all__ = ["REASONING_TOKENS_PER_CALL", "Estimate", "aestimate"]

REASON: Final = (
    "The answer names the opening hours that the question asks for, and says in its second "
    "sentence how to book a visit, which is not asked."
)
"""A reason of a usual length: models write one sentence more often than two."""

REASONING_TOKENS_PER_CALL: Final = 2_000
"""Completion tokens that a model which reasons is taken to use in a call, at the upper end.

An assumption, and no measurement: models use from some hundreds of tokens to tens of thousands,
and the questions of a judge are among the easy ones."""


class Estimate(BaseModel):
    """Expected cost of evaluating some records with an empty cache.

    For a model that reasons before it replies, completion tokens and price are a range: from the
    replies alone to the replies with ``REASONING_TOKENS_PER_CALL`` in each call, or as many as the
    judge allows, if that is less. For others both ends are the same.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    records: int
    calls: int
    """Requests to the model, without retries."""

    input_tokens: int
    """Prompt tokens, including the schemas of the replies."""

    output_tokens: int
    """Completion tokens of the replies alone."""

    output_tokens_with_reasoning: int
    """Completion tokens with those of reasoning."""

    max_reasoning_tokens_per_call: int
    """Completion tokens that reasoning can take in any call; 0 for a model that does not reason."""

    cost_usd: float | None
    """Price of the replies alone in US dollars; None if the price of the model is not known."""

    cost_usd_with_reasoning: float | None
    """Price with reasoning in US dollars; None if the price of the model is not known."""


async def aestimate(
    records: Sequence[RagRecord],
    judge: Judge,
    metrics: MetricsLike | Selection | None = None,
    *,
    progress: bool | None = None,
) -> Estimate:
    """Estimate what evaluating the records with this judge will cost.

    A question that several records share is asked once, so the estimates of parts do not add up to
    the estimate of the whole. A sentence is taken for one claim: models that split finely find up
    to 2 or 3.

    Args:
        records: The records to evaluate.
        judge: The judge to evaluate them with; it sends nothing. ``LexicalJudge`` and
            ``LocalJudge`` make no call.
        metrics: The metrics to measure, as in ``aevaluate``: others cost nothing.
        progress: As in ``evaluate_many``.

    Returns:
        The expected calls, tokens and price.

    Raises:
        ConfigError: The cost of such a judge is not known, or it cannot judge by the criteria.
        MissingExtraError: ``progress=True`` without rich.
    """
    selection = Selection.of(metrics).in_judge
    judge = judge_for(selection, judge)
    judge = judge.judge if isinstance(judge, CalibratedJudge) else judge
    if isinstance(judge, LexicalJudge | LocalJudge):
        return _estimate(len(records), Usage(), Price(input=0.0, output=0.0), None)
    if not isinstance(judge, ModelJudge):
        raise ConfigError(
            f"what the judge {judge.name!r} costs is not known: estimate the model that it asks, "
            "as openai:MODEL or as a ModelJudge"
        )
    rehearsed = judge.with_chat_model(_Rehearsal(judge.model, judge.chat_model.traits))
    total = Usage()
    with progress_bar("estimating", total=len(records), show=progress) as advance:
        for record in records:
            total += (await aevaluate(record, judge=rehearsed, metrics=selection)).usage
            advance()
    return _estimate(len(records), total, judge.price, judge)


def _estimate(records: int, used: Usage, price: Price | None, judge: ModelJudge | None) -> Estimate:
    most = judge.chat_model.dialect.reasoning_tokens if judge is not None and judge.reasons else 0
    with_reasoning = used.output_tokens + used.calls * min(REASONING_TOKENS_PER_CALL, most)
    low, high = (
        None if price is None else price.of(used.input_tokens, tokens)
        for tokens in (used.output_tokens, with_reasoning)
    )
    return Estimate(
        records=records,
        calls=used.calls,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        output_tokens_with_reasoning=with_reasoning,
        max_reasoning_tokens_per_call=most,
        cost_usd=low,
        cost_usd_with_reasoning=high,
    )


class _Rehearsal:
    """Stands in for a model: makes up replies of the right form, and counts tokens."""

    def __init__(self, model: str, traits: Traits) -> None:
        self.model: Final = model
        # It is asked as the model is.
        self.forms: Final = traits.forms
        self.limit_field: Final = traits.limit_field

    async def complete(self, request: ChatRequest) -> ChatReply:
        asked: dict[str, dict[str, str]] = json.loads(request.messages[-1]["content"])
        reply: dict[str, JsonValue] = {}
        if "sentences" in asked:
            # One claim a sentence, as long as it.
            sentences, at_most = asked["sentences"], asked.get("at_most")
            claims: list[JsonValue] = [
                {"sentence": int(n), "text": text} for n, text in sentences.items()
            ]
            if '"notes"' in request.messages[0]["content"]:
                reply["notes"] = " ".join(sentences.values())
            reply["claims"] = claims[:at_most] if isinstance(at_most, int) else claims
        elif "criteria" in asked:
            # A grade of any scale has a token or two.
            grade: dict[str, JsonValue] = {"reason": REASON, "grade": CANNOT_TELL}
            reply["grades"] = [{"criterion": each, **grade} for each in asked["criteria"]]
        else:
            # The passages of a check may have one more label, for all of them together. Every label
            # is one letter, so which one makes no difference to the tokens.
            together = asked.get("together")
            labelled = [*asked["references"], *([] if together is None else [str(together)])]
            labels: list[JsonValue] = [f"{each}:N" for each in labelled]
            reply["verdicts"] = [{"claim": each, "labels": labels} for each in asked["claims"]]
        # A reply counts only with the id of its call.
        reply["call"] = str(asked["call"])
        content = json.dumps(reply, ensure_ascii=False, separators=(",", ":"))
        # In a field of its own, or else in the messages.
        is_field = "json_schema" in str(request.parameters.get("response_format"))
        schema = json.dumps(dict(request.schema)) if is_field and request.schema else ""
        sent = sum(count_tokens(each["content"]) for each in request.messages) + count_tokens(
            schema
        )
        return ChatReply(content, None, sent, count_tokens(content))
