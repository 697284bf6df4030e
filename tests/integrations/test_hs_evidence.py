"""The chunks of a record are what Haystack's model read: documents, windows, or plain texts."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.

from collections.abc import Iterator
from typing import Any

import pytest
from haystack import Document, Pipeline, component
from haystack.components.retrievers import AutoMergingRetriever, SentenceWindowRetriever
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.components.routers import ConditionalRouter
from haystack.document_stores.in_memory import InMemoryDocumentStore

import claimspan_haystack
from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import attached, judged, texts
from hs_pipelines import ASYNC_PIPELINE
from hs_scripts import (
    DOCUMENTS,
    Says,
    Shelf,
    adapter,
    asking,
    chat_prompt,
    every_way,
    facts,
    plain_rag,
    run_in,
)

WEB = Document(id="web", content="A newspaper of today says that the tower is 330 metres high.")


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with attached(claimspan_haystack.instrument) as made:
        yield made


# --- documents -----------------------------------------------------------------------------------


def corrective() -> Pipeline:
    """The tutorial on conditional routing: the web is searched where the documents do not do."""
    asked_again = "Say no_answer, or answer by the documents.\n"
    routes: list[Any] = [
        {
            "condition": "{{ 'no_answer' in replies[0].text }}",
            "output": "{{ query }}",
            "output_name": "go_to_websearch",
            "output_type": str,
        },
        {
            "condition": "{{ 'no_answer' not in replies[0].text }}",
            "output": "{{ replies[0].text }}",
            "output_name": "answer",
            "output_type": str,
        },
    ]
    pipeline = ASYNC_PIPELINE()
    pipeline.add_component("shelf", Shelf(facts(1, 2)))
    pipeline.add_component("prompt", chat_prompt(asked_again + DOCUMENTS + "{{ question }}"))
    pipeline.add_component("llm", Says("no_answer"))
    pipeline.add_component("router", ConditionalRouter(routes))
    pipeline.add_component("web", Shelf([WEB]))
    pipeline.add_component("web_prompt", chat_prompt())
    pipeline.add_component("web_llm", Says(HIGH))
    pipeline.connect("shelf.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.connect("llm.replies", "router.replies")
    pipeline.connect("router.go_to_websearch", "web.query")
    pipeline.connect("router.go_to_websearch", "web_prompt.question")
    pipeline.connect("web.documents", "web_prompt.documents")
    pipeline.connect("web_prompt.prompt", "web_llm.messages")
    return pipeline


@every_way
def test_documents_that_a_fallback_replaces_do_not_count(
    monitor: InMemoryMonitor, way: str
) -> None:
    run_in(way, corrective(), asking() | {"router": {"query": TOWER}})

    judged(monitor.only_record(), [str(WEB.content)])


def two_branches() -> Pipeline:
    """Two models answer by a retriever of their own, and a component joins what they say."""
    pipeline = ASYNC_PIPELINE()
    for number in (0, 1):
        pipeline.add_component(f"shelf{number}", Shelf(facts(number)))
        pipeline.add_component(f"prompt{number}", chat_prompt())
        pipeline.add_component(f"llm{number}", Says(FACTS[number]))
        pipeline.connect(f"shelf{number}.documents", f"prompt{number}.documents")
        pipeline.connect(f"prompt{number}.prompt", f"llm{number}.messages")
    join = adapter("{{ one[0].text }} {{ other[0].text }}")
    pipeline.add_component("join", join)
    pipeline.connect("llm0.replies", "join.one")
    pipeline.connect("llm1.replies", "join.other")
    return pipeline


def test_documents_that_two_models_quote_were_read_by_both(monitor: InMemoryMonitor) -> None:
    questions = {f"prompt{n}": {"question": TOWER} for n in (0, 1)}
    two_branches().run(questions | {f"shelf{n}": {"query": TOWER} for n in (0, 1)})

    found = monitor.only_record()
    assert sorted(texts(found)) == sorted(FACTS[:2])
    assert found.record.response == " ".join(FACTS[:2])


def test_a_document_in_other_letters_was_read_where_the_answer_quotes_it(
    monitor: InMemoryMonitor,
) -> None:
    template = "{% for each in documents %}{{ each.content | upper }}\n{% endfor %}{{ question }}"
    pipeline = Pipeline()
    pipeline.add_component("shelf", Shelf(facts(0, 1)))
    pipeline.add_component("prompt", chat_prompt(template))
    pipeline.add_component("llm", Says(FACTS[0]))
    pipeline.connect("shelf.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.run(asking())

    judged(monitor.only_record(), FACTS[:2], FACTS[0])


def test_a_window_around_a_sentence_is_what_was_read(monitor: InMemoryMonitor) -> None:
    store = InMemoryDocumentStore()
    meta = [{"source_id": "s", "split_id": n, "split_idx_start": 100 * n} for n in range(3)]
    store.write_documents([Document(id=f"f{n}", content=FACTS[n], meta=meta[n]) for n in range(3)])
    pipeline = Pipeline()
    pipeline.add_component("words", InMemoryBM25Retriever(store, top_k=1))
    pipeline.add_component("window", SentenceWindowRetriever(store, window_size=1))
    pipeline.add_component("prompt", chat_prompt())
    pipeline.add_component("llm", Says(HIGH))
    pipeline.connect("words.documents", "window.retrieved_documents")
    pipeline.connect("window.context_documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.run({"words": {"query": TOWER}, "prompt": {"question": TOWER}})

    judged(monitor.only_record(), FACTS[:2])


def test_the_windows_of_sentences_as_texts_are_evidence(monitor: InMemoryMonitor) -> None:
    store = InMemoryDocumentStore()
    meta = {"source_id": "s", "split_id": 0, "split_idx_start": 0}
    store.write_documents([Document(id="f0", content=FACTS[0], meta=meta)])
    pipeline = Pipeline()
    pipeline.add_component("words", InMemoryBM25Retriever(store, top_k=1))
    pipeline.add_component("window", SentenceWindowRetriever(store, window_size=1))
    template = "{% for each in windows %}{{ each }}{% endfor %}\n{{ question }}"
    pipeline.add_component("prompt", chat_prompt(template))
    pipeline.add_component("llm", Says(HIGH))
    pipeline.connect("words.documents", "window.retrieved_documents")
    pipeline.connect("window.context_windows", "prompt.windows")
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.run({"words": {"query": TOWER}, "prompt": {"question": TOWER}})

    judged(monitor.only_record(), FACTS[:1])


def test_the_parent_of_merged_leaves_is_what_was_read(monitor: InMemoryMonitor) -> None:
    parent = Document(
        id="parent", content=" ".join(FACTS[:2]), meta={"__level": 1, "__children_ids": ["a", "b"]}
    )
    leaves = [
        Document(id=name, content=text, meta={"__level": 2, "__parent_id": "parent"})
        for name, text in zip("ab", FACTS, strict=False)
    ]
    for each in leaves:
        each.meta["__block_size"] = 10
    parent.meta["__block_size"] = 20
    parents = InMemoryDocumentStore()
    parents.write_documents([parent])
    pipeline = Pipeline()
    pipeline.add_component("shelf", Shelf(leaves))
    pipeline.add_component("merge", AutoMergingRetriever(parents, threshold=0.5))
    pipeline.add_component("prompt", chat_prompt())
    pipeline.add_component("llm", Says(HIGH))
    pipeline.connect("shelf.documents", "merge.documents")
    pipeline.connect("merge.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.run(asking())

    judged(monitor.only_record(), [" ".join(FACTS[:2])])


@pytest.mark.parametrize("score", ["0.9", float("nan"), True, None])
def test_a_score_or_metadata_of_any_type_loses_no_record(
    monitor: InMemoryMonitor, score: Any
) -> None:
    meta: Any = {"when": object(), 3: {"deep": [set("ab"), b"raw"]}, "n": 10**400}
    document = Document(id="odd", content=FACTS[0], score=score, meta=meta)
    plain_rag(shelf=Shelf([document])).run(asking())

    judged(monitor.only_record(), FACTS[:1])


# --- plain texts ---------------------------------------------------------------------------------


@component
class Notes:
    """Returns a plain text to answer from."""

    @component.output_types(found=str)
    def run(self, about: str) -> dict[str, Any]:
        return {"found": FACTS[0]}


def test_a_text_that_a_component_puts_into_the_prompt_is_evidence(monitor: InMemoryMonitor) -> None:
    pipeline = Pipeline()
    pipeline.add_component("notes", Notes())
    pipeline.add_component("prompt", chat_prompt("{{ context }}\n{{ question }}"))
    pipeline.add_component("llm", Says(HIGH))
    pipeline.connect("notes.found", "prompt.context")
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.run({"notes": {"about": "tower"}, "prompt": {"question": TOWER}})

    judged(monitor.only_record(), FACTS[:1])


@pytest.mark.parametrize("name", ["context", "search_results", "sources", "known_facts", "page"])
def test_a_text_that_is_given_by_hand_is_evidence(monitor: InMemoryMonitor, name: str) -> None:
    pipeline = Pipeline()
    pipeline.add_component("prompt", chat_prompt(f"{{{{ {name} }}}}\n{{{{ question }}}}"))
    pipeline.add_component("llm", Says(HIGH))
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.run({"prompt": {name: FACTS[0], "question": TOWER}})

    judged(monitor.only_record(), FACTS[:1])


@component
class Fetches:
    """Returns what it has fetched as mappings, as a client of a site of news does."""

    @component.output_types(articles=list[dict[str, str]])
    def run(self, top_k: int) -> dict[str, Any]:
        places = ("https://example.org/tower", "https://example.org/bridge")
        pairs = zip(places, FACTS[:top_k], strict=True)
        return {"articles": [{"url": url, "text": text} for url, text in pairs]}


def test_articles_that_were_fetched_are_evidence_without_their_addresses(
    monitor: InMemoryMonitor,
) -> None:
    template = "{% for each in articles %}{{ each.text }}\nURL: {{ each.url }}\n{% endfor %}"
    pipeline = Pipeline()
    pipeline.add_component("fetch", Fetches())
    pipeline.add_component("prompt", chat_prompt(template + "{{ question }}"))
    pipeline.add_component("llm", Says(HIGH))
    pipeline.connect("fetch.articles", "prompt.articles")
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.run({"fetch": {"top_k": 2}, "prompt": {"question": TOWER}})

    judged(monitor.only_record(), FACTS[:2])


@component
class Queries:
    """Returns the rows of a table as Python writes them."""

    @component.output_types(results=list[str])
    def run(self, replies: list[Any]) -> dict[str, Any]:
        return {"results": [str([(f"It's new:\n\n{HIGH}",)])]}


def test_a_result_that_the_answer_repeats_is_evidence_though_it_is_escaped_in_the_prompt(
    monitor: InMemoryMonitor,
) -> None:
    pipeline = Pipeline()
    pipeline.add_component("first", chat_prompt("Write SQL for: {{ question }}"))
    pipeline.add_component("sql", Says("SELECT note FROM towers"))
    pipeline.add_component("table", Queries())
    pipeline.add_component("prompt", chat_prompt("Rows: {{ results }}\n{{ question }}"))
    pipeline.add_component("llm", Says(HIGH))
    pipeline.connect("first.prompt", "sql.messages")
    pipeline.connect("sql.replies", "table.replies")
    pipeline.connect("table.results", "prompt.results")
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.run({"first": {"question": TOWER}, "prompt": {"question": TOWER}})

    judged(monitor.only_record(), [str([(f"It's new:\n\n{HIGH}",)])])


@component
class Condenses:
    """Puts documents into words of its own."""

    @component.output_types(text=str)
    def run(self, documents: list[Document]) -> dict[str, Any]:
        return {"text": "One of the documents says that the tower has a height of 330 metres."}


def test_what_a_component_made_of_documents_is_the_chunk_and_not_the_documents(
    monitor: InMemoryMonitor,
) -> None:
    pipeline = ASYNC_PIPELINE()
    pipeline.add_component("shelf", Shelf(facts()))
    pipeline.add_component("condense", Condenses())
    pipeline.add_component(
        "prompt", chat_prompt("Context:\n{{ known }}\n\nQuestion: {{ question }}")
    )
    pipeline.add_component("llm", Says(HIGH))
    pipeline.connect("shelf.documents", "condense.documents")
    pipeline.connect("condense.text", "prompt.known")
    pipeline.connect("prompt.prompt", "llm.messages")
    run_in("run", pipeline, asking())

    judged(
        monitor.only_record(),
        ["One of the documents says that the tower has a height of 330 metres."],
    )


def windowed(*sentences: str) -> Pipeline:
    """Retrieve one of some sentences, and those around it."""
    store = InMemoryDocumentStore()
    split = [
        Document(content=text, meta={"source_id": "s", "split_id": i, "split_idx_start": 100 * i})
        for i, text in enumerate(sentences)
    ]
    store.write_documents(split)
    pipeline = Pipeline()
    pipeline.add_component("shelf", InMemoryBM25Retriever(store, top_k=1))
    pipeline.add_component("windows", SentenceWindowRetriever(store, window_size=1))
    pipeline.add_component("llm", Says(HIGH))
    pipeline.connect("shelf.documents", "windows.retrieved_documents")
    return pipeline


def test_a_window_of_text_takes_the_place_of_the_sentence_in_it(monitor: InMemoryMonitor) -> None:
    sentences = ("Paris has a tower. ", f"{FACTS[0]} ", "It was painted again last year. ")
    pipeline = windowed(*sentences)
    template = "{% for each in windows %}{{ each }}\n{% endfor %}{{ question }}"
    pipeline.add_component("prompt", chat_prompt(template))
    pipeline.connect("windows.context_windows", "prompt.windows")
    pipeline.connect("prompt.prompt", "llm.messages")
    run_in("run", pipeline, asking())

    judged(monitor.only_record(), ["".join(sentences)])


def test_the_sentences_of_a_window_are_read_once_where_they_stand_one_by_one(
    monitor: InMemoryMonitor,
) -> None:
    # The shorter they are, the more of the window's words stand where two of them meet.
    sentences = ("Paris has a tall tower. ", "The tower is 330 metres high. ", "It is of iron. ")
    pipeline = windowed(*sentences)
    pipeline.add_component("prompt", chat_prompt())
    pipeline.connect("windows.context_documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "llm.messages")
    run_in("run", pipeline, asking())

    judged(monitor.only_record(), [*sentences])
