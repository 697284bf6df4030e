"""The command ``claimspan spool``: shows the rows of a spool, tries again, and judges the rest."""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from claimspan.cli.options import AsJson
from claimspan.errors import ConfigError
from claimspan.text.visible import visible
from claimspan_tracing.remote import judge_spool
from claimspan_tracing.spool.place import check_place
from claimspan_tracing.spool.store import VERSION

__all__ = ["Contents", "spool"]


@dataclass(frozen=True, slots=True)
class Contents:
    """The rows of a spool, counted."""

    file: str
    states: dict[str, int]
    oldest_seconds: float | None
    """Age of the oldest row that is not dead; None if there is none."""

    dead: list[dict[str, str]]


def spool(
    file: Annotated[Path, typer.Argument(help="A file given to Monitor(spool=...).")],
    retry_dead: Annotated[
        bool, typer.Option("--retry-dead", help="Let dead letters be evaluated once more.")
    ] = False,
    judge: Annotated[
        bool,
        typer.Option(
            "--judge",
            help="Judge what waits, with the judge of CLAIMSPAN_JUDGE, until nothing is left that "
            "no other process has. `claimspan worker --spool` goes on until it is stopped.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what waits in a spool, try dead letters again, and judge the rest."""
    judged: dict[str, int] | None = None
    try:
        retried, contents = _look(file, retry_dead=retry_dead)
        if judge:
            judged = judge_spool(file, until_empty=True)
            _, contents = _look(file, retry_dead=False)
    except sqlite3.Error as error:
        raise ConfigError(
            f"cannot read {file} ({error.sqlite_errorname}): give a file of Monitor(spool=...)"
        ) from None
    if as_json:
        found = asdict(contents) | {"retried": retried}
        typer.echo(json.dumps(found if judged is None else found | {"judged": judged}))
    else:
        if judged is not None:
            typer.echo(f"{_listed(judged) or 'nothing'} written")
        _show(contents, retried)


def _look(file: Path, *, retry_dead: bool) -> tuple[int, Contents]:
    check_place(file)
    if not file.is_file():
        raise ConfigError(f"there is no file {file}: give a file of Monitor(spool=...)")
    database = sqlite3.connect(
        f"{file.absolute().as_uri()}?mode=rw", timeout=5.0, isolation_level=None, uri=True
    )
    try:
        if database.execute("PRAGMA user_version").fetchone()[0] != VERSION:
            raise ConfigError(f"{file} is no spool of version {VERSION}: give another file")
        retried = 0
        if retry_dead:
            retried = database.execute(
                "UPDATE records SET state = 'waiting', owner = NULL, attempts = 0, "
                "died_at = NULL, reason = '' WHERE state = 'dead'"
            ).rowcount
        return retried, _contents(file, database)
    finally:
        database.close()


def _contents(file: Path, database: sqlite3.Connection) -> Contents:
    states = dict(database.execute("SELECT state, count(*) FROM records GROUP BY state"))
    (oldest,) = database.execute(
        "SELECT min(added_at) FROM records WHERE state <> 'dead'"
    ).fetchone()
    letters = database.execute(
        "SELECT trace_id, span_id, reason FROM records WHERE state = 'dead' ORDER BY id"
    )
    return Contents(
        file=str(file),
        states={str(state): int(count) for state, count in sorted(states.items())},
        # The clock may have been set since; no age is below zero.
        oldest_seconds=None if oldest is None else max(0.0, time.time() - float(oldest)),
        dead=[
            {"trace_id": str(trace_id), "span_id": str(span_id), "reason": str(reason)}
            for trace_id, span_id, reason in letters
        ],
    )


def _show(contents: Contents, retried: int) -> None:
    # Names and reasons are ours, but the file may have been written by anybody.
    typer.echo(visible(f"{contents.file}: {_listed(contents.states) or 'empty'}"))
    if contents.oldest_seconds is not None:
        typer.echo(f"the oldest has waited for {contents.oldest_seconds:.0f} s")
    for letter in contents.dead:
        reason = " ".join(letter["reason"].split())
        typer.echo(visible(f"dead  {letter['trace_id'][:8]}  {reason}"))
    if retried:
        typer.echo(f"{retried} dead letters wait for another attempt")


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())
