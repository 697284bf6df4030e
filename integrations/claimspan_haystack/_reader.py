"""Reads Haystack's inputs and outputs: finds query, response, chunks and model in a run tree.

Every method of the reader runs on the worker except ``parts``. Of the model calls below a run some
answered, some graded, and some asked a retriever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeGuard

from haystack.core.errors import BreakpointException
from haystack.dataclasses import ChatMessage, ChatRole, ExtractedAnswer, GeneratedAnswer
from haystack.dataclasses import Document as HaystackDocument

from claimspan_haystack._documents import (
    as_document,
    documents_in,
    flat_items,
    socket_values,
)
from claimspan_haystack._texts import (
    by_key,
    by_suffix,
    fields_of,
    holds_text,
    is_said,
    nested_parts,
    only_text,
    parts,
    said,
    text_of,
    texts_of,
)
from claimspan_haystack._tracer import (
    AGENT_RUN,
    CHAT_GENERATOR_RUN,
    DOCUMENTS_WRITTEN,
    PACKAGES,
    PIPELINE_RUNS,
    QUERY_NAME,
    REPLIES_KEY,
    is_converter,
    operation_of,
)
from claimspan_tracing.adapters import (
    COMPONENT_ANSWERS,
    COMPONENT_NOTES,
    PASSED_ON,
    Document,
    Generation,
    Reader,
    Retrieval,
    Run,
    RunKind,
    acknowledges,
    arguments_of,
    begins_with_grade,
    filled_in,
    is_echo,
    is_grade,
    is_list,
    is_mapping,
    read_call,
    says_grade,
    structured_text,
    value_at,
)

QUERY_KEYS: Final = ("query", "question", "text", "user_input", "prompt", "messages", "input")
"""Names of inputs that hold a question, the surest first."""

SEVERAL_KEYS: Final = ("queries", "questions")
"""Names of inputs that hold several questions."""

MESSAGES: Final = "messages"
"""End of the names of inputs that hold a conversation, such as ``current_messages``."""

CONVERSATION_KEYS: Final = ("values", "value")
"""Names of inputs that may hold a conversation."""


ROUTER: Final = "Router"
"""End of the names of the classes that choose where a pipeline goes on."""


class HaystackReader(Reader):
    """Finds query, response, chunks and model in the runs of any Haystack pipeline."""

    def is_query(self, root: Run) -> bool:
        """Return False for what builds an index, embeds, judges answers, or retrieves alone."""
        return is_answered_query(root)

    def query(self, root: Run) -> object:
        """Return the user's question, which may be among the inputs of any component."""
        if self.query_key is not None:
            return text_of(value_at(root.inputs, self.query_key), ChatRole.USER)
        return _query(root.inputs)

    def response(self, root: Run) -> object:
        """Return the answer among the outputs of the pipeline, or the last completion."""
        if self.response_key is not None:
            return text_of(value_at(root.outputs, self.response_key), ChatRole.ASSISTANT)
        return answer_of(root)

    def retrieval(self, run: Run) -> Retrieval:
        """Return the query of a retriever run and the documents that it returned."""
        # What is loaded into a store is no evidence, whatever has found it.
        documents = () if _is_loaded(run) else documents_in(run.outputs) or ()
        asked = _query(run.inputs) or _embedded(run) or self.query(run.tree.root)
        return Retrieval(asked, [as_document(document) for document in documents])

    def unreported_retrieval(self, run: Run) -> Retrieval | None:
        """Return the documents that an agent or an unknown component found by itself."""
        is_whole = not operation_of(run).component
        if documents_in(run.inputs) is not None or not documents_in(run.outputs):
            return None
        return self.retrieval(run) if is_whole else None

    def given_documents(self, run: Run) -> Sequence[Document]:
        """Return the documents among the inputs of a component, and the windows around some."""
        if operation_of(run).component.endswith(ROUTER):
            return ()  # it answers nothing: those that it passes on are given to the next component
        # A builder of prompts may drop some, and return the rest beside its prompt.
        left = documents_in(run.outputs) if holds_text(run.outputs) else None
        read = documents_in(run.inputs)
        given = [as_document(each) for each in (left if read and left is not None else read) or ()]
        # ``SentenceWindowRetriever`` makes them. One takes the place of the document that it holds.
        both = [*nested_parts(run.inputs), *nested_parts(run.outputs)]
        named = ((name, value) for part in both for name, value in part.items())
        lists = [value for name, value in named if _WINDOWS.search(str(name)) and is_list(value)]
        texts = (text for value in lists for text in value[:MAX_ITEMS] if isinstance(text, str))
        return [*given, *map(Document, texts)]

    def passages(self, run: Run) -> Sequence[str]:
        """Return texts that are named as evidence, such as what a search returned as one text."""
        is_pipeline = operation_of(run).name in PIPELINE_RUNS
        found: dict[str, None] = {}
        for values in (run.inputs, run.outputs):
            for part in nested_parts(values):
                for name, value in part.items():
                    # A component has sockets below its name, which have names of their own.
                    is_component = is_pipeline and part is values and is_mapping(value)
                    if not is_component and _EVIDENCE.search(str(name).lower()):
                        found.update(dict.fromkeys(_texts(value)))
        return list(found)

    def generation(self, run: Run) -> Generation:
        """Return prompt, completion, model and tokens of a generator run."""
        messages = prompt_messages(run)
        # A tool has found something: it has not failed, and does not repeat what the model told it.
        found = [
            message
            for message in messages
            if message.role == ChatRole.TOOL
            and any(
                not result.error
                and not is_echo(str(result.result), result.origin.arguments.values())
                for result in message.tool_call_results
            )
        ]
        meta = _meta(run.outputs)
        given: Mapping[object, object] = run.inputs if is_mapping(run.inputs) else {}
        package = PACKAGES.match(operation_of(run).qualified)
        return Generation(
            prompt=_prompt(run),
            completion=_completed(run),
            model=meta.get("model"),
            provider=package and package[1],
            call=read_call([given.get("generation_kwargs")], [meta]),
            is_completion="prompt" in given and "messages" not in given,
            tool_results=[said(message) for message in found],
            messages=[(message.role.value, said(message)) for message in messages],
        )

    def parts(self, value: object) -> Sequence[object]:
        """Return what a document, a message or an answer holds."""
        match value:
            case HaystackDocument():
                return value.content, value.meta or None
            case Document():
                return value.text, value.metadata or None
            case ChatMessage():
                return [*value.texts, *(result.result for result in value.tool_call_results)]
            case GeneratedAnswer():
                return value.data, value.documents
            case ExtractedAnswer():
                return value.data, value.document, value.context
            case _:
                return ()

    def interrupted(self, root: Run) -> bool:
        """Whether the pipeline stopped at a breakpoint."""
        return root.failed_with(BreakpointException)


def _is_loaded(run: Run) -> bool:
    """Whether the pipeline that a run is part of builds an index, and answers nothing."""
    pipelines = (each for each in run.around() if operation_of(each).name in PIPELINE_RUNS)
    around = next(pipelines, None)
    return around is not None and builds_index(around) and not is_answered_query(around)


def _query(inputs: object) -> str:
    parts = nested_parts(inputs)
    return (
        by_key(parts, QUERY_KEYS, ChatRole.USER)
        or by_key(parts, SEVERAL_KEYS, None)
        or by_suffix(parts, MESSAGES, ChatRole.USER)
        or only_text(parts)
        or by_key(parts, CONVERSATION_KEYS, ChatRole.USER)
    )


def _embedded(run: Run) -> str:
    """Return the text behind the embedding that a retriever was given.

    Haystack passes the list of floats from the embedder to the retriever as the same object.
    """
    embeddings = [value for value in socket_values(run.inputs) if is_list(value) and value]
    for other in run.tree.runs:
        if any(made is used for made in socket_values(other.outputs) for used in embeddings):
            return _query(other.inputs)
    return ""


MAX_DEPTH: Final = 3
"""Levels of lists and mappings in which texts are looked for."""

MAX_ITEMS: Final = 100
"""Items of one list that are looked at: as many as chunks are kept of a record."""

_EVIDENCE: Final = re.compile(
    r"(?:^|_)(?:contexts?|documents?|docs?|passages?|chunks?|snippets?|search|results?|sources?"
    r"|knowledge|facts?|evidences?|windows?|references?|contents?|background|articles?|excerpts?"
    r"|paragraphs?|pages?|posts?|transcripts?|notes?|findings?|summaries|information)(?:_|$)"
)
"""Words in the names of inputs and outputs that hold evidence."""

_WINDOWS: Final = re.compile(r"(?:^|_)windows(?:_|$)")
"""A word in the names of inputs that hold documents with what stands around them."""


_PLACE: Final = re.compile(r"(?:^|_)(?:urls?|links?|uri|href|ids?)$")
"""Ends of the names of fields that only tell where a text is from."""


def _texts(value: object, depth: int = MAX_DEPTH) -> Iterator[str]:
    """Yield the texts in a value, without questions paired with them, and where they are from."""
    if isinstance(value, str):
        if value.strip():
            yield value
    elif is_mapping(value) and depth:
        for name, item in value.items():
            key = str(name).lower()
            if not (QUERY_NAME.search(key) or _PLACE.search(key)):
                yield from _texts(item, depth - 1)
    elif depth and (is_list(value) or _is_set(value)):
        for item in islice(value, MAX_ITEMS):
            yield from _texts(item, depth - 1)


def _is_set(value: object) -> TypeGuard[Set[object]]:
    """Whether the value is a set, in which some components keep texts apart."""
    return isinstance(value, set | frozenset)


# --- what the user saw of a pipeline, an agent, or a pipeline inside of a component ---------------

MAX_GENERATIONS: Final = 100
"""Model calls of one query that are looked at, the last ones: each is compared with each."""

_GRADER_NAME: Final = re.compile(r"grad(?:e|ing)|judg|critic|evaluat|validat|check|verif|moderat")

_BESIDE_NAME: Final = re.compile(r"title|headline|suggest|follow_?up")
"""Parts of the names of components whose models write asides to an answer."""


@dataclass(frozen=True, slots=True)
class Replies:
    """The model calls below a run that say something to its user, in the order of their start."""

    answers: Sequence[Run]
    """Those that may have given the answer."""

    others: frozenset[str]
    """Words of graders about an answer, and words to a retriever alone."""

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
    runs = [run for run in root.below() if not run.has_ancestor(RunKind.RETRIEVER)]
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


def _prompt(run: Run) -> str:
    return by_key([run.inputs], ("messages", "prompt"), None)


def prompt_messages(run: Run) -> list[ChatMessage]:
    """Return the messages that a chat generator was given."""
    given = run.inputs.get("messages") if is_mapping(run.inputs) else None
    return [m for m in given if isinstance(m, ChatMessage)] if is_list(given) else []


def _may_answer(run: Run) -> bool:
    """Whether a run is a generator, and not one that a ranker, an evaluator or a router uses."""
    if run.kind is not RunKind.GENERATOR or run.parent is None or not run.is_completed:
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
    graded, prompt = answers[-1], _prompt(run)
    # A question that was rewritten stands in the next prompt as well, with a retrieval between.
    ended = graded.end or graded.start
    retrievers = run.tree.of_kind(RunKind.RETRIEVER)
    if any(ended <= each.start < run.start for each in retrievers):
        return False
    text = _completion(graded).strip()
    # A grader that is given the documents alone is one where another model has answered already.
    return (bool(text) and text in prompt) or (is_whole and not _is_handed_on(graded))


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


def _completed(run: Run) -> str:
    """The first reply, or else what it fills in the calls of tools with."""
    first = next(iter(flat_items(run.outputs)), None)
    calls = first.tool_calls if isinstance(first, ChatMessage) else []
    return _completion(run) or arguments_of([each.arguments for each in calls])


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


_CONVERSATIONS: Final = frozenset({"last_message", "messages", "validated", "value"})
"""Outputs that may hold earlier turns."""


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
    if not root.is_completed:
        # How it would have ended is not known, and its state says that it has not. Documents that
        # are made of files are the first step to an index.
        runs = root.below()
        asks = any(run.kind is not RunKind.CHAIN for run in runs)
        converts = any(is_converter(operation_of(run).component) for run in runs)
        return not is_indexing and (asks or not converts)
    replies = replies_below(root)
    if is_indexing:
        # A model that is asked after a retriever answers: such a pipeline writes down its memory.
        last = replies.answers[-1].start if replies.answers else 0
        found = (run for run in root.below() if run.kind is RunKind.RETRIEVER)
        return bool(_shown(root, replies)) or any(run.start < last for run in found)
    runs = root.below()
    # Where something was looked up, a grade may be the answer.
    is_lookup = any(run.kind is RunKind.RETRIEVER for run in runs)
    if replies.texts and not is_lookup and all(map(is_grade, replies.texts)):
        return False
    if replies.answers or any(operation_of(run).name == AGENT_RUN for run in (root, *runs)):
        return True
    answer = answer_of(root)
    return bool(answer) and not acknowledges(answer)


def builds_index(root: Run) -> bool:
    """Whether documents are written into a store below a run."""
    return any(
        operation_of(run).component == "DocumentWriter"
        or (is_mapping(run.outputs) and DOCUMENTS_WRITTEN in run.outputs)
        for run in root.below()
    )


def _shown(run: Run, replies: Replies) -> str:
    """The answer among the outputs, by its name."""
    # Backwards: Haystack lists the outputs of components in the order in which they ran.
    found = texts_of(list(parts(run.outputs))[::-1], COMPONENT_ANSWERS, ChatRole.ASSISTANT)
    others = {text_of(each, ChatRole.ASSISTANT) for each in replies.others}
    earlier, asked = _earlier_turns(run, replies), set(_input_texts(run))
    for key, text in found:
        is_history = key in _CONVERSATIONS and text in earlier
        is_echo = key in PASSED_ON and text in asked
        if not (text in others or is_history or is_echo):
            return text
    return ""


def _earlier_turns(run: Run, replies: Replies) -> set[str]:
    """The assistant's earlier words: they are in the prompts, and no model said them now."""
    told = [message for each in replies.answers for message in prompt_messages(each)]
    lists = [v for part in nested_parts(run.inputs) for v in part.values() if is_list(v)]
    told += [item for each in lists for item in each if isinstance(item, ChatMessage)]
    said_before = {said(message) for message in told if message.role == ChatRole.ASSISTANT}
    return said_before - replies.texts


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
    said = [_completed(each) for each in replies.answers]
    named = {*COMPONENT_ANSWERS, *COMPONENT_NOTES}
    for part in outputs[:-1] or outputs:
        unknown = {str(k): v for k, v in part.items() if k not in named}
        if filled := filled_in(unknown, said, fields_of):
            return structured_text(filled, fields_of)
    texts = [
        {k: v for k, v in part.items() if isinstance(v, str) and k not in COMPONENT_NOTES}
        for part in outputs
    ]
    left = [{k: v for k, v in part.items() if v not in asked} for part in texts]
    text, reply = only_text(left), replies.last
    # A word by itself, such as a status, is not what was answered, unless a model said it.
    is_answer = not replies.answers or " " in text.strip() or text in reply
    return text if text and is_answer else reply
