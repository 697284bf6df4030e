"""Claim-level evaluation of RAG answers.

    from claimspan import Chunk, RagRecord, evaluate

    record = RagRecord(query="...", chunks=[Chunk(id="a", text="...")], response="...")
    evaluate(record).metrics["faithfulness"]

Each name is imported when it is first used, so that ``import claimspan`` loads no other module.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    __version__: str

    from claimspan.cost.usage import Usage
    from claimspan.evaluation.evaluate import aevaluate, aevaluate_many, evaluate, evaluate_many
    from claimspan.evaluation.result import Evaluation, Evaluations
    from claimspan.evaluation.selection import FunctionMetric
    from claimspan.files.ground_truth import GroundTruth
    from claimspan.judges.criteria import Criterion
    from claimspan.records import Chunk, RagRecord
    from claimspan.verdicts import Claim, Label, Verdict, VerdictMatrix

__all__ = [
    "Chunk",
    "Claim",
    "Criterion",
    "Evaluation",
    "Evaluations",
    "FunctionMetric",
    "GroundTruth",
    "Label",
    "RagRecord",
    "Usage",
    "Verdict",
    "VerdictMatrix",
    "aevaluate",
    "aevaluate_many",
    "evaluate",
    "evaluate_many",
]

# Name to the module that defines it.
_HOMES: Final = {
    "Chunk": "records",
    "Claim": "verdicts",
    "Criterion": "judges.criteria",
    "Evaluation": "evaluation.result",
    "Evaluations": "evaluation.result",
    "FunctionMetric": "evaluation.selection",
    "GroundTruth": "files.ground_truth",
    "Label": "verdicts",
    "RagRecord": "records",
    "Usage": "cost.usage",
    "Verdict": "verdicts",
    "VerdictMatrix": "verdicts",
    "aevaluate": "evaluation.evaluate",
    "aevaluate_many": "evaluation.evaluate",
    "evaluate": "evaluation.evaluate",
    "evaluate_many": "evaluation.evaluate",
}


def __getattr__(name: str) -> object:
    value: object
    if name == "__version__":
        # Not at the top: this module alone would make `import claimspan` take ten times as long.
        from importlib.metadata import version

        value = version("claimspan")
    elif name in _HOMES:
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
