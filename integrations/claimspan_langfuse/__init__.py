"""Writes scores to Langfuse, on the traces that it gets through OpenTelemetry.

As a sink of the monitor, with Langfuse's own environment variables or with arguments::

    monitor = Monitor(sinks=[LangfuseWriter()])
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from claimspan.errors import ConfigError, DeliveryError
from claimspan.evaluation.judgement import Assessment
from claimspan_tracing.adapters import (
    Backend,
    BackendWriter,
    Connection,
    ScoredRecord,
    checked_address,
)
from claimspan_tracing.semconv import JUDGE_NAME, JUDGE_VERSION

__all__ = ["LangfuseWriter"]

HOST: Final = "host, LANGFUSE_BASE_URL or LANGFUSE_HOST"
KEYS: Final = "LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"

AT_ONCE: Final = 8
"""Scores on their way at the same time; each is a request of its own."""

_IDS: Final = uuid.UUID("6f1f6c2e-58f0-5d3c-9a53-6f6a0b3c1e7d")
"""Namespace of our ids, made up once: another one would store every score anew."""


class LangfuseWriter(BackendWriter):
    """Adds each score to its trace and root observation, with the explanation as its comment.

    The id of a score follows from trace, span, metric and version of the judge, so that one that
    is written again takes the place of the first. Each score is a request of its own: Langfuse has
    given up its endpoint for batches, and no other takes several.
    """

    wants_whole_values: Final = True
    """Spans that go where this writes show the messages of a model in its input alone."""

    def __init__(
        self,
        host: str | None = None,
        *,
        public_key: str | None = None,
        secret_key: str | None = None,
        environment: str | None = None,
        metrics: Sequence[str] | None = None,
    ) -> None:
        """Set the server; missing arguments are looked up as Langfuse's own client does.

        Args:
            host: Address, such as ``https://cloud.langfuse.com``. Otherwise ``LANGFUSE_BASE_URL``
                or ``LANGFUSE_HOST``. There is no default: scores quote claims, and go to nobody
                who was not named.
            public_key: Otherwise ``LANGFUSE_PUBLIC_KEY``.
            secret_key: Otherwise ``LANGFUSE_SECRET_KEY``.
            environment: That of the traces. Otherwise ``LANGFUSE_TRACING_ENVIRONMENT``.
            metrics: The scores to write, of those that are measured; None writes all.

        Raises:
            ConfigError: Address or keys are missing, or the address cannot be read.
            MissingExtraError: httpx is not installed.
        """
        address = _given(host, "LANGFUSE_BASE_URL", "LANGFUSE_HOST")
        if not address:
            raise ConfigError(f"no address of Langfuse: give {HOST}")
        user = (
            _given(public_key, "LANGFUSE_PUBLIC_KEY"),
            _given(secret_key, "LANGFUSE_SECRET_KEY"),
        )
        if not all(user):
            raise ConfigError(f"no keys of Langfuse: give public_key and secret_key, or set {KEYS}")
        super().__init__(
            Backend(
                "Langfuse",
                checked_address(address, HOST),
                extra="langfuse",
                settings=f"{HOST}, and {KEYS}",
                user=user,
            ),
            metrics,
        )
        self._environment = _given(environment, "LANGFUSE_TRACING_ENVIRONMENT")

    async def _write(
        self, connection: Connection, records: Sequence[ScoredRecord]
    ) -> dict[int, DeliveryError]:
        turns = asyncio.Semaphore(AT_ONCE)
        errors: dict[int, DeliveryError] = {}

        async def write(index: int, record: ScoredRecord, assessment: Assessment) -> None:
            async with turns:
                # What will be tried again is sent again as a whole: the rest need not fail too.
                if index in errors and not errors[index].final:
                    return
                try:
                    await connection.post(
                        "/api/public/scores", self._score(record, assessment), answer="id"
                    )
                except DeliveryError as error:
                    # Not in place of one that is tried again, which sends all of them anew.
                    if index not in errors or errors[index].final:
                        errors[index] = error

        await asyncio.gather(
            *(
                write(index, record, assessment)
                for index, record in enumerate(records)
                for assessment in record.assessments
            )
        )
        return errors

    def _score(self, record: ScoredRecord, assessment: Assessment) -> JsonValue:
        metadata: JsonValue = {JUDGE_NAME: record.judge_name, JUDGE_VERSION: record.judge_version}
        return {
            "id": _id(record, assessment),
            "traceId": record.trace_id,
            "observationId": record.span_id,
            "name": assessment.name,
            "value": assessment.value,
            "dataType": "NUMERIC",
            "metadata": metadata,
            **({"comment": assessment.explanation} if assessment.explanation else {}),
            **({"environment": self._environment} if self._environment else {}),
        }


def _id(record: ScoredRecord, assessment: Assessment) -> str:
    parts = record.trace_id, record.span_id, assessment.name, record.judge_name
    return str(uuid.uuid5(_IDS, "\n".join((*parts, record.judge_version))))


def _given(value: str | None, *variables: str) -> str:
    if value is not None:
        return value.strip()
    return next(filter(None, (os.environ.get(name, "").strip() for name in variables)), "")
