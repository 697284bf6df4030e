"""Text as it comes: whatever it is, an exporter can encode what comes out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimspan_tracing.text import clean, cut, json_list, to_json

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
