"""What the user saw: the answer of a pipeline, an agent, or a pipeline inside of a component."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from haystack.dataclasses import ChatMessage, ChatRole

from claimspan_haystack._generations import (
    Replies,
    is_complete,
    prompt_messages,
    replies_below,
    runs_below,
)
from claimspan_haystack._operations import (
    CHAT_GENERATOR_RUN,
    DOCUMENTS_WRITTEN,
    is_converter,
    operation_of,
)
from claimspan_haystack._texts import nested_parts, only_text, parts, said, text_of, texts_of
from claimspan_tracing.adapters import Run, RunKind, acknowledges, is_grade, is_list, is_mapping

__all__ = ["answer_of", "builds_index", "is_answered_query"]

RESPONSE_KEYS: Final = (
    "answers",
    "answer",
    "final_answer",
    "replies",
    "last_message",
    "messages",
    "validated",
    "response",
    "output",
    "text",
    "value",
    "strings",
)
"""Names of outputs that hold an answer, the surest first."""

_CONVERSATIONS: Final = frozenset({"last_message", "messages", "validated", "value"})
"""Outputs that may hold what was said in earlier turns."""

_NO_ANSWERS: Final = frozenset(
    {"prompt", "links", "chat_generator_text", "trace_url", "trace_id", "name"}
)
"""Names of outputs whose texts are no answers: of prompt builders, searches, guards and tracers."""


def answer_of(run: Run) -> str:
    """Return the answer among the outputs of a run, or the last reply of a model below it."""
    if run.outputs is None:
        return ""
    replies = replies_below(run)
    return _shown(run, replies) or _result_that_ends(run) or _unnamed(run, replies)


def is_answered_query(root: Run) -> bool:
    """Whether a question was asked; not where an index is built, or documents are found alone."""
    if root.kind is RunKind.RETRIEVER or operation_of(root).name == CHAT_GENERATOR_RUN:
        return False
    is_indexing = builds_index(root)
    if not is_complete(root):
        # How it would have ended is not known, and its state says that it has not.
        return not is_indexing and (_is_asked(root) or not _converts(root))
    replies = replies_below(root)
    if is_indexing:
        return bool(_shown(root, replies)) or _answers_from_retrieval(root, replies)
    if _is_graded_alone(root, replies):
        return False
    if replies.answers or _is_agent(root):
        return True
    answer = answer_of(root)
    return bool(answer) and not acknowledges(answer)


def _is_graded_alone(root: Run, replies: Replies) -> bool:
    """Whether all that was said is a grade; where something was looked up, it may be the answer."""
    if any(run.kind is RunKind.RETRIEVER for run in runs_below(root)):
        return False
    return bool(replies.texts) and all(map(is_grade, replies.texts))


def _answers_from_retrieval(root: Run, replies: Replies) -> bool:
    """Whether a model was asked after a retriever: such a pipeline writes down its memory."""
    last = replies.answers[-1].start if replies.answers else 0
    return any(run.kind is RunKind.RETRIEVER and run.start < last for run in runs_below(root))


def builds_index(root: Run) -> bool:
    """Whether documents are written into a store below a run."""
    return any(
        operation_of(run).component == "DocumentWriter"
        or (is_mapping(run.outputs) and DOCUMENTS_WRITTEN in run.outputs)
        for run in runs_below(root)
    )


def _shown(run: Run, replies: Replies) -> str:
    """The answer among the outputs, by its name."""
    # Backwards: Haystack lists the outputs of components in the order in which they ran.
    found = texts_of(list(parts(run.outputs))[::-1], RESPONSE_KEYS, ChatRole.ASSISTANT)
    others = {text_of(each, ChatRole.ASSISTANT) for each in replies.others}
    earlier, asked = _earlier_turns(run, replies), set(_input_texts(run))
    for key, text in found:
        is_history = key in _CONVERSATIONS and text in earlier
        is_echo = key in ("text", "output", "value", "strings") and text in asked
        if not (text in others or is_history or is_echo):
            return text
    return ""


def _earlier_turns(run: Run, replies: Replies) -> set[str]:
    """What the assistant had said before: it is in the prompts, and no model said it now."""
    told = [message for each in replies.answers for message in prompt_messages(each)]
    told += [m for part in nested_parts(run.inputs) for m in _messages(part)]
    said_before = {said(message) for message in told if message.role == ChatRole.ASSISTANT}
    return said_before - replies.texts


def _messages(part: object) -> list[ChatMessage]:
    values = part.values() if is_mapping(part) else ()
    lists = [value for value in values if is_list(value)]
    return [item for each in lists for item in each if isinstance(item, ChatMessage)]


def _input_texts(run: Run) -> Iterator[str]:
    for part in nested_parts(run.inputs):
        yield from (value for value in part.values() if isinstance(value, str))


def _result_that_ends(run: Run) -> str:
    """The result of the tool by which an agent ends, where the agent says that this is its end."""
    for part in parts(run.outputs):
        last = part.get("last_message")
        if isinstance(last, ChatMessage) and last.role == ChatRole.TOOL:
            names = [result.origin.tool_name for result in last.tool_call_results]
            if part.get("exit_reason") in names:
                return text_of(said(last), ChatRole.ASSISTANT)
    return ""


def _unnamed(run: Run, replies: Replies) -> str:
    """The answer of outputs with unknown names: the only text, else the last reply."""
    outputs = list(parts(run.outputs))
    if any("last_message" in part for part in outputs):
        return ""  # a conversation that ends without a word of the assistant's
    asked = {*_input_texts(run), *replies.others}
    texts = [
        {k: v for k, v in part.items() if isinstance(v, str) and k not in _NO_ANSWERS}
        for part in outputs
    ]
    left = [{k: v for k, v in part.items() if v not in asked} for part in texts]
    text, reply = only_text(left), replies.last
    # A word by itself, such as a status, is not what was answered, unless a model said it.
    is_answer = not replies.answers or " " in text.strip() or text in reply
    return text if text and is_answer else reply


def _is_asked(root: Run) -> bool:
    """Whether a retriever or a model ran, or was to run."""
    return any(run.kind is not RunKind.CHAIN for run in runs_below(root))


def _converts(root: Run) -> bool:
    """Whether documents are made of files, as the first step to an index."""
    return any(is_converter(operation_of(run).component) for run in runs_below(root))


def _is_agent(root: Run) -> bool:
    return any(operation_of(run).name == "haystack.agent.run" for run in (root, *runs_below(root)))
