"""Messages of a prompt: which are kept, within which bounds, and what a redactor sees of them."""

from __future__ import annotations

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableLambda

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing.job import MAX_MESSAGE_BYTES, MAX_MESSAGES, MAX_MESSAGES_BYTES, GeneratorRun
from claimspan_tracing.read.values import read_messages
from claimspan_tracing.testing import InMemoryMonitor

from lc_pipelines import Shelf
from support import attributes


def texts_of(*said: tuple[object, object]) -> list[str]:
    return [message.text for message in read_messages(said, str)]


def asked(monitor: InMemoryMonitor, *messages: BaseMessage) -> GeneratorRun:
    """The model's run of a query with these messages."""
    model = GenericFakeChatModel(messages=iter([AIMessage("said")]))

    def prompt(found: list[Document]) -> list[BaseMessage]:
        return list(messages)

    chain = Shelf() | RunnableLambda(prompt) | model
    chain.invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    (run,) = [r for r in monitor.only_record().job.runs if isinstance(r, GeneratorRun)]
    return run


# --- which are kept ---


def test_a_short_conversation_is_kept_whole_in_its_order() -> None:
    said = [("system", "be brief"), ("user", "a"), ("assistant", "b"), ("user", "c")]

    assert [(m.role, m.text) for m in read_messages(said, str)] == said


def test_of_a_long_conversation_the_last_messages_and_the_system_message_are_kept() -> None:
    said = [("system", "be brief"), *(("user", str(n)) for n in range(30))]

    kept = texts_of(*said)

    assert kept == ["be brief", *(str(n) for n in range(21, 30))]
    assert len(kept) == MAX_MESSAGES


def test_long_messages_before_the_last_one_give_way_to_it_and_to_the_system_message() -> None:
    long = "x" * 9_000

    assert texts_of(("system", long), ("user", "old"), ("user", long)) == [long, long]
    assert texts_of(("user", long), ("user", "new"), ("user", "last")) == [long, "new", "last"]


def test_a_role_that_is_none_of_the_four_is_not_known() -> None:
    assert [m.role for m in read_messages([("oracle", "a"), (None, "b")], str)] == ["", ""]


# --- bounds and redaction ---


def test_messages_take_16_kib_at_most_beside_the_prompt() -> None:
    with InMemoryMonitor() as monitor:
        run = asked(monitor, *(HumanMessage(f"{n}" * 50_000) for n in range(9)))

    sizes = [len(message.text) for message in run.messages]
    assert sizes == [MAX_MESSAGE_BYTES] * (MAX_MESSAGES_BYTES // MAX_MESSAGE_BYTES)
    assert run.messages[-1].text.startswith("8")


def test_with_a_redactor_messages_are_redacted_before_they_are_cut() -> None:
    secret = "s" * 30
    before = "x" * (MAX_MESSAGE_BYTES - 10)  # the cut goes through the middle of the secret
    with InMemoryMonitor(redact=lambda text: text.replace(secret, "[out]")) as monitor:
        run = asked(monitor, SystemMessage("rules"), HumanMessage(before + secret))

        spans = monitor.spans()
    assert run.messages[-1].text == before + "[out]"
    (model,) = [span for span in spans if span.name.startswith("chat")]
    assert attributes(model)["llm.input_messages.1.message.content"] == before + "[out]"
    assert not [n for span in spans for n, v in attributes(span).items() if "sss" in str(v)]


def test_a_redactor_that_fails_leaves_the_messages_out() -> None:
    def fail(text: str) -> str:
        raise ZeroDivisionError

    with InMemoryMonitor(redact=fail) as monitor:
        run = asked(monitor, HumanMessage("a secret"))

    assert [(m.role, m.text) for m in run.messages] == [("user", "[redaction failed]")]
