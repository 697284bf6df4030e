"""What a request of OTLP is answered, by whatever transport it came."""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from collections.abc import Mapping
from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]  # stubs, and no py.typed
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # as above
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from claimspan.errors import ClaimspanError, PayloadError
from claimspan_serve._journal import Journal
from claimspan_tracing.otlp.decoding import DecodedSpans, spans_of_json, spans_of_protobuf

__all__ = ["RETRY_SECONDS", "Receiver", "RefusedError", "encoded", "full", "read_body", "too_large"]

RETRY_SECONDS: Final = 5
"""What a client is told to wait while too much waits here; in that time traces become whole."""

SMALL: Final = 256 * 1024
"""Bytes of a request that is read in a few milliseconds."""

_PACKINGS: Final[Mapping[str, bool]] = {"": False, "identity": False, "gzip": True}
"""Content encoding to whether the body is packed by gzip."""

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
    """Puts requests down for who judges, and counts those that it cannot take."""

    def __init__(self, journal: Journal, max_request_bytes: int) -> None:
        """Set where requests go.

        Args:
            journal: Takes them.
            max_request_bytes: Of one request, with and without compression.
        """
        self.max_request_bytes: Final = max_request_bytes
        self.counts: Final = Counter[str](taken=0, refused=0, not_judged=0)
        """Requests that were put down or refused, and copies that were not put down."""

        self._journal = journal

    async def take(self, body: bytes, encoding: str = "", *, is_json: bool = False) -> Message:
        """Take a request, which is acknowledged by the answer.

        Args:
            body: As it came.
            encoding: Its compression: gzip, or none.
            is_json: Whether it is JSON, and not protobuf.

        Returns:
            The answer: a partial success if some spans cannot be read.

        Raises:
            RefusedError: It is no OTLP, too large, of an unknown compression, or there is no room
                for it now.
        """
        try:
            packing = _PACKINGS.get(encoding.strip().lower())
            if packing is None:
                raise RefusedError(415, "the content encoding is unknown: send gzip, or none")
            given = body, packing, is_json, self.max_request_bytes
            if not self._journal.has_room(len(body)):
                raise full()
            if len(body) <= SMALL:
                read, _ = read_body(*given)
            else:  # the requests beside a large one are not kept waiting
                read, _ = await asyncio.to_thread(read_body, *given)
            if not self._journal.append(body, is_json=is_json, is_packed=packing):
                raise full()
        except RefusedError:
            self.counts["refused"] += 1
            raise
        self.counts["taken"] += 1
        answer = ExportTraceServiceResponse()
        if read.rejected:
            answer.partial_success.rejected_spans = read.rejected
            answer.partial_success.error_message = f"a span has {read.problem}"
        return answer

    def take_copy(self, body: bytes, encoding: str = "", *, is_json: bool = False) -> None:
        """Take a request that was forwarded; one that there is no room for is counted alone."""
        packing = _PACKINGS.get(encoding.strip().lower())
        is_taken = packing is not None and self._journal.append(
            body, is_json=is_json, is_packed=packing
        )
        self.counts["taken" if is_taken else "not_judged"] += 1


def read_body(
    body: bytes, is_packed: bool, is_json: bool, max_bytes: int
) -> tuple[DecodedSpans, int]:
    """Read a request as it came.

    Returns:
        Its spans, and its bytes without compression.

    Raises:
        RefusedError: It is no OTLP, is larger than ``max_bytes``, or its compression is broken.
    """
    plain = _unpacked(body, max_bytes) if is_packed else body
    if max(len(plain), len(body)) > max_bytes:
        raise too_large(max_bytes)
    try:
        return spans_of_json(plain) if is_json else spans_of_protobuf(plain), len(plain)
    except PayloadError as error:
        told = f"the body is {error.reason}: send an ExportTraceServiceRequest of OTLP"
        raise RefusedError(400, told) from None


def _unpacked(body: bytes, max_bytes: int) -> bytes:
    """Undo the compression of a request, as far as one may be long."""
    unpacking = zlib.decompressobj(wbits=31)
    try:
        plain = unpacking.decompress(body, max_bytes + 1)
    except zlib.error:
        raise RefusedError(400, "the body is no gzip: send what the header says") from None
    if len(plain) <= max_bytes and (unpacking.unused_data or not unpacking.eof):
        raise RefusedError(400, "the body is not one whole stream of gzip: send it again")
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
