"""What a template prints of a document's metadata was read, where the answer speaks of it."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# The frameworks leave some of their generics open.

from collections.abc import Iterator

import pytest
from haystack import Document as HaystackDocument
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from llama_index.core.schema import NodeWithScore, TextNode

import claimspan_haystack
import claimspan_langchain
import claimspan_llama_index
from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, TOWER
from captured import attached, read, texts
from hs_pipelines import ASYNC_PIPELINE
from hs_scripts import Says, asking, chat_prompt
from hs_scripts import Shelf as HaystackShelf
from lc_buildings import PROMPT, joined
from lc_pipelines import Script, Shelf
from li_pipelines import Script as LlamaScript
from li_pipelines import Shelf as LlamaShelf
from li_pipelines import engine_of

COSTS = "A ticket for it costs 29.40 euros."
FIELDS = {"source": "towers.pdf", "price": 29.40, "title": "Visits", "page": 7}
CHUNK = f"price: 29.4\n{FACTS[0]}"


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with attached(claimspan_langchain.instrument) as made:
        yield made


def ask(template: str, answer: str, *others: Document) -> None:
    found = [Document(page_content=FACTS[0], id="d0", metadata=FIELDS), *others]

    def told(found: list[Document]) -> str:
        return "\n\n".join(
            template.format(text=each.page_content, **each.metadata) for each in found
        )

    inputs = {
        "context": Shelf(documents=found) | RunnableLambda(told),
        "question": RunnablePassthrough[str](),
    }
    (inputs | PROMPT | Script(lines=[answer]) | StrOutputParser()).invoke(TOWER)


TEMPLATES = [
    "Title: {title}\nPrice: {price} euros\n{text}",
    "{title} ({price} euros): {text}",
    "{text} It costs {price} euros.",
    '<doc source="{source}" price="{price}">{text}</doc>',
]


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_field_that_a_template_prints_and_the_answer_tells_is_part_of_its_chunk(
    monitor: InMemoryMonitor, template: str
) -> None:
    ask(template, "A ticket costs 29.4 euros.")

    record = monitor.only_record()
    assert texts(record) == [CHUNK]
    assert record.record.chunks[0].id == "d0"


@pytest.mark.parametrize("template", TEMPLATES)
def test_fields_that_the_answer_does_not_tell_leave_a_chunk_as_it_is(
    monitor: InMemoryMonitor, template: str
) -> None:
    ask(template, "The tower in Paris is 330 metres high, says towers.pdf on page 7.")

    assert texts(monitor.only_record()) == FACTS[:1]


def test_a_field_that_was_not_printed_is_no_evidence(monitor: InMemoryMonitor) -> None:
    ask("{title}: {text}", "A ticket costs 29.4 euros.")

    assert texts(monitor.only_record()) == FACTS[:1]


def test_the_field_of_one_document_is_not_that_of_its_neighbour(monitor: InMemoryMonitor) -> None:
    other = Document(page_content=FACTS[1], id="d1", metadata={**FIELDS, "price": 12.75})
    ask("Price: {price} euros\n{text}", "The bridge costs 12.75 euros.", other)

    assert texts(monitor.only_record()) == [FACTS[0], f"price: 12.75\n{FACTS[1]}"]


STOCK = "The tower has 1665 steps, and is 330 metres high."


@pytest.mark.parametrize(
    "template",
    ["{text} It has 1665 steps.", "Steps: 1665\n{text}", "Steps: 1665. {text}\n\nMore:"],
)
def test_a_number_beside_a_text_that_the_answer_tells_is_part_of_its_chunk(
    monitor: InMemoryMonitor, template: str
) -> None:
    ask(template, STOCK)

    (chunk,) = texts(monitor.only_record())
    assert chunk.endswith(f"\n{FACTS[0]}")
    assert "1665" in chunk


@pytest.mark.parametrize(
    "template",
    ["Steps: 1665\n\n{text}", "Steps: 16650\n{text}", "Source: a.pdf, page 1665\n{text}"],
)
def test_a_number_elsewhere_is_none(monitor: InMemoryMonitor, template: str) -> None:
    ask(template, STOCK)

    found = texts(monitor.only_record())
    assert FACTS[0] in found
    assert not any("16650" in each or "page" in each for each in found)


@pytest.mark.parametrize("as_one_text", [True, False])
def test_what_was_said_before_is_no_evidence(monitor: InMemoryMonitor, as_one_text: bool) -> None:
    shelf = Shelf(documents=[Document(page_content=FACTS[0])])
    messages = [
        ("system", "Answer by this:\n{context}"),
        ("human", "How many steps?"),
        ("ai", "I think\nit has 1665 steps."),
        ("human", "{question}"),
    ]
    text = "{context}\nHuman: How many steps?\nAI: I think\nit has 1665 steps.\nHuman: {question}"
    prompt = ChatPromptTemplate.from_messages([("human", text)] if as_one_text else messages)
    inputs = {"context": shelf | joined, "question": RunnablePassthrough[str]()}
    (inputs | prompt | Script(lines=[STOCK])).invoke(TOWER)

    assert texts(monitor.only_record()) == FACTS[:1]


def test_a_number_of_the_question_is_no_evidence(monitor: InMemoryMonitor) -> None:
    asked = "Has the tower 1665 steps?"
    prompt = ChatPromptTemplate.from_template("{context}\n{question}")
    inputs = {
        "context": Shelf(documents=[Document(page_content=FACTS[0])]) | joined,
        "question": RunnablePassthrough[str](),
    }
    (inputs | prompt | Script(lines=["Yes, it has 1665 steps."])).invoke(asked)

    assert texts(monitor.only_record()) == FACTS[:1]


def test_llama_index_prints_the_metadata_of_its_nodes() -> None:
    node = TextNode(
        text=FACTS[0], id_="d0", metadata={"price": "29.40 euros", "file_name": "a.txt"}
    )
    with attached(claimspan_llama_index.instrument) as monitor:
        engine_of(LlamaShelf([NodeWithScore(node=node, score=0.9)]), LlamaScript(said=COSTS)).query(
            TOWER
        )

        assert read(monitor.only_record())[2:] == (
            [f"price: 29.40 euros\n{FACTS[0]}"],
            "evaluated",
        )


def test_a_template_of_haystack_prints_fields() -> None:
    found = [HaystackDocument(id="d0", content=FACTS[0], meta={"price": "29.40 euros"})]
    template = "{% for d in documents %}{{ d.meta.price }} - {{ d.content }}\n{% endfor %}"
    pipeline = ASYNC_PIPELINE()
    pipeline.add_component("shelf", HaystackShelf(found))
    pipeline.add_component("prompt", chat_prompt(template + "{{ question }}"))
    pipeline.add_component("llm", Says(COSTS))
    pipeline.connect("shelf.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "llm.messages")
    with attached(claimspan_haystack.instrument) as monitor:
        pipeline.run(asking())

        assert texts(monitor.only_record()) == [f"price: 29.40 euros\n{FACTS[0]}"]
