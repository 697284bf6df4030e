"""The options of the service: what a file of YAML and the command line may say."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from difflib import get_close_matches
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Final, Literal, Self, cast
from urllib.parse import urlsplit

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from claimspan.cost.budget import Budget
from claimspan.errors import ConfigError
from claimspan.judges import default_judge
from claimspan.loading import load_object
from claimspan.text.shapes import is_list, is_mapping
from claimspan_tracing import Alert
from claimspan_tracing.adapters import EXIT_TIMEOUT, MonitorOptions

_MIB: Final = 1024 * 1024
_SINKS: Final = "claimspan.sinks"
"""Entry-point group: the name of a backend, and the class that writes scores to it."""

Signal = Literal["traces", "logs", "metrics"]


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) or is_mapping(value) else value


_Port = Annotated[int, Field(ge=0, le=65_535)]
_Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Bytes = Annotated[int, Field(ge=1)]
_Named = str | Annotated[dict[str, dict[str, JsonValue]], Field(min_length=1, max_length=1)]
"""What is made of a name, or of a name with options."""


class ServeOptions(BaseModel):
    """Where the service listens, where it sends to, and how long it waits."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    host: str = "127.0.0.1"
    """Address to listen at. Any but one of this machine needs a token, or mTLS."""

    http_port: _Port = 4318
    """Of OTLP over HTTP; 0 takes one that is free."""

    grpc_port: _Port = 4317
    token: str | None = Field(default=None, min_length=1)
    """Wanted of each request, as bearer or in ``x-claimspan-token``."""

    tls_cert: Path | None = None
    """Certificate of the service, PEM."""

    tls_key: Path | None = None
    client_ca: Path | None = None
    """Who signs the certificates of clients, PEM: others cannot connect (mTLS)."""

    forward: Annotated[tuple[str, ...], BeforeValidator(_as_list)] = ()
    """Backends that requests go on to: ``http://`` or ``https://`` for OTLP over HTTP, ``grpc://``
    or ``grpcs://`` for gRPC, one of each. What is not forwarded is not listened for."""

    export: str | None = None
    """Base URL of OTLP over HTTP that gets the scores."""

    export_signals: Annotated[tuple[Signal, ...], BeforeValidator(_as_list)] = ("traces",)
    """What of the scores is exported: spans, log events, metrics."""

    sinks: Annotated[tuple[_Named, ...], BeforeValidator(_as_list)] = ()
    """``phoenix``, ``mlflow``, ``langfuse``, or ``path.py:name`` of a sink. A name with the options
    of its class is a table of one line: ``{phoenix: {documents: false}}``."""

    judge_options: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    """Options of the judge that ``judge`` names, such as ``model``."""

    spool: Path | None = None
    """Folder in which requests and records wait, so that a SIGKILL loses none. None takes one of
    its own, which goes with the service."""

    quiet: _Seconds = 5.0
    """Seconds without a further span after which a trace with a root is whole."""

    max_age: _Seconds = 120.0
    """The same of a trace whose root does not come."""

    max_bytes: _Bytes = 256 * _MIB
    """Bytes of the requests whose spans wait or are looked through."""

    max_request_bytes: _Bytes = 16 * _MIB
    exit_timeout: _Seconds = EXIT_TIMEOUT
    """Seconds in which the service ends after SIGTERM."""

    query_key: str | None = None
    """Where the question is in the root's input, if that is JSON."""

    response_key: str | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.tls_cert is None) != (self.tls_key is None) or (
            self.client_ca is not None and self.tls_cert is None
        ):
            raise ValueError("give tls_cert and tls_key together, and client_ca beside them alone")
        if not _is_loopback(self.host) and self.token is None and self.client_ca is None:
            raise ValueError(
                f"host {self.host} is open to other machines: give --token or "
                "CLAIMSPAN_SERVE_TOKEN, or tls_cert, tls_key and client_ca for mTLS"
            )
        kinds = [_transport(url) for url in self.forward]
        if len(kinds) != len(set(kinds)):
            raise ValueError("forward has two backends of one transport: give one of each at most")
        if self.export is not None and _transport(self.export) != "http":
            raise ValueError(
                "export is no http:// or https:// URL: give the base of OTLP over HTTP"
            )
        return self

    def forward_to(self, transport: Literal["http", "grpc"]) -> str | None:
        """The backend of a transport; None if there is none."""
        return next((url for url in self.forward if _transport(url) == transport), None)


_OF_MONITOR: Final = (
    MonitorOptions.__annotations__.keys()
    - ServeOptions.model_fields
    - {"tracer_provider", "serverless"}
)
"""The service makes its provider, and its records have no call that could wait for them."""


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _transport(url: str) -> str:
    parts = urlsplit(url)
    kinds = {"http": "http", "https": "http", "grpc": "grpc", "grpcs": "grpc"}
    if not parts.hostname or parts.scheme not in kinds:
        raise ValueError("an address is no http://, https://, grpc:// or grpcs:// URL: correct it")
    return kinds[parts.scheme]


def read_config(path: Path) -> dict[str, object]:
    """Read the options of a file of YAML.

    Raises:
        ConfigError: It cannot be read, or is no table of options.
    """
    try:
        read: object = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise ConfigError(
            f"cannot read {str(path)!r} ({type(error).__name__}): give a file of YAML in UTF-8"
        ) from None
    found: object = {} if read is None else read
    if not is_mapping(found):
        raise ConfigError(f"{str(path)!r} is no table of options: write one `name: value` a line")
    return {str(name): value for name, value in found.items()}


def serve_options(given: Mapping[str, object]) -> ServeOptions:
    """Return the options of the service.

    Args:
        given: Those of its monitor as well, by name.

    Raises:
        ConfigError: A name is unknown, or a value of the service cannot work.
    """
    ours = ServeOptions.model_fields
    for name in given.keys() - ours - _OF_MONITOR:
        meant = get_close_matches(name, [*ours, *_OF_MONITOR], n=1)
        told = f"did you mean {meant[0]}?" if meant else "see docs/beside.md for all"
        raise ConfigError(f"claimspan serve has no option {name!r}: {told}")
    try:
        # An option without a value, as YAML may have it, is one that is not given.
        return ServeOptions.model_validate(
            {k: v for k, v in given.items() if k in ours and v is not None}
        )
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        told = first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"{where}: {told}" if where else told) from None


def options_from(given: Mapping[str, object]) -> tuple[ServeOptions, MonitorOptions]:
    """Return the options of the service, and those of its monitor with the objects that they name.

    Raises:
        ConfigError: As ``serve_options``, or an object cannot be found or made. ``Monitor`` checks
            all else.
    """
    options = serve_options(given)
    made = {k: _made_of(k, v) for k, v in given.items() if k in _OF_MONITOR and v is not None}
    if options.judge_options:
        judge = made.get("judge")
        if judge is not None and not isinstance(judge, str):
            raise ConfigError("judge_options go with the name of a judge: give judge as a text")
        made["judge"] = default_judge(judge, options=options.judge_options)
    made["sinks"] = [
        _sink(name, fields)
        for each in options.sinks
        for name, fields in (each if isinstance(each, dict) else {each: {}}).items()
    ]
    return options, cast(MonitorOptions, made | {"exit_timeout": options.exit_timeout})


def _made_of(name: str, value: object) -> object:
    """The value of an option of the monitor, made of what YAML can hold."""
    match name:
        case "budget":
            return _made(Budget, name, value)
        case "alerts" if is_list(value):
            return [_made(Alert, name, each) for each in value]
        case "sample" | "redact" | "dispatch" | "on_result" | "on_alert":
            # An object that is named as on any command line: ``path.py:name``.
            return load_object(value) if isinstance(value, str) and ":" in value else value
        case _:
            return value


def _made(kind: object, name: str, value: object) -> object:
    if not is_mapping(value) or not callable(kind):
        raise ConfigError(f"{name} is no table: write its fields below it, one a line")
    try:
        return kind(**{str(key): each for key, each in value.items()})
    except TypeError as error:
        raise ConfigError(f"{name} has a field that cannot work: {error}") from None


def _sink(name: str, options: Mapping[str, JsonValue]) -> object:
    if ":" in name:
        found = load_object(name)
    else:
        known = {each.name: each for each in entry_points(group=_SINKS)}
        if name not in known:
            meant = get_close_matches(name, known, n=1)
            told = f"did you mean {meant[0]}?" if meant else f"there are {', '.join(sorted(known))}"
            raise ConfigError(f"there is no sink {name!r}: {told}, or path.py:name of your own")
        found = known[name].load()
    # An object of one's own is the sink itself, unless it is given options to be made with.
    return found if ":" in name and not options else _made(found, f"sinks.{name}", options)
