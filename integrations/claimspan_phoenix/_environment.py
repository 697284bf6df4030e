"""Where Phoenix is, by the environment: the variables that its own client reads."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

from claimspan.errors import ConfigError
from claimspan_tracing.adapters import checked_address

__all__ = ["ENDPOINT", "address_of", "headers_of"]

ENDPOINT: Final = "endpoint, PHOENIX_ENDPOINT or PHOENIX_COLLECTOR_ENDPOINT"
"""What says where Phoenix is, for messages."""

_DEFAULT: Final = "http://127.0.0.1:6006"
_DEFAULT_PORT: Final = "6006"
_GRPC_PORT: Final = 4317
_OTLP_PATH: Final = re.compile(r"/+v1/traces/*$")


def address_of(endpoint: str | None) -> str:
    """Return the address of the API.

    Args:
        endpoint: As given; None to look at the environment, in the order of Phoenix's client.

    Raises:
        ConfigError: It is no address.
    """
    if endpoint is not None:
        return _of_api(endpoint.strip(), "endpoint")
    for name in (
        "PHOENIX_ENDPOINT",
        "PHOENIX_COLLECTOR_ENDPOINT",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "PHOENIX_BASE_URL",
    ):
        if value := _variable(name):
            return _of_api(value, name)
    return _address_of_host(_variable("PHOENIX_HOST"), _variable("PHOENIX_PORT"))


def headers_of(api_key: str | None, headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return the headers of each request.

    Args:
        api_key: As given; None to look at the environment.
        headers: As given; None to look at the environment.

    Raises:
        ConfigError: The variable of the headers cannot be read.
    """
    found = dict(headers) if headers is not None else _parsed(_variable("PHOENIX_CLIENT_HEADERS"))
    key = api_key if api_key is not None else _variable("PHOENIX_API_KEY")
    if key and "authorization" not in map(str.lower, found):
        found["Authorization"] = f"Bearer {key}"
    return found


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip()


def _of_api(address: str, name: str) -> str:
    """The address of the API, where one of the collector may be given."""
    # An address for exporters may end with their path.
    found = checked_address(_OTLP_PATH.sub("", address), name)
    if urlsplit(found).port == _GRPC_PORT:
        # It takes spans alone, and would answer no request of ours.
        raise ConfigError(
            f"{name} has port {_GRPC_PORT}, where Phoenix takes spans by gRPC: set endpoint or "
            f"PHOENIX_ENDPOINT to the address of its page, which has port {_DEFAULT_PORT} by "
            "default"
        )
    return found


def _address_of_host(host: str, port: str) -> str:
    """The address of a server that is told its own host and port by the same variables."""
    if not host and not port:
        return _DEFAULT
    if host.startswith(("http://", "https://")):
        return checked_address(host, "PHOENIX_HOST")
    # A server that listens everywhere is reached on this machine.
    name = "127.0.0.1" if host in ("", "0.0.0.0", "::") else host  # noqa: S104 - compared, not bound
    if name.count(":") > 1 and not name.startswith("["):
        name = f"[{name}]"  # IPv6
    has_port = name.count(":") == 1 or "]:" in name
    place = name if has_port else f"{name}:{port or _DEFAULT_PORT}"
    return checked_address(f"http://{place}", "PHOENIX_HOST or PHOENIX_PORT")


def _parsed(text: str) -> dict[str, str]:
    """Headers as ``name=value,name=value``, both URL-encoded."""
    headers: dict[str, str] = {}
    for entry in filter(None, (each.strip() for each in text.split(","))):
        name, equals, value = entry.partition("=")
        if not equals or not name.strip():
            # The entry stays out of the message: it may be a key.
            raise ConfigError(
                "PHOENIX_CLIENT_HEADERS cannot be read: write name=value,name=value, URL-encoded"
            )
        headers[unquote(name).strip().lower()] = unquote(value).strip()
    return headers
