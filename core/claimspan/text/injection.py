"""Detects text that is addressed to a judge instead of to a reader: prompt injection.

The result is a flag, not a filter: judges treat every text as data whatever it says. It shows where
to look when a score seems too good. Only the plain forms are known; a careful attacker avoids them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

__all__ = ["injection_signs", "suspects_injection"]


class _Sign(NamedTuple):
    """A pattern of one kind of injection, for text in lower case."""

    kind: str
    stems: tuple[str, ...]
    """Substrings of which every match has at least one; looking for them first is much cheaper."""

    pattern: re.Pattern[str]

    marks: tuple[str, ...]
    """Characters of which every match has at least one; none if it may be all letters."""


def _sign(kind: str, stems: str, pattern: str, marks: str = "") -> _Sign:
    """Makes a sign; ``~`` stands for a blank in a stem."""
    each = tuple(stem.replace("~", " ") for stem in stems.split())
    return _Sign(kind, each, re.compile(pattern, re.MULTILINE), tuple(marks))


_INSTRUCTIONS: Final = (
    r"(?:instructions?|prompts?|rules?|directions?|guidelines?|orders|text|context)\b"
)

_SIGNS: Final = (
    _sign(
        "role token",
        "<| <｜ s> inst] sys>> _of_turn>",
        r"<\|[\w ]{2,30}\|>|<｜[^｜]{2,30}｜>|</?s>|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>",
        "<[",
    ),
    _sign(
        "role token",
        "system: assistant: instructions:",
        # Not \s*: from each line it would cross all empty lines that follow, in quadratic time.
        r"^[^\S\n]*#{1,4}\s*(?:system|assistant|instructions):",
        "#",
    ),
    _sign(
        "verdict block",
        "verdict label claim",
        r"[\"'](?:verdicts?|labels?|claims?)[\"']\s*:\s*[\[{\"']|###\s*(?:claims|verdicts?)",
        "\"'#",
    ),
    _sign(
        "verdict block",
        "### [c [r [q",
        r"###\s*your answer|\[(?:claims|references?|question)\]",
        "#[",
    ),
    _sign(
        "placeholder", "{claim {reference {question", r"\{(?:claims|references?|question)\}", "{"
    ),
    _sign(
        "hidden text",
        "\u200b \u2060 \u202a \u202b \u202c \u202d \u202e \u2066 \u2067 \u2068 \u2069 \U000e0061",
        "[\u200b\u2060\u202a-\u202e\u2066-\u2069\U000e0020-\U000e007f]{2,}",
    ),
    _sign(
        "order",
        "ignore disregard forget overrid bypass",
        r"\b(?:ignore|disregard|forget|override|bypass)\b[^.:;!?]{0,40}\b(?:previous|prior|above|earlier|"
        rf"preceding|all|any|your|the|these|those)\b.{{0,25}}\b{_INSTRUCTIONS}",
    ),
    _sign(
        "order",
        "claim",
        r"\b(?:label|mark|judge|rate|grade|classify|answer|treat|consider|report)\b[^.:;!?]{0,40}"
        r"\bclaims?\b[^.:;!?]{0,40}\b(?:entail\w*|true|correct|supported|e)\b",
    ),
    _sign(
        "order",
        "you~are~now~ from~now~on pretend~to~be new~instruction system~prompt act~as~",
        r"\b(?:you are now (?:a|an|the|in)\b|from now on,? you\b|pretend to be\b|"
        r"new instructions?\s*:|system prompt\b|act as (?:a|an|the) (?:judge|evaluator|grader)\b)",
    ),
    _sign(
        "order",
        "ignorier missacht vergiss vergessen",
        r"\b(?:ignorier\w*|missacht\w*|vergiss|vergessen sie)\b[^.:;!?]{0,40}"
        r"\b(?:anweisung|vorgabe|regel|instruktion)",
    ),
    _sign(
        "order",  # French, Spanish, Portuguese, Italian
        "ignor oubli néglig olvid descart esque dimentic tralasci",
        r"\b(?:ignor|oubli|néglig|olvid|descart|esque[çc]|dimentic|tralasci)\w+\b[^.:;!?]{0,40}\b"
        r"(?:instru[ccçz]|istruzion|consigne|règle|regla|regra|regol|órden|orden|indicazion)",
    ),
    _sign(
        "order",  # Slovene, Croatian, Serbian, Czech, Polish
        "prezri ignor pozabi zanemari zaboravi zapome pomiń zapomnij",
        r"\b(?:prezri|i?gnoriraj|zignoruj|ignoruj|pozabi|zanemari|zaboravi|zapome|pomiń|zapomnij)"
        r"\w*\b[^.:;!?]{0,40}\b(?:navodil|pravil|ukaz|uput|pokyn|instrukc|polece|zasad)",
    ),
    _sign(
        "order", "игнорир забудь", r"(?:игнорир|забудь)[^.:;!?]{0,40}(?:инструкци|указани|правил)"
    ),
    _sign(
        "order",
        "忽略 无视 忘记 不要理会",
        r"(?:忽略|无视|忘记|不要理会).{0,15}(?:指令|指示|提示|规则|说明)",
    ),
    _sign("order", "無視 忘れ", r"(?:指示|命令|ルール|プロンプト).{0,10}(?:無視|忘れ)"),
    _sign("order", "무시 잊", r"(?:지시|명령|규칙|프롬프트).{0,12}(?:무시|잊)"),
    _sign("order", "تجاهل تجاوز انس", r"(?:تجاهل|تجاوز|انس).{0,30}(?:التعليمات|الأوامر|القواعد)"),
    _sign("order", "निर्देश नियम आदेश", r"(?:निर्देश|नियम|आदेश).{0,25}(?:अनदेखा|भूल|उपेक्षा)"),
)
# The signs that a text in ASCII may have, each with the stems that may be in it.
_PLAIN_SIGNS: Final = tuple(
    sign._replace(stems=plain)
    for sign in _SIGNS
    if (plain := tuple(stem for stem in sign.stems if stem.isascii()))
)


def injection_signs(text: str) -> list[str]:
    """Returns the kinds of signs that a text is meant to influence a judge.

    Args:
        text: A chunk, a response or a ground truth.

    Returns:
        Each kind found, once: ``role token``, ``verdict block``, ``placeholder``, ``hidden text``,
        ``order``; an empty list for nearly every text.
    """
    return list(dict.fromkeys(sign.kind for sign in _occurring(text.lower())))


def suspects_injection(text: str) -> bool:
    """Tells whether a text has any sign that ``injection_signs`` knows; stops at the first."""
    return next(_occurring(text.lower()), None) is not None


def _occurring(lowered: str) -> Iterator[_Sign]:
    """Yields the signs of a text, which must be in lower case."""
    for sign in _PLAIN_SIGNS if lowered.isascii() else _SIGNS:
        may_occur = not sign.marks or _has_one(lowered, sign.marks)
        if may_occur and _has_one(lowered, sign.stems) and sign.pattern.search(lowered):
            yield sign


def _has_one(text: str, parts: tuple[str, ...]) -> bool:
    # A loop takes a third of the time of ``any``.
    for part in parts:  # noqa: SIM110 - see above
        if part in text:
            return True
    return False
