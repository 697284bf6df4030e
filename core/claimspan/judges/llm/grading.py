"""Grades of an answer by criteria, from a language model: one call for all criteria of a record.

What the reply leaves out, or gives no grade of the scale, is requested once more and then
undecided. The ground truth is in no prompt: a criterion is about what users read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from functools import partial
from itertools import islice
from typing import Final

from pydantic import JsonValue

from claimspan.concurrency import SingleFlight
from claimspan.cost.usage import add_note, add_undecided
from claimspan.judges.criteria import Criterion
from claimspan.judges.llm.chat import ChatReply, Prompt, Settings
from claimspan.judges.llm.endpoint import Endpoint, asked_twice
from claimspan.judges.llm.prompts import CANNOT_TELL, GRADE, Ids, encode, informed
from claimspan.judges.llm.refusals import TooLongError
from claimspan.judges.llm.replies import (
    MAX_EXACT_REASON_LENGTH,
    GradeRow,
    GradesReply,
    exact_grades_schema,
    grades_schema,
    read_reply,
)
from claimspan.judges.protocol import Grade
from claimspan.judges.verdict_cache import VerdictCache, content_key, joint_key
from claimspan.records import RagRecord
from claimspan.text.encodable import encodable
from claimspan.text.languages import detect_language
from claimspan.text.sentences import split_prose
from claimspan.text.tokens import token_upper_bound

__all__ = ["Grader"]

REASON_SENTENCES: Final = 2

MAX_REASON_LENGTH: Final = 500
"""Characters that are kept of a reason."""

CHUNKS_CUT: Final = "criteria graded on the first chunks alone, as the model has room for"
"""The note of an evaluation that says of how many criteria not all chunks were read."""

_NO_CHUNKS: Final = Grade(None, "the record has no chunks")
_FEWEST_BYTES: Final = 1_000
"""Of chunks that are cut to less than this nothing is left that a criterion could go by."""

_BYTES_PER_TOKEN: Final = 3
"""Of most texts a token has more: chunks of so many for each token of a window leave room."""

_OF_SCALE: Final = re.compile(r"(\d{1,2})(?:\.0)?(?:\s?(?:/|of|out of)\s?(\d{1,2}))?")
_AROUND: Final = " \t\r\n\"'`*.()[]"
_SPELLED: Final[Mapping[str, str]] = {
    **{each: each for each in ("yes", "no", CANNOT_TELL)},
    **{"true": "yes", "false": "no"},
    **dict.fromkeys(("can't tell", "can not tell", "unknown", "none", "null", "n/a"), CANNOT_TELL),
}
"""The ways in which models write a grade that is no number."""


class Grader:
    """Grades each answer by each criterion once, however many ask at a time."""

    def __init__(
        self, endpoint: Endpoint, cache: VerdictCache, scope: str, settings: Settings
    ) -> None:
        # ``scope`` is what grades depend on beside criterion and record: model, prompts, address.
        self._endpoint = endpoint
        self._cache = cache
        self._scope = scope
        self._settings = settings
        self._system = informed(GRADE, settings.instructions)
        self._flights = SingleFlight[tuple[Mapping[str, Grade], str]]()

    async def grades(self, criteria: Sequence[Criterion], record: RagRecord) -> list[Grade]:
        """Grades by criteria; of one that could not be decided the reason is reported as well.

        Raises:
            JudgeError: A call got no reply before it had decided any grade.
        """
        chunks = [*dict.fromkeys(each.text for each in record.chunks if each.text.strip())]
        keys = [
            content_key(
                *(self._scope, "grade", each.statement, str(each.scale)),
                *(record.query, record.response, *(chunks if each.with_chunks else ())),
            )
            for each in criteria
        ]
        found = self._cache.grades(keys)
        left = {
            key: each
            for key, each in zip(keys, criteria, strict=True)
            if key not in found and (chunks or not each.with_chunks)
        }
        if left:
            call = partial(self._grade, left, record, chunks)
            graded, reason = await self._flights.run(joint_key(*left), call)
            found |= graded
            if undecided := left.keys() - graded.keys():
                add_undecided(reason, len(undecided))
                found |= dict.fromkeys(undecided, Grade(None, reason))
        return [found.get(key, _NO_CHUNKS) for key in keys]

    async def _grade(
        self, wanted: Mapping[str, Criterion], record: RagRecord, chunks: Sequence[str]
    ) -> tuple[Mapping[str, Grade], str]:
        """Grades by key, and the reason why the other criteria have none.

        A window that is too small takes the first half of the chunks, and in the end none of them.
        """
        without = {key: each for key, each in wanted.items() if not each.with_chunks}
        n_reading = len(wanted) - len(without)
        most = size = sum(map(token_upper_bound, chunks)) if n_reading else 0
        if (window := self._endpoint.dialect.window) is not None:
            most = min(size, _BYTES_PER_TOKEN * window)
        too_long = "the chunks do not fit into the model's window"
        while True:
            kept = _beginning(chunks, most) if most >= min(size, _FEWEST_BYTES) else []
            asked = wanted if kept else without
            if not asked:
                return {}, too_long
            try:
                found, reason = await asked_twice(
                    asked.keys(),
                    partial(self._ask, asked, record, kept),
                    missing="the reply has no grade of it, more than one, or none of its scale",
                )
            except TooLongError as error:
                too_long = str(error)
                if not kept:
                    return {}, too_long
                most //= 2
                continue
            if kept and most < size:
                add_note(CHUNKS_CUT, n_reading)
            return found, reason or too_long

    async def _ask(
        self,
        asked: Mapping[str, Criterion],
        record: RagRecord,
        chunks: Sequence[str],
        left: Set[str],
        attempt: int,
    ) -> dict[str, Grade]:
        """The grades of one reply by key, without those that leave doubt; they are cached."""
        wanted = {key: each for key, each in asked.items() if key in left}
        # A reply that could not be used must not come again by the same prompt.
        statements = [each.statement for each in wanted.values()]
        texts = (str(attempt), *statements, record.query, record.response, *chunks)
        call = Ids(self._settings.seed, *texts).call()
        keys = {str(number): key for number, key in enumerate(wanted, start=1)}
        criteria = {number: wanted[key] for number, key in keys.items()}
        material: dict[str, JsonValue] = {
            # First, so that the prompt caches of endpoints have them as well.
            "criteria": {number: _material(each) for number, each in criteria.items()},
            "question": record.query,
            "passages": [*chunks] or None,
            "answer": record.response,
            "call": call,
        }
        exact = exact_grades_schema(call, {n: _grades_of(each) for n, each in criteria.items()})
        prompt = Prompt(
            system=self._system,
            user=encode(material),
            schema_name="grades",
            schema=grades_schema(),
            exact_schema=exact if self._settings.exact_schema else None,
            # A token for each character that an exact schema allows, so that it is never cut.
            max_tokens=100 + len(wanted) * (60 + MAX_EXACT_REASON_LENGTH),
        )

        def read(reply: ChatReply) -> dict[str, Grade]:
            rows = read_reply(reply, GradesReply, call).grades
            grades: dict[str, Grade] = {}
            for number, criterion in criteria.items():
                of_it = [row for row in rows if row.criterion.strip() == number]
                grade = _grade_of(of_it[0], criterion) if len(of_it) == 1 else None
                if grade is not None:
                    grades[keys[number]] = grade
            return grades

        found = await self._endpoint.ask(prompt, read)
        self._cache.add_grades(found)
        return found


def _grades_of(criterion: Criterion) -> list[str]:
    scale = criterion.scale
    numbers = ["no", "yes"] if scale is None else [str(each) for each in range(1, scale + 1)]
    return [*numbers, CANNOT_TELL]


def _material(criterion: Criterion) -> JsonValue:
    scale = criterion.scale
    return {
        "statement": criterion.statement,
        "grades": "yes, no" if scale is None else f"1 to {scale}",
        **({"passages": True} if criterion.with_chunks else {}),
    }


def _grade_of(row: GradeRow, criterion: Criterion) -> Grade | None:
    """The grade of a row; None if it is none of the criterion's, which is never guessed at."""
    reason = _reason(row.reason) if isinstance(row.reason, str) else ""
    written = row.grade.strip(_AROUND).casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    word = _SPELLED.get(written)
    if word == CANNOT_TELL:
        return Grade(None, reason or "the judge cannot tell")
    scale = criterion.scale
    if scale is None:
        return None if word is None else Grade(float(word == "yes"), reason)
    number = _OF_SCALE.fullmatch(written)
    if number is None or not 1 <= int(number[1]) <= scale or int(number[2] or scale) != scale:
        return None
    return Grade((int(number[1]) - 1) / (scale - 1), reason)


def _reason(written: str) -> str:
    # Cut first: what a model writes has no bound of its own.
    text = " ".join(encodable(written[: 2 * MAX_REASON_LENGTH]).split())
    sentences = split_prose(text, detect_language(text) or "en")
    reason = " ".join(islice(sentences, REASON_SENTENCES))
    return reason if len(reason) <= MAX_REASON_LENGTH else f"{reason[: MAX_REASON_LENGTH - 1]}…"


def _beginning(texts: Sequence[str], most: int) -> list[str]:
    """The first texts, as many as have so many bytes together; the last one is cut to fit."""
    kept: list[str] = []
    for text in texts:
        if part := text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore"):
            kept.append(part)
        most = max(0, most - token_upper_bound(part))
    return kept
