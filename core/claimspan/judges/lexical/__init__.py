"""The lexical judge: compares words, numbers and names; needs no model, key or network.

- ``judge``: ``LexicalJudge``, which asks ``readings`` for the verdicts of a record.
- ``readings``: reads each claim and each reference of a record once; keeps references for others.
- ``rows``: decides the cells: turns coverage and edits into probabilities.
- ``coverage``: measures which share of a claim's words the best window of a reference has.
- ``edits``: aligns a claim with the sentence that supports it best, and reads what differs as typed
  edits, by one table of kinds and weights; ``edits.toml`` has the words by language.
- ``cells``: gathers the support of several references for a claim, and joins verdicts to a matrix.
- ``short_answers``: reads claims and references by the question that they answer.

Claims that consist of a value alone, such as ``$1,577``, go to ``claimspan.quantities``.
"""

from __future__ import annotations

from claimspan.judges.lexical.judge import LexicalJudge

__all__ = ["LexicalJudge"]
