"""OTLP over gRPC: the same answers as over HTTP, in the words of gRPC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import grpc
from grpc.aio import Server, ServicerContext

from claimspan_serve._forward import Credentials, GrpcForward
from claimspan_serve._http import ONLY_SPANS, WRONG_TOKEN
from claimspan_serve._receiver import Receiver, RefusedError, unpacked

MAX_CALLS: Final = 100
"""Calls whose message is still coming: each may have a part of it in memory."""

MAX_ANSWERED: Final = 10 * MAX_CALLS
"""Calls at once, those too that wait for a backend. More are refused."""

_OPTIONS: Final = (
    ("grpc.so_reuseport", 0),  # a second service on the port has to be told
    # A message is unpacked here, no further than it may be long. The library would unpack all of it
    # before it looks at its size.
    ("grpc.per_message_decompression", 0),
    ("grpc.compression_enabled_algorithms_bitset", 0b101),  # none, and gzip
    ("grpc.max_concurrent_streams", MAX_CALLS),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_connection_idle_ms", 300_000),
)
"""Of a connection: what it may hold of the memory, and of the time, of the service."""

_PACKED: Final = b"\x1f\x8b"
"""What every message by gzip begins with, and no request of OTLP."""

_PATH: Final = "/opentelemetry.proto.collector.{0}.v1.{1}Service/Export"
_PATHS: Final = {_PATH.format(each.lower(), each): each for each in ("Trace", "Logs", "Metrics")}
"""Method to the signal that it takes."""

_CODES: Final = {each.value[0]: each for each in grpc.StatusCode}


class _Export(grpc.GenericRpcHandler):
    """Takes the bytes of a message as they are: they are forwarded so, or read as over HTTP."""

    def __init__(
        self, receiver: Receiver, forward: GrpcForward | None, credentials: Credentials
    ) -> None:
        self._receiver = receiver
        self._forward = forward
        self._credentials = credentials
        self._arrivals = receiver.arrivals()

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        method = handler_call_details.method
        if method not in _PATHS:
            return None

        async def answer(_: object, context: ServicerContext[bytes, bytes]) -> bytes:
            try:
                return await self._answer(method, context)
            except RefusedError as error:
                status = self._receiver.refuse(error)
                what = (("grpc-status-details-bin", status.SerializeToString()),)
                await context.abort(_CODES[error.code], str(error), what)

        # As if it were a stream of messages: one of them alone is read, and no longer than it may
        # take. The library waits without an end for the message of a unary call.
        return grpc.stream_unary_rpc_method_handler(answer)

    async def _answer(self, method: str, context: ServicerContext[bytes, bytes]) -> bytes:
        if not self._credentials.are_in(dict(context.invocation_metadata() or ())):
            raise RefusedError(401, WRONG_TOKEN)
        is_spans = _PATHS[method] == "Trace"
        if self._forward is None and not is_spans:
            raise RefusedError(404, ONLY_SPANS)
        if len(self._arrivals) >= MAX_CALLS:
            self._arrivals.drop_slowest()
        async with self._arrivals.one():
            body = await context.read()
        if not isinstance(body, bytes):  # pyright: ignore[reportUnnecessaryIsInstance] - the end of the stream is another object
            raise RefusedError(400, "the call has no message: send an ExportTraceServiceRequest")
        encoding = "gzip" if body.startswith(_PACKED) else ""
        if self._forward is None:
            return (await self._receiver.take(body, encoding)).SerializeToString()
        plain = unpacked(body, self._receiver.max_request_bytes) if encoding else body
        answer = await self._forward.send(method, plain, context)
        if is_spans:
            self._receiver.take_copy(body, encoding)
        return answer


def grpc_server(
    receiver: Receiver, forward: GrpcForward | None, credentials: Credentials, max_connections: int
) -> Server:
    """Return a server that has no port yet.

    Args:
        receiver: Takes the spans, or a copy of those that are forwarded.
        forward: Where requests go on to; None answers them here.
        credentials: Wanted of each request.
        max_connections: At once; more are closed.
    """
    options: Sequence[tuple[str, int]] = [
        *_OPTIONS,
        ("grpc.max_receive_message_length", receiver.max_request_bytes),
        ("grpc.max_allowed_incoming_connections", max_connections),
    ]
    export = _Export(receiver, forward, credentials)
    return grpc.aio.server(handlers=[export], options=options, maximum_concurrent_rpcs=MAX_ANSWERED)
