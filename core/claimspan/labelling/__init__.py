"""Labels of people for claims of one's own traffic.

``page`` chooses which claims are worth labelling and makes the page on which people label them,
``labels`` reads their labels and brings each one to its claim.
"""

from __future__ import annotations

from claimspan.labelling.labels import ClaimLabel, JoinedLabels, join_labels, read_claim_labels
from claimspan.labelling.page import PickedClaim, pick_claims, render_label_page

__all__ = [
    "ClaimLabel",
    "JoinedLabels",
    "PickedClaim",
    "join_labels",
    "pick_claims",
    "read_claim_labels",
    "render_label_page",
]
