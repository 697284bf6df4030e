"""The words by which prompts and the names of inputs say what a text is, as one table.

Each is a part of a regular expression, for one word or a few, in the languages that are served.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "ANSWER_NAMES",
    "COMPONENT_ANSWERS",
    "COMPONENT_NOTES",
    "PASSED_ON",
    "QUESTION_NAMES",
    "ROLES",
]

ROLES: Final = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "model", "chatbot"), "assistant"),
    **dict.fromkeys(("tool", "function"), "tool"),
}
"""What frameworks call who has said a message, to OpenInference's role."""

QUESTION_NAMES: Final = ("question", "query", "input", "user_input", "user_query")
"""Names of inputs that hold the question, the surest first."""

ANSWER_NAMES: Final = (
    # Where an agent and ``with_structured_output`` of LangChain's keep what a user sees.
    *("structured_response", "parsed", "final_answer", "answer", "answers", "result", "response"),
    *("final_response", "replies", "output", "output_text", "text", "generation", "last_message"),
    "messages",
)
"""Names of outputs of chains and graphs that hold an answer, the surest first."""

COMPONENT_ANSWERS: Final = (
    *("answers", "answer", "final_answer", "replies", "last_message", "messages", "validated"),
    *("response", "output", "text", "value", "strings"),
)
"""Names of outputs of a pipeline's components that hold an answer, the surest first."""

PASSED_ON: Final = frozenset({"output", "text", "value", "strings"})
"""Those of them that may be what a component was given, as it was."""

COMPONENT_NOTES: Final = frozenset(
    {"prompt", "links", "chat_generator_text", "trace_url", "trace_id", "name", "exit_reason"}
)
"""Names of outputs whose texts are no answers: of prompt builders, searches, guards and tracers."""


def _any(words: str) -> str:
    """An expression for each of some words; ``_`` stands for the blank within one."""
    return rf"(?:{'|'.join(words.split()).replace('_', '[ _-]')})"


STORES: Final = (
    r"contexts? documents? sources? passages? excerpts? snippets? articles? evidence knowledge"
    r" informations? references? facts (?:search|retrieval|sql)_results?"
    r" kontext\w{0,2} contextes? contextos? contesto kontekst\w? dokument\w{0,3} documentos"
    r" documenti informationen informaci\u00f3n informazioni informacij\w quellen extraits?"
    r" extractos? fragmentos? fuentes brani fonti odlomk\w{1,2} virov gradiv\w"
    r" \u4e0a\u4e0b\u6587 \u80cc\u666f\u4fe1\u606f \u8d44\u6599 \u53c2\u8003\u8d44\u6599"
    r" \u5df2\u77e5\u4fe1\u606f"
)
"""What a store returns. A prompt that says so announces it, and so does the name of an input."""

STORED: Final = _any(rf"{STORES} findings (?:research_)?notes summaries memor(?:y|ies)")

INPUT: Final = re.compile(
    _any(rf"{STORES} docs?\b chunk search results?\b retriev background"), re.IGNORECASE
)
"""Names of inputs with a text to answer from, or parts of them."""

WRITINGS: Final = (
    r"texts? articles? passages? transcripts? reports? e-?mails? letters? story stories chapters?"
    r" speech abstracts? papers? contents? material paragraphs?"
)
"""What any text may be called."""

TEXT: Final = _any(
    rf"{WRITINGS} {STORES} pages? notes data manual contract"
    r" textes? testo textos? besedil\w{1,2} found retrieved read_this"
)
"""What says that a text is the material, if nothing else is known of what a model has read."""

SET_APART: Final = _any(r"following below delimited backticks")
"""What says so of a text between signs."""

TEXT_TAG: Final = _any(
    rf"{WRITINGS} docs? chunks? excerpts? snippets? results? pages? sections? nodes? data"
)

POINTED_AT: Final = _any(
    rf"{WRITINGS} textes? kontext\w{{0,2}} context\w{{0,2}} contesto testo document\w{{0,2}}"
    r" dokument\w{0,2} excerpts? extra(?:its?|ctos?) snippets? sources? informations?"
    r" informationen informaci\u00f3n informazioni facts evidence search_results textos? besedil\w"
)
"""What a prompt calls the material that it points back to."""

AHEAD: Final = _any(
    r"following below folgende[mnrs]? suivante?s? siguientes? seguent[ei] naslednj\w{1,3}"
    r" nachfolgend\w{0,2} unten spodnj\w{1,4} ci-dessous here_(?:is|are) voici"
)
"""Words that point ahead."""

GIVEN: Final = _any(
    r"this these given provided retrieved donn\u00e9\w? fourni\w? bereitgestellt\w{0,2}"
    r" proporcionad\w fornit\w"
)
"""Words by which an order speaks of the material that stands behind it."""

BACK: Final = _any(r"above preceding obig\w{1,2} zgornj\w{1,3}")
BACK_BEHIND: Final = _any(r"above oben ci-dessus anterior(?:es)? sopra zgoraj")
BACK_UNSPACED: Final = (
    r"(?:\u4e0a\u8ff0|\u4ee5\u4e0a)[^\s\uff0c\u3002]{0,4}"
    r"(?:\u4fe1\u606f|\u8d44\u6599|\u5185\u5bb9|\u4e0a\u4e0b\u6587)"
)
"""Words that point back, before and behind what they point at, and with it."""

ASKS: Final = r"question query frage pregunta domanda vpra\u0161anje \u95ee\u9898\u662f?"
QUESTION: Final = _any(ASKS)

ENDS: Final = _any(rf"{ASKS} user human answer instructions? chat_history end \w+_end")
"""Labels and headings of what is no material."""

SECTION: Final = _any(r"rules? guidelines? task tools (?:\w+_)?format")
"""Headings of it: as a label each may stand in a document."""

EXAMPLE: Final = _any(r"examples? for_instance samples?")

ELSEWHERE: Final = _any(
    r"formats? formatted schemas? templates? outputs? respond reply code functions? scripts?"
    r" snippets? quer(?:y|ies) json yaml xml sql csv styles? tones? rules? instructions?"
    r" guidelines?"
    r" structures? steps? history conversations? chat turns? said drafts?"
    r" answers?\s+(?:like|as)"
)
"""What a text may be that is no material, by the line before it."""

HOW: Final = _any(r"styles? tone formats? manner structure like as")
"""What says that a text is to be followed in another way than in what it says."""

SPEAKER: Final = _any(r"ai assistant bot a answer")
"""Who answers in a conversation, or in an example, that is written out."""

ORDER: Final = _any(
    r"you(?:'re|_are|_will|_have|_can|_must|_should) your act_as as_an?_\w+, i_want_you we please"
    r" do_not don't never always follow be read answer\w* respond reply use using keep write cite"
    r" think help today the_(?:current|user|rules?|instructions?) rules? instructions? system task"
    r" if_you here_(?:is|are) now below given consider look_at examples? du_bist sie_sind"
    r" (?:be)?antworten? tu_es vous_\u00eates r\u00e9pond\w* eres responde sei_un rispondi odgovori"
)
"""How the lines begin with which a prompt tells a model what it is to do."""

CONDITION: Final = _any(r"if when unless wenn falls si se \u010de")
"""How the lines begin that say what a model does if the material lacks an answer."""

CODE: Final = _any(
    r"def class import from\s+\S+\s+import return function const let var public private \#include"
    r" select\s.+\sfrom [\w.]+\s*=\s </?\w+[^>]*> \$\s [-+]{3}\s @@"
)
"""How lines of code begin."""
