"""Texts of records on the page and in the terminal: data, never commands, never reordering.

Row S5 of the reliability matrix, and the display half of row I3.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import unicodedata
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimspan import Chunk, Claim, Label
from claimspan.report import ReportClaim, ReportEntry, render_report
from claimspan.report.page import MAX_LOCATED
from claimspan.text.visible import visible
from claimspan_demo.display import show

from command_line import call
from shown_records import places_of, segments_of

EVIL = "a\x1b[2J\x9b31m\u202eb\u2066c\u200f\x00\x7f\r\ufeff\U000e0041</script><img src=//x>[red]z"
SHOWN = "a<U+001B>[2J<U+009B>31m<U+202E>b<U+2066>c<U+200F><U+0000><U+007F><U+000D><U+FEFF><U+E0041>"


class Elements(HTMLParser):
    """What the elements of a page load or lead to, as a browser would find it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.targets: list[str | None] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = ("src", "href", "srcset", "action", "data", "poster")
        self.targets += [value for name, value in attrs if name in names or name.startswith("on")]


def entry(text: str) -> ReportEntry:
    """An entry that has a text in every field that holds one."""
    claim = ReportClaim(text=text, sentence=text, label=Label.NEUTRAL, supported_by=(text,))
    return ReportEntry(
        trace_id=text,
        query=text,
        response=text,
        ground_truth=text,
        chunks=(Chunk(id=text, text=text, metadata={text: text, "list": [text]}),),
        response_claims=(claim,),
        ground_truth_claims=(claim,),
        scores={text: 0.5},
        undefined={f"{text}2": text},
        status=text,
        reason=text,
        judge=text,
        started=datetime(2026, 3, 1, tzinfo=UTC),
    )


def acting(text: str) -> set[str]:
    """Characters that act: controls but tab and line end, formats but joiners, bidi marks."""
    return {
        char
        for char in text
        if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")
        or unicodedata.bidirectional(char) in ("LRE", "RLE", "LRO", "RLO", "PDF")
        or unicodedata.bidirectional(char) in ("LRI", "RLI", "FSI", "PDI")
    } - {"\t", "\n", "\r"}


def test_what_acts_is_shown_by_its_code() -> None:
    assert visible(EVIL).startswith(SHOWN)


@given(st.text())
def test_nothing_that_acts_is_left_and_nothing_else_is_changed(text: str) -> None:
    shown = visible(text)

    assert acting(shown) == set()
    if shown == text:
        return
    assert re.sub(r"<U\+([0-9A-F]{4,6})>", lambda code: chr(int(code[1], 16)), shown) == re.sub(
        r"<U\+([0-9A-F]{4,6})>", lambda code: chr(int(code[1], 16)), text
    )


@pytest.mark.parametrize(
    "text",
    [
        "tab\tline\r\nend\n",
        "čšž 船 \u0939\u093f\u0928\u094d\u0926\u0940",
        "👩\u200d👩\u200d👧",
        "می\u200cخواهم",
    ],
)
def test_letters_joiners_and_line_ends_stay(text: str) -> None:
    assert visible(text) == text


def test_no_field_of_a_record_acts_on_the_page() -> None:
    page = render_report([entry(EVIL)], title=EVIL)

    assert acting(page) == set()
    assert page.count("&lt;U+202E&gt;") > 10
    assert "<img" not in page
    assert page.count("</script>") == 2  # the index, which is JSON, and the script


def test_the_page_loads_and_runs_nothing_of_a_record() -> None:
    page = render_report([entry(EVIL)], title=EVIL)

    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy
    assert re.search(r"script-src 'sha256-[^']+'", policy)
    targets = [value for value in Elements(page).targets if not (value or "").startswith("#")]
    assert targets == []


def test_no_field_of_a_record_acts_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show([entry(EVIL)], model=EVIL)

    printed = capsys.readouterr().out
    assert acting(printed) == set()
    assert "U+202E" in printed
    assert "[red]" in printed  # no markup of rich either


def claimspan(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "claimspan", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_file_name_in_an_error_does_not_command_the_terminal(tmp_path: Path) -> None:
    done = claimspan("report", str(tmp_path / "a\x1b]0;owned\x07\u202e"))

    assert done.returncode != 0
    assert acting(done.stderr) == set()
    assert "<U+001B>]0;owned<U+0007><U+202E>" in done.stderr


def test_the_json_of_the_command_is_json_whatever_the_file_is_called(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b\u202e"
    path.write_text("{")

    done = call("report", str(path), "--json")

    assert done.returncode == 1
    assert json.loads(done.stdout)["skipped"] == {"line_not_json": 1}


# --- the search for claims in a text is linear ---


def seconds(text: str, claims: list[Claim]) -> float:
    started = time.perf_counter()
    segments = segments_of(text, claims)
    assert "".join(segment.text for segment in segments) == text
    return time.perf_counter() - started


@pytest.mark.parametrize(
    ("piece", "words"),
    [("a ", "a " * 4_000 + "b"), ("a", "a" * 4_000 + "b"), ("ab ", "ab " * 4_000), ("\t ", "x y")],
)
def test_the_search_does_not_grow_with_the_square_of_the_text(piece: str, words: str) -> None:
    # The same claim is looked for in a text that is eight times as long. A square would take 64
    # times as long; 0.2 s were seconds before the search was linear.
    claims = [Claim(text=words, sentence=words + " end")] * 20
    short = min(seconds(piece * 8_000, claims) for _ in range(3))
    long = min(seconds(piece * 64_000, claims) for _ in range(3))

    assert long < 24 * short + 0.2


def test_the_claims_that_are_located_are_bounded() -> None:
    claims = [Claim(text=f"word{number}") for number in range(MAX_LOCATED + 10)]
    text = " ".join(claim.text for claim in claims)

    located = {place for each in segments_of(text, claims) for place in places_of(each)}

    assert len(located) == MAX_LOCATED
