"""A text that only says that something was done is no evidence; whatever may be asked is."""

import pytest

from claimspan_tracing.read.passages import acknowledges, is_echo

from buildings import FACTS, HIGH
from linear_time import grows_linearly


@pytest.mark.parametrize(
    "text",
    [
        "ok",
        "OK.",
        "Done!",
        "done ✅",
        "Saved.",
        "Note saved.",
        "The note has been saved successfully.",
        "Memory stored successfully",
        "Saved to memory (id: 17)",
        "Successfully transferred to billing_agent",
        "Transferred to the billing agent.",
        "Transferred back to supervisor",
        "Updated the list",
        "Indexed 6 documents",
        "Added 12 chunks to the vectorstore.",
        "Indexed 1 documents into the store",
        '{"status": "ok"}',
        "{'success': True, 'error': None}",
        '{"status": "success", "message": "Saved.", "id": "n-17"}',
        '{"ok": true, "memory_id": 4}',
        '{"status": 200}',
        '{"success": true, "status_code": 201}',
    ],
)
def test_what_only_says_that_it_was_done_acknowledges(text: str) -> None:
    assert acknowledges(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "True",
        "yes",
        "42",
        "330",
        "Paris",
        "shipped",
        "Order 4711 was completed",
        "The order was shipped.",
        "Created on 3 May",
        "Updated: 12 March 2022",
        "Saved 330 euros",
        "Added salt and pepper",
        "Completed in 1889",
        "The tower was completed.",
        "Stored at 4 degrees",
        "Is it done?",
        "no results",
        "None",
        '{"status": "shipped"}',
        '{"status": "ok", "height": 330}',
        '{"success": false, "error": "no such order"}',
        '{"result": 42}',
        '{"status": "ok", "message": "The order arrives on Monday."}',
        "{}",
        "{" * 100,
        HIGH,
        *FACTS,
    ],
)
def test_what_may_be_an_answer_does_not(text: str) -> None:
    assert not acknowledges(text)


@pytest.mark.parametrize("piece", ["ok ", "{", " ", "id ", "1 ", "("])
def test_a_hostile_text_takes_no_longer_than_its_length(piece: str) -> None:
    # Up to 200 characters are read, longer ones are told by their length.
    assert grows_linearly(acknowledges, piece, 199)
    assert grows_linearly(acknowledges, piece, 1_000_000)


@pytest.mark.parametrize(
    ("said", "is_nothing"),
    [
        ("Updated file n.md", True),
        ("Email sent to ana@acme.example", True),
        ("n.md has 3 lines", False),
        ("ana@acme.example has sent nothing yet", False),
        ("Updated file other.md", False),
    ],
)
def test_that_something_was_done_with_the_arguments_of_a_call_finds_nothing(
    said: str, is_nothing: bool
) -> None:
    assert is_echo(said, ["n.md", "ana@acme.example", "text"]) is is_nothing
