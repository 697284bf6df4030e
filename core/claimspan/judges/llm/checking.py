"""Checks of claims by a language model: prompts, and verdicts from replies.

One batch is one call. What its reply leaves out is requested a second time, and then undecided.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from pydantic import JsonValue

from claimspan.cost.usage import add_undecided
from claimspan.errors import JudgeError, RecordLimitError, ReplyError
from claimspan.judges.llm.batches import CheckBatch
from claimspan.judges.llm.completion import ChatModel, Completion, Prompt
from claimspan.judges.llm.encoding import call_id, claim_ids, encode, reference_ids
from claimspan.judges.llm.logprobs import LABEL_ONLY, graded_verdicts
from claimspan.judges.llm.prompts import CHECK, CHECK_TOGETHER, TOGETHER
from claimspan.judges.llm.replies import (
    VerdictsReply,
    exact_verdicts_schema,
    read_reply,
    verdicts_schema,
)
from claimspan.judges.protocol import Cell
from claimspan.verdicts import Verdict

__all__ = ["ReplyFormat", "check_batch"]

_LABELLED: Final = re.compile(r"(\d+):([ENC])")
_MISSING: Final = "the reply leaves verdicts out, or gives them twice"


class ReplyFormat(NamedTuple):
    """What the reply to a check has to contain."""

    logprobs: bool
    """Log probabilities, for graded verdicts."""

    exact_schema: bool
    """Every id of the call in its place, by the JSON schema."""


async def check_batch(
    model: ChatModel, batch: CheckBatch, *, question: str | None, reply_format: ReplyFormat
) -> dict[Cell, Verdict]:
    """Checks the cells of a batch; cells that the first reply lacks go into a second call.

    Args:
        model: The model to ask.
        batch: The texts and the cells to decide.
        question: The question behind the texts, where known.
        reply_format: What the reply has to contain.

    Returns:
        A verdict for every cell that was decided. The others are reported to ``add_undecided``
        with the reason.

    Raises:
        JudgeError: No reply came before any cell was decided.
    """
    try:
        found, _ = await _ask(model, batch, question, reply_format)
    except RecordLimitError as error:
        # A cap and no failure: what other calls of the record have decided stands.
        add_undecided(str(error), len(batch.cells))
        return {}
    missing = batch.cells - found.keys()
    if missing:
        try:
            again, reason = await _ask(model, batch.restricted_to(missing), question, reply_format)
        except JudgeError as error:
            if not found and not isinstance(error, RecordLimitError):
                raise
            again, reason = {}, str(error)  # the verdicts of the first reply are paid for
        found |= {cell: again[cell] for cell in missing & again.keys()}
        undecided = len(batch.cells - found.keys())
        if undecided:
            add_undecided(reason, undecided)
    return found


async def _ask(
    model: ChatModel, batch: CheckBatch, question: str | None, reply_format: ReplyFormat
) -> tuple[dict[Cell, Verdict], str]:
    """The verdicts of one reply, and the reason why the other cells have none."""
    try:
        return await _ask_once(model, batch, question, reply_format), _MISSING
    except ReplyError as error:
        return {}, str(error)


async def _ask_once(
    model: ChatModel, batch: CheckBatch, question: str | None, reply_format: ReplyFormat
) -> dict[Cell, Verdict]:
    ids = _Ids.of(batch)
    prompt = Prompt(
        system=_system_prompt(batch),
        user=encode(_material(batch, ids, question)),
        schema_name="verdicts",
        schema=(
            exact_verdicts_schema(ids.call, list(ids.claims), list(ids.columns))
            if reply_format.exact_schema
            else verdicts_schema()
        ),
        # A tokenizer that splits every digit takes 8 tokens for `"12:E",`.
        max_tokens=64 + len(ids.claims) * (32 + 8 * len(ids.columns)),
        logprobs=reply_format.logprobs,
    )
    completion = await model.complete(prompt)
    found = _read(completion, ids.call, ids.claims, ids.columns)
    return {cell: found[cell] for cell in found.keys() & batch.cells}


class _Ids(NamedTuple):
    """The random ids of one call."""

    call: str
    claims: Mapping[str, int]
    """To the rows of the matrix."""

    columns: Mapping[str, int]
    """To the columns of the matrix; that of the context comes last."""

    @classmethod
    def of(cls, batch: CheckBatch) -> _Ids:
        columns = [] if batch.is_joint_only else [*batch.references]
        if batch.is_joint:
            columns.append(batch.context.column)
        return cls(
            call_id(),
            dict(zip(claim_ids(len(batch.claims)), batch.claims, strict=True)),
            dict(zip(reference_ids(len(columns)), columns, strict=True)),
        )


def _system_prompt(batch: CheckBatch) -> str:
    if batch.is_joint_only:
        return TOGETHER
    return CHECK_TOGETHER if batch.is_joint else CHECK


def _material(batch: CheckBatch, ids: _Ids, question: str | None) -> dict[str, JsonValue]:
    """The user message: an answer may name a passage by its rank, which stands beside its text."""
    column = batch.context.column
    passages: dict[int, JsonValue] = {
        j: [batch.context.ranks[j], text] if j in batch.context.ranks else text
        for j, text in batch.references.items()
    }
    together = next((each for each, j in ids.columns.items() if j == column), None)
    references: dict[str, JsonValue] = {
        each: passages[j] for each, j in ids.columns.items() if j != column
    }
    if together is not None and not references:
        read_as_one: JsonValue = [*passages.values()]
        references = {together: read_as_one}
        together = None
    return {
        "question": question,
        "references": references,
        "together": together,
        "claims": {each: batch.claims[i] for each, i in ids.claims.items()},
        "call": ids.call,
    }


def _read(
    completion: Completion, call: str, claims: Mapping[str, int], references: Mapping[str, int]
) -> dict[Cell, Verdict]:
    """Verdicts by cell; a cell that the reply names twice has none."""
    reply = read_reply(completion.content, VerdictsReply, call)
    given = [
        (row.claim, _LABELLED.fullmatch(label)) for row in reply.verdicts for label in row.labels
    ]
    valid = [(claim, match[1], match[2]) for claim, match in given if match]
    verdicts = [LABEL_ONLY[letter] for _, _, letter in valid]
    graded = graded_verdicts(completion.content, completion.tokens)
    if graded is None or len(graded) != len(verdicts):
        graded = verdicts
    found: dict[Cell, Verdict] = {}
    twice: set[Cell] = set()
    for (claim, reference, _), verdict in zip(valid, graded, strict=True):
        if claim not in claims or reference not in references:
            continue
        cell = claims[claim], references[reference]
        if cell in found:
            twice.add(cell)
        found[cell] = verdict
    return {cell: verdict for cell, verdict in found.items() if cell not in twice}
