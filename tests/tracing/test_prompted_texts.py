"""Which texts a prompt holds, and which generations gave an answer."""

from __future__ import annotations

import json
from collections.abc import Sequence

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace import INVALID_SPAN

from claimspan_tracing.capture.runs import Document, Retrieval, Run, RunKind, RunTree
from claimspan_tracing.guard import Guard
from claimspan_tracing.observed import ObservedReader
from claimspan_tracing.read.answering import Generated, answering
from claimspan_tracing.read.context import Candidates, Context, find_context
from claimspan_tracing.read.prompts import Prompts, unexplained
from claimspan_tracing.text import MAX_JOINED

from linear_time import grows_linearly

LONG = "The reservoir above the town holds ninety million litres, and was built before the war."
OTHER = "Visitors may enter the museum from nine in the morning until six in the evening, daily."
FROM_PROMPT = {"claimspan.chunk.source": "prompt"}
QUERY = "How much does the reservoir hold?"
REPEATED = [
    *(
        "a ",
        "word ",
        "ab ",
        "x",
        "\\u0041",
        "\\",
        "&amp;",
        "&",
        "\u6587",
        "a b c d e ",
        "[",
        "\n\n",
        "\\n",
    ),
    *("The tower in Paris is 330 metres... ", '"', ". . ", "<b>w</b> ", " \n", "\x00"),
]
"""What texts consist of that are made to take long."""

ANSWER = "It holds ninety million litres of water."


def read_texts(prompts: Sequence[str], texts: Sequence[str]) -> list[str | None]:
    return Prompts(prompts).read(texts)


def test_a_text_with_other_white_space_is_there() -> None:
    assert read_texts([f"Context:\n{LONG.replace(' ', chr(10))}\nQ"], [LONG]) == [LONG]


def test_a_text_that_is_not_there_is_none() -> None:
    assert read_texts([f"{LONG} Q"], [LONG, OTHER]) == [LONG, None]


def test_an_empty_text_is_never_there() -> None:
    assert read_texts([LONG], ["", "  "]) == [None, None]


def test_a_text_that_stands_only_within_another_one_was_read_with_it() -> None:
    assert read_texts([f"{LONG} Q"], [LONG[:28], LONG]) == [None, LONG]
    assert read_texts([f"{LONG} Q {LONG[:28]}"], [LONG[:28], LONG]) == [LONG[:28], LONG]


def test_a_text_with_lines_between_its_parts_was_read_as_a_whole() -> None:
    text = f"{LONG} {OTHER}"
    prompt = f"{LONG}\n[page 2]\n{OTHER}\nQ"

    assert read_texts([prompt], [text]) == [text]


@pytest.mark.parametrize(
    ("prompt", "read"),
    [
        (f"{LONG} {OTHER}".replace("ninety", "[NUMBER]"), "The reservoir above the town holds"),
        (f"{LONG} {OTHER}".replace(" six in the evening,", ""), "in the morning until"),
        (f"{LONG} {OTHER}\n".replace(" in the evening, daily.", ""), "in the morning until six"),
    ],
)
def test_what_was_taken_out_of_a_text_was_not_read(prompt: str, read: str) -> None:
    (found,) = read_texts([f"{prompt} Q"], [f"{LONG} {OTHER}"])

    assert found is not None
    assert read in found
    assert found != f"{LONG} {OTHER}"


def test_a_prompt_that_ends_within_a_text_proves_nothing() -> None:
    assert read_texts([f"{LONG} {OTHER[:50]}"], [LONG, OTHER]) == [None, None]


def test_sentences_that_were_picked_from_a_text_are_what_was_read_of_it() -> None:
    text = f"{LONG} {OTHER} It is old. {QUERY} {ANSWER}"

    assert read_texts([f"He said: {OTHER} Q"], [text]) == [OTHER]
    assert read_texts([f"{ANSWER} Also: {LONG} Q"], [text]) == [f"{LONG} \u2026 {ANSWER}"]


def test_what_a_model_has_written_proves_no_text() -> None:
    prompts = Prompts([f"Notes: {OTHER}\n{LONG}\nQ"])
    prompts.write(OTHER)

    assert prompts.read([f"{LONG} {OTHER}", OTHER]) == [LONG, None]


FEW_WORDS = "Rindfleisch-Etikettierung Aufgaben"


def test_a_text_of_few_words_is_there_whatever_stands_between_them() -> None:
    prompt = "Context: RINDFLEISCH\nETIKETTIERUNG: aufgaben\nQ"

    assert read_texts([prompt], [FEW_WORDS]) == [FEW_WORDS]
    assert read_texts([prompt.replace("aufgaben", "aufgabe")], [FEW_WORDS]) == [None]


def test_of_places_with_all_words_of_a_text_that_proves_it_which_no_model_has_written() -> None:
    written = "Rindfleisch, Etikettierung, Aufgaben, as I said."
    for order in ("Notes: {0}\nContext: {1}", "Context: {1}\nNotes: {0}"):
        prompts = Prompts([order.format(written, FEW_WORDS.upper())])
        prompts.write(written)
        assert prompts.read([FEW_WORDS]) == [FEW_WORDS]

    prompts = Prompts([f"Notes: {written}"])
    prompts.write(written)
    assert prompts.read([FEW_WORDS]) == [None]


def test_all_words_of_a_text_prove_less_of_it_if_a_model_has_written_some_of_them() -> None:
    prompts = Prompts([f"Notes: {LONG.upper()}"])
    prompts.write(LONG.upper()[:42])

    assert prompts.read([LONG]) == ["million litres, and was built before the war."]


def test_a_place_with_all_words_of_a_text_proves_it_if_nothing_else_explains_that() -> None:
    around = f"{FEW_WORDS}. {LONG}"
    prompt = f"Context: {around.upper()}\nQ"

    assert read_texts([prompt], [around, FEW_WORDS]) == [around, None]
    assert read_texts([f"{prompt} {FEW_WORDS.upper()}"], [around, FEW_WORDS]) == [around, FEW_WORDS]


def test_texts_with_the_same_beginning_do_not_prove_each_other() -> None:
    header = "Handbook of the waterworks, second edition, chapter four. "

    assert read_texts([f"{header}{LONG} Q"], [header + LONG, header + OTHER]) == [
        header + LONG,
        None,
    ]


def test_a_short_text_is_no_part_of_a_word_or_number() -> None:
    assert read_texts(["Opened in 2004, we know. Paris"], ["4", "no", "Paris"]) == [
        None,
        None,
        "Paris",
    ]


def test_a_short_text_may_stand_behind_an_escaped_line_break() -> None:
    assert read_texts([repr(["One.\nTwo words"])], ["Two words"]) == ["Two words"]


def test_a_text_of_two_stores_that_the_prompt_has_once_was_read_once() -> None:
    assert read_texts([f"{LONG} Q"], [LONG, LONG]) == [LONG, None]
    assert read_texts([f"{LONG} {LONG} Q"], [LONG, LONG]) == [LONG, LONG]


def test_a_text_may_stand_there_as_json_within_html() -> None:
    text = "\n".join(f"{n}. Größe & Höhe für 'früh' <§ {n}>" for n in range(9))
    written = jinja2.Environment(autoescape=True).from_string("Context: {{ it | tojson }} Q")

    assert read_texts([written.render(it=[text])], [text]) == [text]


def test_a_text_may_stand_there_as_python_writes_it() -> None:
    text = 'He said:\n"no", and it\'s\nold.\n"yes"'

    assert read_texts([f"[{text!r}] Q"], [text, OTHER]) == [text, None]


@given(st.permutations([LONG, OTHER, LONG[20:] + OTHER[:40], f"{LONG} {OTHER}"]))
def test_the_order_of_texts_and_how_they_overlap_does_not_matter(texts: list[str]) -> None:
    prompt = f"{LONG} {OTHER}\n{LONG[20:]}{OTHER[:40]}\nQ"
    within = (LONG, OTHER)

    found = read_texts([prompt], texts)
    assert found == [None if text in within else text for text in texts]


@given(st.lists(st.text(), max_size=4), st.text())
def test_any_text_is_looked_for_without_an_error_and_stands_where_it_was_put(
    texts: list[str], before: str
) -> None:
    prompt = before + "\n" + "\n".join(texts) + "\nQ?"
    found = read_texts([prompt], texts)

    assert all(
        part is not None or not text.strip() for part, text in zip(found, texts, strict=True)
    )


def test_the_generation_whose_words_came_back_gave_the_answer() -> None:
    answer, grade = Generated("chunks", ANSWER), Generated("Is it good? " + ANSWER, "yes")

    assert answering([answer, grade], ANSWER) == [answer]


def test_a_draft_in_the_prompt_of_the_answer_took_part_and_a_rejected_one_did_not() -> None:
    draft = Generated("first chunks", "Some ninety million litres.")
    rejected = Generated("other chunks", "It is empty since the summer.")
    last = Generated(f"Refine: {draft.completion}", ANSWER)

    assert answering([rejected, draft, last], f" {ANSWER}\n") == [draft, last]


def test_the_words_of_a_model_are_followed_to_what_it_had_read() -> None:
    note = Generated(LONG, "A great lake was dammed there, it seems, for the mills of the town.")
    again = Generated(f"Refine: {note.completion} {OTHER}", note.completion)
    last = Generated(f"Notes as JSON: {json.dumps([again.completion])}", ANSWER)

    assert answering([note, again, last], ANSWER) == [note, again, last]
    found = find([document(LONG), document(OTHER)], [note, again, last])
    assert found.documents == [document(LONG), document(OTHER)]


def test_a_document_that_a_model_has_written_is_followed_as_well() -> None:
    own = "A great lake was dammed there, it seems, for the mills of the town."
    note, last = Generated(LONG, own), Generated(f"{own} Q", ANSWER)

    assert find([Document(own, id="d"), document(LONG)], [note, last]).documents == [document(LONG)]


def test_a_short_report_of_another_agent_is_followed_to_what_it_has_read() -> None:
    inner = Generated(f"{LONG}\n{QUERY}", "80 million.", tool_results=(LONG,))
    outer = Generated("Tool: 80 million.", ANSWER, tool_results=("80 million.",))

    assert find([], [inner, outer]).documents == [Document(LONG, metadata=FROM_PROMPT)]


def test_a_report_that_copies_half_of_a_text_leaves_the_text_whole() -> None:
    report = f"{LONG[:60]}."
    inner = Generated(f"{LONG} {OTHER}\n{QUERY}", report, tool_results=(f"{LONG} {OTHER}",))
    outer = Generated(f"Tool: {report}", ANSWER, tool_results=(report,))

    assert find([], [inner, outer]).documents == [Document(f"{LONG} {OTHER}", metadata=FROM_PROMPT)]


def test_what_a_model_quotes_is_from_outside_and_what_else_it_read_is_not_followed() -> None:
    note, last = Generated(f"{LONG} {OTHER}", LONG), Generated(f"{LONG} Q", ANSWER)

    assert find([document(LONG), document(OTHER)], [note, last]).documents == [document(LONG)]


def test_a_model_whose_words_went_nowhere_has_read_nothing_for_the_answer() -> None:
    grade = Generated(OTHER, "Grade: poor, since it is about another place, and another time.")
    last = Generated(f"{LONG} Q", ANSWER)

    assert find([document(LONG), document(OTHER)], [grade, last]).documents == [document(LONG)]


def test_an_answer_whose_marks_were_edited_is_told_by_its_words() -> None:
    said = "It **holds** ninety million litres of water [1], and it was built before the war [2]."
    seen = "It holds ninety million litres of water (a.pdf), and it was built before the war (b)."
    draft, last = Generated(OTHER, "Some other thing was said here before."), Generated(LONG, said)

    assert answering([draft, last], seen) == [last]


@pytest.mark.parametrize("piece", REPEATED, ids=repr)
def test_prompts_and_texts_are_compared_in_time_that_grows_with_their_length(piece: str) -> None:
    def compare(text: str) -> None:
        half, start = text[: len(text) // 2], text[:3_000]
        prompts = Prompts([f"{text} end", f"Q: {text}"])
        prompts.write(f"{half} own words of a model")
        prompts.read([f"{text} y", f"{half} Z", f"{start}!", f"{text[5:]} and another end of it"])
        list(unexplained([text, f"x {half}"], [(f"{start} k", None), (f"{half} n z", None)]))

    assert grows_linearly(compare, piece, 40_000)


@pytest.mark.parametrize("grade", ["yes", "No.", "relevant", "5", ""])
def test_a_grade_is_no_part_of_an_answer_though_a_prompt_has_the_word(grade: str) -> None:
    grader = Generated("Is this relevant? chunk", grade)
    last = Generated(f"Say yes or no, or {grade}. Relevant 5: no chunk", ANSWER)

    assert answering([grader, last], ANSWER) == [last]


def test_parts_of_an_answer_that_say_the_same_all_took_part() -> None:
    parts = [Generated(text, "It is not said.") for text in (LONG, OTHER)]
    title = Generated("Name it.", "Questions")

    joined = "1: It is not said.\n2: It is not said."
    assert answering([*parts, title], joined) == parts


def test_all_generations_count_where_none_has_the_words_of_the_answer() -> None:
    both = [Generated("a", "one thing"), Generated("b", "another thing")]

    assert answering(both, "Assembled elsewhere.") == both


def document(text: str) -> Document:
    return Document(text, id=text[:3])


def find(
    seen: Sequence[Document],
    generations: Sequence[Generated],
    named: Sequence[Document] | None = None,
) -> Context:
    tree = RunTree(INVALID_SPAN, ObservedReader())
    root = Run("root", tree, None, RunKind.CHAIN, "root", 0, QUERY, {})
    search = Run("search", tree, root, RunKind.RETRIEVER, "search", 0, QUERY, {})
    tree.runs += [root, search]
    candidates = Candidates(tree, [(search, Retrieval(QUERY, seen))], Guard(), named)
    return find_context(candidates, generations, QUERY, ANSWER)


def test_a_document_that_was_seen_twice_is_read_once() -> None:
    seen = [document(LONG), document(OTHER), document(LONG)]
    found = find(seen, [Generated(f"{LONG} Q", ANSWER)])

    assert found.documents == [document(LONG)]
    assert found.source == "prompt"


def test_what_a_pipeline_names_counts_where_no_prompt_is_seen() -> None:
    found = find([document(LONG)], [], [document(OTHER)])

    assert (found.documents, found.source) == ([document(OTHER)], "last_documents")


def test_what_a_pipeline_names_and_no_prompt_of_the_answer_has_was_not_read() -> None:
    found = find([document(LONG)], [Generated("Q", ANSWER)], [document(OTHER)])

    assert (list(found.documents or ()), found.source) == ([], "prompt")


def test_a_prompt_that_was_cut_proves_nothing() -> None:
    cut = Generated(LONG + "x" * MAX_JOINED, ANSWER)
    found = find([document(LONG), document(OTHER)], [cut])

    assert (found.documents, found.source) == (None, "retriever")


def test_an_empty_context_that_is_named_is_overruled_by_the_prompt() -> None:
    found = find([document(LONG)], [Generated(f"{LONG} Q", ANSWER)], [])

    assert found.documents == [document(LONG)]


def test_a_check_that_reads_all_documents_after_the_answer_changes_nothing() -> None:
    named = [document(LONG), document(OTHER)]
    answer = Generated(f"{LONG} Q", ANSWER)
    check = Generated(f"{LONG} {OTHER} Is this right? {ANSWER}", "It is supported.")

    assert find([], [answer, check], named).documents == named[:1]


class Hostile:
    """A value of the user's that lets nobody look at it."""

    def __str__(self) -> str:
        raise RuntimeError("not for you")

    def __bool__(self) -> bool:
        raise RuntimeError("not for you")


def test_a_check_that_says_the_same_word_as_a_short_answer_gave_none_of_it() -> None:
    answer = Generated(f"{LONG}\nIs it so? Say yes or no.", "Yes.")
    check = Generated(f"{LONG}\n{OTHER}\nAnswer: Yes.\nIs that grounded?", "Yes.")

    assert answering([answer, check], "Yes.") == [answer]


def test_a_document_that_cannot_be_read_is_passed_over() -> None:
    seen = [Document(Hostile(), id=Hostile()), Document(LONG, id=Hostile())]
    found = find(seen, [Generated(f"{LONG} Q", ANSWER)])

    assert found.documents == seen[1:]


@pytest.mark.parametrize("note", ["30", "Yes."])
@pytest.mark.parametrize("prompt", ["Context: {}\n\nQ?", "Polish this draft: {}", "Notes:\n{}\nQ?"])
def test_a_number_or_a_grade_that_fills_a_place_of_the_prompt_is_followed(
    note: str, prompt: str
) -> None:
    made, last = Generated(f"{LONG}\n{QUERY}", note), Generated(prompt.format(note), ANSWER)

    assert answering([made, last], ANSWER) == [made, last]


def test_short_parts_that_an_answer_was_joined_of_took_part() -> None:
    first = Generated(LONG, "It holds ninety million litres.")
    others = [Generated(text, "It is not said.") for text in (OTHER, QUERY)]
    parts = [first, *others]
    joined = "\n---\n".join(f"Response {n}: {each.completion}" for n, each in enumerate(parts, 1))

    assert answering(parts, joined) == parts


def test_a_short_result_of_a_tool_is_no_part_of_a_table_with_its_words() -> None:
    table, row = f"{LONG}\nkind\tdays\tcarry\nFull-time\t25\t5", "[('Full-time', 25, 5)]"
    last = Generated(f"{table}\n{row}\n{QUERY}", ANSWER, tool_results=(row,))

    found = find([document(table)], [last]).documents
    assert [each.text for each in found or ()] == [table, row]


def test_a_place_that_one_text_explains_proves_no_beginning_of_another() -> None:
    cut = LONG[:60]
    prompt = f"Context:\n{cut}\n-----\n{QUERY}"

    assert read_texts([prompt], [LONG, cut]) == [None, cut]


def test_the_material_of_an_answered_turn_is_none_if_this_turn_has_its_own() -> None:
    before, now = (
        f"Context: {OTHER}\n\nQuestion: Is it open?",
        f"Context: {LONG}\n\nQuestion: {QUERY}",
    )
    both = Generated(f"{before}\nYes.\n{now}", ANSWER, told=(before, now), turn=(now,))
    alone = Generated(f"{before}\nYes.\n{QUERY}", ANSWER, told=(before, QUERY), turn=(QUERY,))

    assert [each.text for each in find([], [both]).documents or ()] == [LONG]
    assert [each.text for each in find([], [alone]).documents or ()] == [OTHER]


def test_a_result_of_a_tool_that_repeats_the_question_is_evidence() -> None:
    result = f"Results for {QUERY!r}: ninety million litres, says the gazetteer of the county."
    last = Generated(f"{QUERY}\n{result}", ANSWER, tool_results=(result,))

    assert find([], [last]).documents == [Document(result, metadata=FROM_PROMPT)]
