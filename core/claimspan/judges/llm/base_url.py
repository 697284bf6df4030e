"""Checks of a judge's ``base_url``: it may not lead to the credentials of a machine."""

from __future__ import annotations

import ipaddress
import socket
import unicodedata
import warnings
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from claimspan.errors import ConfigError

__all__ = [
    "OPENAI_URL",
    "ForbiddenAddressError",
    "check_base_url",
    "is_forbidden_address",
    "is_openai",
]

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

OPENAI_URL: Final = "https://api.openai.com/v1"

# Cloud providers serve the credentials of a machine at these names and addresses.
_METADATA_HOSTS: Final = frozenset(
    {
        "metadata.google.internal",
        "metadata.goog",
        "metadata",
        "instance-data",
        "instance-data.ec2.internal",
    }
)
# Link-local addresses aside: Alibaba, Azure, Oracle, and the IPv6 ones of AWS and Google.
_METADATA_ADDRESSES: Final = frozenset(
    {"100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"}
)
# NAT64 (RFC 6052, RFC 8215), IPv4-compatible and IPv4-translated addresses (RFC 2765): an IPv4
# address in the last 32 bits.
_EMBEDDING: Final = tuple(
    map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96"))
)
# The full stops that IDNA takes for a dot, and NFKC leaves.
_DOTS: Final = {ord(each): "." for each in "\u3002\uff0e\uff61"}


class ForbiddenAddressError(Exception):
    """A connection was made to an address that no model is at; nothing was sent on it."""


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
        host, _ = _plain_host(parts.hostname or ""), parts.port
    except ValueError:
        raise ConfigError(
            "base_url cannot be read as a URL: give one like http://host/v1"
        ) from None
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError("base_url needs http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise ConfigError("base_url holds a user name or a password: give the key as api_key")
    if any(mark in host for mark in "@/\\?#") or not host.isprintable():
        raise ConfigError("base_url has a host with signs that no host has")
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


def is_forbidden_address(address: str) -> bool:
    """Whether an IP address is link-local, unspecified, or serves a machine's credentials.

    Args:
        address: As a socket gives it, also with a scope (``fe80::1%eth0``); a text that is no
            address is not forbidden.
    """
    found = _address(address)
    return found is not None and any(
        each.is_link_local or each.is_unspecified or str(each) in _METADATA_ADDRESSES
        for each in (found, *_inside(found))
    )


def _is_metadata(host: str) -> bool:
    return host in _METADATA_HOSTS or is_forbidden_address(host)


def _plain_host(host: str) -> str:
    """A host as resolvers read it: percent signs decoded, wide digits and dots made narrow."""
    narrow = unicodedata.normalize("NFKC", unquote(host)).translate(_DOTS)
    return narrow.lower().rstrip(".")


def _address(host: str) -> _Address | None:
    """The IP address that a host spells, also in decimal, octal or hexadecimal form."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except (OSError, ValueError):
            return None


def _inside(address: _Address) -> list[ipaddress.IPv4Address]:
    """The IPv4 addresses that an IPv6 address leads to."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if any(address in network for network in _EMBEDDING):
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    return [each for each in found if each is not None]


def _warn_in_the_clear(parts: SplitResult, host: str) -> None:
    address = _address(host)
    is_near = address.is_private if address is not None else "." not in host
    if parts.scheme == "http" and not is_near and not host.endswith((".local", ".internal")):
        warnings.warn(
            "base_url is plain http to a public host: prompts and key can be read on the way",
            stacklevel=4,
        )
