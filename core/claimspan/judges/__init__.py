"""Judges: extract claims from texts, and decide whether a reference entails a claim.

- ``protocol``: ``Judge`` and ``SparseJudge``, the protocols that every judge implements.
- ``lexical``: ``LexicalJudge`` compares words, numbers and names; needs nothing.
- ``local``: ``LocalJudge`` runs a small cross-encoder on the CPU.
- ``llm``: ``OpenAIJudge`` asks a language model behind an OpenAI-compatible endpoint,
  ``ModelJudge`` any ``ChatModel``.
- ``choice``: the judge that a name or a model object of a framework stands for.
- ``cascade``: ``CascadeJudge`` asks a strong judge only if a cheap one is not sure.
- ``calibrated``: ``CalibratedJudge`` reads a judge's probabilities as people label one's traffic.

Judges are loaded on first use, so that the import stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from claimspan.judges.choice import JUDGE_VARIABLE, default_judge, default_name, judge_of
from claimspan.judges.protocol import Judge, SparseJudge

if TYPE_CHECKING:
    from claimspan.judges.calibrated import CalibratedJudge
    from claimspan.judges.cascade import CascadeJudge
    from claimspan.judges.lexical.judge import LexicalJudge
    from claimspan.judges.llm.chat import ChatModel, ChatReply, ChatRequest
    from claimspan.judges.llm.judge import ModelJudge, OpenAIJudge
    from claimspan.judges.local.judge import LocalJudge

__all__ = [
    "JUDGE_VARIABLE",
    "CalibratedJudge",
    "CascadeJudge",
    "ChatModel",
    "ChatReply",
    "ChatRequest",
    "Judge",
    "LexicalJudge",
    "LocalJudge",
    "ModelJudge",
    "OpenAIJudge",
    "SparseJudge",
    "default_judge",
    "default_name",
    "judge_of",
]

# The client of OpenAIJudge takes half a second to import, the patterns of LexicalJudge a fifth.
_LAZY_MODULES: Final = {
    "CalibratedJudge": ".calibrated",
    "CascadeJudge": ".cascade",
    "ChatModel": ".llm.chat",
    "ChatReply": ".llm.chat",
    "ChatRequest": ".llm.chat",
    "LexicalJudge": ".lexical.judge",
    "LocalJudge": ".local",
    "ModelJudge": ".llm.judge",
    "OpenAIJudge": ".llm.judge",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_LAZY_MODULES[name], __name__), name)
    globals()[name] = value  # the next access does not come here
    return value
