"""Checks of claims by a language model: what is known already, calls, prompts, and verdicts.

One batch is one call. What its reply leaves out is requested a second time, and then undecided. A
batch that does not fit into the model's window is asked in halves.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from pydantic import JsonValue

from claimspan.concurrency import gather_or_cancel
from claimspan.cost.usage import add_undecided
from claimspan.errors import JudgeError, RecordLimitError, ReplyError
from claimspan.judges.llm.batches import (
    MAX_NEAR,
    MAX_REFERENCE_TOKENS,
    CheckBatch,
    Context,
    joint_batches,
    plan_batches,
)
from claimspan.judges.llm.chat import ChatReply, Prompt
from claimspan.judges.llm.encoding import Ids, encode
from claimspan.judges.llm.endpoint import Endpoint
from claimspan.judges.llm.logprobs import LABEL_ONLY, graded_verdicts
from claimspan.judges.llm.prompts import CHECK, CHECK_TOGETHER, TOGETHER, informed
from claimspan.judges.llm.refusals import TooLongError
from claimspan.judges.llm.replies import (
    VerdictsReply,
    exact_verdicts_schema,
    read_reply,
    verdicts_schema,
)
from claimspan.judges.protocol import Cell
from claimspan.judges.values import telling_values
from claimspan.judges.verdict_cache import VerdictCache, content_key, joint_key
from claimspan.verdicts import Claim, Label, Verdict

__all__ = ["Checker"]

_LABELLED: Final = re.compile(r"\W{0,9}(\d+)\W{0,9}[:=]\W{0,9}([A-Za-z]+)\W{0,9}")
_SPELLED: Final = {
    **{letter: letter for letter in LABEL_ONLY},
    **dict.fromkeys(("ENTAILED", "ENTAILMENT", "ENTAILS"), "E"),
    **dict.fromkeys(("MOSTLY",), "M"),
    **dict.fromkeys(("PARTLY", "PARTIAL", "PARTIALLY"), "P"),
    "NEUTRAL": "N",
    **dict.fromkeys(("CONTRADICTED", "CONTRADICTION", "CONTRADICTS"), "C"),
}
"""The ways in which models write a label."""

_MISSING: Final = "the reply leaves verdicts out, or gives them twice"
_EMPTY: Final = Verdict(label=Label.NEUTRAL, entailed=0.0, neutral=1.0, contradicted=0.0)
_NUMBER: Final = re.compile(r"\d+")


class Checker:
    """Decides cells of a matrix of claims against references, and remembers what it has decided."""

    def __init__(
        self,
        cache: VerdictCache,
        scope: str,
        *,
        references_per_call: int | None,
        logprobs: bool,
        instructions: str,
        exact_schema: bool,
        seed: int | None,
    ) -> None:
        # ``scope`` is what a verdict depends on beside the texts: model, prompts, address.
        self._cache = cache
        self._scope = scope
        self._references_per_call = references_per_call
        self._logprobs = logprobs
        self._instructions = instructions
        self._exact_schema = exact_schema
        self._seed = seed
        # Tokens of the references in one call: the most that fitted, and the most that may fit.
        self._fitted = 0.0
        self._max_tokens = float(MAX_REFERENCE_TOKENS)

    async def decide(
        self,
        endpoint: Endpoint,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        context: Context,
        question: str | None,
    ) -> dict[Cell, Verdict]:
        """Verdicts by cell, of those that could be decided; of the others the reason is reported.

        Raises:
            JudgeError: A call got no reply before it had decided any cell.
        """
        keys = _cell_keys(claims, references, cells, context, scope=(self._scope, question))
        known = self._cache.verdicts(list(set(keys.values())))
        free = _free_verdicts(claims, references, keys, context, question)
        known |= {keys[cell]: verdict for cell, verdict in free.items()}
        texts = [claim.text for claim in claims]
        asking = _Asking(self, endpoint, keys, question)
        known |= await asking.all(
            plan_batches(
                texts,
                references,
                _unknown_cells(keys, known),
                references_per_call=self._references_per_call,
                context=context,
                max_tokens=self._max_tokens,
            )
        )
        found = {cell: known[key] for cell, key in keys.items() if key in known}
        most = MAX_NEAR
        while left := joint_batches(
            texts,
            references,
            _unknown_cells(keys, known),
            asking.answered,
            context=context,
            verdicts=found,
            max_near=most,
            max_tokens=self._max_tokens,
        ):
            try:
                known |= await asking.all(left, splits=False)
            except JudgeError as error:  # the verdicts on each reference alone are paid for
                most = min(most, max(len(batch.references) for batch in left)) // 2
                if most == 0 or not isinstance(error, TooLongError):
                    add_undecided(str(error), sum(len(batch.cells) for batch in left))
                    break
        if asking.too_long is not None and not known:
            raise asking.too_long
        return {cell: known[key] for cell, key in keys.items() if key in known}

    def note(self, tokens: float, *, fits: bool) -> None:
        """Remembers whether references of so many tokens fit into a call."""
        if fits:
            self._fitted = max(self._fitted, tokens)
        elif tokens > self._fitted:
            self._max_tokens = min(self._max_tokens, max(self._fitted, tokens / 2))

    def prompt(self, batch: CheckBatch, ids: _Ids, question: str | None) -> Prompt:
        """The prompt of one call."""
        exact = exact_verdicts_schema(ids.call, list(ids.claims), list(ids.columns))
        return Prompt(
            system=informed(_system_prompt(batch), self._instructions),
            user=encode(_material(batch, ids, question)),
            schema_name="verdicts",
            schema=exact if self._exact_schema else verdicts_schema(),
            plain_schema=verdicts_schema(),
            # A tokenizer that splits every digit takes 8 tokens for `"12:E",`.
            max_tokens=64 + len(ids.claims) * (32 + 8 * len(ids.columns)),
            logprobs=self._logprobs,
        )

    def draw_ids(self, batch: CheckBatch, question: str | None, attempt: int) -> _Ids:
        """The ids of one call; a second attempt has others, so that its reply is another."""
        columns = [] if batch.is_joint_only else [*batch.references]
        if batch.is_joint:
            columns.append(batch.context.column)
        content = (str(attempt), question or "", *batch.claims.values(), *batch.references.values())
        ids = Ids(self._seed, *content)
        return _Ids(
            ids.call(),
            dict(zip(ids.claims(len(batch.claims)), batch.claims, strict=True)),
            dict(zip(ids.references(len(columns)), columns, strict=True)),
        )

    def cache(self, verdicts: Mapping[str, Verdict]) -> None:
        """Caches verdicts by key."""
        self._cache.add_verdicts(verdicts)


class _Ids(NamedTuple):
    """The ids of one call."""

    call: str
    claims: Mapping[str, int]
    """To the rows of the matrix."""

    columns: Mapping[str, int]
    """To the columns of the matrix; that of the context comes last."""


class _Asking:
    """The calls of one ``Checker.decide``."""

    def __init__(
        self, checker: Checker, endpoint: Endpoint, keys: Mapping[Cell, str], question: str | None
    ) -> None:
        self.answered: set[Cell] = set()
        """Cells that a model was asked about; what its replies left out stays undecided."""
        self.too_long: TooLongError | None = None
        self._checker = checker
        self._endpoint = endpoint
        self._keys = keys
        self._question = question

    async def all(
        self, batches: Sequence[CheckBatch], *, splits: bool = True
    ) -> dict[str, Verdict]:
        """The verdicts of some batches by key."""
        found = await gather_or_cancel([self._batch(each, splits) for each in batches])
        return {key: verdict for each in found for key, verdict in each.items()}

    async def _batch(self, batch: CheckBatch, splits: bool) -> dict[str, Verdict]:
        """The verdicts of one batch, cached at once: another batch that fails loses none."""
        try:
            found = await self._decided(batch)
        except TooLongError as error:
            self._checker.note(batch.reference_tokens, fits=False)
            if not splits:
                raise
            halves = batch.halves()
            if not halves:
                self.too_long = error
                self.answered |= batch.cells
                add_undecided(str(error), len(batch.cells))
            return await self.all(halves)
        if found:
            self._checker.note(batch.reference_tokens, fits=True)
        self.answered |= batch.cells
        verdicts = {self._keys[cell]: verdict for cell, verdict in found.items()}
        self._checker.cache(verdicts)
        return verdicts

    async def _decided(self, batch: CheckBatch) -> dict[Cell, Verdict]:
        """Verdicts by cell; cells that the first reply lacks go into a second call.

        Raises:
            TooLongError: The texts do not fit.
            JudgeError: No reply came before any cell was decided.
        """
        try:
            found, _ = await self._ask(batch, attempt=1)
        except RecordLimitError as error:
            # A cap and no failure: what other calls of the record have decided stands.
            add_undecided(str(error), len(batch.cells))
            return {}
        missing = batch.cells - found.keys()
        if missing:
            try:
                again, reason = await self._ask(batch.restricted_to(missing), attempt=2)
            except JudgeError as error:
                if not found and not isinstance(error, RecordLimitError):
                    raise
                again, reason = {}, str(error)  # the verdicts of the first reply are paid for
            found |= {cell: again[cell] for cell in missing & again.keys()}
            undecided = len(batch.cells - found.keys())
            if undecided:
                add_undecided(reason, undecided)
        return found

    async def _ask(self, batch: CheckBatch, attempt: int) -> tuple[dict[Cell, Verdict], str]:
        """The verdicts of one reply, and the reason why the other cells have none."""
        ids = self._checker.draw_ids(batch, self._question, attempt)
        prompt = self._checker.prompt(batch, ids, self._question)
        try:
            found = await self._endpoint.ask(prompt, lambda reply: _read(reply, ids))
        except ReplyError as error:
            return {}, str(error)
        return {cell: found[cell] for cell in found.keys() & batch.cells}, _MISSING


def _read(reply: ChatReply, ids: _Ids) -> dict[Cell, Verdict]:
    """Verdicts by cell; a cell that the reply names twice has none."""
    read = read_reply(reply, VerdictsReply, ids.call)
    valid: list[tuple[str, str, str]] = []
    for row in read.verdicts:
        for label in row.labels:
            match = _LABELLED.fullmatch(label)
            letter = _SPELLED.get(match[2].upper()) if match else None
            if match and letter:
                valid.append((row.claim.strip(), match[1], letter))
    verdicts = [LABEL_ONLY[letter] for _, _, letter in valid]
    graded = graded_verdicts(reply.text, reply.tokens)
    if graded is None or [each.label for each in graded] != [each.label for each in verdicts]:
        graded = verdicts
    found: dict[Cell, Verdict] = {}
    twice: set[Cell] = set()
    for (claim, reference, _), verdict in zip(valid, graded, strict=True):
        if claim not in ids.claims or reference not in ids.columns:
            continue
        cell = ids.claims[claim], ids.columns[reference]
        if cell in found:
            twice.add(cell)
        found[cell] = verdict
    return {cell: verdict for cell, verdict in found.items() if cell not in twice}


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


# --- what is known before a model is asked -------------------------------------------------------


def _cell_keys(
    claims: Sequence[Claim],
    references: Sequence[str],
    cells: Collection[Cell],
    context: Context,
    *,
    scope: Sequence[str | None],
) -> dict[Cell, str]:
    """The cache key of each cell: scope, claim and reference, or all references of the context.

    The rank of a reference counts where the claim names it, as "passage 3 says" does. The verdict
    by a context of one text is that by the text.
    """
    about = content_key("verdict", *scope)
    rows = [content_key(claim.text) for claim in claims]
    columns = [content_key(text) for text in references]
    together = joint_key("context", *(columns[j] for j in context.ranks))
    keys: dict[Cell, str] = {}
    for i, j in sorted(cells):
        if j == context.column and len(context.distinct) != 1:
            keys[i, j] = joint_key(about, rows[i], together)
            continue
        single = context.distinct[0] if j == context.column else j
        rank = str(context.ranks.get(single, ""))
        named = rank if rank in _NUMBER.findall(claims[i].text) else ""
        keys[i, j] = joint_key(about, rows[i], columns[single], named)
    return keys


def _free_verdicts(
    claims: Sequence[Claim],
    references: Sequence[str],
    cells: Collection[Cell],
    context: Context,
    question: str | None,
) -> dict[Cell, Verdict]:
    """Verdicts that no model is asked for: by blank references, and by the value check."""
    single = [cell for cell in cells if cell[1] != context.column]
    joint = [cell for cell in cells if cell[1] == context.column]
    found = {(i, j): _EMPTY for i, j in single if not references[j].strip()}
    found |= telling_values(claims, references, single, question)
    if not context.distinct:
        return found | dict.fromkeys(joint, _EMPTY)
    return found | {
        cell: verdict for cell in joint if (verdict := _undisputed(found, cell[0], context))
    }


def _unknown_cells(keys: Mapping[Cell, str], known: Mapping[str, Verdict]) -> list[Cell]:
    """The cells to ask about: of those with equal texts, which share a key, the first one."""
    first: dict[str, Cell] = {}
    for cell, key in keys.items():
        if key not in known:
            first.setdefault(key, cell)
    return list(first.values())


def _undisputed(found: Mapping[Cell, Verdict], row: int, context: Context) -> Verdict | None:
    """The verdict of a value that a reference of the context gives, and none gives otherwise."""
    verdicts = [found[row, j] for j in context.distinct if (row, j) in found]
    labels = {verdict.label for verdict in verdicts}
    if Label.ENTAILED not in labels or Label.CONTRADICTED in labels:
        return None
    return next(verdict for verdict in verdicts if verdict.label is Label.ENTAILED)
