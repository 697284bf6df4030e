"""Judges: extract claims from texts, and decide whether a reference entails a claim.

- ``protocol``: ``Judge`` and ``SparseJudge``, the protocols that every judge implements.
- ``lexical``: ``LexicalJudge`` compares words, numbers and names; needs nothing.
- ``local``: ``LocalJudge`` runs a small cross-encoder on the CPU.
- ``llm``: ``OpenAIJudge`` asks a language model behind an OpenAI-compatible endpoint.
- ``cascade``: ``CascadeJudge`` asks a strong judge only where a cheap one is not sure.
- ``calibrated``: ``CalibratedJudge`` reads a judge's probabilities as people label one's traffic.

Judges that need a client or a runtime are loaded on first use, so that the import stays fast.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Final

from claimspan.errors import ConfigError
from claimspan.judges.lexical.judge import LexicalJudge
from claimspan.judges.protocol import Judge, SparseJudge

if TYPE_CHECKING:
    from claimspan.judges.calibrated import CalibratedJudge
    from claimspan.judges.cascade import CascadeJudge
    from claimspan.judges.llm.judge import OpenAIJudge
    from claimspan.judges.local.judge import LocalJudge

__all__ = [
    "CalibratedJudge",
    "CascadeJudge",
    "Judge",
    "LexicalJudge",
    "LocalJudge",
    "OpenAIJudge",
    "SparseJudge",
    "default_judge",
]

JUDGE_VARIABLE: Final = "CLAIMSPAN_JUDGE"
"""Environment variable that selects the default judge; where it is not set, ``lexical`` is used."""

# The client of OpenAIJudge alone takes half a second to import.
_LAZY_MODULES: Final = {
    "CalibratedJudge": "calibrated",
    "CascadeJudge": "cascade",
    "LocalJudge": "local",
    "OpenAIJudge": "llm",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_LAZY_MODULES[name]}"), name)
    globals()[name] = value  # the next access does not come here
    return value


def default_judge(choice: str | None = None) -> Judge:
    """Creates the judge that is used where none is given.

    ``choice`` comes first, then the environment variable ``CLAIMSPAN_JUDGE``, then
    ``LexicalJudge``. A key that the application has for itself is never used unless a choice names
    ``openai``.

    Args:
        choice: ``lexical``; ``local``, or ``local:MODEL`` for another model; or ``openai:MODEL``,
            which uses ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL``. Each may end in ``@FILE.json``,
            a calibration of ``claimspan calibrate``. None: as the environment says.

    Returns:
        A new judge.

    Raises:
        ConfigError: The choice names no judge, the key for it is missing, or the calibration was
            made for another judge.
        MissingExtraError: The packages of the local judge are not installed.
        FileError: The calibration cannot be read.
    """
    origin = "the judge" if choice else JUDGE_VARIABLE
    wanted = (choice or os.environ.get(JUDGE_VARIABLE) or "lexical").strip()
    name, _, calibration = wanted.rpartition("@")
    # Names of models have an @ as well; none of them ends as a file of JSON does.
    if name and calibration.endswith(".json"):
        from claimspan.judges.calibrated import CalibratedJudge

        return CalibratedJudge(_named(name, origin), calibration)
    return _named(wanted, origin)


def _named(wanted: str, origin: str) -> Judge:
    """Creates the judge of a name; ``origin`` says in an error where the name stands."""
    kind, _, model = wanted.partition(":")
    if kind.lower() == "lexical" and not model:
        return LexicalJudge()
    # Imported only when chosen: see _LAZY_MODULES.
    if kind.lower() == "local":
        from claimspan.judges.local.bundled import require_local_extra
        from claimspan.judges.local.judge import LocalJudge

        # Looked for now, though it is imported with the first claim: at set-up a user reads it.
        require_local_extra(own_model=bool(model))
        return LocalJudge(model or None)
    if kind.lower() == "openai" and model:
        from claimspan.judges.llm.judge import OpenAIJudge

        return OpenAIJudge.from_environment(model)
    raise ConfigError(
        f"{origin}={wanted!r} names no judge: "
        "use 'lexical', 'local', 'local:MODEL' or 'openai:MODEL'"
    )
