"""Writes scores to MLflow as assessments of its traces.

As a sink of the monitor, with MLflow's own environment variables or with arguments::

    monitor = Monitor(sinks=[MLflowWriter("http://127.0.0.1:5000")])
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pydantic import JsonValue

from claimspan.errors import ConfigError, DeliveryError
from claimspan_tracing.adapters import (
    Backend,
    BackendWriter,
    Connection,
    NotStoredError,
    RefusalError,
    ScoredRecord,
    checked_address,
    is_list,
    is_mapping,
)
from claimspan_tracing.semconv import JUDGE_NAME, JUDGE_VERSION

__all__ = ["MLflowWriter"]

URI: Final = "tracking_uri or MLFLOW_TRACKING_URI"
CREDENTIALS: Final = "MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and _PASSWORD"

AT_ONCE: Final = 4
"""Records written side by side; a server starts four workers unless it is told otherwise."""

_NOT_FOUND: Final = 404

LABEL: Final = "claimspan"
"""Feedback that is ``low`` if any score is, else ``good``: MLflow's page filters feedback by
equality alone, so this one word finds the bad answers."""

CHUNK_RELEVANCE: Final = "chunk_relevance"
"""Feedback on a chunk: MLflow's page shows it beside the document of the retriever's span."""

# The page of a trace looks for the place of a document in the first of these, then in the second.
OUTPUT_KEY: Final = "span_output_key"
CHUNK_INDEX: Final = "chunk_index"

_Key = tuple[str, str, str, str, str]
"""Name, span, place of the chunk, judge and its version: one piece of feedback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Feedback:
    """The assessment of a span, or of one chunk on it."""

    name: str
    span_id: str
    value: float | str
    rationale: str = ""
    place: str = ""
    """Of the chunk among the documents of the span, from 0."""


class MLflowWriter(BackendWriter):
    """Adds each score to its trace as feedback, with the explanation as its rationale.

    One more, ``claimspan``, says in a word whether any score is low: filter by it. If there is a
    ground truth, each document of a retriever gets ``chunk_relevance``, yes or no.

    MLflow stores a repeated score as two assessments. So the scores of a trace are looked up first,
    and only what is missing is added. A trace that is not stored yet is asked for again, for two
    minutes.
    """

    wants_whole_values: Final = True
    """Spans that go where this writes show documents and messages in inputs and outputs."""

    def __init__(
        self,
        tracking_uri: str | None = None,
        *,
        token: str | None = None,
        username: str | None = None,
        password: str | None = None,
        documents: bool = True,
        metrics: Sequence[str] | None = None,
    ) -> None:
        """Set the server; missing arguments are looked up as MLflow's own client does.

        Args:
            tracking_uri: Address of a tracking server. Otherwise ``MLFLOW_TRACKING_URI``.
            token: Otherwise ``MLFLOW_TRACKING_TOKEN``.
            username: Otherwise ``MLFLOW_TRACKING_USERNAME``; wins over a token.
            password: Otherwise ``MLFLOW_TRACKING_PASSWORD``.
            documents: Whether to say of each chunk whether it is relevant, if there is a
                ground truth. MLflow takes one request for each.
            metrics: The scores to write, of those that are measured; None writes all.

        Raises:
            ConfigError: There is no address of a server, or only half of name and password.
            MissingExtraError: httpx is not installed.
        """
        user = _user(username, password)
        token = token if token is not None else os.environ.get("MLFLOW_TRACKING_TOKEN")
        super().__init__(
            Backend(
                "MLflow",
                _address(tracking_uri),
                extra="mlflow",
                settings=f"{URI}, and {CREDENTIALS}",
                headers={"Authorization": f"Bearer {token}"} if token and user is None else None,
                user=user,
            ),
            metrics,
        )
        self._documents = documents

    async def _write(
        self, connection: Connection, records: Sequence[ScoredRecord]
    ) -> dict[int, DeliveryError]:
        turns = asyncio.Semaphore(AT_ONCE)

        async def write(record: ScoredRecord) -> DeliveryError | None:
            async with turns:
                try:
                    await self._add_missing(connection, record)
                except DeliveryError as error:
                    return error
            return None

        found = await asyncio.gather(*map(write, records))
        return {index: error for index, error in enumerate(found) if error is not None}

    async def _add_missing(self, connection: Connection, record: ScoredRecord) -> None:
        path = f"/api/3.0/mlflow/traces/tr-{record.trace_id}"
        try:
            stored = _stored(await connection.get(path))
        except RefusalError as error:
            if error.status != _NOT_FOUND:
                raise
            raise NotStoredError(
                f"MLflow has no trace yet that scores are for: if it never comes, check {URI}, and "
                "where the spans are exported to"
            ) from None
        refusal: DeliveryError | None = None
        wanted = (*_all_of(record), *(_of_chunks(record) if self._documents else ()))
        # The last one first: MLflow's page of a trace shows the newest feedback on top.
        for feedback in reversed(wanted):
            if _key(record, feedback) in stored:
                continue
            try:
                await connection.post(
                    f"{path}/assessments", _body(record, feedback), answer="assessment"
                )
            except DeliveryError as error:
                if not error.final:
                    raise
                refusal = error  # of this one; the others may be taken
        if refusal is not None:
            raise refusal


def _all_of(record: ScoredRecord) -> Iterator[_Feedback]:
    """The feedback on a record as a whole, in the order in which people look at it."""
    span_id, judgement = record.span_id, record.judgement
    yield _Feedback(name=LABEL, span_id=span_id, value=judgement.label, rationale=judgement.summary)
    for each in record.assessments:
        yield _Feedback(
            name=each.name, span_id=span_id, value=each.value, rationale=each.explanation
        )


def _of_chunks(record: ScoredRecord) -> Iterator[_Feedback]:
    for chunk in record.chunks:
        yield _Feedback(
            name=CHUNK_RELEVANCE,
            span_id=chunk.span_id,
            value="yes" if chunk.is_relevant else "no",
            place=str(chunk.position),
        )


def _key(record: ScoredRecord, feedback: _Feedback) -> _Key:
    judge = record.judge_name, record.judge_version
    return feedback.name, feedback.span_id, feedback.place, *judge


def _stored(trace: JsonValue) -> set[_Key]:
    """The feedback that a trace has, by what ``_body`` writes."""
    info = _value(_value(trace, "trace"), "trace_info")
    if not is_mapping(info):
        raise DeliveryError(f"MLflow's answer holds no trace: check {URI}", final=True)
    assessments = info.get("assessments")
    found: set[_Key] = set()
    for each in assessments if is_list(assessments) else ():
        metadata = _value(each, "metadata")
        fields = _value(each, "assessment_name"), _value(each, "span_id")
        judge = _value(metadata, JUDGE_NAME), _value(metadata, JUDGE_VERSION)
        parts = (*fields, _value(metadata, CHUNK_INDEX), *judge)
        name, span_id, place, judge_name, version = (str(part or "") for part in parts)
        found.add((name, span_id, place, judge_name, version))
    return found


def _value(value: object, key: str) -> object:
    return value.get(key) if is_mapping(value) else None


def _body(record: ScoredRecord, feedback: _Feedback) -> JsonValue:
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    source: JsonValue = {
        "source_type": "LLM_JUDGE" if record.is_by_model else "CODE",
        "source_id": record.judge,
    }
    metadata: dict[str, JsonValue] = {
        JUDGE_NAME: record.judge_name,
        JUDGE_VERSION: record.judge_version,
    }
    if feedback.place:
        metadata |= {CHUNK_INDEX: feedback.place, OUTPUT_KEY: feedback.place}
    return {
        "assessment": {
            "assessment_name": feedback.name,
            "trace_id": f"tr-{record.trace_id}",
            "span_id": feedback.span_id,
            "source": source,
            "feedback": {"value": feedback.value},
            **({"rationale": feedback.rationale} if feedback.rationale else {}),
            "metadata": metadata,
            # The server takes a time that is missing for 1970.
            "create_time": now,
            "last_update_time": now,
        }
    }


def _address(tracking_uri: str | None) -> str:
    uri = tracking_uri if tracking_uri is not None else os.environ.get("MLFLOW_TRACKING_URI", "")
    if not uri.strip().startswith(("http://", "https://")):
        raise ConfigError(
            f"{URI} names no tracking server: give an address like http://127.0.0.1:5000; scores "
            "cannot be written to a file or a database"
        )
    return checked_address(uri, URI)


def _user(username: str | None, password: str | None) -> tuple[str, str] | None:
    name = username if username is not None else os.environ.get("MLFLOW_TRACKING_USERNAME", "")
    word = password if password is not None else os.environ.get("MLFLOW_TRACKING_PASSWORD", "")
    if bool(name) != bool(word):
        raise ConfigError(
            "MLflow has a user name without a password, or the other way round: give both as "
            "username and password, or as MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
        )
    return (name, word) if name else None
