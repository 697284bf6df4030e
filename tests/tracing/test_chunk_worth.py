"""What each chunk was worth, in two lists of numbers on the span that shows the chunks."""

from __future__ import annotations

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig, RunnableLambda

from claimspan.testing import ScriptedJudge
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor
from claimspan_tracing.adapters import is_list
from claimspan_tracing.testing import InMemoryMonitor

from lc_pipelines import Echo, Shelf, rag_chain
from support import attributes

RECALL = "claimspan.score.claim_recall"
RELEVANCE, USED = "claimspan.chunks.relevance", "claimspan.chunks.used"
TRUTH = {"q": "Answer to q. Nobody knows q."}


def documents(*texts: str) -> list[Document]:
    return [Document(id=f"d{n}", page_content=text) for n, text in enumerate(texts)]


def ask(monitor: Monitor, *texts: str) -> None:
    chain = rag_chain(retriever=Shelf(documents=documents(*texts)))
    chain.invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})


def lists_on(monitor: InMemoryMonitor, operation: str) -> list[dict[str, object]]:
    spans = [span for span in monitor.spans() if span.name.split()[0] == operation]
    shown = [attributes(span) for span in spans]
    return [{name: each[name] for name in (RELEVANCE, USED) if name in each} for each in shown]


def test_each_chunk_has_the_share_of_the_claims_that_it_entails() -> None:
    with InMemoryMonitor(ground_truth=TRUTH) as monitor:
        ask(monitor, "Answer to q", "Invented for q. Answer to q", "nothing", "Nobody knows q")

        (found,) = lists_on(monitor, "retrieval")
    assert found[RELEVANCE] == (0.5, 0.5, 0.0, 0.5)
    assert found[USED] == (0.5, 1.0, 0.0, 0.0)


def test_without_a_ground_truth_nobody_knows_what_is_relevant() -> None:
    with InMemoryMonitor() as monitor:
        ask(monitor, "Answer to q", "nothing")

        assert lists_on(monitor, "retrieval") == [{USED: (0.5, 0.0)}]


def test_a_chunk_without_any_decided_verdict_leaves_out_the_list() -> None:
    judge = ScriptedJudge(lambda claim, text: None if text == "unclear" else "entailed")
    with InMemoryMonitor(judge=judge) as monitor:
        ask(monitor, "clear", "unclear")

        assert lists_on(monitor, "retrieval") == [{}]


def test_a_verdict_that_is_open_counts_neither_for_nor_against() -> None:
    judge = ScriptedJudge(lambda claim, text: None if claim == "Invented for q" else "entailed")
    with InMemoryMonitor(judge=judge) as monitor:
        ask(monitor, "a", "b")

        assert lists_on(monitor, "retrieval") == [{USED: (1.0, 1.0)}]


def test_the_lists_are_as_long_as_the_documents_on_the_span() -> None:
    with InMemoryMonitor() as monitor:
        ask(monitor, *(f"text {n}" for n in range(30)))

        ((_, used),) = lists_on(monitor, "retrieval")[0].items()
    assert is_list(used)
    assert len(used) == 20


def test_chunks_that_were_dropped_before_the_model_are_judged_where_the_model_read_them() -> None:
    shelf = Shelf(documents=documents("dropped", "Answer to q", "Invented for q. Answer to q"))

    def answer(query: str, config: RunnableConfig) -> dict[str, object]:
        read = shelf.invoke(query, config)[1:]
        prompt = "\n".join([*(document.page_content for document in read), query])
        return {"context": read, "answer": Echo().invoke(prompt, config).content}

    with InMemoryMonitor() as monitor:
        chain = RunnableLambda(answer)
        chain.invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})

        retrieved, read = lists_on(monitor, "retrieval"), lists_on(monitor, "chat")
    assert retrieved == [{}]
    assert read == [{USED: (0.5, 1.0)}]


def test_chunks_of_one_id_are_not_taken_for_one_another_where_texts_are_not_captured() -> None:
    shelves = [
        Shelf(documents=[Document(id="0", page_content=text)])
        for text in ("Answer to q. Nobody knows q.", "nothing")
    ]

    def answer(query: str, config: RunnableConfig) -> str:
        chunks = [chunk for shelf in shelves for chunk in shelf.invoke(query, config)]
        read = "\n".join([*(chunk.page_content for chunk in chunks), query])
        return Echo().invoke(read, config).text

    found: dict[bool, list[dict[str, object]]] = {}
    for is_captured in (True, False):
        with InMemoryMonitor(ground_truth=TRUTH, capture_content=is_captured) as monitor:
            chain = RunnableLambda(answer)
            chain.invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
            spans = [s for s in monitor.spans() if s.name.split()[0] == "retrieval"]
            found[is_captured] = [
                {n: v for n, v in attributes(span).items() if n in (RECALL, RELEVANCE, USED)}
                for span in spans
            ]

    assert [each[RECALL] for each in found[True]] == [1.0, 0.0]
    assert [each[RELEVANCE] for each in found[True]] == [(1.0,), (0.0,)]
    assert found[False] == [{}, {}]
