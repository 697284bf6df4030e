"""Writes scores to Phoenix as annotations: columns of its tables, and pills on its spans.

As a sink of the monitor, with Phoenix's own environment variables or with arguments::

    monitor = Monitor(sinks=[PhoenixWriter()])
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import unquote, urlsplit

from pydantic import JsonValue

from claimspan.errors import ConfigError, DeliveryError
from claimspan_tracing.adapters import (
    Backend,
    BackendWriter,
    Connection,
    RefusalError,
    ScoredRecord,
    checked_address,
)
from claimspan_tracing.semconv import JUDGE_NAME, JUDGE_VERSION

__all__ = ["PhoenixWriter"]

ENDPOINT: Final = "endpoint, PHOENIX_ENDPOINT or PHOENIX_COLLECTOR_ENDPOINT"
"""The source of Phoenix's address, for messages."""

_DEFAULT: Final = "http://127.0.0.1:6006"
_DEFAULT_PORT: Final = "6006"
_GRPC_PORT: Final = 4317
_OTLP_PATH: Final = re.compile(r"/+v1/traces/*$")

RELEVANCE: Final = "relevance"
"""Annotation of a document: does it hold anything of the ground truth?"""

EVALUATION: Final = "evaluation"
"""Annotation of a trace: is any score of its records low?"""

_Json = dict[str, JsonValue]
_ABOUT_CONTENT: Final = frozenset({400, 413, 422})
"""Statuses by which Phoenix refuses the content of a request, and not its sender."""


class PhoenixWriter(BackendWriter):
    """Annotates spans with scores, documents with their relevance, and whole traces.

    Phoenix takes annotations of spans that it does not have yet, and keeps trying for ten minutes
    to attach them. One that is written again takes the place of the first: annotations of a span
    are told apart by metric and version of the judge, those of a trace by its record as well.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        documents: bool = True,
        trace: bool = True,
        metrics: Sequence[str] | None = None,
    ) -> None:
        """Set the server; missing arguments are looked up as Phoenix's own client does.

        Args:
            endpoint: Address, such as ``http://127.0.0.1:6006``. Otherwise ``PHOENIX_ENDPOINT``,
                ``PHOENIX_COLLECTOR_ENDPOINT``, ``OTEL_EXPORTER_OTLP_ENDPOINT``, or
                ``PHOENIX_HOST`` and ``PHOENIX_PORT``.
            api_key: Otherwise ``PHOENIX_API_KEY``.
            headers: Of each request. Otherwise ``PHOENIX_CLIENT_HEADERS``.
            documents: Whether to say of each chunk whether it is relevant, if there is a
                ground truth.
            trace: Whether to say of each trace whether any of its scores is low.
            metrics: The scores to write, of those that are measured; None writes all.

        Raises:
            ConfigError: The address or the headers cannot be read.
            MissingExtraError: httpx is not installed.
        """
        super().__init__(
            Backend(
                "Phoenix",
                address_of(endpoint),
                extra="phoenix",
                settings=f"{ENDPOINT}, and PHOENIX_API_KEY",
                headers=_headers_of(api_key, headers),
            ),
            metrics,
        )
        self._documents = documents
        self._trace = trace

    async def _write(
        self, connection: Connection, records: Sequence[ScoredRecord]
    ) -> dict[int, DeliveryError]:
        try:
            await self._annotate(connection, records)
        except DeliveryError as error:
            is_about_content = isinstance(error, RefusalError) and error.status in _ABOUT_CONTENT
            if len(records) == 1 or not is_about_content:
                return dict.fromkeys(range(len(records)), error)
        else:
            return {}
        # Phoenix takes all of a request or nothing: one bad record must not take others with it.
        errors: dict[int, DeliveryError] = {}
        for index, record in enumerate(records):
            alone = await self._write(connection, [record])
            errors |= {index: alone[0]} if alone else {}
        return errors

    async def _annotate(self, connection: Connection, records: Sequence[ScoredRecord]) -> None:
        wanted = {
            "span": [each for record in records for each in _of_span(record)],
            "document": [e for r in records if self._documents for e in _of_documents(r)],
            "trace": [_of_trace(record) for record in records if self._trace],
        }
        for kind, rows in wanted.items():
            if rows:
                # Without sync, a span that is not stored yet is no error.
                path = f"/v1/{kind}_annotations?sync=false"
                await connection.post(path, {"data": rows}, answer="data")


def _of_span(record: ScoredRecord) -> list[JsonValue]:
    return [
        _annotation(
            record,
            each.name,
            {"score": each.value, "label": each.label, "explanation": each.explanation or None},
            span_id=record.span_id,
            identifier=record.judge,
        )
        for each in record.assessments
    ]


def _of_documents(record: ScoredRecord) -> list[JsonValue]:
    # Without an identifier, which Phoenix refuses for documents: it stores one for each name,
    # span and position anyway.
    return [
        _annotation(
            record,
            RELEVANCE,
            {"score": chunk.score, "label": "relevant" if chunk.is_relevant else "irrelevant"},
            span_id=chunk.span_id,
            document_position=chunk.position,
        )
        for chunk in record.chunks
    ]


def _of_trace(record: ScoredRecord) -> JsonValue:
    """One row for the whole trace, without a score: a mean over metrics would mean nothing."""
    # All reasons would be as long as the trace; each is on its own annotation.
    return _annotation(
        record,
        EVALUATION,
        {"label": record.judgement.label, "explanation": record.judgement.summary or None},
        trace_id=record.trace_id,
        # A trace may hold several records.
        identifier=f"{record.judge} {record.span_id}",
    )


def _annotation(record: ScoredRecord, name: str, result: _Json, **target: JsonValue) -> JsonValue:
    metadata: _Json = {JUDGE_NAME: record.judge_name, JUDGE_VERSION: record.judge_version}
    return {
        "name": name,
        "annotator_kind": "LLM" if record.is_by_model else "CODE",
        "result": result,
        "metadata": metadata,
        **target,
    }


# --- where Phoenix is ----------------------------------------------------------------------------


def address_of(endpoint: str | None) -> str:
    """Return the address of the API, as given, or by the variables that Phoenix's client reads.

    Raises:
        ConfigError: It is no address.
    """
    if endpoint is not None:
        return _of_api(endpoint.strip(), "endpoint")
    for name in (
        "PHOENIX_ENDPOINT",
        "PHOENIX_COLLECTOR_ENDPOINT",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "PHOENIX_BASE_URL",
    ):
        if value := _variable(name):
            return _of_api(value, name)
    return _address_of_host(_variable("PHOENIX_HOST"), _variable("PHOENIX_PORT"))


def _headers_of(api_key: str | None, headers: Mapping[str, str] | None) -> dict[str, str]:
    found = dict(headers) if headers is not None else _parsed(_variable("PHOENIX_CLIENT_HEADERS"))
    key = api_key if api_key is not None else _variable("PHOENIX_API_KEY")
    if key and "authorization" not in map(str.lower, found):
        found["Authorization"] = f"Bearer {key}"
    return found


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip()


def _of_api(address: str, name: str) -> str:
    """The address of the API; that of the collector may be given in its place."""
    # An address for exporters may end with their path.
    found = checked_address(_OTLP_PATH.sub("", address), name)
    if urlsplit(found).port == _GRPC_PORT:
        # It takes spans alone, and would answer no request of ours.
        raise ConfigError(
            f"{name} has port {_GRPC_PORT}, where Phoenix takes spans by gRPC: set endpoint or "
            f"PHOENIX_ENDPOINT to the address of its page, which has port {_DEFAULT_PORT} by "
            "default"
        )
    return found


def _address_of_host(host: str, port: str) -> str:
    """The address of a server that is told its own host and port by the same variables."""
    if not host and not port:
        return _DEFAULT
    if host.startswith(("http://", "https://")):
        return checked_address(host, "PHOENIX_HOST")
    # A server that listens everywhere is reached on this machine.
    name = "127.0.0.1" if host in ("", "0.0.0.0", "::") else host  # noqa: S104 - compared, not bound
    if name.count(":") > 1 and not name.startswith("["):
        name = f"[{name}]"  # IPv6
    has_port = name.count(":") == 1 or "]:" in name
    place = name if has_port else f"{name}:{port or _DEFAULT_PORT}"
    return checked_address(f"http://{place}", "PHOENIX_HOST or PHOENIX_PORT")


def _parsed(text: str) -> dict[str, str]:
    """Headers as ``name=value,name=value``, both URL-encoded."""
    headers: dict[str, str] = {}
    for entry in filter(None, (each.strip() for each in text.split(","))):
        name, equals, value = entry.partition("=")
        if not equals or not name.strip():
            # The entry stays out of the message: it may be a key.
            raise ConfigError(
                "PHOENIX_CLIENT_HEADERS cannot be read: write name=value,name=value, URL-encoded"
            )
        headers[unquote(name).strip().lower()] = unquote(value).strip()
    return headers
