"""What lies beyond a bound makes no false score, and what decides a claim can be read."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Final
from uuid import uuid4

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from opentelemetry.sdk.trace import ReadableSpan

from claimspan.judges import LexicalJudge
from claimspan.testing import ScriptedJudge
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_langchain._reader import LangChainReader
from claimspan_tracing import Job, Status
from claimspan_tracing.adapters import RunKind, open_capture
from claimspan_tracing.capture.table import MAX_TREE_RUNS
from claimspan_tracing.job import MAX_CHUNKS
from claimspan_tracing.remote import RemoteEvaluation
from claimspan_tracing.testing import InMemoryMonitor
from claimspan_tracing.text import MAX_TEXT_BYTES
from claimspan_tracing.write.spans import MAX_DOCUMENTS

from lc_pipelines import Script, Shelf
from support import attributes

CONTENT: Final = re.compile(r"retrieval\.documents\.\d+\.document\.content")
REASON: Final = "claimspan.evaluation.reason"
UNDECIDED: Final = "claimspan.evaluation.undecided"


def documents(n: int) -> list[Document]:
    return [Document(id=f"r{i}", page_content=f"Room {i} is {i + 3} m long.") for i in range(n)]


def told(*shelves: Sequence[Document], answer: str) -> Runnable[str, str]:
    """A function that asks retrievers, and gives an answer of its own."""

    def reply(query: str, config: RunnableConfig) -> str:
        for shelf in shelves:
            Shelf(documents=[*shelf]).invoke(query, config)
        return answer

    return RunnableLambda(reply)


def ask(monitor: InMemoryMonitor, chain: Runnable[str, str]) -> None:
    chain.invoke("How long are the rooms?", {"callbacks": [ClaimspanCallbackHandler(monitor)]})


def root_of(monitor: InMemoryMonitor) -> Mapping[str, object]:
    key = "claimspan.evaluation.status"
    (root,) = [span for span in monitor.spans() if key in attributes(span)]
    return attributes(root)


def texts_on(*spans: ReadableSpan) -> set[object]:
    return {v for span in spans for n, v in attributes(span).items() if CONTENT.fullmatch(n)}


# --- beyond a bound -------------------------------------------------------------------------------


@pytest.mark.parametrize("capture_content", [True, False])
def test_an_answer_out_of_a_chunk_beyond_the_bound_has_no_score_and_the_reason_says_why(
    capture_content: bool,
) -> None:
    with InMemoryMonitor(capture_content=capture_content) as monitor:
        ask(monitor, told(documents(150), answer="Room 149 is 152 m long."))
        root = root_of(monitor)

    assert "claimspan.score.faithfulness" not in root
    assert root["claimspan.evaluation.status"] == "evaluated"
    assert root["claimspan.evaluation.label"] == "unknown"
    assert root[REASON] == "no score has a value: 100 of 150 chunks are kept"
    assert root[UNDECIDED] == ("100 of 150 chunks are kept: 1",)
    assert root["claimspan.claims.unknown.count"] == 1


def test_an_answer_out_of_a_kept_chunk_is_judged_as_ever() -> None:
    with InMemoryMonitor() as monitor:
        ask(monitor, told(documents(150), answer="Room 99 is 102 m long."))

        assert root_of(monitor)["claimspan.score.faithfulness"] == 1.0
        assert UNDECIDED not in root_of(monitor)


@pytest.mark.parametrize(("n", "is_cut"), [(MAX_TEXT_BYTES - 100, False), (MAX_TEXT_BYTES, True)])
@pytest.mark.parametrize("filler", ["x ", "ž "])
def test_a_chunk_whose_text_is_cut_leaves_undecided_what_it_does_not_say(
    filler: str, n: int, is_cut: bool
) -> None:
    end = "The lift is new."
    text = (filler * n).encode()[:n].decode("utf-8", "ignore") + end
    with InMemoryMonitor() as monitor:
        ask(monitor, told([Document(id="k", page_content=text)], answer=end))
        root = root_of(monitor)

    if is_cut:
        assert root[UNDECIDED] == ("64 KiB are kept of 1 long chunks: 1",)
        assert "claimspan.score.faithfulness" not in root
    else:
        assert root["claimspan.score.faithfulness"] == 1.0


def test_a_query_of_which_runs_were_not_kept_leaves_undecided_what_no_chunk_says() -> None:
    with InMemoryMonitor() as monitor:
        capture = open_capture(monitor, LangChainReader())

        def run(kind: RunKind, parent: Hashable, inputs: object, outputs: object) -> None:
            run_id = uuid4()
            capture.start(run_id, parent, kind, "step", inputs)
            capture.end(run_id, outputs)

        root = uuid4()
        capture.start(root, None, RunKind.CHAIN, "chain", "q")
        run(RunKind.RETRIEVER, root, "q", documents(3))
        for _ in range(MAX_TREE_RUNS):
            run(RunKind.CHAIN, root, "q", "a")
        run(RunKind.RETRIEVER, root, "q", documents(150)[149:])
        capture.end(root, "Room 149 is 152 m long.")

        assert root_of(monitor)[UNDECIDED] == ("3 runs are not kept: 1",)
        assert "claimspan.score.faithfulness" not in root_of(monitor)


def test_a_retriever_has_no_recall_of_nought_where_its_chunks_were_not_all_kept() -> None:
    truth = "Room 149 is 152 m long."
    shelves = [Document(id="k", page_content="A cellar.")], documents(150)
    with InMemoryMonitor(ground_truth={"How long are the rooms?": truth}) as monitor:
        ask(monitor, told(*shelves, answer=truth))
        found = [attributes(s) for s in monitor.spans() if s.name.split()[0] == "retrieval"]

    assert len(found) == 2
    assert not any("claimspan.score.claim_recall" in each for each in found)


def test_a_job_of_a_version_that_did_not_say_so_is_known_to_lack_chunks_by_its_counts() -> None:
    with InMemoryMonitor(sample=0.0) as monitor:
        ask(monitor, told(documents(150), answer="Room 149 is 152 m long."))
        job = monitor.only_record().job
    fields = json.loads(job.to_json())
    assert fields["record"].pop("context_cut") == "100 of 150 chunks are kept"

    assert Job.from_json(json.dumps(fields)) == job


def test_a_worker_elsewhere_and_a_process_of_the_judge_know_it_too() -> None:
    chain = told(documents(150), answer="Room 149 is 152 m long.")
    with InMemoryMonitor(judge=LexicalJudge(), worker="process") as monitor:
        ask(monitor, chain)
        record = monitor.only_record()
    remote = RemoteEvaluation(LexicalJudge())
    elsewhere = remote.evaluate(Job.from_json(record.job.to_json()), seconds=30)
    remote.close()

    for outcome in (record.outcome, elsewhere):
        assert outcome.evaluation is not None
        assert outcome.evaluation.undecided.keys() == {"100 of 150 chunks are kept"}
        assert outcome.status is Status.EVALUATED


def test_a_redactor_that_shortens_a_text_which_was_cut_leaves_it_cut() -> None:
    end = "The lift is new."
    text = "Ann " * (MAX_TEXT_BYTES // 4) + end
    redact = partial(re.sub, "Ann ", "")
    with InMemoryMonitor(redact=redact) as monitor:
        ask(monitor, told([Document(id="k", page_content=text)], answer=end))

        assert root_of(monitor)[UNDECIDED] == ("64 KiB are kept of 1 long chunks: 1",)


def test_a_job_that_kept_all_of_its_chunks_says_nothing() -> None:
    with InMemoryMonitor(sample=0.0) as monitor:
        ask(monitor, told(documents(MAX_CHUNKS), answer="Room 99 is 102 m long."))
        job = monitor.only_record().job

    assert job.record.context_cut is None
    assert Job.from_json(job.to_json()) == job


# --- what decides a claim -------------------------------------------------------------------------


def evaluation_span(monitor: InMemoryMonitor) -> ReadableSpan:
    (span,) = [span for span in monitor.spans() if span.name == "claimspan.evaluate"]
    return span


@pytest.mark.parametrize("hold_seconds", [30.0, 0.05])
def test_a_chunk_that_decides_a_claim_can_be_read_whatever_its_place(hold_seconds: float) -> None:
    found = documents(60)
    script = {
        ("Room 50 is 53 m long", found[50].page_content): "entailed",
        ("Room 40 is 9 m long", found[40].page_content): "contradicted",
    }
    judge = ScriptedJudge(script, delay_seconds=0.0 if hold_seconds > 1 else 0.3)
    with InMemoryMonitor(judge=judge, hold_seconds=hold_seconds) as monitor:
        ask(monitor, told(found, answer="Room 50 is 53 m long. Room 40 is 9 m long."))
        assert monitor.only_record().outcome.late is (hold_seconds < 1)
        evaluation = evaluation_span(monitor)

    assert texts_on(evaluation) == {found[50].page_content, found[40].page_content}
    shown = attributes(evaluation)
    assert shown["retrieval.documents.0.document.id"] == "r50"  # in the order of the claims
    assert json.loads(str(shown["claimspan.claim.1.contradicted_by"])) == ["r40"]


def test_what_another_span_has_is_not_written_twice() -> None:
    found = documents(MAX_DOCUMENTS)
    with InMemoryMonitor() as monitor:
        ask(monitor, told(found, answer="Room 19 is 22 m long."))

        assert found[19].page_content in texts_on(*monitor.spans())
        assert texts_on(evaluation_span(monitor)) == set()


def test_each_of_many_claims_comes_with_a_chunk_and_the_span_keeps_within_its_bound() -> None:
    found = documents(100)
    answer = " ".join(document.page_content for document in found[60:])
    with InMemoryMonitor() as monitor:
        ask(monitor, told(found, answer=answer))
        span = evaluation_span(monitor)

    shown = attributes(span)
    n = shown["claimspan.claims.recorded"]
    assert isinstance(n, int)
    assert n > 10
    assert {document.page_content for document in found[60 : 60 + n]} <= texts_on(span)
    assert len(shown) <= 100


def test_no_text_is_written_of_a_chunk_where_texts_are_not_captured() -> None:
    with InMemoryMonitor(capture_content=False) as monitor:
        ask(monitor, told(documents(60), answer="Room 50 is 53 m long."))

        assert root_of(monitor)["claimspan.score.faithfulness"] == 1.0
        assert texts_on(*monitor.spans()) == set()


def test_documents_beyond_those_that_are_looked_for_make_no_claim_unsupported() -> None:
    found = documents(1_200)
    prompt = "\n".join(each.page_content for each in found)

    def reply(query: str, config: RunnableConfig) -> str:
        Shelf(documents=found).invoke(query, config)
        said = Script(lines=["Room 1199 is 1202 m long."]).invoke(f"{prompt}\n{query}", config)
        return str(said.content)

    with InMemoryMonitor(judge=LexicalJudge()) as monitor:
        ask(monitor, RunnableLambda(reply))

        root = root_of(monitor)
        assert "claimspan.score.faithfulness" not in root
        assert "the first 1,000 documents were looked for" in str(root[UNDECIDED])
