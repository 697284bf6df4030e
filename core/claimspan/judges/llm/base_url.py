"""Checks of a judge's ``base_url``: it may not lead to the credentials of a machine."""

from __future__ import annotations

import ipaddress
import socket
import warnings
from typing import Final
from urllib.parse import SplitResult, urlsplit

from claimspan.errors import ConfigError

__all__ = ["OPENAI_URL", "check_base_url", "is_openai"]

OPENAI_URL: Final = "https://api.openai.com/v1"

# Cloud providers serve the credentials of a machine at these names and addresses.
_METADATA_HOSTS: Final = frozenset({"metadata.google.internal", "metadata", "instance-data"})
_METADATA_ADDRESSES: Final = frozenset({"169.254.169.254", "100.100.100.200", "fd00:ec2::254"})


def check_base_url(url: str) -> str:
    """Checks an address, and warns where it is plain HTTP to a public host.

    Loopback and private addresses are allowed, because local models are there.

    Args:
        url: The address under which ``/chat/completions`` is.

    Returns:
        The address without a trailing slash.

    Raises:
        ConfigError: The address is not an http(s) URL with a host, holds a user name or a
            password, or is a link-local or metadata address.
    """
    try:
        parts = urlsplit(url)
        host, _ = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        raise ConfigError(
            "base_url cannot be read as a URL: give one like http://host/v1"
        ) from None
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError("base_url needs http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise ConfigError("base_url holds a user name or a password: give the key as api_key")
    if _is_metadata(host):
        raise ConfigError(
            "base_url leads to a link-local or metadata address: give the address of a model"
        )
    _warn_in_the_clear(parts, host)
    return url.rstrip("/")


def is_openai(url: str) -> bool:
    """Whether the address is of OpenAI or Azure, whose services know some other options."""
    host = urlsplit(url).hostname or ""
    return host == "api.openai.com" or host.endswith((".openai.azure.com", ".azure.com"))


def _is_metadata(host: str) -> bool:
    if host.lower() in _METADATA_HOSTS:
        return True
    address = _address(host)
    return address is not None and (
        address.is_link_local or str(address) in _METADATA_ADDRESSES or address.is_unspecified
    )


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address that a host spells, also in decimal, octal or IPv6-mapped form."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except OSError:
            return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped if isinstance(mapped, ipaddress.IPv4Address) else address


def _warn_in_the_clear(parts: SplitResult, host: str) -> None:
    address = _address(host)
    is_near = address.is_private if address is not None else "." not in host
    if parts.scheme == "http" and not is_near and not host.endswith((".local", ".internal")):
        warnings.warn(
            "base_url is plain http to a public host: prompts and key can be read on the way",
            stacklevel=4,
        )
