"""Plain paraphrases of a sentence, by rule: its passage entails them as before."""

from __future__ import annotations

import re
from random import Random
from typing import Final

from perturbed_changes import NAME, Material, Rule, names_in

__all__ = ["PARAPHRASES", "join"]

_CONTRACTED: Final = (
    ("is not", "isn't"), ("are not", "aren't"), ("was not", "wasn't"), ("were not", "weren't"),
    ("does not", "doesn't"), ("do not", "don't"), ("did not", "didn't"), ("cannot", "can't"),
    ("can not", "can't"), ("will not", "won't"), ("would not", "wouldn't"),
    ("should not", "shouldn't"), ("could not", "couldn't"), ("has not", "hasn't"),
    ("have not", "haven't"), ("had not", "hadn't"), ("it is", "it's"), ("It is", "It's"),
    ("they are", "they're"), ("you are", "you're"), ("You are", "You're"), ("he is", "he's"),
    ("There is", "There's"), ("there is", "there's"), ("that is", "that's"), ("it will", "it'll"),
    ("you will", "you'll"), ("we have", "we've"), ("they have", "they've"), ("you have", "you've"),
)  # fmt: skip
_AGENT_END: Final = (
    r"(?=\.$|,? (?:in|on|at|for|from|during|after|before|when|since|until|while)\b)(?P<rest>.*)\."
)
_PASSIVE: Final = re.compile(
    r"(?P<object>(?:[A-Z][\w’'-]*)(?: [\w’'-]+){0,5}?) (?P<be>is|are|was|were) "
    rf"(?P<verb>[a-z]+ed) by (?P<agent>(?:the |a |an )?(?:[\w’'-]+ ){{0,4}}?[\w’'-]+){_AGENT_END}"
)
_PRONOUNS: Final = {
    "It": "it", "He": "him", "She": "her", "They": "them", "This": "this", "These": "these",
}  # fmt: skip
_ACTIVE: Final = re.compile(
    rf"(?P<agent>(?:The |A |An )?(?:{NAME.pattern}|[a-z-]+(?: [a-z-]+)?)) (?P<verb>[a-z]+ed) "
    r"(?P<object>(?:the |a |an |his |her |its |their )?(?:[\w’'-]+ ){0,3}?[\w’'-]+)"
    rf"{_AGENT_END}"
)
_ITEM: Final = r"[\w’'-]+(?: [\w’'-]+)?"
_LIST: Final = re.compile(
    r"(?:\b(?:are|is|includes?|including|as|by|of|with|like|were|for|in):? |: )"
    rf"(?P<list>(?P<first>{_ITEM}), (?P<middle>(?:{_ITEM}, ){{0,5}})(?P<second>{_ITEM}),? "
    rf"(?P<word>and|or) (?P<last>{_ITEM}))(?=[.;]|$)"
)
_VERB: Final = r"(?:is|are|was|were|has|had|have|can|will)"
_PRONOUN: Final = r"(?:the|it|he|she|they|this|these)"
_COORDINATED: Final = re.compile(
    rf"(?P<left>(?P<subject>[A-Z][^,;:()]{{1,50}}?) {_VERB} [^;:()]{{15,160}}?)"
    r"(?:,? and (?P<right>(?:is|are|was|were|has|can|will) [^;:()]{12,160})"
    r"|(?:,|;) (?:and |but )?"
    rf"(?P<whole>{_PRONOUN} (?:\w+ ){{0,3}}{_VERB} [^;:()]{{12,160}}))\."
)
_DEPENDENT: Final = re.compile(
    r"\b(?:if|when|while|although|though|because|since|unless|until|whether|that|which|who|whose|"
    r"where|either|neither|both|between|not|no|never)\b",
    re.IGNORECASE,
)
_OPENERS: Final = frozenset(
    "However But And So Thus Therefore Also Moreover Furthermore Then Yet Instead For Note".split()
)


def contract(sentence: str, material: Material, chance: Random) -> str | None:
    """``isn't`` for ``is not``, or the other way round."""
    for long, short in _CONTRACTED:
        if re.search(rf"\b{long}\b(?! to\b)", sentence):
            return re.sub(rf"\b{long}\b", short, sentence, count=1)
        if f" {short} " in sentence and not short.endswith("'s"):
            return sentence.replace(f" {short} ", f" {long} ", 1)
    return None


def passive(sentence: str, material: Material, chance: Random) -> str | None:
    """``Y acquired X`` for ``X was acquired by Y``, or the other way round."""
    return _to_active(sentence, material) or _to_passive(sentence, material)


def _to_active(sentence: str, material: Material) -> str | None:
    match = _PASSIVE.fullmatch(sentence)
    if (
        not match
        or match["verb"] not in material.lexicon.participles
        or _is_complex(match["object"])
    ):
        return None
    if re.search(
        r"\b(?:\w+ing|\w+ed|which|whom|default|that|to|and|or|means|each|of)\b", match["agent"]
    ):
        return None
    verb = match["verb"]
    if match["be"] in ("is", "are"):
        base = material.lexicon.participles[verb]
        verb = base if re.search(r"[^s]s$", match["agent"]) else _third(base)
    subject = match["agent"][0].upper() + match["agent"][1:]
    return f"{subject} {verb} {_as_object(match['object'], material)}{match['rest']}."


def _third(base: str) -> str:
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + ("es" if base.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")


def _to_passive(sentence: str, material: Material) -> str | None:
    match = _ACTIVE.fullmatch(sentence)
    if not match or match["verb"] not in material.lexicon.participles:
        return None
    patient = match["object"]
    is_phrase = patient.split()[0] in (
        "the",
        "a",
        "an",
        "his",
        "her",
        "its",
    ) or patient in names_in(sentence, material.lexicon.common)
    if (
        not is_phrase
        or _is_complex(patient)
        or patient == "the series"
        or patient.split()[0] in ("his", "her", "its")
    ):
        return None
    be = "were" if patient.endswith("s") and patient.split()[0] == "the" else "was"
    agent = _as_object(match["agent"], material)
    return f"{patient[0].upper()}{patient[1:]} {be} {match['verb']} by {agent}{match['rest']}."


def _is_complex(phrase: str) -> bool:
    return bool(_DEPENDENT.search(phrase)) or bool(
        re.search(
            r"\b(?:and|or|to|is|are|was|were|of|in|by|that|as|on|may|might|must|should|\w+ly|\w+ing)\b|,",
            phrase,
        )
    )


def _as_object(phrase: str, material: Material) -> str:
    if phrase in _PRONOUNS:
        return _PRONOUNS[phrase]
    first = phrase.split()[0]
    is_name = (
        any(first in name.split() for name in names_in(material.passage, material.lexicon.common))
        or not first[1:].islower()
    )
    is_name = is_name or bool(re.match(r"[A-Z]\w+ [A-Z][a-z]+$", phrase))
    return phrase if is_name and first not in ("The", "A", "An") else phrase[0].lower() + phrase[1:]


def synonym(sentence: str, material: Material, chance: Random) -> str | None:
    """One word replaced by a synonym."""
    synonyms = material.lexicon.synonyms
    words = list(re.finditer(r"(?<![-\w])[a-z]{4,}(?![-\w])", sentence))
    found = [match for match in words if match.group() in synonyms]
    if not found:
        return None
    match = chance.choice(found)
    other = chance.choice(synonyms[match.group()])
    before = sentence[: match.start()]
    if re.search(r"\b[aA]n? $", before):
        before = re.sub(r"\b([aA])n? $", r"\1n " if other[0] in "aeiou" else r"\1 ", before)
    return before + other + sentence[match.end() :]


def reorder_list(sentence: str, material: Material, chance: Random) -> str | None:
    """The first and the last item of a list, the other way round."""
    match = _LIST.search(sentence)
    if not match:
        return None
    first, last = match["first"], match["last"]
    if first[0].isupper() != last[0].isupper() or _is_complex(first) or _is_complex(last):
        return None
    comma = "," if f"{match['second']}, {match['word']}" in match["list"] else ""
    turned = f"{last}, {match['middle']}{match['second']}{comma} {match['word']} {first}"
    return sentence[: match.start("list")] + turned + sentence[match.end() :]


def split(sentence: str, material: Material, chance: Random) -> str | None:
    """The second of two coordinated clauses as a sentence of its own, with the subject."""
    match = _COORDINATED.fullmatch(sentence)
    if not match or _DEPENDENT.search(sentence) or _is_complex(match["subject"]):
        return None
    if match["whole"]:
        return f"{match['whole'][0].upper()}{match['whole'][1:]}."
    if "," in match["left"] or " and " in match["left"]:
        return None
    return f"{match['subject']} {match['right']}."


def join(first: str, second: str, material: Material) -> str | None:
    """Two neighbouring sentences as one."""
    opener = second.split()[0].rstrip(",")
    if (
        opener in _OPENERS
        or not opener.isalpha()
        or len(first + second) > 300
        or "(" in first + second
    ):
        return None
    lowered = opener in (
        "The",
        "It",
        "He",
        "She",
        "They",
        "This",
        "These",
        "A",
        "An",
        "In",
        "If",
        "Its",
        "There",
        "You",
    )
    known = any(
        opener in name.split() for name in names_in(material.passage, material.lexicon.common)
    )
    if not lowered and not known:
        return None
    rest = second if known and not lowered else second[0].lower() + second[1:]
    return f"{first.removesuffix('.')}, and {rest}"


PARAPHRASES: Final[dict[str, Rule]] = {
    "contraction": contract,
    "passive": passive,
    "synonym": synonym,
    "reordered list": reorder_list,
    "split": split,
}
"""Every paraphrase of one sentence by its kind."""
