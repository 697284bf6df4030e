"""Checks of claims by a language model: known verdicts, calls, prompts, and replies.

One batch is one call. What its reply leaves out is requested a second time, and then undecided. A
batch that does not fit into the model's window is asked in halves.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from math import ceil
from operator import itemgetter
from typing import Final, NamedTuple

from pydantic import JsonValue

from claimspan.concurrency import gather_or_cancel
from claimspan.cost.usage import add_undecided
from claimspan.errors import JudgeError
from claimspan.judges.llm.chat import ChatReply, Prompt, Settings, Token
from claimspan.judges.llm.endpoint import Endpoint, asked_twice
from claimspan.judges.llm.prompts import CHECK, CHECK_TOGETHER, TOGETHER, Ids, encode, informed
from claimspan.judges.llm.refusals import TooLongError
from claimspan.judges.llm.replies import (
    VerdictsReply,
    exact_verdicts_schema,
    read_reply,
    verdicts_schema,
)
from claimspan.judges.protocol import Cell
from claimspan.judges.verdict_cache import VerdictCache, content_key, joint_key
from claimspan.quantities import telling_values
from claimspan.text.tokens import token_upper_bound
from claimspan.verdicts import Claim, Label, Verdict

__all__ = ["Checker", "Context", "Token", "graded_verdict", "graded_verdicts"]


# --- graded verdicts ------------------------------------------------------------------------------

_LABELS: Final[Mapping[str, tuple[Label, tuple[float, float, float]]]] = {
    "E": (Label.ENTAILED, (1.0, 0.0, 0.0)),
    "M": (Label.ENTAILED, (0.75, 0.25, 0.0)),
    "P": (Label.NEUTRAL, (0.4, 0.6, 0.0)),
    "N": (Label.NEUTRAL, (0.0, 1.0, 0.0)),
    "C": (Label.CONTRADICTED, (0.0, 0.0, 1.0)),
}
"""Spelling of each label in a reply, with what it says of entailed, neutral and contradicted; see
"The prompts of the strong judge" in ``docs/benchmarks.md``. A single letter is one token with every
tokenizer. ``M``, for the most part, counts as entailed, since people take a small word too many for
no difference; ``P``, in part, as neutral."""


def _graded(letter: str, shares: Sequence[float]) -> Verdict:
    entailed, neutral, contradicted = shares
    return Verdict(
        label=_LABELS[letter][0], entailed=entailed, neutral=neutral, contradicted=contradicted
    )


_LABEL_ONLY: Final = {
    letter: Verdict(label=label) if letter in "ENC" else _graded(letter, weights)
    for letter, (label, weights) in _LABELS.items()
}
"""Verdicts from replies without log probabilities: ``M`` and ``P`` have those of their weights."""

_UNSEEN: Final = 0.02
"""Largest error of a probability from labels that the endpoint does not list: two per cent."""

_LABEL_IN_JSON: Final = re.compile(r'"(\d+) ?: ?([EMPNC])"')
_LETTERS_ONLY: Final = re.compile(r"[^A-Za-z]+")
_SPELLINGS: Final = (
    *("entailed", "entailment", "neutral", "contradicted", "contradiction"),
    *("mostly", "partly", "partially"),
)


def graded_verdict(token: Token, letter: str) -> Verdict:
    """The verdict of one label token, with probabilities if they can be told.

    Adds up the probabilities of all alternatives that spell a label, each with the weights of its
    label, and normalises them. The verdict is that of the letter alone if another letter is
    likelier than the one in the reply, if a letter that is not listed could weigh more than
    ``_UNSEEN`` of those that are, or if the endpoint gave something else than numbers.
    """
    found = dict.fromkeys(_LABELS, 0.0)
    for text, logprob in token.alternatives.items():
        meant = _letter_of(text)
        if meant is not None:
            found[meant] += _probability(logprob)
    total = sum(found.values())
    unseen = 0.0
    if 0.0 in found.values():  # a token that is not listed is no likelier than the least that is
        listed = token.top_logprobs
        unseen = _probability(min(listed.values())) if listed else 1 - _probability(token.logprob)
    is_ahead = total > 0.0 and found[letter] == max(found.values())
    if not (is_ahead and unseen <= _UNSEEN * total):  # no comparison with NaN holds
        return _LABEL_ONLY[letter]
    shares = [
        math.fsum(found[each] * weights[i] for each, (_, weights) in _LABELS.items()) / total
        for i in range(3)
    ]
    graded = _graded(letter, shares)
    # Two grades on either side may outweigh the letter between them: then it stands by itself.
    return graded if graded.confidence == max(shares) else _LABEL_ONLY[letter]


def _probability(logprob: float) -> float:
    """The probability, limited to 1 since some endpoints round beyond it; NaN stays NaN."""
    return math.exp(min(logprob, 0.0))


def _letter_of(token: str) -> str | None:
    """The label that a token spells: ``E``, `` E``, ``:E``, ``12:E"``, ``ent``, ``Neutral``."""
    word = _LETTERS_ONLY.sub("", token).lower()
    if len(word) == 1 or (len(word) >= 3 and any(each.startswith(word) for each in _SPELLINGS)):
        letter = word[0].upper()
        return letter if letter in _LABELS else None
    return None


def graded_verdicts(content: str, tokens: Sequence[Token]) -> list[Verdict] | None:
    """The graded verdict of each ``"id:label"`` in a reply, in its order.

    None if the tokens do not make up the reply, or the endpoint gave none.
    """
    written = "".join(token.text for token in tokens)
    if not tokens or written.strip() != content.strip():  # some servers trim the content
        return None
    starts = list(accumulate((len(token.text) for token in tokens), initial=0))
    return [
        graded_verdict(tokens[bisect_right(starts, match.start(2)) - 1], match[2])
        for match in _LABEL_IN_JSON.finditer(written)
    ]


# --- which claims and which references go into one call -------------------------------------------

MAX_CELLS: Final = 600
"""Cells in one call: their labels take about 2,000 tokens, which common models can still write."""

_MAX_REFERENCE_TOKENS: Final = 12_000
"""Tokens of the references in one call; models overlook the middle of longer prompts."""

_MAX_NEAR: Final = 10
"""References in a call for joint verdicts alone, the nearest ones; as many as a call usually has.
"""

_LONG_WORD: Final = re.compile(r"\w{4,}")
_MAX_CHARACTERS: Final = 20_000  # 2 ms; enough to tell whether a reference is about a claim


class Context(NamedTuple):
    """The references that are read together, and the column of the verdicts on all of them."""

    ranks: Mapping[int, int]
    """Index of each of them to its rank, from 1; in the order of the ranks."""

    distinct: tuple[int, ...]
    """Those to read: without blank ones, and without those whose text comes before."""

    column: int

    is_whole: bool = True
    """Whether ``distinct`` has all of them, and not only those that came near."""

    @classmethod
    def of(cls, indices: Sequence[int], references: Sequence[str]) -> Context:
        """The context of these references, in the order of their rank; empty for none of them."""
        by_text: dict[str, int] = {}
        for j in indices:
            if references[j].strip():
                by_text.setdefault(references[j], j)
        ranks = {j: rank for rank, j in enumerate(indices, start=1)}
        return cls(ranks, tuple(by_text.values()), len(references))


class _Batch(NamedTuple):
    """Cells to decide, and the texts that they are about by their index in the whole matrix."""

    claims: Mapping[int, str]
    references: Mapping[int, str]
    cells: frozenset[Cell]
    context: Context
    """What is read together, if a cell is in its column."""

    @property
    def is_joint(self) -> bool:
        return any(j == self.context.column for _, j in self.cells)

    @property
    def is_joint_only(self) -> bool:
        return all(j == self.context.column for _, j in self.cells)

    @property
    def reference_tokens(self) -> float:
        return sum(map(_tokens, self.references.values()))

    def part(self, columns: Sequence[int], rows: Collection[int]) -> _Batch:
        """The cells of some rows and columns, with the texts of these in their order."""
        return self._replace(
            claims={i: self.claims[i] for i in rows},
            references={j: self.references[j] for j in columns if j != self.context.column},
            cells=frozenset((i, j) for i, j in self.cells if i in rows and j in columns),
        )

    def only(self, cells: Collection[Cell]) -> _Batch:
        rows, columns = {i for i, _ in cells}, {j for _, j in cells}
        if self.context.column in columns:
            columns |= {*self.context.distinct}
        kept = [j for j in self.references if j in columns]
        return self._replace(cells=frozenset(cells)).part(
            [*kept, self.context.column], [i for i in self.claims if i in rows]
        )

    def halves(self) -> list[_Batch]:
        """Two batches of half the references, or of half the claims if there is one reference.

        None of them reads the context together. Empty if there is one claim and one reference.
        """
        cells = [cell for cell in self.cells if cell[1] != self.context.column]
        side = 1 if len(self.references) > 1 else 0
        places = sorted({cell[side] for cell in cells})
        if len(places) < 2:
            return []
        first = {*places[: len(places) // 2]}
        return [
            self.only([cell for cell in cells if (cell[side] in first) is wanted])
            for wanted in (True, False)
        ]


def _planned(whole: _Batch, most: int | None, max_tokens: float) -> list[_Batch]:
    """Distributes cells over calls: references in their order, each with all of its claims.

    The references of the context go into one call if they fit, so that they can be read together
    there; the others go with them if there is room. A context that fits into no call is left to
    ``_joint``. ``most`` is the number of references in one call, None for as many as fit;
    ``max_tokens`` is the most of their tokens.
    """
    column, together = whole.context.column, [*whole.context.distinct]
    tokens = {j: _tokens(text) for j, text in whole.references.items()}

    def fit(columns: Sequence[int]) -> bool:
        has_room = sum(tokens[j] for j in columns) <= max_tokens
        return has_room and len(columns) <= (most or len(columns))

    left = sorted({j for _, j in whole.cells} - {column})
    groups: list[Sequence[int]] = []
    if whole.is_joint and fit(together):
        others = [j for j in left if j not in together]
        # Where the single verdicts are known, the context is asked about alone, and as one text.
        if len(others) < len(left) and fit([*together, *others]):
            together, others = [*together, *others], []
        groups.append([*together, column])
        left = others
    for group in _evenly(left, most or len(left)):
        groups += _within_tokens(group, tokens, max_tokens)
    return [
        whole.part(columns, rows)
        for columns in groups
        for rows in _evenly(
            sorted({i for i, j in whole.cells if j in columns}), MAX_CELLS // len(columns) or 1
        )
    ]


def _joint(
    whole: _Batch, verdicts: Mapping[Cell, Verdict], most: int, max_tokens: float
) -> list[_Batch]:
    """Calls for verdicts on a context that did not fit, with the references that came near."""
    context = whole.context
    cells = frozenset(cell for cell in whole.cells if cell[1] == context.column)
    rows = sorted({i for i, _ in cells})
    if not rows:
        return []
    kept: set[int] = set()
    room = max_tokens
    for j in _nearest(whole, rows, verdicts):
        tokens = _tokens(whole.references[j])
        if not kept or (tokens <= room and len(kept) < most):
            kept.add(j)
            room -= tokens
    distinct = tuple(j for j in context.distinct if j in kept)
    context = context._replace(distinct=distinct, is_whole=distinct == context.distinct)
    part = whole._replace(cells=cells, context=context)
    return [part.part((*distinct, context.column), some) for some in _evenly(rows, MAX_CELLS)]


def _within_tokens(
    indices: Sequence[int], tokens: Mapping[int, float], limit: float
) -> list[list[int]]:
    """Splits a group at the token limit; a reference beyond the limit is a part of its own."""
    parts: list[list[int]] = []
    room = 0.0
    for j in indices:
        if not parts or tokens[j] > room:
            parts.append([])
            room = limit
        parts[-1].append(j)
        room -= tokens[j]
    return parts


def _tokens(text: str) -> float:
    # A third of the bytes is no less than the tokens in any script; counting is far slower.
    return token_upper_bound(text) / 3


def _evenly(indices: Sequence[int], limit: int) -> list[Sequence[int]]:
    if not indices:
        return []
    groups = ceil(len(indices) / limit)
    size, extra = divmod(len(indices), groups)
    cuts = [k * size + min(k, extra) for k in range(groups + 1)]
    return [indices[start:end] for start, end in pairwise(cuts)]


def _nearest(whole: _Batch, rows: Sequence[int], verdicts: Mapping[Cell, Verdict]) -> Iterable[int]:
    """The columns of the context: the nearest to each claim, then the second of each."""
    columns = whole.context.distinct
    words = {j: _words(whole.references[j]) for j in columns}
    orders: list[list[int]] = []
    for i in rows:
        wanted = _words(whole.claims[i])
        shares = {j: len(wanted & words[j]) / (len(wanted) or 1) for j in columns}
        nearness = [_bearing(verdicts.get((i, j))) + shares[j] for j in columns]
        # The sort is stable: of two that are as near, the one of the better rank comes first.
        ordered = sorted(zip(nearness, columns, strict=True), key=itemgetter(0), reverse=True)
        orders.append([j for _, j in ordered])
    return dict.fromkeys(j for places in zip(*orders, strict=True) for j in places)


def _bearing(verdict: Verdict | None) -> float:
    """How likely a reference speaks of a claim, be it for or against."""
    if verdict is None:
        return 0.0
    if verdict.neutral is None:
        return float(verdict.label is not Label.NEUTRAL)
    return 1.0 - verdict.neutral


def _words(text: str) -> set[str]:
    return set(_LONG_WORD.findall(text[:_MAX_CHARACTERS].casefold()))


# --- asking ---------------------------------------------------------------------------------------

_LABELLED: Final = re.compile(r"\W{0,9}(\d+)\W{0,9}[:=]\W{0,9}([A-Za-z]+)\W{0,9}")
_SPELLED: Final = {
    **{letter: letter for letter in _LABELS},
    **dict.fromkeys(("ENTAILED", "ENTAILMENT", "ENTAILS"), "E"),
    **dict.fromkeys(("MOSTLY",), "M"),
    **dict.fromkeys(("PARTLY", "PARTIAL", "PARTIALLY"), "P"),
    "NEUTRAL": "N",
    **dict.fromkeys(("CONTRADICTED", "CONTRADICTION", "CONTRADICTS"), "C"),
}
"""The ways in which models write a label."""

_IN_PART: Final = "the chunks are too many or too long to be read together in one call"
_EMPTY: Final = Verdict(label=Label.NEUTRAL, entailed=0.0, neutral=1.0, contradicted=0.0)
_NUMBER: Final = re.compile(r"\d+")


class Checker:
    """Decides cells of a matrix of claims against references, and remembers its verdicts."""

    def __init__(
        self, endpoint: Endpoint, cache: VerdictCache, scope: str, settings: Settings
    ) -> None:
        # ``scope`` is what a verdict depends on beside the texts: model, prompts, address.
        self.endpoint: Final = endpoint
        self.cache: Final = cache
        self.settings: Final = settings
        self._scope = scope
        # Tokens of the references in one call: the most that fitted, and the most that may fit.
        self._fitted = 0.0
        self._max_tokens = float(_MAX_REFERENCE_TOKENS)

    async def decide(
        self,
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
        texts = {i: claim.text for i, claim in enumerate(claims)}
        whole = _Batch(texts, dict(enumerate(references)), frozenset(cells), context)
        keys = _cell_keys(whole, (self._scope, question))
        known = self.cache.verdicts(list(set(keys.values())))
        free = _free_verdicts(claims, references, keys, context, question)
        known |= {keys[cell]: verdict for cell, verdict in free.items()}
        asking = _Asking(self, keys, question)
        left = whole._replace(cells=_unknown(keys, known))
        known |= await asking.all(_planned(left, self.settings.chunks_per_call, self._max_tokens))
        found = {cell: known[key] for cell, key in keys.items() if key in known}
        most = _MAX_NEAR
        while joint := _joint(
            # What a reply has left out stays undecided.
            whole._replace(cells=_unknown(keys, known) - asking.answered),
            found,
            most,
            self._max_tokens,
        ):
            try:
                known |= await asking.all(joint, splits=False)
            except JudgeError as error:  # the verdicts on each reference alone are paid for
                most = min(most, max(len(batch.references) for batch in joint)) // 2
                if most == 0 or not isinstance(error, TooLongError):
                    add_undecided(str(error), sum(len(batch.cells) for batch in joint))
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


class _Ids(NamedTuple):
    call: str
    claims: Mapping[str, int]
    """To the rows of the matrix."""

    columns: Mapping[str, int]
    """To the columns of the matrix; that of the context comes last."""


class _Asking:
    def __init__(self, checker: Checker, keys: Mapping[Cell, str], question: str | None) -> None:
        self.answered: set[Cell] = set()
        """Cells that a model was asked about."""
        self.too_long: TooLongError | None = None
        self._checker = checker
        self._keys = keys
        self._question = question

    async def all(self, batches: Sequence[_Batch], *, splits: bool = True) -> dict[str, Verdict]:
        found = await gather_or_cancel([self._batch(each, splits) for each in batches])
        return {key: verdict for each in found for key, verdict in each.items()}

    async def _batch(self, batch: _Batch, splits: bool) -> dict[str, Verdict]:
        """The verdicts of one batch, cached at once: another batch that fails loses none."""
        try:
            found, reason = await asked_twice(
                batch.cells,
                lambda left, attempt: self._ask(
                    batch if attempt == 1 else batch.only(left), attempt
                ),
                missing="the reply leaves verdicts out, or gives them twice",
            )
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
        if reason:
            add_undecided(reason, len(batch.cells) - len(found))
        if not batch.context.is_whole:
            # What was not read may entail what those that came near do not.
            entailed = {c: each for c, each in found.items() if each.label is Label.ENTAILED}
            if len(entailed) < len(found):
                add_undecided(_IN_PART, len(found) - len(entailed))
            found = entailed
        verdicts = {self._keys[cell]: verdict for cell, verdict in found.items()}
        self._checker.cache.add_verdicts(verdicts)
        return verdicts

    async def _ask(self, batch: _Batch, attempt: int) -> dict[Cell, Verdict]:
        settings, context = self._checker.settings, batch.context
        columns = [] if batch.is_joint_only else [*batch.references]
        columns += [context.column] if batch.is_joint else []
        # A second attempt has other ids, so that its reply is another.
        texts = (*batch.claims.values(), *batch.references.values())
        drawn = Ids(settings.seed, str(attempt), self._question or "", *texts)
        ids = _Ids(
            drawn.call(),
            dict(zip(drawn.claims(len(batch.claims)), batch.claims, strict=True)),
            dict(zip(drawn.references(len(columns)), columns, strict=True)),
        )
        system = CHECK_TOGETHER if batch.is_joint else CHECK
        prompt = Prompt(
            system=informed(TOGETHER if batch.is_joint_only else system, settings.instructions),
            user=encode(_material(batch, ids, self._question)),
            schema_name="verdicts",
            schema=verdicts_schema(),
            exact_schema=exact_verdicts_schema(ids.call, [*ids.claims], [*ids.columns])
            if settings.exact_schema
            else None,
            # A tokenizer that splits every digit takes 8 tokens for `"12:E",`.
            max_tokens=64 + len(ids.claims) * (32 + 8 * len(ids.columns)),
            logprobs=settings.logprobs,
        )
        found = await self._checker.endpoint.ask(prompt, lambda reply: _read(reply, ids))
        return {cell: found[cell] for cell in found.keys() & batch.cells}


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
    verdicts = [_LABEL_ONLY[letter] for _, _, letter in valid]
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


def _material(batch: _Batch, ids: _Ids, question: str | None) -> dict[str, JsonValue]:
    """The user message: an answer may name a passage by its rank, which stands beside its text."""
    ranks, column = batch.context.ranks, batch.context.column
    passages: dict[int, JsonValue] = {
        j: [ranks[j], text] if j in ranks else text for j, text in batch.references.items()
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


def _cell_keys(whole: _Batch, scope: Sequence[str | None]) -> dict[Cell, str]:
    """The cache key of each cell: scope, claim and reference, or all references of the context.

    The rank of a reference counts if the claim names it, as "passage 3 says" does. The verdict
    by a context of one text is that by the text.
    """
    context = whole.context
    about = content_key("verdict", *scope)
    rows = {i: content_key(text) for i, text in whole.claims.items()}
    columns = {j: content_key(text) for j, text in whole.references.items()}
    together = joint_key("context", *(columns[j] for j in context.ranks))
    keys: dict[Cell, str] = {}
    for i, j in sorted(whole.cells):
        if j == context.column and len(context.distinct) != 1:
            keys[i, j] = joint_key(about, rows[i], together)
            continue
        single = context.distinct[0] if j == context.column else j
        rank = str(context.ranks.get(single, ""))
        named = rank if rank in _NUMBER.findall(whole.claims[i]) else ""
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


def _unknown(keys: Mapping[Cell, str], known: Mapping[str, Verdict]) -> frozenset[Cell]:
    """The cells to ask about: of those with equal texts, which share a key, the first one."""
    first: dict[str, Cell] = {}
    for cell, key in keys.items():
        if key not in known:
            first.setdefault(key, cell)
    return frozenset(first.values())


def _undisputed(found: Mapping[Cell, Verdict], row: int, context: Context) -> Verdict | None:
    """The verdict of a value that a reference of the context gives, and none gives otherwise."""
    verdicts = [found[row, j] for j in context.distinct if (row, j) in found]
    labels = {verdict.label for verdict in verdicts}
    if Label.ENTAILED not in labels or Label.CONTRADICTED in labels:
        return None
    return next(verdict for verdict in verdicts if verdict.label is Label.ENTAILED)
