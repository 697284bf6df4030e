"""Evidence that a prompt points back to, leads in to, or has in tags; orders and talk are none."""

from __future__ import annotations

from typing import Final

import pytest
from langchain_core.output_parsers import PydanticOutputParser
from pydantic import BaseModel

from claimspan_tracing.read.handwritten import written_evidence

from buildings import FACTS, TOWER
from linear_time import grows_linearly, lets_others_run

TEXT = f"{FACTS[0]}\n{FACTS[1]}"


def evidence(prompt: str, system: str = "", query: str = TOWER) -> list[str]:
    told = [system, prompt] if system else [prompt]
    return written_evidence(told, query, is_all=True, system=[system] if system else [])


@pytest.mark.parametrize(
    "prompt",
    [
        "{0}\n\nAnswer the question based on the text above.\n\nQuestion: {1}",
        "{0}\n\nBased on the above context, answer the question: {1}",
        "{0}\n\nGiven the context above and no other one, answer the query.\nQuery: {1}\nAnswer:",
        "{0}\n\nAnswer the following question using the text above\n{1}",
        "{0}\n\n{1}\nUse only the information above.",
        "{0}\n---\nUsing only the passage above, answer this question: {1}",
        "You are a helpful assistant.\n\n{0}\n\nUsing the above text, answer.\nQuestion: {1}",
        "{0}\n\nThe text above is an excerpt from our manual. Answer by it.\n{1}",
        "{1}\n\n{0}\n\nAnswer the question from the documents above.",
        "Question: {1}\n\n{0}\n\nAnswer it by the above pieces of context.",
        "{0}\n\nAnswer using the context above\nBe brief, and do not invent anything.\n\nQ: {1}",
        "{0}\n\nFrom the above: {1}",
        "{0}\n\nBeantworte die Frage anhand des obigen Textes: {1}",
        "{0}\n\nEn vous basant sur le texte ci-dessus, r\u00e9pondez: {1}",
        "Here is some text:\n\n{0}\n\nNow answer: {1}",
        "Here are some excerpts.\n\n{0}\n\n{1}",
        "Q: {1}\n\nHere is what I found:\n{0}",
        "Read this:\n\n{0}\n\n{1}",
        "'''{0}'''\n\nUse the text in triple quotes to answer: {1}",
        "=====\n{0}\n=====\n{1}",
        "Context:\n{0}\n\nBased on the context above, answer: {1}",
        "Answer by the context in <context></context> tags.\n<context>\n{0}\n</context>\n\n{1}",
        "Use only what is between <context> and </context>.\n<context>{0}</context>\n{1}",
        "The documents are inside <documents> tags.\n<documents>\n{0}\n</documents>\n{1}",
        "<doc>{0}</doc>\n\n{1}",
        "<data>{0}</data>\n{1}",
    ],
)
def test_a_text_that_a_prompt_points_to_is_evidence(prompt: str) -> None:
    assert evidence(prompt.replace("{0}", TEXT).replace("{1}", TOWER)) == [TEXT]


@pytest.mark.parametrize(
    "prompt",
    [
        "<doc>{0}</doc>\n<doc>{1}</doc>\n\n{2}",
        "Answer by the texts in <doc> tags.\n<doc>{0}</doc>\n<doc>{1}</doc>\n\n{2}",
        '<document n="1">{0}</document>\n<document n="2">\n{1}\n</document>\n\nQuestion: {2}',
        "<context>{0}</context><context>{1}</context>\n{2}",
        "[1] {0}\n[2] {1}\n\nQuestion: {2}",
        "Document 1: {0}\n\nDocument 2: {1}\n\n{2}",
        "Source 1: {0}\nSource 2: {1}\n\nAnswer and cite the sources above.\n{2}",
    ],
)
def test_texts_that_stand_apart_from_each_other_are_chunks_of_their_own(prompt: str) -> None:
    given = prompt.replace("{0}", FACTS[0]).replace("{1}", FACTS[1]).replace("{2}", TOWER)

    assert evidence(given) == FACTS[:2]


def test_a_short_text_beside_others_is_a_chunk() -> None:
    prompt = f"<doc>{FACTS[0]}</doc>\n<doc>Paris</doc>\n\n{TOWER}"

    assert evidence(prompt) == [FACTS[0], "Paris"]


class Height(BaseModel):
    metres: int


FORMAT = PydanticOutputParser(pydantic_object=Height).get_format_instructions()
REACT = """Answer the following questions as best you can. You have access to the following tools:

search(query: str) -> str - Search the web for whatever you want to know about it
calculator(expr: str) -> str - Compute an expression and give its value as number

Use the following format:

Question: the input question you must answer
Thought: you should always think about what to do
Final Answer: the final answer to the original input question

Begin!

Question: {1}
Thought:"""
CONDENSE = """Given the following conversation and a follow up question, rephrase the follow up \
question to be a standalone question, in its original language.

Chat History:
Human: How long is the bridge at Millau in metres?
Assistant: The bridge at Millau is 2460 metres long, as the sign says.
Follow Up Input: {1}
Standalone question:"""
GUARD = """Your task is to check if the user message below complies with the company policy.

Company policy for the user messages:
- should not contain harmful data
- should not ask the bot to impersonate someone

User message: "{1}"

Question: Should the user message be blocked (Yes or No)?
Answer:"""
SECTIONS = """You are an assistant of the city.

## Guidelines
- Be brief and polite in all of your answers, and never guess anything.

## Tools
You have access to no tools at all, and to no other sources.

## Question
{1}"""
EXAMPLES = """Classify the question.

<example>
<text>How long is the bridge at Millau and who has built it?</text>
<label>length</label>
</example>
<example>
<text>How deep is the sea at this place, and how cold is it there?</text>
<label>depth</label>
</example>

{1}"""
TOOLS = """You can use these functions:

<tools>
<tool>search: looks up anything that you want in the big index</tool>
<tool>calc: computes what you want and gives you the number of it</tool>
</tools>

{1}"""
STYLE = """I have seen the towers of the world, and none is like this one, my dear.

Answer in the style of the text above.

{1}"""
TALK = "Human: how long is the bridge?\nAI: It is 2460 metres long and very high.\n\n"
HYDE = "Please write a passage to answer the question\nTry to include many details of it.\n"


@pytest.mark.parametrize(
    "prompt",
    [
        REACT,
        CONDENSE,
        GUARD,
        SECTIONS,
        EXAMPLES,
        TOOLS,
        STYLE,
        f"{HYDE}\n\n{{1}}\n\n\nPassage:",
        f"{TALK}Given the above conversation, answer: {{1}}",
        f"{TALK}Answer by the text above.\n{{1}}",
        f"Answer the question.\n{FORMAT}\n{{1}}",
        f"Answer the question: {{1}}\n\n{FORMAT}",
        "Answer like in these examples:\n\n[1] How long is the bridge? It is 2460 metres long.\n"
        "[2] How old is the tower? It is more than a hundred years old.\n\n{1}",
        "Q: How long is the bridge?\nA: The bridge at Millau is 2460 metres long.\n\n"
        "Answer by the text above.\n{1}",
        "Example:\nText: The food was great and so was everything else.\nMood: good\n\n"
        "Using the text above, answer: {1}",
        "Be polite and answer in three sentences, please.\n\nFollow the instructions above.\n{1}",
        "The rules of this house: be brief, and never invent anything.\n\n"
        "Given the above instructions, answer: {1}",
        "You are an assistant for buildings. Be short and polite.\n\nUse the context above.\n{1}",
        "Answer using the context above\nBe brief, do not invent anything at all.\n\nQuestion: {1}",
        "{1}\n\nAnswer the question above in one sentence, and do not use other sources.",
        "The user is called Anna and lives in Berlin, where she works as a teacher.\n\n{1}",
    ],
)
def test_orders_examples_and_talk_are_no_evidence(prompt: str) -> None:
    given = prompt.replace("{1}", TOWER)

    assert evidence(given) == []
    assert evidence(TOWER, system=given.replace(TOWER, "")) == []


def test_what_the_user_pastes_into_the_question_is_no_evidence() -> None:
    question = f"{TEXT}\n\nWho says the text above?"

    assert evidence(question, query=question) == []
    assert evidence(f"Be brief.\n{question}", query=question) == []


HOSTILE: Final = (
    "text above ",
    "above text\n",
    "<doc>",
    "<doc></doc>",
    "<text>",
    "<text></text>",
    "> a\n",
    "Text: ",
    "text:\n",
    "</doc>",
    "[1] ",
    "[1] [2] ",
    "Document 1: ",
    "found:",
    "found:   ",
    "text .   \n",
    "'''",
    "===\n",
    " ",
    "\n",
    "\n \n",
    TOWER,
    "Example ",
    "context above\n",
    "you are\n",
    "voici ",
    "Context:\n",
    "Source: a\n",
    "Question: a\nAnswer: b\n",
    "[Doc 1] a\n",
    f"<context>{TOWER}</context>",
    "<doc><text>",
    "-- a --\n",
    f"Text: {FACTS[0]}\nQuestion: a\n",
)


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_prompt_takes_no_longer_than_its_length(piece: str) -> None:
    def find(hostile: str) -> None:
        evidence(f"{TEXT}\n{hostile}\nAnswer by the text above.\n{TOWER}")
        evidence(f"{TOWER}\n{hostile}")

    assert grows_linearly(find, piece, 200_000)


@pytest.mark.parametrize("piece", HOSTILE)
def test_no_step_of_reading_a_hostile_prompt_keeps_other_threads_waiting(piece: str) -> None:
    hostile = (piece * 64_000)[:64_000]

    assert lets_others_run(
        lambda: evidence(f"{TEXT}\n{hostile}\nAnswer by the text above.\n{TOWER}")
    )
