"""Analyses text by rules, without a model.

No module imports anything of claimspan from outside of this room, except ``claimspan.errors``.

- ``languages``: detects the language of a text, also of one short sentence.
- ``sentences``: splits prose into sentences, in any language.
- ``markdown``: splits Markdown into blocks, and blocks into sentences; reads formulas in TeX.
- ``refusals``: the phrases by which an answer declines or refers elsewhere, filler, and questions.
- ``openers``: takes off what a sentence says about itself, such as "Based on the context,".
- ``citations``: finds what a text does not assert: citations, footers, tags, a model's thoughts.
- ``shown``: takes off the passages and sources that are shown above or below an answer.
- ``answers``: reads a short answer as the statement that it makes, given its question.
- ``structured``: the text of an answer that is a structure, such as JSON.
- ``shapes``: type guards for values of unknown shape.
- ``clauses``: splits an English sentence into clauses and keeps those that assert something.
- ``abstention``: detects responses that decline to answer.
- ``questions``: finds the sentence of a question that asks, and where its subject ends.
- ``words``: tokenizes a text into words and numbers, each with the stem it is compared by.
- ``tables``: reads the tables of words and patterns that stand beside the modules.
- ``units``: units of measure, currencies and scale words by their spellings.
- ``percentages``: writes shares in percent, and tells which share a percentage means.
- ``tokens``: estimates how many tokens a language model counts in a text.
- ``closest``: finds the sentence of a text that is closest to a claim, by the words of both.
- ``injection``: detects text that is addressed to a judge instead of to a reader.
- ``encodable``: makes texts encodable in UTF-8, so that they can be stored and sent.
- ``visible``: shows characters that would command a terminal or reorder a page, by their code.
"""

from __future__ import annotations

__all__: list[str] = []
