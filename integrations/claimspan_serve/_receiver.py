"""What a request of OTLP is answered, by whatever transport it came."""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]  # stubs, and no py.typed
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # as above
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from claimspan.errors import ClaimspanError, PayloadError
from claimspan_serve._journal import Journal
from claimspan_tracing.otlp.decoding import DecodedSpans, spans_of_json, spans_of_protobuf

READ_SECONDS: Final = 60.0
"""How long the content of a request may take to come. Exporters give up after ten seconds."""

RETRY_SECONDS: Final = 5
"""What a client is told to wait while too much waits here; in that time traces become whole."""

SMALL: Final = 256 * 1024
"""Bytes of a request that is read in a few milliseconds, without its compression."""

LARGE_AT_ONCE: Final = 2
"""Larger ones that are read at once: what protobuf makes of one may take fifty times its bytes."""

_PACKINGS: Final[Mapping[str, bool]] = {"": False, "identity": False, "gzip": True}
"""Content encoding to whether the body is packed by gzip."""

_CODES: Final = {400: 3, 401: 16, 404: 12, 408: 4, 413: 8, 415: 3, 429: 8, 502: 14, 503: 14}
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


class Arrivals:
    """The requests whose content is still coming.

    If they are too many, the one that has been coming the longest goes: a slow sender takes no
    place from the others.
    """

    def __init__(self) -> None:
        self._bounds: dict[asyncio.Timeout, None] = {}
        self._why = "too many requests come at once, and this one is the slowest"

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._bounds)

    @asynccontextmanager
    async def one(self) -> AsyncGenerator[None]:
        """Bound the time of one, in a block that waits for its content.

        Raises:
            RefusedError: It did not come in time, or had to go.
        """
        bound = asyncio.timeout(READ_SECONDS)
        try:
            async with bound:
                self._bounds[bound] = None
                yield
        except TimeoutError:
            if bound not in self._bounds:
                raise full(self._why) from None
            told = f"the request did not come to its end in {READ_SECONDS:.0f} s: send it at once"
            raise RefusedError(408, told) from None
        finally:
            self._bounds.pop(bound, None)

    def end(self) -> None:
        """Refuse all, so that their senders come again."""
        self._why = "the service is about to end"
        while self._bounds:
            self.drop_slowest()

    def drop_slowest(self) -> None:
        """Refuse the one that has been coming the longest."""
        bound = next(iter(self._bounds), None)
        if bound is not None:
            del self._bounds[bound]
            with suppress(RuntimeError):  # its time is up at this very moment
                bound.reschedule(0.0)


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
        self._arrivals: list[Arrivals] = []
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)

    def arrivals(self) -> Arrivals:
        """Return where a transport notes the requests that are coming."""
        self._arrivals.append(made := Arrivals())
        return made

    def end(self) -> None:
        """Wait no longer for the content of requests."""
        for each in self._arrivals:
            each.end()

    def refuse(self, error: RefusedError) -> Status:
        """Count a request that is not taken; returns what OTLP has in the body of the error."""
        self.counts["refused"] += 1
        status = Status(code=error.code, message=str(error))
        if error.http_status == 429:
            status.details.add().Pack(RetryInfo(retry_delay=Duration(seconds=RETRY_SECONDS)))
        return status

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
        packing = _PACKINGS.get(encoding.strip().lower())
        if packing is None:
            raise RefusedError(415, "the content encoding is unknown: send gzip, or none")
        if not self._journal.has_room(len(body)):
            raise full()
        # A small body by gzip may be a large one.
        is_small = len(body) <= SMALL and not (packing and _is_longer(body, SMALL))
        given = body, packing, is_json, self.max_request_bytes
        if is_small:
            read = read_body(*given)
        else:  # the requests beside a large one are not kept waiting
            async with self._large:
                read = await asyncio.to_thread(read_body, *given)
        if not self._journal.append(body, is_json=is_json, is_packed=packing):
            raise full()
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


def read_body(body: bytes, is_packed: bool, is_json: bool, max_bytes: int) -> DecodedSpans:
    """Read a request as it came.

    Raises:
        RefusedError: It is no OTLP, is larger than ``max_bytes``, or its compression is broken.
    """
    if len(body) > max_bytes:
        raise too_large(max_bytes)
    plain = unpacked(body, max_bytes) if is_packed else body
    try:
        return spans_of_json(plain) if is_json else spans_of_protobuf(plain)
    except PayloadError as error:
        told = f"the body is {error.reason}: send an ExportTraceServiceRequest of OTLP"
        raise RefusedError(400, told) from None


def _is_longer(body: bytes, n_bytes: int) -> bool:
    """Whether a body by gzip has more than some bytes without it, as far as it is sound."""
    try:
        return len(zlib.decompressobj(wbits=31).decompress(body, n_bytes + 1)) > n_bytes
    except zlib.error:
        return False


def unpacked(body: bytes, max_bytes: int) -> bytes:
    """Undo the compression of a request, as far as one may be long.

    Raises:
        RefusedError: It is longer, or no whole stream of gzip, and one alone.
    """
    unpacking = zlib.decompressobj(wbits=31)
    try:
        plain = unpacking.decompress(body, max_bytes + 1)
    except zlib.error:
        raise RefusedError(400, "the body is no gzip: send what the header says") from None
    if len(plain) > max_bytes:
        raise too_large(max_bytes)
    if unpacking.unused_data or not unpacking.eof:
        raise RefusedError(400, "the body is not one whole stream of gzip: send it again")
    return plain


def too_large(max_bytes: int) -> RefusedError:
    """The refusal of a request that is larger than one may be."""
    return RefusedError(
        413,
        f"the request has more than {max_bytes} bytes: send smaller batches, or raise "
        "max_request_bytes of claimspan serve",
    )


_NO_ROOM: Final = "too many spans wait for the rest of their traces, or the disk is full"


def full(why: str = _NO_ROOM) -> RefusedError:
    """The refusal of a request for which there is no room now."""
    return RefusedError(429, f"{why}: send this again later, or raise max_bytes of claimspan serve")
