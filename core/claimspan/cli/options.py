"""The options that several commands have: judges, metrics, columns, progress, JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import typer

from claimspan.errors import ConfigError
from claimspan.evaluation.selection import Selection
from claimspan.judges import Judge, default_judge
from claimspan.judges.choice import parse_options, takes_options
from claimspan.judges.criteria import Criterion
from claimspan.loading import load_object

__all__ = [
    "JUDGE_HELP",
    "AsJson",
    "ColumnMap",
    "Criteria",
    "JudgeName",
    "JudgeNames",
    "JudgeOptions",
    "Metrics",
    "Progress",
    "ThresholdOptions",
    "judge_from",
    "judges_from",
    "selection_from",
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

JudgeNames = Annotated[
    list[str] | None,
    typer.Option("--judge", metavar="JUDGE", help=f"{JUDGE_HELP}; may be given repeatedly."),
]

JudgeOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--judge-option",
        metavar="KEY=VALUE",
        help="An option of a judge that is a model, such as seed=1, or a field of its requests; "
        "may be given repeatedly. Beside several judges it is for all but lexical and local.",
    ),
]

Metrics = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        metavar="NAMES",
        help="What to measure: names separated by commas, 'all', 'default', or FILE.py:NAME of a "
        "criterion or a function. What is not chosen is not judged.",
    ),
]

ThresholdOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--threshold",
        metavar="METRIC=VALUE",
        help="The worst value of a metric that is good, such as faithfulness=0.9; may be given "
        "repeatedly.",
    ),
]

Criteria = Annotated[
    list[str] | None,
    typer.Option(
        "--criterion",
        metavar="NAME=STATEMENT",
        help="What a language model has to judge as well: polite='The answer is polite.' May be "
        "given repeatedly.",
    ),
]

ColumnMap = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="FIELD=COLUMN",
        help="The column of a field, if its name is none of those in use: question=prompt. "
        "May be given repeatedly; context= evaluates without a context.",
    ),
]

Progress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress", help="Show a progress bar; by default only on a terminal."
    ),
]

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def judge_from(name: str | None, options: Sequence[str] | None) -> Judge:
    """The judge of ``--judge`` and each ``--judge-option``; None takes that of the environment."""
    if name is not None and not name.strip():
        raise ConfigError("--judge is empty: name a judge, or leave it out")
    return default_judge(name, options=parse_options(options or ()))


def judges_from(names: Sequence[str], options: Sequence[str] | None) -> dict[str, Judge]:
    """All judges of a command line, made before the first one begins.

    The options hold for each of them but ``lexical`` and ``local``. If there is no other, or one of
    the others takes none, that is an error.
    """
    given = parse_options(options or ())
    if given and not names:
        raise ConfigError("--judge-option is given without a judge: name one with --judge")
    takers = list(filter(takes_options, names)) or names
    return {name: default_judge(name, options=given if name in takers else None) for name in names}


def selection_from(
    metrics: str | None,
    thresholds: Sequence[str] | None = None,
    criteria: Sequence[str] | None = None,
    *,
    default: str = "default",
) -> Selection:
    """What ``--metrics``, each ``--threshold`` and each ``--criterion`` stand for.

    Raises:
        ConfigError: One of them cannot work, or ``FILE.py:NAME`` has no criterion or function.
    """
    names = [each.strip() for each in (metrics or default).split(",") if each.strip()]
    # An object of another kind is refused by its type.
    wanted: list[object] = [load_object(name) if ":" in name else name for name in names]
    wanted += [Criterion(*_pair("--criterion", each)) for each in criteria or ()]
    limits: dict[str, float] = {}
    for each in thresholds or ():
        name, value = _pair("--threshold", each)
        try:
            limits[name] = float(value)
        except ValueError:
            raise ConfigError(
                f"--threshold {each!r} has no number: write faithfulness=0.9"
            ) from None
    return Selection.of_any(wanted, limits)


def _pair(option: str, given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise ConfigError(f"{option} {given!r} is no pair: write NAME=VALUE")
    return name.strip(), value.strip()
