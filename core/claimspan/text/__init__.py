"""Analyses text by rules, without a model.

No module imports anything of claimspan from outside of this room, except ``claimspan.errors``.

- ``languages``: detects the language of a text, also of one short sentence.
- ``sentences``: splits prose into sentences, in any language.
- ``markdown``: splits Markdown into blocks, and blocks into the sentences that they contain.
- ``phrases``: recognises fixed English phrases: filler, abstentions, apologies; and questions.
- ``clauses``: splits an English sentence into clauses and keeps those that assert something.
- ``abstention``: detects responses that decline to answer, and how strongly they do.
- ``pronouns``: replaces a pronoun that opens an English sentence by the subject it refers to.
- ``words``: tokenizes a text into words and numbers, each with the stem it is compared by.
- ``slovenian``: splits Slovenian text into words, each with the stem that its forms share.
- ``grammar_words``: the function words, negations, prepositions and small numbers by language.
- ``quantities``: finds numbers with their units, dates and amounts of money among those tokens.
- ``number_forms``: reads one number, in English and in continental form.
- ``amounts``: finds numbers with sign, scale word, currency and unit, each kept as written.
- ``tokens``: estimates how many tokens a language model counts in a text.
- ``closest``: finds the sentence of a text that is closest to a claim, by the words of both.
- ``injection``: detects text that is addressed to a judge instead of to a reader.
- ``encodable``: makes texts encodable in UTF-8, so that they can be stored and sent.
- ``visible``: shows characters that would command a terminal or reorder a page, by their code.
"""

from __future__ import annotations

__all__: list[str] = []
