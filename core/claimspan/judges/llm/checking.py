"""Verdicts by a model: which cells go into which call, and what its reply says of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from math import ceil
from typing import Final, NamedTuple

from claimspan.cost.usage import add_undecided
from claimspan.errors import JudgeError, ReplyError
from claimspan.judges.llm.completion import Completer, Completion, Prompt
from claimspan.judges.llm.encoding import call_id, claim_ids, encode, reference_ids
from claimspan.judges.llm.logprobs import LABEL_ALONE, grades_of
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

__all__ = ["Pack", "Style", "check_pack", "packs_of"]

CELLS_A_CALL: Final = 600
"""More would not fit into the reply of common models: 600 take about 2,000 tokens."""

TOKENS_A_CALL: Final = 12_000
"""Reference tokens in one call; models lose the middle of longer prompts."""

_LABELLED: Final = re.compile(r"(\d+):([ENC])")
_MISSING: Final = "the reply leaves verdicts out, or gives them twice"


class Style(NamedTuple):
    """How a model is asked."""

    graded: bool
    exact: bool


class Pack(NamedTuple):
    """What one call asks: texts by their index in the whole matrix, and the cells that matter."""

    claims: Mapping[int, str]
    references: Mapping[int, str]
    cells: frozenset[Cell]

    def narrowed_to(self, cells: Collection[Cell]) -> Pack:
        """The same for some of the cells, without the texts that they do not need."""
        rows, columns = {i for i, _ in cells}, {j for _, j in cells}
        return Pack(
            {i: text for i, text in self.claims.items() if i in rows},
            {j: text for j, text in self.references.items() if j in columns},
            frozenset(cells),
        )


def packs_of(
    claims: Sequence[str],
    references: Sequence[str],
    cells: Collection[Cell],
    *,
    references_per_call: int | None,
) -> list[Pack]:
    """The calls for some cells: references packed in their order, with all claims of theirs.

    Args:
        claims: Every claim of the matrix.
        references: Every reference of the matrix.
        cells: What is wanted.
        references_per_call: None for as many as fit.
    """
    wanted = sorted({j for _, j in cells})
    packs: list[Pack] = []
    for columns in _groups(wanted, references, references_per_call):
        rows = sorted({i for i, j in cells if j in columns})
        for some in _evenly(rows, CELLS_A_CALL // len(columns) or 1):
            inside = frozenset((i, j) for i, j in cells if i in some and j in columns)
            texts = {i: claims[i] for i in some}
            packs.append(Pack(texts, {j: references[j] for j in columns}, inside))
    return packs


def _groups(
    wanted: Sequence[int], references: Sequence[str], limit: int | None
) -> list[Sequence[int]]:
    """Indices of references call by call, as even in number as the limits allow."""
    by_number = _evenly(wanted, limit or max(len(wanted), 1))
    return [part for group in by_number for part in _within_tokens(group, references)]


def _within_tokens(indices: Sequence[int], references: Sequence[str]) -> list[Sequence[int]]:
    """The same in parts that a call can hold; what is larger by itself is a part by itself."""
    parts: list[list[int]] = []
    room = 0.0
    for j in indices:
        # A third of the bytes: enough in every script, and many times cheaper than to count.
        tokens = token_upper_bound(references[j]) / 3
        if not parts or tokens > room:
            parts.append([])
            room = TOKENS_A_CALL
        parts[-1].append(j)
        room -= tokens
    return [*parts]


def _evenly(indices: Sequence[int], limit: int) -> list[Sequence[int]]:
    """Groups of at most ``limit``, none much smaller than the others."""
    if not indices:
        return []
    groups = ceil(len(indices) / limit)
    size, extra = divmod(len(indices), groups)
    cuts = [k * size + min(k, extra) for k in range(groups + 1)]
    return [indices[start:end] for start, end in pairwise(cuts)]


async def check_pack(
    completer: Completer, pack: Pack, *, question: str | None, style: Style
) -> dict[Cell, Verdict]:
    """Verdicts on the cells of a pack; what the first reply lacks is asked for once more.

    Returns:
        A verdict for every cell that was decided. Those that were not, not even when asked again,
        are counted with their reason.

    Raises:
        JudgeError: No reply came before anything was decided.
    """
    found, _ = await _ask(completer, pack, question, style)
    missing = pack.cells - found.keys()
    if missing:
        try:
            again, reason = await _ask(completer, pack.narrowed_to(missing), question, style)
        except JudgeError as error:
            if not found:
                raise
            again, reason = {}, str(error)  # what was paid for stays
        found |= {cell: again[cell] for cell in missing & again.keys()}
        undecided = len(pack.cells - found.keys())
        if undecided:
            add_undecided(reason, undecided)
    return found


async def _ask(
    completer: Completer, pack: Pack, question: str | None, style: Style
) -> tuple[dict[Cell, Verdict], str]:
    """What one reply decides, and why it does not decide the rest."""
    try:
        return await _ask_once(completer, pack, question, style), _MISSING
    except ReplyError as error:
        return {}, str(error)


async def _ask_once(
    completer: Completer, pack: Pack, question: str | None, style: Style
) -> dict[Cell, Verdict]:
    call = call_id()
    claims = dict(zip(claim_ids(len(pack.claims)), pack.claims, strict=True))
    references = dict(zip(reference_ids(len(pack.references)), pack.references, strict=True))
    prompt = Prompt(
        system=CHECK,
        user=encode(
            {
                "question": question,
                "references": {each: pack.references[j] for each, j in references.items()},
                "claims": {each: pack.claims[i] for each, i in claims.items()},
                "call": call,
            }
        ),
        schema_name="verdicts",
        schema=(
            exact_verdicts_schema(call, list(claims), list(references))
            if style.exact
            else verdicts_schema()
        ),
        # A tokenizer that cuts every digit takes 8 tokens for `"12:E",`.
        max_tokens=64 + len(claims) * (32 + 8 * len(references)),
        graded=style.graded,
    )
    completion = await completer.complete(prompt)
    found = _read(completion, call, claims, references)
    return {cell: found[cell] for cell in found.keys() & pack.cells}


def _read(
    completion: Completion, call: str, claims: Mapping[str, int], references: Mapping[str, int]
) -> dict[Cell, Verdict]:
    """Verdicts by id. What is given twice with different labels is not given at all."""
    reply = read_reply(completion.content, VerdictsReply, call)
    given = [
        (row.claim, _LABELLED.fullmatch(label)) for row in reply.verdicts for label in row.labels
    ]
    valid = [(claim, match[1], match[2]) for claim, match in given if match]
    verdicts = [LABEL_ALONE[letter] for _, _, letter in valid]
    grades = grades_of(completion.content, completion.tokens) or verdicts
    if len(grades) != len(verdicts):
        grades = verdicts
    found: dict[Cell, Verdict] = {}
    twice: set[Cell] = set()
    for (claim, reference, _), verdict in zip(valid, grades, strict=True):
        if claim not in claims or reference not in references:
            continue
        cell = claims[claim], references[reference]
        if cell in found:
            twice.add(cell)
        found[cell] = verdict
    return {cell: verdict for cell, verdict in found.items() if cell not in twice}
