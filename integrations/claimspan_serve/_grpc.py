"""OTLP over gRPC: the same answers as over HTTP, in the words of gRPC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import grpc
from grpc.aio import Server, ServicerContext

from claimspan_serve._forward import Credentials, GrpcForward
from claimspan_serve._http import ONLY_SPANS, WRONG_TOKEN
from claimspan_serve._receiver import Receiver, RefusedError

__all__ = ["MAX_CALLS", "grpc_server"]

MAX_CALLS: Final = 100
"""Calls at once. More are refused until one has its answer: each may have a message in memory."""

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

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        method = handler_call_details.method
        if method not in _PATHS:
            return None

        async def answer(body: bytes, context: ServicerContext[bytes, bytes]) -> bytes:
            try:
                return await self._answer(method, body, context)
            except RefusedError as error:
                what = (("grpc-status-details-bin", error.status.SerializeToString()),)
                await context.abort(_CODES[error.code], str(error), what)

        return grpc.unary_unary_rpc_method_handler(answer)

    async def _answer(
        self, method: str, body: bytes, context: ServicerContext[bytes, bytes]
    ) -> bytes:
        if not self._credentials.are_in(dict(context.invocation_metadata() or ())):
            raise RefusedError(401, WRONG_TOKEN)
        is_spans = _PATHS[method] == "Trace"
        if self._forward is None:
            if not is_spans:
                raise RefusedError(404, ONLY_SPANS)
            return (await self._receiver.take(body)).SerializeToString()
        answer = await self._forward.send(method, body, context)
        if is_spans:
            self._receiver.take_copy(body)
        return answer


def grpc_server(
    receiver: Receiver, forward: GrpcForward | None, credentials: Credentials
) -> Server:
    """Return a server that has no port yet.

    Args:
        receiver: Takes the spans, or a copy of those that are forwarded.
        forward: Where requests go on to; None answers them here.
        credentials: Wanted of each request.
    """
    options: Sequence[tuple[str, int]] = [
        ("grpc.max_receive_message_length", receiver.max_request_bytes),
        ("grpc.so_reuseport", 0),  # a second service on the port has to be told
    ]
    export = _Export(receiver, forward, credentials)
    return grpc.aio.server(handlers=[export], options=options, maximum_concurrent_rpcs=MAX_CALLS)
