"""Says in words how an answer falls short, and whether retriever or generator is the cause.

An answer falls short if it lacks a fact of the ground truth, if the chunks contradict it, if
nothing supports it, or if it repeats what the ground truth contradicts. Each sentence counts
decided verdicts alone: what is undecided blames no part. If only close calls blame a part, or
verdicts contradict each other, the diagnosis says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from claimspan.evaluation.measured import Measured
from claimspan.metrics.truths import Truth, Truths, in_any, is_label
from claimspan.verdicts import Label

__all__ = [
    "CLOSE_CALL",
    "Diagnosis",
    "Fact",
    "Findings",
    "Part",
    "Statement",
    "diagnose",
    "findings_of",
]


class Part(StrEnum):
    """The part of a pipeline that an answer's shortcomings come from."""

    RETRIEVER = "retriever"
    """It missed facts that the answer lacks."""

    GENERATOR = "generator"
    """It left facts out that it had read, or added claims that are in no chunk."""

    BOTH = "both"

    NONE = "none"
    """Every verdict is decided, and no shortcoming is among them."""

    UNKNOWN = "unknown"
    """Nothing was evaluated, or too little is decided to say."""

    @property
    def is_bad(self) -> bool:
        """Whether the answer falls short in anything."""
        return self in (Part.RETRIEVER, Part.GENERATOR, Part.BOTH)


@dataclass(frozen=True, slots=True)
class Fact:
    """The verdicts on one claim of the ground truth."""

    retrieved: Truth
    """Whether a chunk entails it."""

    answered: Truth
    """Whether the response entails it."""

    is_close: bool = False
    """Whether the verdict by the response is a close call."""

    is_retrieval_close: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """The verdicts on one claim of the response."""

    label: Label | None
    """Its label by all chunks together; None if undecided."""

    correct: Truth = None
    """Whether the ground truth entails it; None without one as well."""

    is_denied: bool = False
    """Whether the ground truth contradicts it."""

    contradicted_by: Sequence[int] = ()
    """Numbers of the chunks that contradict it, from 1; empty if it is not known which."""

    in_relevant: Truth = None
    """Whether a chunk that also holds a fact entails it; None if that is not known."""

    is_close: bool = False


@dataclass(frozen=True, slots=True)
class Findings:
    """All that a diagnosis rests on."""

    statements: Sequence[Statement] = ()
    facts: Sequence[Fact] = ()
    abstained: bool = False


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The shortcomings of an answer, and their cause."""

    part: Part = Part.UNKNOWN
    findings: tuple[str, ...] = ()
    """What the verdicts show, a sentence each, the reason of the part first."""

    doubts: tuple[str, ...] = ()
    """Why the part may be another one, a sentence each; empty if firm verdicts blame it."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the verdicts show, and what casts doubt on it."""
        return self.findings + self.doubts

    @property
    def is_sure(self) -> bool:
        """Whether firm verdicts blame the part, and none of them contradict each other."""
        return not self.doubts


def diagnose(findings: Findings) -> Diagnosis:
    """Tell the responsible part, and what shows it.

    Returns:
        The diagnosis. A part is named only if decided verdicts show its shortcoming.
    """
    found = list(_shortcomings(findings))
    told = [sentence for _, sentence in found]
    part = _blamed(found)
    if part is not None:
        return Diagnosis(part, tuple(told), tuple(_doubts(findings, part)))
    part = Part.NONE if _all_decided(findings) else Part.UNKNOWN
    return Diagnosis(part, (*told, *_nothing_found(findings, part)))


def findings_of(evaluation: Measured, truths: Truths) -> Findings:
    """Return the verdicts of an evaluation, claim by claim."""
    verdicts = evaluation.matrices
    chunks, by_truth = verdicts.response_vs_chunks, verdicts.response_vs_ground_truth
    answer, held = verdicts.ground_truth_vs_response, verdicts.ground_truth_vs_chunks
    n_claims = len(chunks or by_truth or ())
    # Without chunks no claim has a verdict by them, and no fact was looked for.
    none: list[list[Label | None]] = [[] for _ in range(n_claims)]
    labels = chunks.all_labels if chunks else none
    relevant: Sequence[Truth] = truths.relevant if held and held.rows and held.n_references else []
    facts = answer or held
    n_facts = 0 if facts is None else len(facts)
    return Findings(
        statements=[
            Statement(
                label=label,
                correct=is_label(by, Label.ENTAILED),
                is_denied=by is Label.CONTRADICTED,
                contradicted_by=[n for n, cell in enumerate(row, 1) if cell is Label.CONTRADICTED],
                in_relevant=in_any([is_label(cell, Label.ENTAILED) for cell in row], relevant)
                if relevant
                else None,
                is_close=_is_close(confidence),
            )
            for label, confidence, by, row in zip(
                chunks.merged if chunks and chunks.n_references else [None] * n_claims,
                chunks.confidences if chunks else [None] * n_claims,
                by_truth.merged if by_truth else [None] * n_claims,
                labels,
                strict=True,
            )
        ],
        facts=[
            Fact(
                retrieved=is_retrieved,
                answered=is_label(label, Label.ENTAILED),
                is_close=_is_close(confidence),
                is_retrieval_close=_is_close(by_chunks),
            )
            for is_retrieved, by_chunks, label, confidence in zip(
                truths.retrieved if relevant else [None] * n_facts,
                held.confidences if held and relevant else [None] * n_facts,
                answer.merged if answer else [None] * n_facts,
                answer.confidences if answer else [None] * n_facts,
                strict=True,
            )
        ],
        abstained=evaluation.abstained,
    )


CLOSE_CALL: Final = 0.6
"""A label that is less probable than this is a close call: the next one is nearly as probable."""


def _is_close(confidence: float | None) -> bool:
    return confidence is not None and confidence < CLOSE_CALL


_Shortcoming = tuple[Part, str]
"""The part to blame, NONE for a sentence that blames no part, and the sentence."""


def _blamed(found: Iterable[_Shortcoming]) -> Part | None:
    blamed = {part for part, _ in found if part in (Part.RETRIEVER, Part.GENERATOR)}
    return Part.BOTH if len(blamed) == 2 else blamed.pop() if blamed else None


def _doubts(findings: Findings, part: Part) -> Iterator[str]:
    firm = replace(
        findings,
        statements=[each for each in findings.statements if not each.is_close],
        facts=[
            replace(
                fact,
                answered=None if fact.is_close else fact.answered,
                retrieved=None if fact.is_retrieval_close else fact.retrieved,
            )
            for fact in findings.facts
        ],
    )
    left = _blamed(_shortcomings(firm))
    if left is None:
        yield "Only close calls of the judge show this: read the claims first."
    elif left is not part:
        yield f"Without the judge's close calls it is the {left} alone: read the claims first."
    # What follows from facts that all stand in chunks stands there as well.
    if findings.facts and all(f.retrieved for f in findings.facts):
        n = sum(s.label is Label.NEUTRAL and s.correct is True for s in findings.statements)
        if n:
            yield (
                f"The verdicts on {_count(n, 'claim')} contradict each other: "
                "the ground truth says the same, and all of its facts stand in chunks."
            )


def _shortcomings(findings: Findings) -> Iterator[_Shortcoming]:
    # In the order of a pipeline: what the retriever lacks explains what the generator lacks.
    yield from _missed(findings.facts)
    yield from _left_out(findings)
    yield from _contradicted(findings.statements)
    yield from _unsupported(findings.statements)
    yield from _noise(findings.statements)


def _missed(facts: Sequence[Fact]) -> Iterator[_Shortcoming]:
    missed = [fact for fact in facts if fact.retrieved is False]
    if not missed:
        return
    # The judge's finding, and no assertion: a fact in other words is overlooked now and then.
    told = f"The judge finds {_of(len(missed), len(facts), 'fact')} of the ground truth in no chunk"
    lacking = sum(fact.answered is False for fact in missed)
    stated = sum(fact.answered is True for fact in missed)
    if lacking:
        rest = f"so the generator could not read {'it' if len(missed) == 1 else 'them'}"
        if stated:
            rest += f"; the answer states {stated} of them nevertheless"
        yield Part.RETRIEVER, f"{told}, {rest}: look at the retriever."
    elif stated == len(missed):
        # It came from elsewhere: the next fact that was not retrieved may be missing.
        yield Part.RETRIEVER, f"{told}, but the answer states {'it' if stated == 1 else 'them'}."
    else:
        # Some of them may be decided: what is known is told beside what is open.
        known = f"the answer states {stated} of them, and " if stated else ""
        rest = "the rest" if stated else "it" if len(missed) == 1 else "them"
        who = "it" if stated else "the answer"
        yield Part.RETRIEVER, f"{told}; {known}whether {who} states {rest} is undecided."


def _left_out(findings: Findings) -> Iterator[_Shortcoming]:
    facts = findings.facts
    retrieved = [fact for fact in facts if fact.retrieved]
    unused = sum(fact.answered is False for fact in retrieved)
    used = sum(fact.answered is True for fact in retrieved)
    if findings.abstained and facts:
        if retrieved:
            held = f"{_of(len(retrieved), len(facts), 'fact')} of the ground truth"
            yield Part.GENERATOR, f"The answer declines although the chunks hold {held}."
        elif all(fact.retrieved is False for fact in facts):
            # To decline is then right; that the facts are missing is told of the retriever.
            yield Part.NONE, "The answer declines, and the chunks hold no fact of the ground truth."
    elif unused and len(facts) == used + unused > 1:
        # Only if all are decided: an undecided fact may be used, so "1 of 5" would be a guess.
        yield (
            Part.GENERATOR,
            f"All facts were retrieved; the generator used {used} of {len(facts)}.",
        )
    elif unused:
        yield (
            Part.GENERATOR,
            f"The generator left out {_of(unused, len(retrieved), 'retrieved fact')}.",
        )


def _contradicted(statements: Sequence[Statement]) -> Iterator[_Shortcoming]:
    found = [each for each in statements if each.label is Label.CONTRADICTED]
    if found:
        chunks = sorted({number for each in found for number in each.contradicted_by})
        if not all(each.contradicted_by for each in found):
            chunks = []  # a list that names the chunks of some claims alone would be false of all
        told = f"{_count(len(found), 'claim')} {'is' if len(found) == 1 else 'are'} contradicted"
        # The part is blamed all the same: an answer that its own chunks deny is not grounded.
        yield Part.GENERATOR, f"{told} by {_chunks(chunks, len(found))}{_right(found)}."


def _unsupported(statements: Sequence[Statement]) -> Iterator[_Shortcoming]:
    found = [each for each in statements if each.label is Label.NEUTRAL]
    if not found:
        return
    n, right = len(found), sum(each.correct is True for each in found)
    told = f"{_count(n, 'claim')} {'stands' if n == 1 else 'stand'} in no chunk"
    # Right without a chunk is the model's own knowledge: the retriever should have found it.
    yield Part.RETRIEVER if right == n else Part.GENERATOR, f"{told}{_right(found)}."


def _right(found: Sequence[Statement]) -> str:
    """How many of some claims the ground truth says as well; empty if it says none."""
    right = sum(each.correct is True for each in found)
    if right == len(found):
        return ", but the ground truth says the same"
    return f"; the ground truth says {right} of them" if right else ""


def _noise(statements: Sequence[Statement]) -> Iterator[_Shortcoming]:
    """What the answer repeats from the chunks that the ground truth does not say."""
    beyond = [each for each in statements if each.label is Label.ENTAILED and each.correct is False]
    denied = [each for each in beyond if each.is_denied]
    for is_relevant, source in (
        (False, "irrelevant chunks"),
        (True, "relevant chunks"),
        (None, "the chunks"),
    ):
        n = sum(each.in_relevant is is_relevant for each in denied)
        if n:
            claims = f"{_count(n, 'claim')} that the ground truth contradicts"
            verb = "comes" if n == 1 else "come"
            yield Part.GENERATOR, f"Noise: {claims} {verb} from {source}."
    # RAGChecker counts these as noise as well. A ground truth is often short, and what it does not
    # mention blames no part.
    n = len(beyond) - len(denied)
    if n:
        stand = "stands" if n == 1 else "stand"
        yield (
            Part.NONE,
            f"{_count(n, 'claim')} {stand} in the chunks, and the ground truth does not mention "
            f"{'it' if n == 1 else 'them'}.",
        )


def _all_decided(findings: Findings) -> bool:
    """Whether nothing undecided, cut off or declined could hide a shortcoming."""
    if findings.abstained or not (findings.statements or findings.facts):
        return False
    return not _some_undecided(findings, may_be_noise=bool(findings.facts))


def _some_undecided(findings: Findings, *, may_be_noise: bool = True) -> bool:
    """Whether a verdict is undecided; that of a supported claim counts if it may be noise."""
    return any(None in (fact.retrieved, fact.answered) for fact in findings.facts) or any(
        each.label is None
        or (may_be_noise and each.label is Label.ENTAILED and each.correct is None)
        for each in findings.statements
    )


def _nothing_found(findings: Findings, part: Part) -> Iterator[str]:
    n = len(findings.statements)
    supported = sum(each.label is Label.ENTAILED for each in findings.statements)
    if part is Part.NONE and findings.facts:
        yield f"The answer states {_all(len(findings.facts), 'fact')} of the ground truth."
    elif part is Part.NONE and supported == n:
        stand = "stand" if n > 1 else "stands"
        yield (
            f"{_all(n, 'claim').capitalize()} {stand} in the chunks; without facts of a ground "
            "truth nothing shows whether one is missing."
        )
    elif part is Part.NONE:
        return  # what was found blames no part, and says all that there is to say
    elif findings.abstained and not findings.facts:
        yield "The answer declines; without facts of a ground truth nothing shows if it had to."
    elif _some_undecided(findings):
        yield "Some verdicts are undecided, and the others show no shortcoming."
    elif findings.statements or findings.facts:
        yield "The verdicts show no shortcoming."


# --- numbers in words -------------------------------------------------------------------------


def _count(n: int, thing: str) -> str:
    return f"{n} {thing}{'' if n == 1 else 's'}"


def _of(n: int, total: int, thing: str) -> str:
    """``2 of 5 facts``; ``the only fact`` if there is one."""
    return f"the only {thing}" if total == 1 else f"{n} of {total} {thing}s"


def _all(n: int, thing: str) -> str:
    return f"the only {thing}" if n == 1 else f"all {n} {thing}s"


def _chunks(numbers: Iterable[int], claims: int) -> str:
    """``chunk 2``, ``chunks 1 and 2``; ``a chunk`` if it is not known which."""
    shown = [str(number) for number in numbers]
    if not shown:
        return "a chunk" if claims == 1 else "chunks"
    if len(shown) == 1:
        return f"chunk {shown[0]}"
    return f"chunks {', '.join(shown[:-1])} and {shown[-1]}"
