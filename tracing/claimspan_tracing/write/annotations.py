"""Scores as OpenInference's annotations of a span that has ended (``spec/annotations.md``)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

from claimspan import Evaluation
from claimspan.evaluation import Assessment
from claimspan_tracing import semconv
from claimspan_tracing.text import cut
from claimspan_tracing.write.spans import MAX_METADATA_BYTES, Attributes

__all__ = ["annotation_attributes", "identifier_of"]

FIELDS: Final = 5
"""Attributes of one score without its explanation."""


def annotation_attributes(
    assessments: Sequence[Assessment], evaluation: Evaluation, room: int
) -> Attributes:
    """Return the scores as annotations, numbered from 0 without a gap.

    Where there is not enough room, explanations are left out, from the last on; and then whole
    scores, since one without all of its fields could not be read.

    Args:
        assessments: The scores.
        evaluation: Says who judged.
        room: Number of attributes that there may be.
    """
    shown = list(assessments[: room // FIELDS])
    explained = [each.name for each in shown if each.explanation]
    kept = set(islice(explained, room - FIELDS * len(shown)))
    # The annotator kinds of OpenInference; a judge that made no call is a program.
    kind = "LLM" if evaluation.usage.calls else "CODE"
    attributes: Attributes = {}
    for index, each in enumerate(shown):
        fields: Attributes = {
            "name": each.name,
            "score": float(each.value),
            "label": each.label,
            "annotator_kind": kind,
            "identifier": identifier_of(evaluation),
        }
        if each.name in kept:
            fields["explanation"] = each.explanation
        attributes |= {semconv.annotation(index, field): fields[field] for field in fields}
    return attributes


def identifier_of(evaluation: Evaluation) -> str:
    """Return who made the scores: what the same judge, in the same version, writes twice is one."""
    parts = (semconv.SCOPE, evaluation.judge_name, evaluation.judge_version)
    return cut("/".join(part for part in parts if part), MAX_METADATA_BYTES)
