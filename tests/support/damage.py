"""Damages files as disks, editors, killed processes and attackers do, by seeded chance."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from typing import Final

__all__ = ["DAMAGES", "damage"]

_VALUES: Final = (
    b"null", b"true", b"-1", b"0", b"1e400", b"-1e308", b"NaN", b"Infinity", b"9" * 25,
    b"9" * 6000, b'""', b'"x"', b"[]", b"{}", b"[null]", b'{"a":{}}', b'"\\ud800"', b'"\\u0000"',
    b'{"intValue":"x"}', b'{"doubleValue":"NaN"}', b"[" * 300 + b"]" * 300,
)  # fmt: skip
_PIECES: Final = (
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n", b"\x1b[2J", b"\xed\xa0\x80", b"\\",
)  # fmt: skip
_SCALAR: Final = re.compile(rb'"(?:[^"\\]|\\.)*"(?!\s*:)|-?\d+(?:\.\d+)?|\[\]|\{\}')
_KEY: Final = re.compile(rb'"(?:[^"\\]|\\.)*"(?=\s*:)')


def _flip_bits(data: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(chance.choice((1, 3, 30))):
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def _cut(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[start:] if chance.random() < 0.3 else data[:start]


def _cut_out(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + data[start + chance.randrange(1, 500) :]


def _swap_value(data: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.choice((1, 1, 5))):
        found = chance.choice(list(_SCALAR.finditer(data)))
        data = data[: found.start()] + chance.choice(_VALUES) + data[found.end() :]
    return data


def _swap_keys(data: bytes, chance: random.Random) -> bytes:
    one, two = chance.sample(list(_KEY.finditer(data)), 2)
    return data[: one.start()] + two[0] + data[one.end() :]


def _double_key(data: bytes, chance: random.Random) -> bytes:
    found = chance.choice(list(_KEY.finditer(data)))
    return (
        data[: found.start()]
        + found[0]
        + b":"
        + chance.choice(_VALUES)
        + b","
        + data[found.start() :]
    )


def _nest(data: bytes, chance: random.Random) -> bytes:
    found = chance.choice(list(_SCALAR.finditer(data)))
    depth = chance.choice((150, 250, 10_000))
    nested = b'{"arrayValue":{"values":[' * depth + found[0] + b"]}}" * depth
    return data[: found.start()] + nested + data[found.end() :]


def _insert(data: bytes, chance: random.Random) -> bytes:
    pieces = (
        b"\x00",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\r",
        b"\n",
        b"\x1b[2J",
        b"\xed\xa0\x80",
        b"\\",
    )
    start = chance.randrange(len(data) + 1)
    return data[:start] + chance.choice(pieces) * chance.choice((1, 100)) + data[start:]


def _recode(data: bytes, chance: random.Random) -> bytes:
    code = chance.choice(("utf-16", "utf-32", "latin-1", "cp037", "utf-8-sig"))
    return data.decode("utf-8").encode(code, "replace")


def _shuffle_lines(data: bytes, chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    chance.shuffle(lines)
    return b"".join(lines + lines[:2]).replace(b"\n", chance.choice((b"\n", b"\r\n", b"\n\n", b"")))


DAMAGES: Final[Mapping[str, Callable[[bytes, random.Random], bytes]]] = {
    "bits": _flip_bits,
    "cut": _cut,
    "hole": _cut_out,
    "value": _swap_value,
    "keys": _swap_keys,
    "double key": _double_key,
    "nested": _nest,
    "inserted": _insert,
    "encoding": _recode,
    "lines": _shuffle_lines,
}
"""Kind of damage to a function of the data and of chance."""


def damage(data: bytes, kind: str, seed: int) -> bytes:
    """Damage data in one way; the same seed always does the same."""
    return DAMAGES[kind](data, random.Random(f"{kind} {seed}"))
