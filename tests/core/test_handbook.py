"""Forty records of a handbook, each with a person's verdicts, label and blame: do we judge alike?

A person wrote the records with known faults, labelled them, and had not read the code. With that
person's own verdicts in place of a judge's, what is measured is the judgement alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from pydantic import BaseModel

from claimspan import Claim, Evaluation
from claimspan.evaluation import Judgement
from claimspan.evaluation.matrices import coherent
from claimspan.evaluation.selection import Selection
from claimspan.metrics import measure
from claimspan.metrics.compute import matrices_of_labels
from claimspan.verdicts import Label

LABELS: Final = {"E": Label.ENTAILED, "N": Label.NEUTRAL, "C": Label.CONTRADICTED}


class Person(BaseModel):
    """What a careful reader says of a record."""

    label: str
    blame: str
    response_claims: list[str]
    ground_truth_claims: list[str] | None
    response_vs_chunks: list[list[str]]
    response_vs_context: list[str]
    response_vs_ground_truth: list[str] | None
    ground_truth_vs_response: list[str] | None
    ground_truth_vs_chunks: list[list[str]] | None


class Read(NamedTuple):
    """A record with what the person and what we say of it."""

    id: str
    person: Person
    ours: Judgement
    n_incoherent: int


def read(line: str) -> Read:
    row = json.loads(line)
    person = Person.model_validate(row["person"])

    def column(labels: list[str] | None) -> list[Label] | None:
        return None if labels is None else [LABELS[each] for each in labels]

    def table(rows: list[list[str]] | None) -> list[list[Label]] | None:
        return None if rows is None else [[LABELS[each] for each in row] for row in rows]

    matrices, n_incoherent = coherent(
        matrices_of_labels(
            response_vs_chunks=table(person.response_vs_chunks),
            response_vs_context=column(person.response_vs_context),
            response_vs_ground_truth=column(person.response_vs_ground_truth),
            ground_truth_vs_response=column(person.ground_truth_vs_response),
            ground_truth_vs_chunks=table(person.ground_truth_vs_chunks),
        )
    )
    chosen = Selection().of_record(has_ground_truth=row["ground_truth"] is not None)
    evaluation = Evaluation(
        metrics=measure(matrices, metrics=chosen).metrics,
        matrices=matrices,
        response_claims=tuple(Claim(text=text) for text in person.response_claims),
        ground_truth_claims=tuple(Claim(text=text) for text in person.ground_truth_claims or ()),
        abstained=not person.response_claims,
    )
    return Read(row["id"], person, evaluation.judgement, n_incoherent)


RECORDS: Final = [
    read(line)
    for line in Path(__file__).with_name("handbook.jsonl").read_text("utf-8").splitlines()
]


def test_the_label_of_a_record_is_a_persons_but_for_four_of_forty() -> None:
    assert len(RECORDS) == 40
    assert {each.id for each in RECORDS if each.ours.label != each.person.label} == {
        "hb-a02",  # right by what the model knows, and no truth shows it: unknown to the person
        "hb-a07",  # one invented claim of nine does harm; the threshold is one of five
        "hb-a11",  # right by what the model knows: good to the person, whose retriever has failed
        "hb-b07",  # the same
    }


def test_the_blame_of_a_record_is_a_persons_but_for_four_of_forty() -> None:
    assert {each.id for each in RECORDS if each.ours.part.value != each.person.blame} == {
        "hb-a02",  # as above
        "hb-a07",  # as above
        "hb-b11",  # the chunk of another appliance: the retriever alone, to the person
        "hb-b19",  # good with one invented remark: the person names the generator all the same
    }


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.id)
def test_a_careful_readers_verdicts_are_coherent(record: Read) -> None:
    assert record.n_incoherent == 0
