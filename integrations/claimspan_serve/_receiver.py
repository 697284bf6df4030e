"""What a request of OTLP is answered, by whatever transport it came."""

from __future__ import annotations

import asyncio
import threading
import zlib
from collections import Counter
from functools import partial
from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]  # stubs, and no py.typed
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # as above
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from claimspan.errors import ClaimspanError, PayloadError
from claimspan_serve._traces import WaitingTraces
from claimspan_tracing.otlp.decoding import DecodedSpans, spans_of_json, spans_of_protobuf

__all__ = ["RETRY_SECONDS", "Receiver", "RefusedError", "encoded", "full", "too_large", "unpacked"]

RETRY_SECONDS: Final = 5
"""What a client is told to wait while too much waits here; in that time traces become whole."""

SMALL: Final = 256 * 1024
"""Bytes of a request that is read in a few milliseconds."""

_CODES: Final = {400: 3, 401: 16, 404: 12, 413: 8, 415: 3, 429: 8, 502: 14, 503: 14}
"""Status of HTTP to the code of gRPC that says the same."""


class RefusedError(ClaimspanError):
    """A request that is not taken."""

    def __init__(self, status: int, message: str) -> None:
        """Set why.

        Args:
            status: Of HTTP.
            message: What is wrong, and what to do; without the content.
        """
        self.http_status: Final = status
        self.code: Final = _CODES[status]
        """Of gRPC."""

        super().__init__(message)

    @property
    def status(self) -> Status:
        """What OTLP has in the body of an error, with the time after which to try again."""
        status = Status(code=self.code, message=str(self))
        if self.http_status == 429:
            status.details.add().Pack(RetryInfo(retry_delay=Duration(seconds=RETRY_SECONDS)))
        return status


class Receiver:
    """Reads the spans of requests, and counts what cannot be read or taken."""

    def __init__(self, traces: WaitingTraces, max_request_bytes: int) -> None:
        """Set where spans go.

        Args:
            traces: Takes them.
            max_request_bytes: Of one request, with and without compression.
        """
        self.max_request_bytes: Final = max_request_bytes
        self._traces = traces
        self._counts = Counter[str](taken=0, refused=0, not_judged=0, unreadable_spans=0)
        self._lock = threading.Lock()

    @property
    def counts(self) -> dict[str, int]:
        """Requests that were read or refused, copies that were not, and unreadable spans."""
        with self._lock:
            return dict(self._counts)

    def take(self, body: bytes, encoding: str = "", *, is_json: bool = False) -> Message:
        """Take the spans of a request.

        Args:
            body: As it came.
            encoding: Its compression: gzip, or none.
            is_json: Whether it is JSON, and not protobuf.

        Returns:
            The answer: a partial success if some spans could not be read.

        Raises:
            RefusedError: It is no OTLP, too large, of an unknown compression, or there is no room
                for it now.
        """
        try:
            read, size = self._read(body, encoding, is_json)
        except RefusedError:
            self._count(refused=1)
            raise
        self._count(taken=1, unreadable_spans=read.rejected)
        self._traces.add(read.spans, size)
        answer = ExportTraceServiceResponse()
        if read.rejected:
            answer.partial_success.rejected_spans = read.rejected
            answer.partial_success.error_message = f"a span has {read.problem}"
        return answer

    async def take_apart(
        self, body: bytes, encoding: str = "", *, is_json: bool = False
    ) -> Message:
        """As ``take``, without keeping the requests beside a large one waiting."""
        take = partial(self.take, body, encoding, is_json=is_json)
        return take() if len(body) <= SMALL else await asyncio.to_thread(take)

    async def take_copy(self, body: bytes, encoding: str = "", *, is_json: bool = False) -> None:
        """As ``take``, of a request that was forwarded: what cannot be taken is counted alone."""
        try:
            await self.take_apart(body, encoding, is_json=is_json)
        except RefusedError:
            self._count(not_judged=1)

    def _count(self, **numbers: int) -> None:
        with self._lock:
            self._counts.update(numbers)

    def _read(self, body: bytes, encoding: str, is_json: bool) -> tuple[DecodedSpans, int]:
        if not self._traces.has_room(len(body)):
            raise full()
        plain = unpacked(body, encoding, self.max_request_bytes)
        if not self._traces.has_room(len(plain)):
            raise full()
        try:
            return spans_of_json(plain) if is_json else spans_of_protobuf(plain), len(plain)
        except PayloadError as error:
            told = f"the body is {error.reason}: send an ExportTraceServiceRequest of OTLP"
            raise RefusedError(400, told) from None


def unpacked(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """Undo the compression of a request.

    Raises:
        RefusedError: It is larger than ``max_bytes``, or its compression is unknown or broken.
    """
    if encoding.strip().lower() in ("", "identity"):
        plain = body
    elif encoding.strip().lower() == "gzip":
        unpacking = zlib.decompressobj(wbits=31)
        try:
            plain = unpacking.decompress(body, max_bytes + 1)
        except zlib.error:
            raise RefusedError(400, "the body is no gzip: send what the header says") from None
        if len(plain) <= max_bytes and (unpacking.unused_data or not unpacking.eof):
            raise RefusedError(400, "the body is not one whole stream of gzip: send it again")
    else:
        raise RefusedError(415, "the content encoding is unknown: send gzip, or no encoding")
    if max(len(plain), len(body)) > max_bytes:
        raise too_large(max_bytes)
    return plain


def too_large(max_bytes: int) -> RefusedError:
    """The refusal of a request that is larger than one may be."""
    return RefusedError(
        413,
        f"the request has more than {max_bytes} bytes: send smaller batches, or raise "
        "max_request_bytes of claimspan serve",
    )


def full() -> RefusedError:
    """The refusal of a request for which there is no room now."""
    return RefusedError(
        429,
        "too many spans wait for the rest of their traces: send this again later, or raise "
        "max_bytes of claimspan serve",
    )


def encoded(message: Message, *, is_json: bool) -> bytes:
    """A message in the encoding of the request that it answers."""
    return MessageToJson(message).encode() if is_json else message.SerializeToString()
