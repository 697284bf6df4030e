"""The service: its ports, its monitor, and the order in which it begins and ends."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import ssl
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from types import FrameType
from typing import ClassVar, Final

import grpc
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from claimspan.errors import ConfigError
from claimspan_serve._forward import Credentials, GrpcForward, HttpForward
from claimspan_serve._grpc import grpc_server
from claimspan_serve._http import application
from claimspan_serve._journal import Journal
from claimspan_serve._options import serve_options
from claimspan_serve._receiver import Receiver
from claimspan_serve._supervision import JudgingProcess, added

if sys.platform != "win32":
    import resource

MAX_CONNECTIONS: Final = 5_000
"""Connections of each transport, those too that wait for the next batch."""

OTHER_FILES: Final = 200
"""Files that the process has open beside its connections."""

MAX_HEADER_BYTES: Final = 64 * 1024
"""Of what is read of a request before it is looked at, such as its headers."""

KEEP_ALIVE_SECONDS: Final = 75
"""How long such a one is kept. Exporters send every five seconds, or every minute, and one whose
connection is closed as it sends loses its batch."""

_REQUESTS_SHARE: Final = 0.2
"""Of the time at the end, what requests under way may take."""


class Service:
    """Everything that the process consists of which takes requests."""

    def __init__(self, given: Mapping[str, object]) -> None:
        """Make all parts, and open no port yet.

        Args:
            given: The options of service and monitor, as ``serve_options`` takes them.

        Raises:
            ConfigError: An option of the service cannot work.
        """
        self._options = options = serve_options(given)
        self._credentials = Credentials(options.token)
        is_kept = options.spool is not None
        self._folder = options.spool or Path(mkdtemp(prefix="claimspan-serve-"))
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._journal = Journal(self._folder, options.max_bytes)
        except OSError as error:
            raise ConfigError(
                f"spool {str(self._folder)!r} can be no folder ({type(error).__name__}): give the "
                "path of one that can be written"
            ) from None
        self._receiver = Receiver(self._journal, options.max_request_bytes)
        self._judging = JudgingProcess(self._folder, given, self._look, is_kept=is_kept)
        self._is_ready = False
        self._end_by = time.monotonic()

    def health(self) -> Mapping[str, object]:
        """What ``/healthz`` shows: what became of requests, spans and records."""
        told = self._judging.state
        return {
            "ready": self._is_ready,
            **told,
            "requests": added(told.get("requests", {}), self._receiver.counts),
            "waiting": {**told.get("waiting", {}), "journal_bytes": self._journal.n_bytes},
        }

    def _look(self) -> tuple[Mapping[str, int], bool]:
        """What the judging process wants to know; called on a thread of its own."""
        self._journal.refresh()
        is_pressed = self._journal.n_bytes > self._options.max_bytes // 2
        return dict(self._receiver.counts), is_pressed

    def run(self, tell: Callable[[str], None]) -> None:
        """Serve until SIGTERM or SIGINT, have judged what is complete, and return.

        Args:
            tell: Gets a line for people as soon as requests are taken.

        Raises:
            ConfigError: A port is taken, a file of TLS cannot be read, or an option of the monitor
                cannot work.
        """
        _Connection.most, _Connection.counts = _most_connections(), self._receiver.counts
        try:
            asyncio.run(self._serve(tell))
        finally:
            self._judging.end(self._end_by - time.monotonic())
            self._journal.close()
            if self._options.spool is None:
                rmtree(self._folder, ignore_errors=True)

    async def _serve(self, tell: Callable[[str], None]) -> None:
        options, limit = self._options, self._receiver.max_request_bytes
        http_url, grpc_url = options.forward_to("http"), options.forward_to("grpc")
        http_to = None if http_url is None else HttpForward(http_url, self._credentials)
        grpc_to = None if grpc_url is None else GrpcForward(grpc_url, self._credentials, limit)
        # What is not forwarded by a proxy would be lost: its transport is not listened for.
        takes_http = not options.forward or http_to is not None
        takes_grpc = not options.forward or grpc_to is not None
        rpc = grpc_server(self._receiver, grpc_to, self._credentials, _Connection.most)
        http = application(
            self._receiver,
            http_to,
            self._credentials,
            self.health,
            lambda: self._is_ready,
            takes_spans=takes_http,
        )
        try:
            grpc_port = self._add_port(rpc) if takes_grpc else 0
            with _listening(options.host, options.http_port) as listening:
                self._judging.start()  # nothing else is in the event loop yet
                # What has been imported stays: a full collection would stop all to look at it.
                gc.collect()
                gc.freeze()
                # uvicorn ends by the signal and raises it anew; no handler is to get it then.
                for number in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number, _do_nothing)
                await rpc.start()

                def started(port: int) -> None:
                    self._is_ready = True
                    where = f"http{'s' * bool(options.tls_cert)}://{_address(options.host, port)}"
                    said = f"{'OTLP/HTTP' if takes_http else 'health'} at {where}"
                    if takes_grpc:
                        said += f", OTLP/gRPC at {_address(options.host, grpc_port)}"
                    tell(f"claimspan serve: {said}")

                await _Http(self._http_config(http), started, self._ending).serve([listening])
        finally:
            await rpc.stop(options.exit_timeout * _REQUESTS_SHARE)
        for each in (http_to, grpc_to):
            if each is not None:
                await each.aclose()

    def _ending(self) -> None:
        self._is_ready = False
        self._end_by = time.monotonic() + self._options.exit_timeout
        self._receiver.end()

    def _http_config(self, app: Starlette) -> uvicorn.Config:
        options = self._options
        return uvicorn.Config(
            app,
            loop="asyncio",
            # Not httptools, which bounds neither headers nor the requests that wait in line.
            http=_Connection,
            ws="none",
            h11_max_incomplete_event_size=MAX_HEADER_BYTES,
            lifespan="off",
            log_level="error",  # else each broken request is a line
            access_log=False,
            server_header=False,
            date_header=False,  # a forwarded answer has the one of the backend
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=max(1, int(options.exit_timeout * _REQUESTS_SHARE)),
            ssl_certfile=options.tls_cert,
            ssl_keyfile=options.tls_key,
            ssl_ca_certs=None if options.client_ca is None else str(options.client_ca),
            ssl_cert_reqs=ssl.CERT_NONE if options.client_ca is None else ssl.CERT_REQUIRED,
        )

    def _add_port(self, server: grpc.aio.Server) -> int:
        options = self._options
        address = _address(options.host, options.grpc_port)
        try:
            if options.tls_cert is None or options.tls_key is None:
                return server.add_insecure_port(address)
            ca = options.client_ca
            tls = grpc.ssl_server_credentials(
                [(options.tls_key.read_bytes(), options.tls_cert.read_bytes())],
                None if ca is None else ca.read_bytes(),
                require_client_auth=ca is not None,
            )
            return server.add_secure_port(address, tls)
        except OSError as error:
            raise _unreadable(error) from None
        except RuntimeError:
            raise _taken(address, "grpc_port") from None


def _most_connections() -> int:
    """Let the process have as many files open as connections need; returns how many there may be.

    If there were more than files, none could be taken any longer, those of good clients neither.
    """
    if sys.platform == "win32":
        return MAX_CONNECTIONS
    wanted = 2 * MAX_CONNECTIONS + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return max(1, (limit - OTHER_FILES) // 2)


class _Connection(H11Protocol):
    """A connection over HTTP.

    One that goes no further for a time is closed: no whole request comes, or its answer is not
    read. As soon as there are too many, the one goes that has waited for a request the longest.
    """

    most: ClassVar[int] = MAX_CONNECTIONS
    counts: ClassVar[Counter[str]] = Counter()
    _waiting: ClassVar[_Timers] = {}
    _answering: ClassVar[_Timers] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own
        super().connection_made(transport)
        self._go_on(self._waiting)
        if len(self.connections) > self.most:
            next(iter(self._waiting or self._answering)).transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self in self._waiting and self.cycle and not self.cycle.more_body:
            self._go_on(self._answering)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, which no handler sees."""
        self.counts["refused"] += 1
        super().send_400_response(msg)

    def on_response_complete(self) -> None:
        self._go_on(self._waiting)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._go_on(None)
        super().connection_lost(exc)

    def _go_on(self, to: _Timers | None) -> None:
        for some in (self._waiting, self._answering):
            if self in some:
                some.pop(self).cancel()
        if to is not None and not self.transport.is_closing():
            to[self] = self.loop.call_later(KEEP_ALIVE_SECONDS, self.transport.abort)


_Timers = dict[_Connection, asyncio.TimerHandle]
"""When each connection is closed, the one that is first."""


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """Take a signal that was taken already."""


class _Http(uvicorn.Server):
    """Tells when it listens, at which port, and when it begins to end."""

    def __init__(
        self, config: uvicorn.Config, started: Callable[[int], None], ending: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._tell = started
        self._ending = ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if sockets and not self.should_exit:
            self._tell(sockets[0].getsockname()[1])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._ending()
        await super().shutdown(sockets)


def _listening(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
    except OSError as error:
        raise _taken(f"{_address(host, port)} ({error.strerror})", "http_port") from None


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _taken(address: str, option: str) -> ConfigError:
    return ConfigError(
        f"cannot listen at {address}: end what listens there, or give another {option}"
    )


def _unreadable(error: OSError) -> ConfigError:
    return ConfigError(
        f"cannot read {str(error.filename)!r} ({type(error).__name__}): give the path of a PEM file"
    )
