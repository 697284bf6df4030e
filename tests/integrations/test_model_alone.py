"""A model that is called alone, with a whole prompt: its question is the one in the prompt."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from llama_index.core.llms import ChatMessage

import claimspan_llama_index
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing.read.answering import Generated
from claimspan_tracing.read.handwritten import question_of
from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import attached, judged
from li_pipelines import Script
from linear_time import grows_linearly

FOUND = "\n\n".join(FACTS)

PROMPTS = {
    "f-string": f"Answer based only on the following context:\n{FOUND}\n\nQuestion: {TOWER}",
    "question first": f"Question: {TOWER}\n\nContext:\n{FOUND}\n\nAnswer:",
    "one line": f"Use the context to reply.\nContext: {FOUND}\n\nQuestion: {TOWER} Answer:",
    "hub": "You are an assistant for question-answering tasks. Use the following pieces of "
    "retrieved context to answer the question. Be brief.\n"
    f"Question: {TOWER} \nContext: {FOUND} \nAnswer:",
    "tags": f"<documents>\n{FOUND}\n</documents>\n\n<user_question>{TOWER}</user_question>",
    "heading": f"## Context\n\n{FOUND}\n\n## Question\n\n{TOWER}",
    "label below a heading": f"# Context\n{FOUND}\n\n# Question\n**Question:** {TOWER}",
    "next line": f"Context:\n{FOUND}\n\nUser question:\n{TOWER}\n",
    "behind tags": f"<documents>\n{FOUND}\n</documents>\n\n{TOWER}",
    "before a label": f"{TOWER}\n\nContext:\n{FOUND}",
    "before an order": f"{TOWER}\n\nUse only the following information to answer:\n\n{FOUND}",
    "behind a pointer": f"{FOUND}\n\nBased on the above context, answer the question: {TOWER}",
    "chinese": f"\u5df2\u77e5\u4fe1\u606f\uff1a\n{FOUND}\n\n\u6839\u636e\u4e0a\u8ff0\u5df2\u77e5"
    f"\u4fe1\u606f\u56de\u7b54\u3002\u95ee\u9898\u662f\uff1a{TOWER}",
    "llama-index": f"Context information is below.\n---------------------\n{FOUND}\n"
    "---------------------\nGiven the context information and not prior knowledge, answer the "
    f"query.\nQuery: {TOWER}\nAnswer: ",
}


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with InMemoryMonitor(ground_truth={TOWER: HIGH}) as made:
        yield made


@pytest.mark.parametrize("name", PROMPTS)
def test_the_question_of_a_prompt_is_that_of_the_record(
    monitor: InMemoryMonitor, name: str
) -> None:
    chain = GenericFakeChatModel(messages=iter([AIMessage(HIGH)])) | StrOutputParser()
    chain.invoke(PROMPTS[name], {"callbacks": [ClaimspanCallbackHandler(monitor)]})

    judged(monitor.only_record(), [FOUND])
    assert monitor.stats.with_ground_truth == 1


def test_a_system_message_beside_it_changes_nothing(monitor: InMemoryMonitor) -> None:
    model = GenericFakeChatModel(messages=iter([AIMessage(HIGH)]))
    messages = [SystemMessage("You are brief."), HumanMessage(PROMPTS["question first"])]
    model.invoke(messages, {"callbacks": [ClaimspanCallbackHandler(monitor)]})

    judged(monitor.only_record(), [FOUND])


@pytest.mark.parametrize("name", ["f-string", "llama-index"])
def test_a_model_of_llama_index_is_read_alike(name: str) -> None:
    with attached(lambda made: claimspan_llama_index.instrument(made)) as monitor:
        Script(said=HIGH).complete(PROMPTS[name])

    judged(monitor.only_record(), [FOUND])


@pytest.mark.parametrize("how", ["chat", "achat"])
async def test_a_chat_model_of_llama_index_is_asked_what_its_user_said_last(how: str) -> None:
    messages = [
        ChatMessage(role="system", content=f"Answer by the context.\nContext:\n{FOUND}"),
        ChatMessage(role="user", content="Hello"),
        ChatMessage(role="assistant", content="Hello!"),
        ChatMessage(role="user", content=TOWER),
    ]
    with attached(lambda made: claimspan_llama_index.instrument(made)) as monitor:
        model = Script(said=HIGH)
        await model.achat(messages) if how == "achat" else model.chat(messages)

    judged(monitor.only_record(), [FOUND])


@pytest.mark.parametrize(
    "prompt",
    [
        f"Context:\n{FOUND}\n\nTell me about towers.",
        f"Question: {TOWER}\nQuestion: And who built it?\n\nContext:\n{FOUND}",
        f"Question: {TOWER}\nI have read a lot of books about it, and do not know the answer.",
        f"I have read a lot of books about it, and do not know the answer.\n\n{TOWER}",
        f"Context:\n{FOUND}\n\nBe brief.\n{TOWER}\nWho built it?",
    ],
    ids=["no label", "two questions", "no evidence", "no evidence before it", "several lines"],
)
def test_a_prompt_without_one_question_is_the_query_itself(prompt: str) -> None:
    assert question_of(prompt, [Generated(prompt, HIGH)]) == prompt


def test_a_question_that_a_document_asks_is_not_the_users() -> None:
    faq = "Question: How long is the bridge? It has 2,460 metres.\nIt was opened in 2004."
    prompt = f"<context>\n{faq}\n</context>\n\n<question>{TOWER}</question>"

    assert question_of(prompt, [Generated(prompt, HIGH)]) in (TOWER, prompt)


def test_a_query_that_the_model_read_with_more_around_it_stays_as_it_is() -> None:
    query = PROMPTS["f-string"]

    assert question_of(query, [Generated(f"You are brief.\n{query}", HIGH)]) == query


@pytest.mark.parametrize(
    "piece",
    [
        "question ",
        "question:\n",
        "<question>",
        "a " * 30,
        " * ",
        "\n>",
        "answer: ",
        "user question",
    ],
)
def test_a_hostile_prompt_takes_no_longer_than_its_length(piece: str) -> None:
    def find(hostile: str) -> None:
        prompt = f"Context:\n{FOUND}\n\nQuestion: {hostile}"
        question_of(prompt, [Generated(prompt, HIGH)])

    assert grows_linearly(find, piece, 200_000)
