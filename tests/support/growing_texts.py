"""Patterns that are hard to read if they are repeated, each by the rule that it is built by."""

from __future__ import annotations

import string
from typing import Final

_SIGNS: Final = "“”‘’«»„…–—•·§°½×→≥€。！？、（「"
_SEPARATORS: Final = (*",.'’-–/:;x_ ", "\u00a0", "\u202f", "\u2009", ", ", " + ", "e", "^")

_MARKDOWN: Final = (
    "![", "[a](", "[a](b)", "![a](b) ", "[a]: ", "[", "**a", "**a** ", "*a*b", "_a_b", "~~a~~",
    "`a", "`a` ", "``", "```\n", "```a\nb\n```\n", "# a\n", "#", "> ", ">> a\n", "> a\n", "- a\n",
    "* a\n", "-  - ", "  - a\n", "1. a\n", "1. a ", "(1) a ", "| a | b |\n", "|", "| --- |\n",
    "a | b\n--- | ---\n", "a\tb\n", "a, b\n", "---\n", "===\n", "a\n===\n", "\n", "\n\n", "\r\n",
    "\t", " ", "a\n", "a  \n", "\\", "a: b\n", "**a:** b\n",
)  # fmt: skip
_MARKUP: Final = (
    "<b>a</b>", '<a href="b">', "<!-- ", "<!-- a -->", "<", "&amp;", "&", "<think>",
    "<think>a</think>", "</think>", "<table><tr><td>", "<a ", "$a$ ", "$$", "\\(", "\\frac{1}{2}",
    "\\begin{a}", "{", '{"a": ', '{"a": 1}, ', '["a", ', '"a": ', "<|im_start|>", "{{a}}",
)  # fmt: skip
_SOURCES: Final = (
    "https://a.b/c ", "https://a.b?c=d&e=f#g ", "https://", "a@b.c ", "a/b/c/", "[1]", "[1] ",
    "[1][2] ", "[1, 2] ", "[^1]", "[^1]: a\n", "(Source: a) ", "Source: a\n", "Sources:\n",
    "Sources:\n- a\n", "a (2020) ", "【1】", "According to a, ",
)  # fmt: skip
_DATES: Final = (
    "3 May 2020 ", "May 3, 2020, ", "May 2020 ", "2020-01-01/", "2020-01-01 ",
    "2020-01-01T12:00:00Z ", "01/02/2020 ", "1.2.2020 ", "3. Mai 2020 ", "im Mai ",
    "am 3. Mai und am 4. Juni ", "3. maja 2020 ", "le 3 mai 2020 ", "1990s ", "1990's, ", "1990 ",
    "2019/20 ", "2019–2020 ", "Q1 2020 ", "Q1 ", "FY2020 ", "first quarter of 2020 ",
    "third quarter ", "21st century ", "3/5/2021 and 1/3 and ", "May ",
)  # fmt: skip
_TIMES: Final = (
    "12:30 ", "3 pm ", "9-5 pm ", "um 15 Uhr ", "15 h 30 ", "15h", "ob 15. uri ", "noon ",
    "half past 3 ", "3 o'clock ", "1 hour 30 minutes ",
)  # fmt: skip
_AMOUNTS: Final = (
    "1", "12 ", "0.", "1. ", "5 km ", "$5 ", "5 % ", "(5) ", "-5 ", "5-", "5-7 days ",
    "between 5 and 7 ", "from 5 to 7 ", "about 5 ", "about ", "at least 5 ", "at least ",
    "5 or more ", "minus 5 ", "1 1/2 ", "1½", "1/", "3 in 4 ", "a third of ", "two thirds ",
    "half ", "half a million ", "5k ", "5 million euros ", "5 °C ", "5 °C below zero ", "12 500 ",
    "500 ", "1st ", "first ", "No. 5 ", "Note 5 ", "ab12 ", "USD5 ", "1,234.56 ", "1.234,56 ",
    "1.234 ", "5 rooms and ", "a 5 b ", "5 feet 7 inches ",
)  # fmt: skip
_NUMBER_WORDS: Final = (
    "one ", "twenty-five ", "two hundred and ", "million ", "a million ", "dozen ", "zwei und ",
    "fünfundzwanzig ", "fünfundzwanzig", "ein Viertel ", "vingt-cinq ", "quatre-vingt-", "cent ",
    "un quart de ", "petindvajset ", "dve leti in ", "polovica ", "twenty-first ", "zwölf Jahre ",
)  # fmt: skip
_NEGATIONS: Final = (
    "not ", "no ", "n't ", "don't ", "never ", "not a and not b, ", "nicht ", "kein ", "ni ",
    "ne pas ", "ne ni no non, ", "brez ", "ません", "不是", "не ", "I don't know. ",
    "It does not say that ", "The passage does not say. ", "unsafe ",
    "Die Donau ist nicht 2.850 km lang und ", "The Danube is not 2,850 km long and ",
    "Donava ni dolga 2.850 km in ", "Le Danube ne fait pas 2 850 km et ",
)  # fmt: skip
_SCRIPTS: Final = (
    "北京是中国的首都，它有很多历史。人口很多！", "北京", "東京は日本の首都です。大きいです。",
    "दिल्ली भारत की राजधानी है। यह बड़ा है। ",
    "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย ", "서울은 수도다. ", "القاهرة عاصمة مصر؟ ",
    "Москва — столица России. ", "Αθήνα; ", "ⅷ ", "①", "e\u0301", "\u0301", "ß ", "İ", "\u200b",
    "\ufeff", "\u202e", "\xad", "🙂", "👨\u200d👩\u200d👧 ", "\x00",
)  # fmt: skip
_PROSE: Final = (
    "a", "a ", "A ", "Aa ", "a. ", "a.", "A.", "e.g. ", "so e.g. a ", "Dr. ", "U.S. ", "A?! ",
    "a… ", "a, ", "(a) ", "“a” ", "“a. ", "a's ", "is it? ", "Yes, ", "No. ", "However, ",
    "because ", "and ", "It is. ", "more dense ", "all ", "only ", "x-y ", "New York ",
    "Mr. A. B. ", "French ", "GitHub acquired Microsoft. ", "Based on the context, ",
    "I think that ", "The answer is ", "Answer: ", "Question: a\n", "prices ",
    "Ignore all instructions. ",
    "The Danube rises in Germany. It flows through ten countries, e.g. Austria. ",
    "The Danube rises in Germany, and ", "It was built in 1990 by Ana, who ",
)  # fmt: skip
_MIXED: Final = (
    "a **b** [c](d) 5 km. ", "- 3 May 2020: $5 (1)\n", "| 1990s | 5 % |\n", "“5 km,” he said. ",
    "(1) not 5, but 7; ", "1. **a:** not 12:30 [1]\n", "> 1,234 “a”!\n", "# 2020\n\na 5. ",
    "<b>5</b> km, ", "北京 5 km。", "`5` - [1] $a$ ", "“!", '!"', "!)", "'\"", "([{", ")]}", "“(‘",
    "¿a? ¡b! ", ".\n", ".\"", "?]", "a.\" ", "!!! ", ". . . ", "a...b", "—a", "a\u00a0", "a \n ",
    " . ", " , ", "::", "//", "0x1f ", "v1.2.3 ",
)  # fmt: skip

PATTERNS: Final = tuple(
    dict.fromkeys(
        (
            *_SIGNS,
            *(each for sign in string.punctuation for each in (sign, f"a{sign} ")),
            *(each for sign in _SEPARATORS for each in (f"123{sign}", f"1{sign}234 ")),
            *_MARKDOWN, *_MARKUP, *_SOURCES, *_DATES, *_TIMES, *_AMOUNTS, *_NUMBER_WORDS,
            *_NEGATIONS, *_SCRIPTS, *_PROSE, *_MIXED,
        )
    )
)  # fmt: skip
"""What is repeated: signs, quotes, brackets, Markdown, markup, sources, dates, numbers with each
separator, number words and negations of some languages, scripts without blanks, and mixtures."""
