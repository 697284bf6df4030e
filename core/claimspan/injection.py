"""Texts that speak to a judge instead of to a reader.

A flag, not a filter: judges treat every text as data. It says where to look when a score seems
too good, and knows the plain forms only; who writes with care is not found.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["injection_signs", "suspects_injection"]

_SIGNS: Final = {
    "role token": r"<\|[\w ]{2,30}\|>|<｜[^｜]{2,30}｜>|</?s>|\[/?INST\]|<</?SYS>>|"
    r"<(?:start|end)_of_turn>|^\s*#{1,4}\s*(?:system|assistant|instructions?)\s*:",
    "verdict block": r"[\"'](?:verdicts?|labels?|claims?)[\"']\s*:\s*[\[{\"']|"
    r"###\s*(?:claims|verdicts?|your answer)|"
    r"\[(?:CLAIMS|REFERENCES?|QUESTION)\]|\{\{?(?:claims|references?|question)\}?\}",
    "hidden text": "[\u200b\u2060\u202a-\u202e\u2066-\u2069\U000e0020-\U000e007f]{2,}",
    "order": "|".join(
        (
            # English
            r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:previous|prior|above|"
            r"earlier|preceding|all|any|your|the)\b.{0,25}\b(?:instructions?|prompts?|rules?|"
            r"directions?|guidelines?|text|context)\b",
            r"\b(?:label|mark|judge|rate|grade|classify|answer|treat|consider)\b.{0,40}\b(?:every|"
            r"all|each|any|the|these|this)\b.{0,25}\bclaims?\b.{0,40}\b(?:entail\w*|true|correct|"
            r"supported|E)\b",
            r"\b(?:you are now|from now on,? you|act as|pretend to be|new instructions?\s*:|"
            r"system prompt|as an? (?:ai|judge|evaluator|language model),? you)\b",
            # German, French, Spanish, Italian, Portuguese
            r"\b(?:ignorier\w*|missachte\w*|vergiss|vergessen sie)\b.{0,40}\b(?:anweisung\w*|"
            r"vorgabe\w*|regeln|instruktion\w*)",
            r"\b(?:ignor\w+|oubli\w+|néglig\w+)\b.{0,40}\b(?:instructions|consignes|règles)\b",
            r"\b(?:ignor\w+|olvid\w+|descart\w+)\b.{0,40}\b(?:instrucciones|órdenes|reglas|"
            r"instruções|ordens|regras)\b",
            r"\b(?:ignor\w+|dimentic\w+|tralasci\w+)\b.{0,40}\b(?:istruzioni|regole|indicazioni)\b",
            # Slovene and its neighbours, Polish, Russian
            r"\b(?:prezri\w*|ignorir\w*|pozabi\w*|zanemari\w*)\b.{0,40}\b(?:navodil\w*|pravil\w*|"
            r"ukaz\w*|uput\w*)",
            r"\b(?:zignoruj\w*|ignoruj\w*|pomiń|zapomnij)\b.{0,40}\b(?:instrukcj\w*|polece\w*|"
            r"zasad\w*)",
            r"(?:игнорируй\w*|забудь\w*|проигнорируй\w*).{0,40}(?:инструкци\w*|указани\w*|правил\w*)",
            # Chinese, Japanese, Korean, Arabic, Hindi
            r"(?:忽略|无视|無視|忘记|忘記|不要理会).{0,15}(?:指令|指示|提示|规则|規則|说明)",
            r"(?:指示|命令|ルール|プロンプト).{0,10}(?:無視|忘れ)",
            r"(?:지시|명령|규칙|프롬프트).{0,12}(?:무시|잊)",
            r"(?:تجاهل|انس|تجاوز).{0,30}(?:التعليمات|الأوامر|القواعد)",
            r"(?:निर्देश|नियम|आदेश).{0,25}(?:अनदेखा|नज़रअंदाज़|भूल|उपेक्षा)",
        )
    ),
}
_PATTERNS: Final = {
    name: re.compile(pattern, re.IGNORECASE | re.MULTILINE) for name, pattern in _SIGNS.items()
}


def injection_signs(text: str) -> list[str]:
    """What in a text looks made for a judge: of ``role token``, ``verdict block``, ...

    Args:
        text: A chunk, a response or a ground truth.

    Returns:
        The kinds of signs that were found, in a fixed order; empty for nearly every text.
    """
    return [name for name, pattern in _PATTERNS.items() if pattern.search(text)]


def suspects_injection(text: str) -> bool:
    """Whether a text has any such sign."""
    return any(pattern.search(text) for pattern in _PATTERNS.values())
