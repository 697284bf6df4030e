"""Text as it comes: an exporter can encode what comes out. Rows I2, I3 and F14."""

from __future__ import annotations

import dataclasses
import json
import unicodedata
from collections import deque
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, SecretStr

from claimspan_tracing.text import MAX_JOINED, bounded, clean, cut, join_bounded, json_list, to_json

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
)


@given(st.text(st.characters(codec=None, categories=None)) | st.binary() | ANYTHING)
def test_any_value_becomes_a_text_that_utf8_can_encode(value: object) -> None:
    assert "\0" not in clean(value)
    clean(value).encode("utf-8")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ""),
        (b"caf\xc3\xa9", "café"),
        (b"\xff", "\ufffd"),
        ("\ud83d alone", "\ufffd alone"),
        ("nul\0byte", "nul\ufffdbyte"),
        (7, "7"),
        ("naïve 船 🚣", "naïve 船 🚣"),
    ],
)
def test_what_cannot_be_encoded_is_replaced_and_the_rest_stays(
    value: object, expected: str
) -> None:
    assert clean(value) == expected


@given(st.text(), st.integers(min_value=0, max_value=40))
def test_a_cut_text_is_a_start_of_the_text_that_fits(text: str, max_bytes: int) -> None:
    kept = cut(clean(text), max_bytes)

    assert clean(text).startswith(kept)
    assert len(kept.encode("utf-8")) <= max_bytes
    if len(clean(text).encode("utf-8")) <= max_bytes:
        assert kept == clean(text)


@given(ANYTHING)
def test_any_value_has_a_json_form(value: object) -> None:
    json.dumps(to_json(value), allow_nan=False).encode("utf-8")


def test_what_refers_to_itself_ends_somewhere() -> None:
    endless: list[object] = []
    endless.append(endless)

    assert json.dumps(to_json(endless)) == "[[[[[[null]]]]]]"


@given(st.lists(st.text(max_size=20)), st.integers(min_value=2, max_value=200))
def test_a_json_list_is_whole_json_and_fits(items: list[str], max_bytes: int) -> None:
    text = json_list(items, max_bytes)

    assert len(text.encode("utf-8")) <= max_bytes
    kept: list[str] = json.loads(text)
    assert kept == [clean(item) for item in items[: len(kept)]]


# --- what is replaced ---


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a\x1b[31mred", "a\ufffd[31mred"),
        ("bell\a, del\x7f, c1\x9b", "bell\ufffd, del\ufffd, c1\ufffd"),
        ("right \u202e tfel", "right \ufffd tfel"),
        ("isolate \u2066x\u2069 é", "isolate \ufffdx\ufffd é"),
        ("tab\tline\nend\r\n", "tab\tline\nend\r\n"),
        ("page\fbreak\vtab", "page\nbreak\ntab"),
        ("Seite\fumbruch \v é", "Seite\numbruch \n é"),
        ("می\u200cخواهم 👩\u200d💻", "می\u200cخواهم 👩\u200d💻"),
        ("\u200eLRM \u200fRLM \u061cALM", "\u200eLRM \u200fRLM \u061cALM"),
        ("e\u0301" * 10_000, "e\u0301" * 10_000),
    ],
)
def test_what_a_terminal_or_a_page_would_obey_is_replaced(value: str, expected: str) -> None:
    assert clean(value) == expected


@given(st.text(st.characters(codec=None, categories=None)))
def test_no_control_character_is_left_and_no_character_is_lost(text: str) -> None:
    cleaned = clean(text)

    left = {sign for sign in cleaned if unicodedata.category(sign) == "Cc"}
    assert left <= set("\t\n\r")
    assert len(cleaned) == len(text)
    assert clean(cleaned) == cleaned


@given(
    st.text(st.characters(codec=None, categories=None)) | st.binary() | ANYTHING,
    st.integers(min_value=0, max_value=40),
)
def test_cutting_before_cleaning_gives_the_same_text(value: object, max_bytes: int) -> None:
    assert bounded(value, max_bytes) == cut(clean(value), max_bytes)
    if isinstance(value, bytes):
        assert bounded(bytearray(value), max_bytes) == cut(clean(value), max_bytes)


@given(st.lists(st.text(max_size=5)))
def test_texts_are_joined_as_str_does_it(texts: list[str]) -> None:
    assert join_bounded(texts, "; ") == "; ".join(texts)


def test_joining_ends_where_nothing_more_is_kept() -> None:
    def texts() -> Iterator[str]:
        while True:
            yield "x" * 1000

    assert MAX_JOINED <= len(join_bounded(texts())) < 2 * MAX_JOINED


# --- objects ---


class Broken:
    """Raises whatever is asked of it."""

    def __str__(self) -> str:
        raise ValueError

    def __repr__(self) -> str:
        raise KeyboardInterrupt


class BrokenMapping(Mapping[str, object]):
    """Has no items to show."""

    def __getitem__(self, key: str) -> object:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(["a", "b"])

    def __len__(self) -> int:
        raise RuntimeError


@dataclasses.dataclass
class Login:
    """Keeps a field out of its text."""

    user: str
    password: str = dataclasses.field(repr=False)


@dataclasses.dataclass
class Discreet:
    password: str

    def __repr__(self) -> str:
        return "Discreet()"


HIDDEN = "hidden"


class Account(BaseModel):
    user: str
    password: str = Field(repr=False)
    token: SecretStr = SecretStr("hidden")


class Name(str):
    """A text of a framework's own type."""

    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


class Count(int):
    """A number of a framework's own type."""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Broken(), ""),
        ({"a": Broken(), Broken(): 1}, {"a": "", "": 1}),
        (BrokenMapping(), {}),
        (Login("jan", "hidden"), {"user": "jan"}),
        (Discreet("hidden"), "Discreet()"),
        (Account(user="jan", password=HIDDEN), {"user": "jan", "token": "**********"}),
        (Name("kept"), "kept"),
        (Count(7), 7),
        ({1}, [1]),
        (deque([1, 2]), [1, 2]),
        (range(3), [0, 1, 2]),
        ({"a": 1}.keys(), ["a"]),
        (MappingProxyType({"a": (1, None)}), {"a": [1, None]}),
        (float("nan"), "nan"),
        (1 << 2000, str(1 << 2000)),
        ([1 << 40_000], [""]),
        (b"caf\xc3\xa9", "café"),
        (True, True),
    ],
)
def test_an_object_becomes_what_its_text_would_show(value: object, expected: object) -> None:
    assert to_json(value) == expected
