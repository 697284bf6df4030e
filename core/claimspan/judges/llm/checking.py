"""Checks of claims by a language model: batches of cells, prompts, and verdicts from replies.

One batch is one call. What its reply leaves out is requested a second time, and then undecided.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from math import ceil
from typing import Final, NamedTuple

from claimspan.cost.usage import add_undecided
from claimspan.errors import JudgeError, RecordLimitError, ReplyError
from claimspan.judges.llm.completion import ChatModel, Completion, Prompt
from claimspan.judges.llm.encoding import call_id, claim_ids, encode, reference_ids
from claimspan.judges.llm.logprobs import LABEL_ONLY, graded_verdicts
from claimspan.judges.llm.prompts import CHECK
from claimspan.judges.llm.replies import (
    VerdictsReply,
    exact_verdicts_schema,
    read_reply,
    verdicts_schema,
)
from claimspan.judges.protocol import Cell
from claimspan.text.tokens import token_upper_bound
from claimspan.verdicts import Verdict

__all__ = ["CheckBatch", "ReplyFormat", "check_batch", "plan_batches"]

MAX_CELLS: Final = 600
"""Cells in one call: their labels take about 2,000 tokens, which common models can still write."""

MAX_REFERENCE_TOKENS: Final = 12_000
"""Tokens of the references in one call; models overlook the middle of longer prompts."""

_LABELLED: Final = re.compile(r"(\d+):([ENC])")
_MISSING: Final = "the reply leaves verdicts out, or gives them twice"


class ReplyFormat(NamedTuple):
    """What the reply to a check has to contain."""

    logprobs: bool
    """Log probabilities, for graded verdicts."""

    exact_schema: bool
    """Every id of the call in its place, by the JSON schema."""


class CheckBatch(NamedTuple):
    """The texts of one call by their index in the whole matrix, and the cells to decide."""

    claims: Mapping[int, str]
    references: Mapping[int, str]
    cells: frozenset[Cell]

    def restricted_to(self, cells: Collection[Cell]) -> CheckBatch:
        """The batch for some of its cells, with the texts of those cells alone."""
        rows, columns = {i for i, _ in cells}, {j for _, j in cells}
        return CheckBatch(
            {i: text for i, text in self.claims.items() if i in rows},
            {j: text for j, text in self.references.items() if j in columns},
            frozenset(cells),
        )


def plan_batches(
    claims: Sequence[str],
    references: Sequence[str],
    cells: Collection[Cell],
    *,
    references_per_call: int | None,
) -> list[CheckBatch]:
    """Distributes cells over calls: references in their order, each with all of its claims.

    Args:
        claims: Every claim of the matrix.
        references: Every reference of the matrix.
        cells: The cells to decide.
        references_per_call: Most references in one call; None for as many as fit.

    Returns:
        Batches that together hold every cell once.
    """
    wanted = sorted({j for _, j in cells})
    batches: list[CheckBatch] = []
    for columns in _groups(wanted, references, references_per_call):
        rows = sorted({i for i, j in cells if j in columns})
        for some in _evenly(rows, MAX_CELLS // len(columns) or 1):
            inside = frozenset((i, j) for i, j in cells if i in some and j in columns)
            texts = {i: claims[i] for i in some}
            batches.append(CheckBatch(texts, {j: references[j] for j in columns}, inside))
    return batches


def _groups(
    wanted: Sequence[int], references: Sequence[str], limit: int | None
) -> list[Sequence[int]]:
    """Indices of the references of each call, in groups of about the same size."""
    by_number = _evenly(wanted, limit or max(len(wanted), 1))
    return [part for group in by_number for part in _within_tokens(group, references)]


def _within_tokens(indices: Sequence[int], references: Sequence[str]) -> list[Sequence[int]]:
    """Splits a group at the token limit; a reference beyond the limit is a part of its own."""
    parts: list[list[int]] = []
    room = 0.0
    for j in indices:
        # A third of the bytes is no less than the tokens in any script; counting is far slower.
        tokens = token_upper_bound(references[j]) / 3
        if not parts or tokens > room:
            parts.append([])
            room = MAX_REFERENCE_TOKENS
        parts[-1].append(j)
        room -= tokens
    return [*parts]


def _evenly(indices: Sequence[int], limit: int) -> list[Sequence[int]]:
    """Splits into groups of at most ``limit`` whose sizes differ by one at most."""
    if not indices:
        return []
    groups = ceil(len(indices) / limit)
    size, extra = divmod(len(indices), groups)
    cuts = [k * size + min(k, extra) for k in range(groups + 1)]
    return [indices[start:end] for start, end in pairwise(cuts)]


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
    call = call_id()
    claims = dict(zip(claim_ids(len(batch.claims)), batch.claims, strict=True))
    references = dict(zip(reference_ids(len(batch.references)), batch.references, strict=True))
    prompt = Prompt(
        system=CHECK,
        user=encode(
            {
                "question": question,
                "references": {each: batch.references[j] for each, j in references.items()},
                "claims": {each: batch.claims[i] for each, i in claims.items()},
                "call": call,
            }
        ),
        schema_name="verdicts",
        schema=(
            exact_verdicts_schema(call, list(claims), list(references))
            if reply_format.exact_schema
            else verdicts_schema()
        ),
        # A tokenizer that splits every digit takes 8 tokens for `"12:E",`.
        max_tokens=64 + len(claims) * (32 + 8 * len(references)),
        logprobs=reply_format.logprobs,
    )
    completion = await model.complete(prompt)
    found = _read(completion, call, claims, references)
    return {cell: found[cell] for cell in found.keys() & batch.cells}


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
