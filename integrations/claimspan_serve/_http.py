"""OTLP over HTTP: the paths, what they answer, and the state of the service for who runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from claimspan_serve._forward import TOKEN_HEADER, Credentials, HttpForward
from claimspan_serve._receiver import RETRY_SECONDS, Receiver, RefusedError, too_large

WRONG_TOKEN: Final = f"the token is wrong or missing: send it as bearer, or in {TOKEN_HEADER}"
ONLY_SPANS: Final = "spans alone are judged; with --forward, logs and metrics go on to the backend"

LARGEST_AT_ONCE: Final = 16
"""Requests of the largest size whose content may be in memory at once; of others there are more."""

_SIGNALS: Final = ("traces", "logs", "metrics")
_JSON: Final = "application/json"
_PROTOBUF: Final = "application/x-protobuf"


def application(
    receiver: Receiver,
    forward: HttpForward | None,
    credentials: Credentials,
    health: Callable[[], Mapping[str, object]],
    is_ready: Callable[[], bool],
    *,
    takes_spans: bool,
) -> Starlette:
    """Return the application that answers OTLP over HTTP.

    Args:
        receiver: Takes the spans, or a copy of those that are forwarded.
        forward: Where requests go on to; None answers them here.
        credentials: Wanted of each request.
        health: Returns what ``/healthz`` shows.
        is_ready: Whether requests are taken, for ``/readyz``.
        takes_spans: False if OTLP comes by gRPC alone, and the paths about health are all.
    """

    def healthz(_: Request) -> Response:
        return JSONResponse(health())

    def readyz(_: Request) -> Response:
        return JSONResponse({"ready": is_ready()}, 200 if is_ready() else 503)

    otlp = (
        [Route("/v1/{signal}", _Otlp(receiver, forward, credentials).export, methods=["POST"])]
        if takes_spans
        else []
    )
    return Starlette(routes=[*otlp, Route("/healthz", healthz), Route("/readyz", readyz)])


class _Otlp:
    """The paths of OTLP."""

    def __init__(
        self, receiver: Receiver, forward: HttpForward | None, credentials: Credentials
    ) -> None:
        self._receiver = receiver
        self._forward = forward
        self._credentials = credentials
        self._arrivals = receiver.arrivals()
        self._n_bytes = 0

    async def export(self, request: Request) -> Response:
        """Answer a request, whatever is in it."""
        content = bytearray()
        try:
            return await self._answer(request, content)
        finally:
            self._n_bytes -= len(content)

    async def _answer(self, request: Request, content: bytearray) -> Response:
        form = _Form.of(request)
        try:
            if not self._credentials.are_in(request.headers):
                raise RefusedError(401, WRONG_TOKEN)
            await self._read(request, content)
            body = bytes(content)
            signal = str(request.path_params["signal"])
            if self._forward is not None and signal in _SIGNALS:
                return await self._forwarded(self._forward, request, body, signal)
            if signal != "traces":
                raise RefusedError(404, f"there is no /v1/{signal} here: {ONLY_SPANS}")
            if not form.is_otlp:
                raise RefusedError(415, f"send content of type {_PROTOBUF} or {_JSON}")
            taken = await self._receiver.take(body, form.encoding, is_json=form.is_json)
            return form.answer(200, taken)
        except RefusedError as error:
            return form.answer(error.http_status, self._receiver.refuse(error))
        except ClientDisconnect:
            return Response(status_code=400)  # which nobody reads

    async def _read(self, request: Request, content: bytearray) -> None:
        """Read the content of a request, within the bounds of one and of all."""
        limit = self._receiver.max_request_bytes
        said = request.headers.get("content-length", "")
        if said.isdecimal() and (len(said) > 18 or int(said) > limit):
            raise too_large(limit)
        async with self._arrivals.one():
            async for part in request.stream():
                content += part
                self._n_bytes += len(part)
                if len(content) > limit:
                    raise too_large(limit)
                if self._n_bytes > LARGEST_AT_ONCE * limit:
                    self._arrivals.drop_slowest()

    async def _forwarded(
        self, forward: HttpForward, request: Request, body: bytes, signal: str
    ) -> Response:
        """The backend's answer; a copy of what it has taken is put down before."""
        answer, form = await forward.send(request, body), _Form.of(request)
        if signal == "traces" and answer.status_code < 300 and form.is_otlp:
            self._receiver.take_copy(body, form.encoding, is_json=form.is_json)
        return answer


@dataclass(frozen=True, slots=True)
class _Form:
    """How the content of a request is written, and so the one of its answer."""

    encoding: str
    media_type: str

    @classmethod
    def of(cls, request: Request) -> _Form:
        kind = request.headers.get("content-type", "").partition(";")[0]
        return cls(request.headers.get("content-encoding", ""), kind.strip().lower())

    @property
    def is_json(self) -> bool:
        return self.media_type == _JSON

    @property
    def is_otlp(self) -> bool:
        return self.media_type in (_JSON, _PROTOBUF)

    def answer(self, status: int, message: Message) -> Response:
        retry = {"retry-after": str(RETRY_SECONDS)} if status == 429 else None
        if self.is_json:
            return Response(MessageToJson(message), status, retry, _JSON)
        return Response(message.SerializeToString(), status, retry, _PROTOBUF)
