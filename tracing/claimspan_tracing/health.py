"""Health: whether everything that a monitor needs is there and answers, before traffic comes.

``diagnose`` makes the checks one after another. Each says what it found, and what to do about it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import Context
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from http.client import HTTPException
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from threading import Event
from typing import Final, Literal, TypeVar
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, getproxies_environment, proxy_bypass, urlopen

from opentelemetry.trace import format_span_id, format_trace_id

from claimspan import Chunk, Evaluation, RagRecord, aevaluate
from claimspan.daemon_threads import start_daemon
from claimspan.errors import ClaimspanError
from claimspan.judges import Judge
from claimspan_tracing import semconv
from claimspan_tracing.dispatch.dispatcher import Dispatcher
from claimspan_tracing.guard import Guard
from claimspan_tracing.options import Settings
from claimspan_tracing.providers.destination import (
    NO_EXPORTER,
    endpoint_variable,
    is_switched_off,
    named_exporters,
)
from claimspan_tracing.providers.source import TracerSource
from claimspan_tracing.records import Exports, Record, Records
from claimspan_tracing.records.table import Stats

__all__ = ["CHECKS", "Diagnosis", "Finding", "State", "diagnose"]

_T = TypeVar("_T")

State = Literal["ok", "warning", "failed"]
"""``warning``: scores may be missing or wrong; ``failed``: there will be none, or none are seen."""

CHECKS: Final = "claimspan.checks"
"""Entry-point group: checks of integrations, each a function without arguments that returns
findings. The name of an entry is the package that has to be loaded for the check to make sense."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found."""

    check: str
    """The subject, in a word or two."""

    state: State
    """How it is."""

    found: str
    """The finding, in a sentence that holds no content of records and no key."""

    remedy: str = ""
    """What to do about it; empty if nothing is to be done."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings of one run, in the order of the checks."""

    findings: tuple[Finding, ...]
    """One or more for each check."""

    @property
    def ok(self) -> bool:
        """Whether no check has failed; warnings do not count."""
        return all(each.state != "failed" for each in self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __str__(self) -> str:
        """Returns a line for each finding, and one for what to do about it."""
        width = max((len(each.check) for each in self.findings), default=0)
        lines: list[str] = []
        for each in self.findings:
            lines.append(f"{each.state:7}  {each.check:{width}}  {each.found}")
            if each.remedy:
                lines.append(f"{'':7}  {'':{width}}  -> {each.remedy}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """Returns the diagnosis as JSON can take it."""
        return {"ok": self.ok, "findings": [asdict(each) for each in self.findings]}


def diagnose(settings: Settings, stats: Stats, timeout: float) -> Diagnosis:
    """Check everything that a monitor needs; no check can end the others.

    Sends one span through the tracer provider, and has the judge decide about two claims, which
    costs a few calls if it asks a language model.

    Args:
        settings: The options of the monitor.
        stats: Its counts so far.
        timeout: Seconds that the export, the judge and the clock may take, each.
    """
    checks: dict[str, Callable[[], Iterable[Finding]]] = {
        "versions": _check_versions,
        "environment": partial(_check_environment, settings),
        "provider": partial(_check_provider, settings.source),
        "export": partial(_check_export, settings.source, timeout),
        "clock": partial(_check_clock, timeout),
        "judge": partial(_check_judge, settings, timeout),
        "ground truth": partial(_check_ground_truth, settings),
        "records": partial(_check_traffic, settings, stats),
    }
    # Those of the frameworks that this process has loaded; the others have no state.
    for entry in entry_points(group=CHECKS):
        if entry.name in sys.modules:
            checks[entry.name] = partial(_check_of_integration, entry)
    return Diagnosis(tuple(each for name, check in checks.items() for each in _made(name, check)))


def _check_of_integration(entry: EntryPoint) -> Iterable[Finding]:
    check: Callable[[], Iterable[Finding]] = entry.load()
    return check()


def _made(name: str, check: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    try:
        yield from check()
    # A check calls judges, exporters and look-ups of others, which may raise anything.
    except Exception as error:  # noqa: BLE001 - said in the finding
        what = str(error) if isinstance(error, ClaimspanError) else type(error).__name__
        yield Finding(name, "failed", f"the check could not be made: {what}")


# --- what surrounds a monitor: versions, and variables that keep it or its judge off --------------

_PACKAGES: Final = (
    *("claimspan", "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"),
    *("langchain-core", "langgraph", "llama-index-core", "haystack-ai", "openai", "onnxruntime"),
)
"""What a report of a fault should name, in the order of the pipeline from us to the judge."""


def _check_versions() -> Iterator[Finding]:
    found = [f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    yield Finding("versions", "ok", ", ".join(found))


def _check_environment(settings: Settings) -> Iterator[Finding]:
    if settings.dispatcher is None:
        yield from _check_proxies(settings.judge)
    if is_switched_off():
        yield Finding(
            "environment",
            "failed",
            "OTEL_SDK_DISABLED switches OpenTelemetry off, so there are no spans and no scores",
            "unset OTEL_SDK_DISABLED where you want scores",
        )
    if os.environ.get("OTEL_TRACES_SAMPLER", "").strip().lower().endswith("always_off"):
        yield Finding(
            "environment",
            "failed",
            "OTEL_TRACES_SAMPLER drops every trace, and no score can be on a span that is dropped",
            "set OTEL_TRACES_SAMPLER=parentbased_always_on, and Monitor(sample=...) for judging",
        )
    if named_exporters() == [NO_EXPORTER]:
        yield Finding(
            "environment",
            "warning",
            "OTEL_TRACES_EXPORTER=none: a provider that reads this variable exports nothing",
            "unset it, or give Monitor(tracer_provider=...) one with an exporter",
        )


def _check_proxies(judge: Judge) -> Iterator[Finding]:
    """Whether a proxy is set that the judge's requests do not take; its address is not told."""
    address = urlsplit(_own_address(judge))
    scheme, host = address.scheme, address.hostname or ""
    given = getproxies_environment()
    kind = next((each for each in (scheme, "all") if host and each in given), None)
    if kind is None or _is_near(host) or proxy_bypass(host):
        return
    name = f"{kind}_proxy"
    variable = name.upper() if os.environ.get(name.upper()) else name
    yield Finding(
        "environment",
        "warning",
        f"{variable} is set, and the judge ignores proxies: its requests go straight to {host}",
        "if they may go only through the proxy, set CLAIMSPAN_TRUST_ENV=1, or give --judge-option "
        "trust_env=true, or OpenAIJudge(trust_env=True)",
    )


def _own_address(judge: Judge) -> str:
    """The URL of a judge that connects by itself and trusts no environment; empty for others."""
    # A calibrated judge has the one that asks the model behind it.
    judge = getattr(judge, "judge", judge)
    if not hasattr(judge, "chat_model"):
        return ""
    # Here: with the client of OpenAI it takes half a second, which no other judge needs.
    from claimspan.judges.llm.judge import ModelJudge
    from claimspan.judges.llm.openai_chat import OpenAIChat

    chat = judge.chat_model.model if isinstance(judge, ModelJudge) else None
    return chat.url if isinstance(chat, OpenAIChat) and chat.ignores_proxies else ""


def _is_near(host: str) -> bool:
    """Whether a host is on this machine or in its network, which no proxy stands before."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".localhost"))


# --- the spans' way out: the provider, one span that is sent, and the backend's clock -------------

_ORDER_OF_A_TRACE: Final = 5.0
"""Seconds of difference between two clocks from which spans of two machines look out of order."""


def _check_provider(source: TracerSource) -> Iterator[Finding]:
    provider = source.sdk_provider()
    where = source.described()
    if provider is None:
        yield Finding(
            "provider", "ok", f"{where}, which is not the SDK's: it cannot be looked into"
        )
    elif source.failure:
        yield Finding("provider", "failed", where, source.failure)
    elif source.exports:
        yield Finding("provider", "ok", where)
    else:
        yield Finding(
            "provider",
            "failed",
            f"{where}, which has no exporter: no span leaves this process",
            "add a BatchSpanProcessor with an exporter to it, or call "
            "claimspan_openinference.instrument(tracer_provider=provider) in place of adding "
            "ClaimspanSpanProcessor to a provider of Phoenix's register()",
        )


def _check_export(source: TracerSource, timeout: float) -> Iterator[Finding]:
    """Sends one span, and says what the exporters made of it."""
    if source.failure or is_switched_off():
        return  # Another check has said so: without an exporter or spans nothing is sent.
    sent = Event()
    exports = Exports(Records(), source.sdk_provider, sent.set, Guard())
    span = source.tracer().start_span(semconv.SPAN_DOCTOR)
    context = span.get_span_context()
    if not span.is_recording() or not context.trace_flags.sampled:
        yield Finding(
            "export",
            "warning",
            "the provider's sampler dropped the test span: traces that it drops have no scores",
            "run the check again where it samples a share; Monitor(sample=...) is the place to "
            "save judging",
        )
        return
    key = format_trace_id(context.trace_id), format_span_id(context.span_id)
    followed = Record(key, span, None, Context(), is_open=False)
    exports.follow_ids(followed, [key[1]])
    span.end()
    if not exports.observes:
        yield Finding("export", "ok", "one span was handed over; its exporter cannot be observed")
        return
    exports.complete(followed)
    # On a thread: a backend that hangs holds a flush up for longer than the caller wants to wait.
    start_daemon(source.force_flush, "claimspan-check")
    began = time.monotonic()
    exported, failed, seconds = False, False, 0.0
    # Each exporter of the provider reports by itself, and all of them are to have the span.
    while not (exported or failed) and seconds < timeout:
        sent.wait(timeout - seconds)
        sent.clear()
        done, lost, _ = exports.take()
        exported, failed, seconds = bool(done), bool(lost), time.monotonic() - began
    if exported:
        yield Finding("export", "ok", f"one span was sent and taken in {seconds:.1f} s")
        return
    how = "the exporter failed" if failed else f"no answer came within {seconds:.0f} s"
    yield Finding(
        "export",
        "failed",
        f"one span was sent, and {how}",
        "check that the endpoint is up, that its URL ends in /v1/traces where the exporter does "
        "not add it, and that OTEL_EXPORTER_OTLP_HEADERS holds the key that it wants",
    )


def _check_clock(timeout: float) -> Iterator[Finding]:
    """Compares this machine's clock with that of the endpoint that the environment names."""
    _, endpoint = endpoint_variable()
    theirs = None
    if endpoint.startswith(("http://", "https://")):
        theirs = _date_of(endpoint, timeout)
    if theirs is None:
        return
    ahead = (datetime.now(UTC) - theirs).total_seconds()
    if abs(ahead) < _ORDER_OF_A_TRACE:
        yield Finding("clock", "ok", "agrees with that of the endpoint")
        return
    yield Finding(
        "clock",
        "warning",
        f"this machine's clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} "
        "that of the endpoint, so traces may not be where you look for them",
        "synchronise the clocks, for example by NTP",
    )


def _date_of(endpoint: str, timeout: float) -> datetime | None:
    """The time of an HTTP server, to the second; None if it does not say."""
    request = Request(endpoint, method="HEAD")  # noqa: S310 - the caller takes HTTP alone
    try:
        with urlopen(request, timeout=timeout) as reply:  # noqa: S310 - see above
            said = reply.headers.get("Date")
    except HTTPError as error:  # most receivers take POST alone, and answer all the same
        said = error.headers.get("Date")
    except (OSError, HTTPException, ValueError):
        return None
    return None if said is None else parsedate_to_datetime(said)


# --- the judge: whether it answers, in the form that it is asked for, and rightly -----------------

_FACT: Final = "The Danube rises in the Black Forest in Germany."
_RECORD: Final = RagRecord(
    query="Where does the Danube rise?",
    response=_FACT,
    chunks=(
        Chunk(id="1", text=f"{_FACT} It flows into the Black Sea."),
        Chunk(id="2", text="Sourdough bread is left to rise overnight before it is baked."),
    ),
)
"""A claim that a chunk has word for word, which no judge may miss."""

_CONNECT: Final = "check that its endpoint is up, its base URL, its key and its model's name"
_REQUESTS: Final = re.compile(r"; requests made: \d+")


def _check_judge(settings: Settings, timeout: float) -> Iterator[Finding]:
    """Has the judge evaluate a record whose verdicts are beyond doubt."""
    if settings.dispatcher is not None:
        yield _handed_over(settings.dispatcher, timeout)
        return

    def evaluated() -> Evaluation:
        call = aevaluate(_RECORD, judge=settings.judge, budget=settings.budget)
        return asyncio.run(asyncio.wait_for(call, timeout))

    name = settings.judge.name
    began = time.monotonic()
    try:
        evaluation = _within(timeout, evaluated)
    except TimeoutError:
        remedy = "check that its endpoint is up, or give it more time"
        yield Finding("judge", "failed", f"{name} gave no verdict within {timeout:g} s", remedy)
        return
    except ClaimspanError as error:
        remedy = "" if _says_why(str(error)) else _CONNECT
        yield Finding("judge", "failed", f"{name} failed: {error}", remedy)
        return
    told = f"{name} evaluated a record in {time.monotonic() - began:.1f} s"
    if calls := evaluation.usage.calls:
        told += f", {calls} calls, ${evaluation.usage.cost_usd:.4f}"
    # What the model was found to refuse, if the judge tells; a calibrated judge has the one that
    # asks the model behind it.
    learned: Sequence[str] = getattr(
        getattr(settings.judge, "judge", settings.judge), "learned", ()
    )
    if learned:
        told += f"; {', '.join(learned)}"
    # Checked here, and not in the process: whether it can be made there was checked at set-up.
    if settings.judge_specs:
        told += "; records go to a process of their own"
    yield _judged(evaluation, told)


def _says_why(message: str) -> bool:
    """Whether a message says more than that something failed: the server's words, or what to do."""
    return ": " in _REQUESTS.sub("", message)


def _judged(evaluation: Evaluation, found: str) -> Finding:
    faithfulness = evaluation.metrics.get("faithfulness")
    if faithfulness is None:
        reasons = "; ".join(evaluation.undecided) or "it found no claim in a plain sentence"
        remedy = "use a model that keeps to a JSON schema, or claimspan estimate another"
        if _says_why(reasons):
            remedy = ""
        return Finding("judge", "failed", f"{found}, without a verdict: {reasons}", remedy)
    if faithfulness < 1:
        remedy = "use another model: this one does not see what stands there word for word"
        return Finding("judge", "warning", f"{found}, and calls a copied sentence untrue", remedy)
    return Finding("judge", "ok", f"{found}, and is right about it")


def _handed_over(dispatcher: Dispatcher, timeout: float) -> Finding:
    """Whether workers can be given records, if the dispatcher can tell."""
    # No part of the protocol, which dispatchers of others fulfil already.
    check: Callable[[], object] | None = getattr(dispatcher, "check", None)
    try:
        if check is not None:
            _within(timeout, check)
    except TimeoutError:
        found = f"{type(dispatcher).__name__} could not connect within {timeout:g} s"
        return Finding("judge", "failed", found, "check the address that it sends records to")
    except ClaimspanError as error:
        return Finding("judge", "failed", str(error))
    return Finding("judge", "ok", "records are judged by workers: run the check there as well")


def _within(timeout: float, work: Callable[[], _T]) -> _T:
    """Calls a function on a thread: the caller may be in a loop, and the function may block."""
    outcome: list[_T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            raised.append(error)

    start_daemon(run, "claimspan-check").join(timeout)
    if raised:
        raise raised[0]
    if not outcome:
        raise TimeoutError
    return outcome[0]


# --- ground truths, and the records so far --------------------------------------------------------


def _check_ground_truth(settings: Settings) -> Iterator[Finding]:
    known = settings.ground_truth
    if known is not None and not known.is_lookup and not len(known):
        yield Finding(
            "ground truth",
            "failed",
            "the file or mapping holds none",
            "give JSON lines with query and ground_truth in each, or a CSV file with such columns",
        )
        return
    found = "none is given: metrics that need none, such as faithfulness, are written"
    if known is not None:
        asked = "a callable is asked for each query that is evaluated"
        found = asked if known.is_lookup else f"{len(known)} are known"
    yield Finding("ground truth", "ok", found)


def _check_traffic(settings: Settings, stats: Stats) -> Iterator[Finding]:
    if not stats.produced:
        yield Finding("records", "ok", "this process has captured none yet")
        return
    told = {"evaluated": stats.evaluated, **stats.skipped, **stats.dropped}
    shown = ", ".join(f"{count} {status}" for status, count in told.items() if count)
    yield Finding("records", "ok", f"{stats.produced} captured: {shown or 'all pending'}")
    lost = sum(stats.dropped.values())
    if lost > stats.evaluated:
        worst = max(stats.dropped, key=lambda status: stats.dropped[status])
        yield Finding(
            "records",
            "failed",
            f"{lost} of {lost + stats.evaluated} records to be evaluated have no scores, most of "
            f"them {worst}",
            "see docs/operations.md for what the state means, and the log of logger claimspan",
        )
    if stats.export_failures or stats.spans_lost or stats.undelivered:
        yield Finding(
            "records",
            "warning",
            f"{stats.export_failures} spans were not delivered, {stats.spans_lost} did not start "
            f"or end, {stats.undelivered} results did not arrive",
            "check exporters, span processors and sinks",
        )
    if settings.ground_truth is None or not stats.evaluated or settings.dispatcher is not None:
        return
    share = f"{stats.with_ground_truth} of {stats.evaluated} evaluated queries have a ground truth"
    if stats.with_ground_truth:
        yield Finding("ground truth", "ok", share)
    else:
        yield Finding(
            "ground truth",
            "warning",
            f"{share}: precision, recall and claim recall are missing",
            "compare the queries on the root spans with those of your file; put ground_truth_id "
            "into the run's metadata, or use GroundTruth(file, similarity=0.9)",
        )
