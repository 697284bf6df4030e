"""What a provider reports as a refusal, and not as a text, is what the model answered."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# The frameworks leave some of their generics open.

from typing import Any, Final

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnablePassthrough

from claimspan.judges import LexicalJudge
from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, TOWER
from captured import read
from lc_buildings import PROMPT, Way, config, documents, every_way, joined, retrieve
from lc_pipelines import Script, Shelf, calls

REFUSAL: Final = "I'm sorry, I cannot help with that."
DECLINES: Final = "the response declines to answer"

FORMS: Final = {
    # As OpenAI's responses, and since langchain-core 1.7.5 the standard blocks.
    "block": AIMessage([{"type": "refusal", "refusal": REFUSAL}]),
    # As OpenAI's chat completions.
    "keyword": AIMessage("", additional_kwargs={"refusal": REFUSAL}),
    "text": AIMessage(REFUSAL),
}

every_form = pytest.mark.parametrize("said", FORMS.values(), ids=FORMS)


def chain(said: AIMessage) -> Any:
    retriever = Shelf(documents=documents(*FACTS[:2]))
    inputs = {"context": retriever | joined, "question": RunnablePassthrough[str]()}
    return inputs | PROMPT | Script(lines=[said])


@every_form
@every_way
def test_the_refusal_of_a_provider_is_the_answer_of_a_chain(way: Way, said: AIMessage) -> None:
    with InMemoryMonitor(judge=LexicalJudge()) as monitor:
        way(chain(said), TOWER, config(monitor))

    record = monitor.only_record()
    assert read(record) == (TOWER, REFUSAL, FACTS[:2], "no_answer")
    assert record.outcome.reason == DECLINES


@every_form
def test_the_refusal_of_a_provider_is_the_answer_of_an_agent(said: AIMessage) -> None:
    model = Script(lines=[calls("retrieve", query="tower"), said])
    agent: Any = create_agent(model, tools=[retrieve])
    with InMemoryMonitor(judge=LexicalJudge()) as monitor:
        agent.invoke({"messages": [("user", TOWER)]}, config(monitor))

    record = monitor.only_record()
    assert read(record) == (TOWER, REFUSAL, FACTS[:2], "no_answer")
    assert record.outcome.reason == DECLINES


def test_a_refusal_after_some_words_follows_them() -> None:
    said = AIMessage(
        [{"type": "text", "text": f"{FACTS[0]} "}, {"type": "refusal", "refusal": REFUSAL}]
    )
    with InMemoryMonitor(judge=LexicalJudge()) as monitor:
        chain(said).invoke(TOWER, config(monitor))

    assert monitor.only_record().record.response == f"{FACTS[0]} {REFUSAL}"
