"""Evaluation spans: what was judged and why scores are low; and late scores as annotations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

import pytest
from opentelemetry.sdk.trace import ReadableSpan

from claimspan import Claim, Evaluation, VerdictMatrix
from claimspan.cost.usage import Usage, add_note
from claimspan.evaluation import Assessment
from claimspan.testing import ScriptedJudge
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing.adapters import is_list
from claimspan_tracing.testing import InMemoryMonitor
from claimspan_tracing.write.evaluation_span import annotation_attributes, identifier_of

from lc_pipelines import rag_chain
from pipelines import answer_to
from support import attributes, ids

TRUTH: Final = {"q": "Answer to q. Nobody knows q."}
INVENTED: Final = "Invented for q"
SUMMARY: Final = "claimspan.evaluation.summary"
ANNOTATION: Final = re.compile(r"evaluations\.(\d+)\.evaluation\.(\w+)")


def ask(monitor: InMemoryMonitor) -> None:
    rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})


def named(monitor: InMemoryMonitor, name: str) -> ReadableSpan:
    (span,) = [span for span in monitor.spans() if span.name.split()[0] == name]
    return span


@pytest.fixture
def on_time() -> Iterator[InMemoryMonitor]:
    with InMemoryMonitor(ground_truth=TRUTH) as monitor:
        ask(monitor)
        yield monitor


@pytest.fixture
def late() -> Iterator[InMemoryMonitor]:
    judge = ScriptedJudge(delay_seconds=0.3)
    with InMemoryMonitor(judge=judge, hold_seconds=0.1, ground_truth=TRUTH) as monitor:
        ask(monitor)
        assert monitor.only_record().outcome.late
        yield monitor


def objects(span: ReadableSpan) -> dict[int, dict[str, object]]:
    """The annotations on a span, by their number."""
    found: dict[int, dict[str, object]] = {}
    for name, value in attributes(span).items():
        if match := ANNOTATION.fullmatch(name):
            found.setdefault(int(match[1]), {})[match[2]] = value
    return found


# --- what a person sees ---


def test_the_evaluation_shows_what_was_judged_and_why_scores_are_low(
    on_time: InMemoryMonitor,
) -> None:
    shown = attributes(named(on_time, "claimspan.evaluate"))
    result = json.loads(str(shown["output.value"]))

    assert json.loads(str(shown["input.value"])) == {"question": "q", "response": answer_to("q")}
    assert shown["input.mime_type"] == shown["output.mime_type"] == "application/json"
    assert list(result) == ["label", "summary", "claims", "scores"]
    assert (result["label"], result["scores"]["faithfulness"]) == ("low", 0.5)
    assert result["summary"].startswith(
        f"faithfulness 0.50: 1 of 2 claims is in no chunk: '{INVENTED}'"
    )
    # What nothing supports comes first, then what a chunk supports, with its sentence.
    assert result["claims"] == [
        {"claim": INVENTED, "verdict": "in no chunk"},
        {"claim": "Answer to q", "verdict": "in chunk 1", "evidence": "Answer to q. More on q"},
    ]


def test_low_scores_stand_in_front_in_the_output_and_none_is_missing(
    on_time: InMemoryMonitor,
) -> None:
    shown = attributes(named(on_time, "claimspan.evaluate"))
    scores = json.loads(str(shown["output.value"]))["scores"]
    values = on_time.only_record().scores

    assert scores == {name: round(value, 2) for name, value in values.items()}
    assert list(scores)[:2] == ["faithfulness", "precision"]
    assert list(scores)[-1] == "context_precision"


def test_a_chunk_that_contradicts_is_named_with_its_sentence() -> None:
    judge = ScriptedJudge(lambda claim, text: "contradicted")
    with InMemoryMonitor(judge=judge) as monitor:
        ask(monitor)
        shown = attributes(named(monitor, "claimspan.evaluate"))

    first = json.loads(str(shown["output.value"]))["claims"][0]
    assert first == {
        "claim": "Answer to q",
        "verdict": "contradicted by chunks 1, 2",
        "evidence": "Answer to q. More on q",
    }


def test_the_root_tells_in_one_line_what_is_wrong(on_time: InMemoryMonitor) -> None:
    summary = str(attributes(named(on_time, "invoke_workflow"))[SUMMARY])

    assert summary.startswith(f"faithfulness 0.50: 1 of 2 claims is in no chunk: '{INVENTED}' (")


def test_a_good_answer_has_no_summary() -> None:
    with InMemoryMonitor(judge=ScriptedJudge(lambda claim, text: "entailed")) as monitor:
        ask(monitor)

        assert SUMMARY not in attributes(named(monitor, "invoke_workflow"))


def test_without_content_reasons_have_their_counts_and_no_quotes() -> None:
    with InMemoryMonitor(ground_truth=TRUTH, capture_content=False) as monitor:
        ask(monitor)
        shown = attributes(named(monitor, "claimspan.evaluate"))
        summary = attributes(named(monitor, "invoke_workflow"))[SUMMARY]

    assert "input.value" not in shown
    assert "input.mime_type" not in shown
    assert str(summary).startswith("faithfulness 0.50: 1 of 2 claims is in no chunk (also low")
    result = json.loads(str(shown["output.value"]))
    assert result["scores"]["faithfulness"] == 0.5
    assert result["claims"] == [{"verdict": "in no chunk"}, {"verdict": "in chunk 1"}]
    assert "Invented" not in f"{summary} {dict(shown)}"


def test_late_reasons_quote_nothing_either_without_content() -> None:
    judge = ScriptedJudge(delay_seconds=0.3)
    with InMemoryMonitor(
        judge=judge, hold_seconds=0.1, ground_truth=TRUTH, capture_content=False
    ) as monitor:
        ask(monitor)
        written = [dict(attributes(span)) for span in monitor.spans()]

    assert "1 of 2 claims is in no chunk" in str(written)
    assert "Invented" not in str(written)


def test_what_the_redactor_takes_out_is_in_no_reason() -> None:
    def redact(text: str) -> str:
        return text.replace("Invented", "[out]")

    with InMemoryMonitor(ground_truth=TRUTH, redact=redact) as monitor:
        ask(monitor)
        written = str([dict(attributes(span)) for span in monitor.spans()])

    assert "1 of 2 claims is in no chunk: '[out] for q'" in written
    assert "Invented" not in written


def test_a_long_question_and_many_reasons_stay_within_eight_kibibytes() -> None:
    long = 40 * "wide \u00e4\u00f6 "
    claims = {"q": ". ".join(f'claim "{i}" {long}' for i in range(20))}
    chain = rag_chain()
    with InMemoryMonitor(ground_truth=claims) as monitor:
        chain.invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
        chain.invoke('"\n' * 5_000, {"callbacks": [ClaimspanCallbackHandler(monitor)]})
        shown = [attributes(s) for s in monitor.spans() if s.name == "claimspan.evaluate"]

    assert len(shown) == 2
    for each in shown:
        for name in ("input.value", "output.value"):
            assert len(str(each[name]).encode()) <= 8192
            json.loads(str(each[name]))


class Unclean(ScriptedJudge):
    """A judge whose model writes control characters into its claims."""

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        return [Claim(text="red\x1b[31m and \0\nnothing", sentence="red\x1b[31m and \u202e\0")]


def test_what_a_judge_writes_into_its_claims_is_cleaned_like_every_other_text() -> None:
    with InMemoryMonitor(judge=Unclean(), ground_truth=TRUTH) as monitor:
        ask(monitor)
        written = "".join(str(value) for s in monitor.spans() for value in attributes(s).values())

    assert "'red\ufffd[31m and \ufffd nothing'" in written
    assert re.findall(r"[\0\x1b\u202e]|\\u0000|\\u001b", written) == []


class Talkative(ScriptedJudge):
    """A judge that notes something else about each of many verdicts."""

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        for n in range(100):
            add_note(f"{n} \x1b[31m\ud800 {'x' * 10_000}", n)
        return await super().check(claims, references, question=question)


def test_a_judge_that_notes_a_lot_fills_no_span() -> None:
    with InMemoryMonitor(judge=Talkative()) as monitor:
        ask(monitor)
        notes = attributes(named(monitor, "invoke_workflow"))["claimspan.judge.notes"]

    assert is_list(notes)
    texts = [str(note) for note in notes]
    assert [text.split()[0] for text in texts] == [str(n) for n in range(99, 83, -1)]
    assert max(len(text.encode()) for text in texts) < 270
    assert not any(mark in text for text in texts for mark in ("\x1b", "\ud800"))


# --- late scores, by OpenInference's rules for annotations ---


def test_every_late_score_is_one_whole_annotation(late: InMemoryMonitor) -> None:
    carrier = named(late, "claimspan.annotations")
    found = objects(carrier)
    fields = {"name", "score", "label", "annotator_kind", "identifier"}

    assert sorted(found) == list(range(len(late.only_record().scores)))
    assert {str(each["name"]): each["score"] for each in found.values()} == dict(
        late.only_record().scores
    )
    for each in found.values():
        assert set(each) == fields | ({"explanation"} if each["label"] == "low" else set())
        assert each["annotator_kind"] == "CODE"
        assert each["identifier"] == "claimspan/scripted/1"
    assert len(attributes(carrier)) <= 100


def test_a_carrier_of_annotations_has_nothing_but_these(late: InMemoryMonitor) -> None:
    others = [
        name
        for name in attributes(named(late, "claimspan.annotations"))
        if not ANNOTATION.fullmatch(name)
    ]

    assert sorted(others) == ["gen_ai.operation.name", "openinference.span.kind"]


@pytest.mark.parametrize("name", ["claimspan.annotations", "claimspan.evaluate"])
def test_a_late_span_has_one_link_to_its_root_and_does_not_stretch_the_trace(
    late: InMemoryMonitor, name: str
) -> None:
    root, span = named(late, "invoke_workflow"), named(late, name)

    assert [link.context.span_id for link in span.links] == [ids(root).span_id]
    assert span.start_time == span.end_time == root.end_time
    assert attributes(span)["openinference.span.kind"] == "EVALUATOR"
    assert ids(span).trace_id == ids(root).trace_id


def test_late_scores_stand_beside_their_claims_with_their_summary(late: InMemoryMonitor) -> None:
    evidence = attributes(named(late, "claimspan.evaluate"))

    assert evidence["claimspan.score.faithfulness"] == 0.5
    assert evidence["claimspan.claim.1.text"] == INVENTED
    assert str(evidence[SUMMARY]).startswith("faithfulness 0.50: ")
    assert SUMMARY not in attributes(named(late, "invoke_workflow"))  # it had ended


def test_explanations_make_way_before_scores_and_scores_are_left_out_whole() -> None:
    assessments = [
        Assessment(name=f"metric {i}", value=0.1, label="low", explanation="why") for i in range(4)
    ]
    sizes: dict[int, tuple[int, int]] = {}
    for room in (24, 22, 20, 19, 4):
        found = annotation_attributes(assessments, Evaluation(judge_name="j"), room)
        assert len(found) <= room
        explained = [name for name in found if name.endswith(".explanation")]
        whole = len([name for name in found if name.endswith(".name")])
        assert all(f"evaluations.{i}.evaluation.score" in found for i in range(whole))
        sizes[room] = whole, len(explained)

    assert sizes == {24: (4, 4), 22: (4, 2), 20: (4, 0), 19: (3, 3), 4: (0, 0)}


def test_the_annotator_is_a_model_where_one_was_called() -> None:
    called = Evaluation(
        judge_name="openai:m", usage=Usage(calls=1), response_claims=(Claim(text="c"),)
    )
    assessments = [Assessment(name="f", value=1.0, label="good", explanation="")]

    found = annotation_attributes(assessments, called, 100)

    assert found["evaluations.0.evaluation.annotator_kind"] == "LLM"
    assert identifier_of(called) == "claimspan/openai:m"
