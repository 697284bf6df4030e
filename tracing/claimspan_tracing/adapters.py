"""Everything that an integration may import from tracing, beside the public API and ``semconv``.

An adapter reports starts and ends of a framework's runs to a ``Capture``, and provides a ``Reader``
that reads the framework's objects afterwards, on the worker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.trace import TracerProvider, format_span_id, format_trace_id

from claimspan.errors import ConfigError
from claimspan.text.shapes import is_list, is_mapping
from claimspan.text.structured import (
    ANSWER_FIELDS,
    arguments_of,
    fields_of,
    filled_in,
    structured_text,
    texts_in,
)
from claimspan_tracing.capture.hooks import (
    Capture,
    is_stream_left,
    leave_out,
    request_context,
)
from claimspan_tracing.capture.runs import (
    Document,
    Generation,
    Key,
    Reader,
    Retrieval,
    Run,
    RunKind,
    RunTree,
    value_at,
)
from claimspan_tracing.deliver.backend_writer import BackendWriter, ScoredRecord
from claimspan_tracing.deliver.delivery import Delivery
from claimspan_tracing.deliver.http import (
    Backend,
    Connection,
    NotStoredError,
    RefusalError,
    checked_address,
)
from claimspan_tracing.dispatch.dispatcher import Deliver, Dispatcher
from claimspan_tracing.environment import AutoInstrumentor
from claimspan_tracing.grades import (
    begins_with_grade,
    is_grade,
    says_grade,
)
from claimspan_tracing.guard import Guard, safe_text
from claimspan_tracing.job import JobKey
from claimspan_tracing.lifecycle import restart_in_child, shut_down_at_exit
from claimspan_tracing.model_calls import NOT_KNOWN, ModelCall, named_text, package_of, read_call
from claimspan_tracing.model_objects import ModelObject, reply_of
from claimspan_tracing.monitor import EXIT_TIMEOUT, Monitor, MonitorOptions
from claimspan_tracing.options import GroundTruthLike, sampler_of
from claimspan_tracing.providers.chains import (
    chain_of,
    exports,
    global_provider,
    processors_of,
    sdk_of,
    warn_of_no_exporter,
)
from claimspan_tracing.read.handwritten import (
    asked_in,
    names_evidence,
    written_evidence,
)
from claimspan_tracing.read.passages import acknowledges, is_echo
from claimspan_tracing.read.vocabulary import (
    ANSWER_NAMES,
    COMPONENT_ANSWERS,
    COMPONENT_NOTES,
    PASSED_ON,
    QUESTION_NAMES,
    ROLES,
)
from claimspan_tracing.read.waiting import THREAD_KEY, WAITS, waits_for_person
from claimspan_tracing.records import Stage, release_leases
from claimspan_tracing.redact.redaction import Redactor
from claimspan_tracing.remote import RemoteEvaluation, judge_spool
from claimspan_tracing.run.pipeline import AttachedPipeline, Inputs, filled
from claimspan_tracing.scope import meter
from claimspan_tracing.shared import default_monitor, takes_place_of, warn_of_several
from claimspan_tracing.suppression import is_suppressed, is_suppressed_by_us, run_suppressed
from claimspan_tracing.text import join_bounded
from claimspan_tracing.write.sinks import DeliveringSink, Finished

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import Span as SdkSpan
    from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider

    from claimspan_tracing.providers.sdk import CarrierProvider

__all__ = [
    "ANSWER_FIELDS",
    "ANSWER_NAMES",
    "COMPONENT_ANSWERS",
    "COMPONENT_NOTES",
    "EXIT_TIMEOUT",
    "NOT_KNOWN",
    "PASSED_ON",
    "QUESTION_NAMES",
    "ROLES",
    "THREAD_KEY",
    "WAITS",
    "AttachedPipeline",
    "AutoInstrumentor",
    "Backend",
    "BackendWriter",
    "Capture",
    "Connection",
    "Deliver",
    "DeliveringSink",
    "Delivery",
    "Dispatcher",
    "Document",
    "Finished",
    "Generation",
    "GroundTruthLike",
    "Inputs",
    "JobKey",
    "Key",
    "ModelCall",
    "ModelObject",
    "Monitor",
    "MonitorOptions",
    "NotStoredError",
    "Reader",
    "Redactor",
    "RefusalError",
    "RemoteEvaluation",
    "Retrieval",
    "Run",
    "RunKind",
    "RunTree",
    "ScoredRecord",
    "acknowledges",
    "arguments_of",
    "asked_in",
    "begins_with_grade",
    "carriers_to",
    "chain_of",
    "checked_address",
    "default_monitor",
    "exports",
    "fields_of",
    "filled",
    "filled_in",
    "guard_of",
    "is_echo",
    "is_grade",
    "is_list",
    "is_mapping",
    "is_stream_left",
    "is_suppressed",
    "is_suppressed_by_us",
    "is_under_way",
    "join_bounded",
    "judge_spool",
    "leave_out",
    "meter",
    "named_text",
    "names_evidence",
    "note_ended_exporters",
    "open_capture",
    "package_of",
    "processors_of",
    "read_call",
    "release_leases",
    "reply_of",
    "request_context",
    "restart_in_child",
    "run_suppressed",
    "safe_text",
    "sampler_of",
    "says_grade",
    "sdk_provider",
    "shut_down_at_exit",
    "structured_text",
    "submit_ended",
    "takes_place_of",
    "texts_in",
    "unread_traces",
    "value_at",
    "wait_until_idle",
    "waits_for_person",
    "warn_of_no_exporter",
    "warn_of_several",
    "write_beside",
    "write_to",
    "written_evidence",
]


def open_capture(monitor: Monitor, reader: Reader) -> Capture:
    """Return the hooks for one framework, whose inputs and outputs the reader knows."""
    return Capture(reader, monitor)


def guard_of(monitor: Monitor) -> Guard:
    """Return the guard that swallows and counts an integration's own errors."""
    return monitor.engine.guard


def submit_ended(monitor: Monitor, tree: RunTree) -> None:
    """Submit a tree with ended spans of others; scores go to a carrier span.

    The span of the tree stands for the ended root, and does not record.
    """
    engine = monitor.engine
    with engine.guard:
        engine.submit_ended(tree)


def is_under_way(monitor: Monitor, tree: RunTree) -> bool:
    """Whether a monitor has the record of a tree already, also in its spool."""
    span = tree.span.get_span_context()
    key = format_trace_id(span.trace_id), format_span_id(span.span_id)
    records = monitor.engine.records
    return records.get(key) is not None or (records.spool is not None and records.spool.has(key))


def unread_traces(monitor: Monitor) -> set[int]:
    """Ids of the traces that have records which were submitted and not read yet.

    A record that was read has its state, or waits for its evaluation; with a spool, in that.
    """
    rows = monitor.engine.records.rows()
    return {int(row.key[0], 16) for row in rows if row.stage is Stage.UNREAD}


def wait_until_idle(monitor: Monitor, timeout: float) -> bool:
    """Wait until every record has its state, without asking the provider to export.

    For a span processor, which the provider itself asks to flush. Returns False if a record is
    left after ``timeout`` seconds.
    """
    return monitor.engine.wait_until_idle(timeout)


def sdk_provider(provider: TracerProvider | None) -> SdkTracerProvider:
    """Return the provider of the OpenTelemetry SDK that span processors can be added to.

    Args:
        provider: One of the SDK's, or one that passes everything on to it, as Logfire's does; None
            for the application's global one.

    Raises:
        ConfigError: There is no provider, or it is not the SDK's.
    """
    found = provider or global_provider()
    if found is None:
        raise ConfigError(
            "the application has set no tracer provider: set one first, or give tracer_provider"
        )
    sdk = sdk_of(found)
    if sdk is None:
        raise ConfigError(
            f"the tracer provider is a {type(found).__module__}.{type(found).__qualname__}, which "
            "takes no span processors: give a provider of the OpenTelemetry SDK, or use the "
            "integration of your framework, which writes to any provider"
        )
    return sdk


def write_to(monitor: Monitor, provider: TracerProvider) -> bool:
    """Have a monitor write to a provider, if it was given none, and return whether it does."""
    return monitor.engine.write_to(provider)


def write_beside(monitor: Monitor, span: SdkSpan) -> bool:
    """As ``write_to``, with the provider that has started a span."""
    return monitor.engine.write_beside(span)


def carriers_to(endpoint: str | None) -> CarrierProvider:
    """Return the provider of carriers that go to an endpoint of OTLP; None keeps none.

    Raises:
        ConfigError: It is no address, or a variable of OpenTelemetry's has a value that is unknown.
        MissingExtraError: The exporter is not installed.
    """
    # Imported here: an integration alone does not load the SDK.
    from claimspan_tracing.providers.exporters import span_exporters
    from claimspan_tracing.providers.sdk import CarrierProvider

    return CarrierProvider([] if endpoint is None else span_exporters(endpoint, None))


def note_ended_exporters(monitor: Monitor, chain: object) -> None:
    """Count the scores that a monitor writes from now on as lost, if it writes to this chain."""
    monitor.engine.note_ended_exporters(chain)
