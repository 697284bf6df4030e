"""Analyses text by rules, without a model.

No module imports anything of claimspan from outside of this room, except ``claimspan.errors``.

- ``languages``: detects the language of a text, also of one short sentence.
- ``sentences``: splits prose into sentences, in any language.
- ``markdown``: splits Markdown into blocks, and blocks into the sentences that they contain.
- ``formulas``: reads formulas in TeX as people say them.
- ``phrases``: recognises fixed phrases: filler, abstentions, apologies, referrals; and questions.
- ``refusals``: the phrases of abstentions, and of what refers elsewhere beside them, in English.
- ``refusals_by_language``: the same in other languages, by words in any order.
- ``beside_answers``: the table of refusals, pointers, disclaimers and hedges in other languages.
- ``openers``: takes off what a sentence says about itself, such as "Based on the context,".
- ``citations``: finds what a text does not assert: citations, footers, tags, a model's thoughts.
- ``footers``: recognises what stands beside an answer: sources, pointers to more, disclaimers.
- ``shown``: takes off the passages and sources that are shown above or below an answer.
- ``answers``: reads a short answer as the statement that it makes, given its question.
- ``structured``: the text of an answer that is a structure, such as JSON.
- ``shapes``: type guards for values of unknown shape.
- ``labels``: reads the label before a short answer, as in "Length: 725 km".
- ``clauses``: splits an English sentence into clauses and keeps those that assert something.
- ``abstention``: detects responses that decline to answer, and how strongly they do.
- ``questions``: finds the sentence of a question that asks, without what is said around it.
- ``declaratives``: turns a question and its answer into a statement, form by form.
- ``word_order``: puts the words of a question into the order of a statement.
- ``subjects``: finds where the subject of a question ends.
- ``inflections``: inflects English verbs, and finds the base form of irregular ones.
- ``pronouns``: replaces a pronoun that opens an English sentence by the subject it refers to.
- ``words``: tokenizes a text into words and numbers, each with the stem it is compared by.
- ``snowball``: loads Snowball's stemmer of one language alone.
- ``memo``: remembers what was worked out for a word, since the words of texts repeat.
- ``prefixes``: what is left of a word without a prefix that may deny it.
- ``slovenian``: splits Slovenian text into words, each with the stem that its forms share.
- ``values``: reads what a text gives in numbers; the next modules are its parts.
- ``value_signs``: tells at little cost which notations of values a text may have.
- ``value_words``: writes number words as digits, and the words beside numbers in English.
- ``number_words``: the number words of English, German, Slovenian and French.
- ``value_vocabulary``: the other words that stand beside numbers in those languages.
- ``rewriting``: replaces pieces of a text, and knows where each place was before.
- ``grammar_words``: the function words, negations, prepositions and small numbers by language.
- ``number_forms``: reads one number, in English and in continental form.
- ``units``: units of measure, currencies and scale words by their spellings.
- ``amounts``: finds numbers with sign, scale word, currency and unit, each kept as written.
- ``amount_marks``: reads the words that make a number a bound or a rough figure.
- ``dates``: finds dates, in words and in numbers.
- ``clock_times``: finds times of day.
- ``percentages``: writes shares in percent, and tells which share a percentage means.
- ``shares``: finds shares of a whole, such as "one in four".
- ``digit_windows``: looks for patterns near the digits of a text only.
- ``tokens``: estimates how many tokens a language model counts in a text.
- ``closest``: finds the sentence of a text that is closest to a claim, by the words of both.
- ``injection``: detects text that is addressed to a judge instead of to a reader.
- ``encodable``: makes texts encodable in UTF-8, so that they can be stored and sent.
- ``visible``: shows characters that would command a terminal or reorder a page, by their code.
"""

from __future__ import annotations

__all__: list[str] = []
