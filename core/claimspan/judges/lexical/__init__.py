"""The lexical judge: compares words, numbers and names; needs no model, key or network.

- ``judge``: ``LexicalJudge``, which turns coverage and conflicts into verdicts.
- ``coverage``: measures which share of a claim's words the best window of a reference has.
- ``conflicts``: runs every conflict detector on a claim and the sentence that supports it best.
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
