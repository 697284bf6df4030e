"""The lexical judge: compares words, numbers and names; needs no model, key or network.

- ``judge``: ``LexicalJudge``, which asks ``readings`` for the verdicts of a record.
- ``readings``: reads each claim and each reference of a record once; keeps references for others.
- ``rows``: decides the cells, each by as little work as it takes; ``cell_verdicts`` turns coverage
  and conflicts into probabilities.
- ``coverage``: measures which share of a claim's words the best window of a reference has, by
  ``patterns``: the words of all claims as the bits of a number.
- ``conflicts``: runs every conflict detector on a claim and the sentence that supports it best.
- ``wording``: the words of a claim or a sentence, with what detectors found in them.
- ``quantity_conflicts``, ``negation_conflicts``, ``opposite_conflicts``, ``name_conflicts``: the
  detectors.
- ``near_copies``: aligns a claim with a sentence that it nearly copies; ``replacement_conflicts``
  and ``order_conflicts`` detect what the claim changes in it.
- ``opposites.txt``: English opposites from WordNet 3.0, with its licence.

Claims that consist of a value alone, such as ``$1,577``, go to ``claimspan.judges.values``.
"""

from __future__ import annotations

from claimspan.judges.lexical.judge import LexicalJudge

__all__ = ["LexicalJudge"]
