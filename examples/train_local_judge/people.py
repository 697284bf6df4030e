"""Reads data sets that people labelled or wrote, as claims with their source texts.

What they are and under which licences they come is listed in the model card beside the weights.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Final, TypedDict, cast

from claimspan.judges.local.reading import Passage, gather_sentences
from claimspan.text.sentences import split_prose
from train_local_judge.pairs import Document, Pair, Summary
from train_local_judge.texts import tidy

__all__ = [
    "answers",
    "brief",
    "edited_summaries",
    "expert_claims",
    "labelled_triplets",
    "partly_supported",
    "revised_facts",
    "summaries",
    "triplets",
]

_MOST_WORDS: Final = 160
"""Longer texts are reduced to the sentences about the claim: the model reads 256 tokens."""

_LEAST_LEFT: Final = 5
_LABELS: Final = {"Entailment": "E", "Neutral": "N", "Contradiction": "C"}


class _PartlySupported(TypedDict):
    """A claim of WiCE with tokens that its article does not support."""

    claim: str
    claim_tokens: list[str]
    non_supported_spans: list[bool]
    evidence: list[str]


class _Passage(TypedDict):
    sentences: list[str]


class _Answer(TypedDict):
    answer: str


class _Answered(TypedDict):
    passages: list[_Passage]
    output: list[_Answer]


def brief(sentences: Sequence[str], claim: str) -> Document:
    """Join sentences; reduce a long text to the sentences about the claim."""
    if sum(len(each.split()) for each in sentences) <= _MOST_WORDS:
        return list(sentences)
    return [gather_sentences(sentences, claim)]


def summaries(path: Path) -> Iterator[Summary]:
    """SciTLDR: an abstract with the one-sentence summary of its authors."""
    for line in path.read_text(encoding="utf-8").strip().split("\n"):
        paper = cast("Mapping[str, list[str]]", json.loads(line))
        for said in paper["target"]:
            yield brief(paper["source"], said), said


def answers(path: Path) -> Iterator[Summary]:
    """CLAPnq: a passage with each sentence of the answers that people wrote from it."""
    for line in path.read_text(encoding="utf-8").strip().split("\n"):
        entry = cast("_Answered", json.loads(line))
        passage = [tidy(each) for each in entry["passages"][0]["sentences"]]
        for each in entry["output"]:
            for said in split_prose(tidy(each["answer"]), "en"):
                yield brief(passage, said), said


def triplets(folder: Path) -> Iterator[Pair]:
    """RefChecker: an answer with the triplets extracted from it.

    A false triplet has the object of another triplet.
    """
    chance = Random(0)  # noqa: S311 - training data, no secret
    for path in sorted(folder.rglob("*.json")):
        for entry in json.loads(path.read_text(encoding="utf-8")):
            found = [each["triplet"] for each in entry["claude2_response_kg"]]
            answer = list(split_prose(entry["response"], "en"))
            yield from _from_triplets(answer, [each for each in found if len(each) == 3], chance)


def _from_triplets(
    answer: Sequence[str], found: Sequence[Sequence[str]], chance: Random
) -> Iterator[Pair]:
    for subject, relation, last in found:
        claim = f"{subject} {relation} {last}"
        yield Pair(" ".join(brief(answer, claim)), claim, "E")
        others = [each[2] for each in found if each[:2] != [subject, relation] and each[2] != last]
        if others and chance.random() < 0.8:
            claim = f"{subject} {relation} {chance.choice(others)}"
            yield Pair(" ".join(brief(answer, claim)), claim, "NE")


def labelled_triplets(folder: Path, paragraphs: Mapping[str, str]) -> Iterator[Pair]:
    """RefChecker: triplets as people labelled them against the paragraph of a question.

    The questions of ``zero_context`` are of Natural Questions, and the paragraphs of many of them
    are in QED, under the same identifier: what ``texts.qed_paragraphs`` reads.
    """
    for path in sorted(folder.rglob("*.json")):
        for entry in json.loads(path.read_text(encoding="utf-8")):
            premise = paragraphs.get(entry["id"])
            if premise is None:
                continue
            for each in entry["claude2_response_kg"]:
                if label := _LABELS.get(each["human_label"] or ""):
                    yield Pair(premise, " ".join(each["triplet"]), label)


def partly_supported(path: Path) -> Iterator[Pair]:
    """WiCE: a claim that its article supports in part, and the supported part alone."""
    for line in path.read_text(encoding="utf-8").strip().split("\n"):
        entry = cast("_PartlySupported", json.loads(line))
        claim = entry["claim"]
        premise = " ".join(brief(entry["evidence"], claim))
        yield Pair(premise, claim, "NE")
        marked = zip(entry["claim_tokens"], entry["non_supported_spans"], strict=True)
        left = tidy(" ".join(token for token, is_lacking in marked if not is_lacking))
        if len(re.findall(r"\w+", left)) >= _LEAST_LEFT:
            yield Pair(premise, left, "E")


_SUPPORT: Final = {"Complete": "E", "Partial": "NE", "Incomplete": "NE", "Missing": "NE"}
_NUMBER: Final = re.compile(r"\s*(?:\[\d+\])+\s*")
_SOURCE: Final = re.compile(r"^\[\d+\]\s*\S+\s*")


def expert_claims(paths: Sequence[Path]) -> Iterator[Pair]:
    """ExpertQA: sentences of long answers, as experts found them supported by the cited pages.

    Each once, though several splits of the data have it; with the sentences about it, and if one
    page is cited also with the beginning of that page.
    """
    seen: set[tuple[str, str]] = set()
    for path in paths:
        for line in path.read_text(encoding="utf-8").strip().split("\n"):
            for answer in json.loads(line)["answers"].values():
                for claim in answer["claims"]:
                    label = _SUPPORT.get(claim["support"])
                    text = _NUMBER.sub(" ", claim["claim_string"]).replace(" .", ".").strip()
                    cited = [_SOURCE.sub("", each) for each in claim["evidence"]]
                    page = " ".join(" ".join(cited).split())
                    if label is None or len(page) < 80 or len(text) < 15 or (text, page) in seen:
                        continue
                    seen.add((text, page))
                    for window in Passage(page, "en").windows_for(text):
                        yield Pair(window, text, label)
                    if len(cited) == 1:
                        yield Pair(" ".join(page.split()[:170]), text, label)


_VERDICTS: Final = {"SUPPORTS": "E", "REFUTES": "C", "NOT ENOUGH INFO": "N"}
_WITH_NEIGHBOURS: Final = 0.5
_ALIKE: Final = 0.3


class _Revised(TypedDict):
    """A claim of VitaminC with the sentence of one revision of a page."""

    case_id: str
    label: str
    claim: str
    evidence: str
    page: str


def revised_facts(path: Path, withheld: Collection[str] = ()) -> Iterator[Pair]:
    """VitaminC: claims that people wrote about two revisions of a sentence which differ in a fact.

    Half of the sentences are shown among others of their page, so that a claim is told by the right
    one. A sentence that shares over three tenths of its words with the evidence may be a revision
    of it, and stays out.

    Args:
        path: JSON lines of claims about real revisions.
        withheld: Claims that something is measured on; they are left out, in any spelling of case.
    """
    chance = Random(11)  # noqa: S311 - training data, no secret
    unseen = {each.casefold() for each in withheld}
    lines = path.read_text(encoding="utf-8").strip().split("\n")
    facts = [cast("_Revised", json.loads(line)) for line in lines]
    pages: dict[str, dict[str, str]] = defaultdict(dict)
    for fact in facts:
        pages[fact["page"]].setdefault(fact["case_id"], tidy(fact["evidence"]))
    for fact in facts:
        claim, shown = tidy(fact["claim"]), [tidy(fact["evidence"])]
        if claim.casefold() in unseen:
            continue
        if chance.random() < _WITH_NEIGHBOURS:
            others = [each for each in pages[fact["page"]].values() if not _is_alike(each, *shown)]
            chance.shuffle(others)
            shown += others[: chance.randint(1, 3)]
            chance.shuffle(shown)
        yield Pair(" ".join(brief(shown, claim)), claim, _VERDICTS[fact["label"]])


def _is_alike(one: str, other: str) -> bool:
    ours, theirs = ({*re.findall(r"\w+", each.casefold())} for each in (one, other))
    return len(ours & theirs) > _ALIKE * min(len(ours), len(theirs))


class _Edited(TypedDict):
    """A summary of SummEdits, which people found true to its text or not."""

    doc: str
    summary: str
    original_summary: str
    label: int


def edited_summaries(path: Path) -> Iterator[Pair]:
    """SummEdits: sentences of summaries that a model edited and people labelled.

    Of a summary with a mistake, the sentences that differ from the original have it.
    """
    for entry in cast("list[_Edited]", json.loads(path.read_text(encoding="utf-8"))):
        text = list(split_prose(" ".join(entry["doc"].split()), "en"))
        original = entry["original_summary"]
        for said in split_prose(entry["summary"], "en"):
            if entry["label"] or said not in original:
                yield Pair(" ".join(brief(text, said)), said, "E" if entry["label"] else "NE")
