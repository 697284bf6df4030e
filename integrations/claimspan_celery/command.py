"""The command ``claimspan worker``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from claimspan import GroundTruth
from claimspan.cli.options import (
    Criteria,
    JudgeName,
    JudgeOptions,
    Metrics,
    ThresholdOptions,
    judge_from,
    selection_from,
)
from claimspan.errors import ConfigError
from claimspan.evaluation.evaluate import judge_for
from claimspan.text.visible import visible
from claimspan_celery._broker import QUEUE, check_broker, place_of
from claimspan_celery._processing import DAY_SECONDS, RedisStore
from claimspan_celery._worker import BROKER_VARIABLE, make_worker_app
from claimspan_tracing.adapters import judge_spool

if TYPE_CHECKING:
    from celery import Celery

__all__ = ["worker"]


def worker(
    broker: Annotated[
        str | None,
        typer.Option(envvar=BROKER_VARIABLE, help="URL of the broker, as redis://host:6379/0."),
    ] = None,
    judge: JudgeName = None,
    judge_options: JudgeOptions = None,
    metrics: Metrics = None,
    criteria: Criteria = None,
    thresholds: ThresholdOptions = None,
    ground_truth: Annotated[
        Path | None, typer.Option(help="Responses known to be right, JSON lines or CSV.")
    ] = None,
    queue: Annotated[str, typer.Option(help="Queue to take jobs from.")] = QUEUE,
    redis: Annotated[
        str | None,
        typer.Option(help="Redis that workers share; the broker, where that is a Redis."),
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(help="Processes; one per core where not given.", min=1)
    ] = None,
    pool: Annotated[str, typer.Option(help="prefork, solo or threads.")] = "prefork",
    log_level: Annotated[str, typer.Option(help="Least level that is logged.")] = "INFO",
    spool: Annotated[
        Path | None,
        typer.Option(help="Judge what waits in this file of Monitor(spool=...); without Celery."),
    ] = None,
) -> None:
    """Run a worker that evaluates records, of a broker by Celery or of a spool.

    Scores go to OTEL_EXPORTER_OTLP_ENDPOINT, or to claimspan-traces.jsonl if it is not set.
    """
    # Each process makes its own; a wrong name or option ends the command now.
    make_judge = partial(judge_from, judge, judge_options)
    selection = selection_from(metrics, thresholds, criteria)
    judge_for(selection, make_judge())
    if ground_truth is not None:
        GroundTruth.of(ground_truth)
    if spool is not None:
        judge_spool(spool, make_judge(), metrics=selection, ground_truth=ground_truth)
        return
    _check_broker(broker)
    app = make_worker_app(
        judge=make_judge,
        metrics=selection,
        ground_truth=ground_truth,
        broker=broker,
        queue=queue,
        redis_url=redis,
    )
    _tell_who_is_away(app, redis)
    options = ["--pool", pool, "--queues", queue, "--loglevel", log_level]
    if concurrency is not None:
        options += ["--concurrency", str(concurrency)]
    # Imported here, as Celery is: the command line must list its commands without either.
    from click import ClickException

    try:
        app.worker_main(["worker", *options])
    except ClickException as error:
        raise ConfigError(f"Celery refuses an option: {error.format_message()}") from None


def _tell_who_is_away(app: Celery, redis: str | None) -> None:
    """Say at once who cannot be reached; the worker waits for them, as they may start later."""
    going_on = "the worker goes on trying"
    checks = [partial(check_broker, app, f"check --broker or {BROKER_VARIABLE}; {going_on}")]
    if redis is not None:
        store = RedisStore(redis, DAY_SECONDS)
        checks.append(partial(store.check, place_of(redis), f"check --redis; {going_on}"))
    for check in checks:
        try:
            check()
        except ConfigError as error:
            typer.echo(visible(f"claimspan: {error}"), err=True)


def _check_broker(url: str | None) -> None:
    """Refuse a URL of a kind that Celery has no transport for: it would end in a traceback."""
    if not url or "://" not in url:
        return
    # Imported here, as Celery is.
    from kombu.transport import resolve_transport

    scheme = url.partition("://")[0]
    try:
        resolve_transport(scheme)
    except (KeyError, ImportError) as error:
        raise ConfigError(
            f"Celery cannot use a broker at {scheme}:// ({type(error).__name__}): give a URL like "
            "redis://localhost:6379/0, and install the client that it needs"
        ) from None
