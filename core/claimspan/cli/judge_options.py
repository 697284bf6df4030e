"""How a judge is named and set on every command line: ``--judge`` and ``--judge-option``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import typer

from claimspan.errors import ConfigError
from claimspan.judges import Judge, default_judge
from claimspan.judges.choice import parse_options, takes_options

__all__ = [
    "JUDGE_HELP",
    "JudgeName",
    "JudgeNames",
    "JudgeOptions",
    "judge_from",
    "judges_from",
]

JUDGE_HELP: Final = (
    "lexical, local, PROVIDER:MODEL such as openai:gpt-4o-mini, or FILE.py:NAME; each with "
    "@calibration.json if wanted"
)
"""What a judge may be named by, for the help of an option."""

JudgeName = Annotated[
    str | None,
    typer.Option(
        "--judge", metavar="JUDGE", help=f"{JUDGE_HELP}; by default that of CLAIMSPAN_JUDGE."
    ),
]
"""The judge of a command; None is that of the environment."""

JudgeNames = Annotated[
    list[str] | None,
    typer.Option("--judge", metavar="JUDGE", help=f"{JUDGE_HELP}; may be given repeatedly."),
]
"""The judges of a command that compares several."""

JudgeOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--judge-option",
        metavar="KEY=VALUE",
        help="An option of a judge that is a model, such as seed=1, or a field of its requests; "
        "may be given repeatedly. Beside several judges it is for all but lexical and local.",
    ),
]
"""Options of the judge, or of all judges that are models."""


def judge_from(name: str | None, options: Sequence[str] | None) -> Judge:
    """Creates the judge of a command line.

    Args:
        name: What ``--judge`` has; None takes that of the environment.
        options: What each ``--judge-option`` has.

    Raises:
        ClaimspanError: As ``default_judge`` and ``parse_options`` do.
    """
    if name is not None and not name.strip():
        raise ConfigError("--judge is empty: name a judge, or leave it out")
    return default_judge(name, options=parse_options(options or ()))


def judges_from(names: Sequence[str], options: Sequence[str] | None) -> dict[str, Judge]:
    """Creates all judges of a command line, before the first one begins.

    The options hold for each of them but ``lexical`` and ``local``. If there is no other, or one
    of the others takes none, that is an error.

    Args:
        names: What each ``--judge`` has.
        options: What each ``--judge-option`` has.

    Raises:
        ClaimspanError: As ``judge_from``, or options are given without any judge.
    """
    given = parse_options(options or ())
    if given and not names:
        raise ConfigError("--judge-option is given without a judge: name one with --judge")
    takers = list(filter(takes_options, names)) or names
    return {name: default_judge(name, options=given if name in takers else None) for name in names}
