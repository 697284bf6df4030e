"""Which claims an answer makes in each of the shapes of Markdown that models write."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimspan.judges import LexicalJudge
from claimspan.text.markdown import content_sentences, every_sentence

RENT: Final = "The rent is 640 euros."


def claims(text: str) -> list[str]:
    return [claim.text for claim in asyncio.run(LexicalJudge().extract_claims(text))]


@pytest.mark.parametrize(
    "text",
    [
        "Rent of the flat\n================\n\nThe rent is 640 euros.",
        "Rent of the flat\n---\nThe rent is 640 euros.",
        "__Rent of the flat__\n\nThe rent is 640 euros.",
        "***Rent***\n\nThe rent is 640 euros.",
        "1. **Rent**\n   - The rent is 640 euros.",
        "The rent is 640 euros.\n---",
        "The [rent](https://flats.example/a_(b)) is 640 euros.",
        "The [rent][r] is 640 euros.\n\n[r]: https://flats.example/rent 'List'",
        "The [rent][] is 640 euros.\n\n[rent]: <https://flats.example/rent>",
        "The rent is 640 euros [1](https://flats.example/rent).",
        "The rent is 640 euros [[1](https://flats.example)][[2](https://flats.example)].",
        "The rent is 640 euros.[^a]\n\n[^a]: Contract of May. Signed twice\n    by both.",
        "The rent is 640 euros.[^a]\n\n[^a]:\n    Contract of May.",
        "The rent is 640 euros[¹](#one).\n\n¹ Contract of May",
        "- [x] The rent is 640 euros.",
        "1. [ ] The rent is 640 euros.",
        "> [!NOTE]\n> The rent\n> is 640 euros.",
        "The rent is ~~600~~ 640 euros.",
        "The rent is 640&nbsp;euros.",
        "The rent is 640 euros. :white_check_mark:",
        "The rent is $640$ euros.",
        "The rent is \\(640\\,\\text{euros}\\).",
        "<h2>Rent</h2><p>The rent is 640 euros.</p>",
        "<details><summary>Rent</summary>The rent is 640 euros.</details>",
        "![The rent is 600](rent_(old).png)\n\nThe rent is 640 euros.",
    ],
)
def test_what_belongs_to_the_page_is_no_claim_of_an_answer(text: str) -> None:
    assert claims(text) == [RENT]


@pytest.mark.parametrize(
    "text",
    [
        "Flat | Rent\n--- | ---\nNorth | 640\nSouth | 710",
        "| Flat | Rent |\n|:--|--:|\n| **North** | 640 |\n| [South](https://a.example/(s)) | 710 |",
        "> | Flat | Rent |\n> |---|---|\n> | North | 640 |\n> | South | 710 |",
        "- Rents:\n\n  | Flat | Rent |\n  |---|---|\n  | North | 640 |\n  | South | 710 |",
        "Table 2: Rents\n| Flat | Rent |\n|---|---|\n| North | 640 |\n| South | 710 |",
        "<table>\n<thead>\n<tr><th>Flat</th><th>Rent</th></tr>\n</thead>\n<tbody>\n"
        "<tr>\n<td>North</td>\n<td>640</td>\n</tr>\n<tr><td>South</td><td>710</td></tr>\n</table>",
    ],
)
def test_a_table_in_any_notation_claims_its_rows_and_no_header(text: str) -> None:
    assert claims(text) == ["Flat: North; Rent: 640", "Flat: South; Rent: 710"]


def test_an_escaped_pipe_is_part_of_its_cell() -> None:
    assert claims("| Rent | Euros |\n|---|---|\n| warm \\| cold | 640 |") == [
        "Rent: warm | cold; Euros: 640"
    ]


def test_a_line_behind_a_table_is_no_row_of_it() -> None:
    assert claims("Flat | Rent\n--- | ---\nNorth | 640\nThe list is of May.") == [
        "Flat: North; Rent: 640",
        "The list is of May.",
    ]


def test_a_definition_is_said_of_its_term() -> None:
    assert claims("**Rent**\n: 640 euros\n\nDeposit\n: two rents") == [
        "Rent: 640 euros",
        "Deposit: two rents",
    ]
    assert claims("<dl><dt>Rent</dt><dd>640 euros</dd></dl>") == ["Rent: 640 euros"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("The flat has \\(A = 54\\,\\text{m}^2\\).", "The flat has A = 54 m²."),
        ("About $\\frac{1}{2}$ of it is let.", "About 1/2 of it is let."),
        ("It takes $t \\approx 3~\\mathrm{h}$.", "It takes t ≈ 3 h."),
        ("It costs $640 or $710.", "It costs $640 or $710."),
        ("It grew by $3\\%$.", "It grew by 3%."),
    ],
)
def test_a_formula_reads_as_it_is_said_and_a_price_stays(written: str, said: str) -> None:
    assert claims(written) == [said]


@pytest.mark.parametrize(
    "text",
    [
        "[Rent]: 640 euros",
        "The sizes are 3*4*5 metres.",
        "1999. That was the year.",
        "Two flats remain.\n---\nBoth are let.",
    ],
)
def test_what_commonmark_would_swallow_is_kept_where_it_says_something(text: str) -> None:
    kept = " ".join(claims(text))

    assert [word for word in text.split() if word.strip("[]:-.") not in kept] == []


_MARKED: Final = st.text(alphabet="aB1 .:\n\t|-#`*_~()[]<>!\\$&=•^", max_size=120)


@given(text=_MARKED)
def test_each_sentence_is_a_part_of_the_text_and_a_reference_loses_nothing(text: str) -> None:
    assert all(each.written in text for each in content_sentences(text, "en"))
    assert "".join("".join(every_sentence(text, "en")).split()) == "".join(text.split())


def _steps(text: str) -> int:
    """How many blocks and sentences a text is cut into, which is what its reading costs."""
    return len(list(content_sentences(text, "en"))) + len(list(every_sentence(text, "en")))


@pytest.mark.parametrize(
    "piece",
    ["[", "*", ">", "|", "- ", "> - ", "> > > a\n", "- - - a\n", "[a\n", "<td>", "|a|\n|-|\n"],
)
def test_64_kilobytes_of_marks_are_read_without_an_error(piece: str) -> None:
    text = (piece * 65_536)[:65_536]

    assert _steps(text) <= 65_536
