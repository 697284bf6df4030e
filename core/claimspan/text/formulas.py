r"""Reads formulas in TeX as people say them: ``\(h = 330\,\text{m}\)`` is ``h = 330 m``."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["without_formulas"]

# A dollar before a blank, or behind one, is money: "It costs $24 or $36."
_FORMULA: Final = re.compile(
    r"\\\((?P<round>[^\n]{1,500}?)\\\)|\\\[(?P<square>[^\n]{1,500}?)\\\]"
    r"|\$\$(?P<block>[^$]{1,500})\$\$|(?<![\w$])\$(?=[^\s$])(?P<line>[^$\n]{1,200})(?<=\S)\$(?![\w$])"
)
# "\(see below\)" and "\[1\]" are brackets that were escaped.
_OF_FORMULAS: Final = re.compile(r"[\\=^_<>]")
_NUMBER: Final = re.compile(r"[\d.,{}]+\s*\\?%?")
_SIGNS: Final = {
    "times": "×", "cdot": "·", "div": "÷", "pm": "±", "approx": "≈", "sim": "~", "neq": "≠",
    "leq": "≤", "le": "≤", "geq": "≥", "ge": "≥", "circ": "°", "degree": "°", "to": "→",
    "rightarrow": "→", "infty": "∞", "quad": " ", "left": "", "right": "",
    "text": "", "mathrm": "", "mathbf": "", "mathit": "", "textbf": "", "operatorname": "",
}  # fmt: skip
_FRACTION: Final = re.compile(r"\\[dt]?frac\s*\{([^{}]{1,100})\}\s*\{([^{}]{1,100})\}")
_COMMAND: Final = re.compile(r"\\([A-Za-z]+)")
_SPACE: Final = re.compile(r"\\[,;:! ]|~")
_POWER: Final = re.compile(r"\^\{?([0-9]{1,2}|°)\}?")
_POWERS: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def without_formulas(sentence: str) -> str:
    """Returns a sentence in which formulas are written without TeX.

    Args:
        sentence: One sentence as written; a price such as ``$24`` is no formula.
    """
    return _FORMULA.sub(_said, sentence) if "\\" in sentence or "$" in sentence else sentence


def _said(match: re.Match[str]) -> str:
    inner = str(match[match.lastgroup or 0])
    is_formula = _OF_FORMULAS.search(inner) or ("$" in match[0] and _NUMBER.fullmatch(inner))
    if not is_formula:
        return match[0]
    inner = _SPACE.sub(" ", _FRACTION.sub(r"\1/\2", inner))
    inner = _COMMAND.sub(lambda command: _SIGNS.get(command[1], command[1]), inner)
    inner = _POWER.sub(lambda power: power[1].translate(_POWERS), inner)
    return re.sub(r"[\\{}$]", "", inner).strip()
