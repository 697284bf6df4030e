"""The lexical judge: compares words, numbers and names; needs no model, key or network.

- ``judge``: ``LexicalJudge``, which turns coverage and conflicts into verdicts.
- ``coverage``: measures which share of a claim's words the best window of a reference has.
- ``conflicts``: runs every conflict detector on a claim and the sentence that supports it best.
- ``quantity_conflicts``, ``negation_conflicts``, ``opposite_conflicts``, ``name_conflicts``: the
  detectors.

Claims that consist of a value alone, such as ``$1,577``, go to ``claimspan.judges.values``.
"""

from __future__ import annotations

from claimspan.judges.lexical.judge import LexicalJudge

__all__ = ["LexicalJudge"]
