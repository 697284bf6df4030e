"""The lexical judge: compares words, numbers and names; needs no model, key or network.

- ``judge``: ``LexicalJudge``, which asks ``readings`` for the verdicts of a record.
- ``readings``: reads each claim and each reference of a record once; keeps references for others.
- ``rows``: decides the cells, each by as little work as it takes; ``cell_verdicts`` turns coverage
  and conflicts into probabilities.
- ``coverage``: measures which share of a claim's words the best window of a reference has, with
  the words of all claims as the bits of a number.
- ``cells``: gathers what several references say of a claim, and joins verdicts to a matrix.
- ``short_answers``: reads claims and references by the question that they answer.
- ``conflicts``: runs every conflict detector on a claim and the sentence that supports it best, and
  detects parts that changed places.
- ``negations``, ``opposites``, ``name_conflicts``: the other detectors of words.
- ``near_copies``: aligns a claim with a sentence that it nearly copies, and detects what it
  changes there.
- ``opposites.txt``: English opposites from WordNet 3.0, with its licence.

Claims that consist of a value alone, such as ``$1,577``, go to ``claimspan.quantities``.
"""

from __future__ import annotations

from claimspan.judges.lexical.judge import LexicalJudge

__all__ = ["LexicalJudge"]
