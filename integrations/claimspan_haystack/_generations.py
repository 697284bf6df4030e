"""The model calls below a run: which answered, which graded, and which asked a retriever."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from haystack.dataclasses import ChatMessage, ChatRole

from claimspan_haystack._documents import documents_in, flat_items
from claimspan_haystack._operations import CHAT_GENERATOR_RUN, REPLIES_KEY, operation_of
from claimspan_haystack._texts import by_key, is_said, said, text_of
from claimspan_tracing.adapters import (
    Generation,
    Run,
    RunKind,
    begins_with_grade,
    is_echo,
    is_grade,
    is_list,
    is_mapping,
    says_grade,
)

__all__ = [
    "Replies",
    "generation_of",
    "is_complete",
    "prompt_messages",
    "replies_below",
    "runs_below",
]

MAX_GENERATIONS: Final = 100
"""Model calls of one query that are looked at, the last ones: each is compared with each."""

_GRADER_NAME: Final = re.compile(r"grad(?:e|ing)|judg|critic|evaluat|validat|check|verif|moderat")

_BESIDE_NAME: Final = re.compile(r"title|headline|suggest|follow_?up")
"""Parts of the names of components whose models write what is shown beside an answer."""


@dataclass(frozen=True, slots=True)
class Replies:
    """The model calls below a run that say something to its user, in the order of their start."""

    answers: Sequence[Run]
    """Those that may have given the answer."""

    others: frozenset[str]
    """What graders said of an answer, and what was only said to a retriever."""

    @property
    def last(self) -> str:
        """What the last of the answers says, read as text; empty where there is none."""
        return _completion(self.answers[-1], ChatRole.ASSISTANT) if self.answers else ""

    @property
    def texts(self) -> set[str]:
        """What all that may have answered say, as they said it."""
        return {_completion(run) for run in self.answers}


def replies_below(root: Run) -> Replies:
    """Find the model calls below a run that may have given its answer."""
    runs = [run for run in runs_below(root) if not run.has_ancestor(RunKind.RETRIEVER)]
    models = [run for run in runs if _may_answer(run)][-MAX_GENERATIONS:]
    completions = {id(run): _completion(run) for run in models}
    beside = [run for run in models if _BESIDE_NAME.search(str(run.name).lower())]
    others = {completions[id(run)] for run in beside if len(beside) < len(models)}
    answers: list[Run] = []
    for run in models:
        if completions[id(run)] in others or _grades_one_of(answers, run):
            others.add(completions[id(run)])
        else:
            answers.append(run)
    # What a retriever was asked by, where no model was asked after it.
    while answers and _is_followed_by_retrieval(answers[-1], runs, root):
        others.add(completions[id(answers.pop())])
    spoken = {completions[id(run)] for run in answers}
    return Replies(answers, frozenset(others - spoken - {""}))


def generation_of(run: Run) -> Generation:
    """Return prompt, completion, model and tokens of a generator run."""
    told = by_key([run.inputs], ("messages", "prompt"), None) if run.inputs else ""
    meta = _meta(run.outputs)
    usage = meta.get("usage")
    tokens: Mapping[object, object] = usage if is_mapping(usage) else {}
    return Generation(
        prompt=told,
        completion=_completion(run),
        model=meta.get("model"),
        input_tokens=_count(tokens, "prompt_tokens", "input_tokens"),
        output_tokens=_count(tokens, "completion_tokens", "output_tokens"),
        tool_results=[said(message) for message in prompt_messages(run) if _has_found(message)],
        messages=[(message.role.value, said(message)) for message in prompt_messages(run)],
    )


def _has_found(message: ChatMessage) -> bool:
    """Whether a message holds what a tool has found: no error, and not what the model told it."""
    return message.role == ChatRole.TOOL and any(
        not each.error and not is_echo(str(each.result), each.origin.arguments.values())
        for each in message.tool_call_results
    )


def prompt_messages(run: Run) -> list[ChatMessage]:
    """Return the messages that a chat generator was given."""
    given = run.inputs.get("messages") if is_mapping(run.inputs) else None
    return [m for m in given if isinstance(m, ChatMessage)] if is_list(given) else []


def runs_below(root: Run) -> list[Run]:
    """Return the runs below a run, in the order of their start."""
    inside = {id(root)}
    found: list[Run] = []
    for run in root.tree.runs:
        if run.parent is not None and id(run.parent) in inside:
            inside.add(id(run))
            found.append(run)
    return found


def is_complete(run: Run) -> bool:
    """Whether a run has ended well."""
    return run.end is not None and run.error is None


def _may_answer(run: Run) -> bool:
    """Whether a run is a generator, and not one that a ranker, an evaluator or a router uses."""
    if run.kind is not RunKind.GENERATOR or run.parent is None or not is_complete(run):
        return False
    if run.has_ancestor(RunKind.GENERATOR):
        return False
    around = run.parent.outputs
    if operation_of(run).name == CHAT_GENERATOR_RUN:
        return is_mapping(around) and (REPLIES_KEY in around or "answers" in around)
    return documents_in(around) is None or is_said(around)


def _grades_one_of(answers: Sequence[Run], run: Run) -> bool:
    """Whether a model call says how good the last answer before it is."""
    if not answers:
        return False
    completion = _completion(run)
    is_whole = says_grade(completion) or is_grade(completion)
    # Not where a model answers once more: "Yes, ..." may be what it has corrected.
    is_other = answers[-1].name != run.name
    may_grade = is_whole or (is_other and begins_with_grade(completion))
    if not (may_grade or _GRADER_NAME.search(str(run.name).lower())):
        return False
    graded, prompt = answers[-1], by_key([run.inputs], ("messages", "prompt"), None)
    # A question that was rewritten stands in the next prompt as well, with a retrieval between.
    if _retrieves_between(graded, run):
        return False
    text = _completion(graded).strip()
    # A grader that is given the documents alone is one where another model has answered already.
    return (bool(text) and text in prompt) or (is_whole and not _is_handed_on(graded))


def _retrieves_between(before: Run, after: Run) -> bool:
    first = before.end or before.start
    return any(first <= run.start < after.start for run in before.tree.of_kind(RunKind.RETRIEVER))


def _is_followed_by_retrieval(answer: Run, runs: Sequence[Run], root: Run) -> bool:
    """Whether a retriever ran after a model call, whose reply the pipeline did not return."""
    ended = answer.end or answer.start
    after = any(run.kind is RunKind.RETRIEVER and run.start >= ended for run in runs)
    # A pipeline inside of a component returns its replies to that component.
    return after and (answer.parent is not root or _is_handed_on(answer))


def _is_handed_on(run: Run) -> bool:
    """Whether other components take the replies; those of an agent go to its next step."""
    declared = (operation_of(run).returns or {}).get(REPLIES_KEY)
    return not is_mapping(declared) or bool(declared.get("receivers"))


def _completion(run: Run, role: ChatRole | None = None) -> str:
    """The first reply; as it was said, or the text of its fields for the role of the assistant."""
    replies = run.outputs.get(REPLIES_KEY) if is_mapping(run.outputs) else None
    first = replies[0] if is_list(replies) and replies else replies
    if isinstance(first, ChatMessage) and first.role != ChatRole.ASSISTANT:
        return ""
    return text_of(first, role)


def _meta(outputs: object) -> Mapping[object, object]:
    """Return what a generator reports about its reply.

    Chat generators put it on the message, text generators into a second output, ``meta``.
    """
    if not is_mapping(outputs):
        return {}
    for item in flat_items({key: outputs.get(key) for key in (REPLIES_KEY, "meta")}):
        meta: object = item.meta if isinstance(item, ChatMessage) else item
        if is_mapping(meta):
            return meta
    return {}


def _count(usage: Mapping[object, object], *keys: str) -> int | None:
    # OpenAI's names and Anthropic's; Haystack passes on what the service sent.
    counts = [usage[key] for key in keys if key in usage]
    return next((count for count in counts if isinstance(count, int)), None)
