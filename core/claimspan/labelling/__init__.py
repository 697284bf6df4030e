"""Labels of people for claims of one's own traffic."""

from __future__ import annotations

from claimspan.labelling.claims import (
    ClaimLabel,
    JoinedLabels,
    PickedClaim,
    join_labels,
    pick_claims,
    read_claim_labels,
    render_label_page,
)

__all__ = [
    "ClaimLabel",
    "JoinedLabels",
    "PickedClaim",
    "join_labels",
    "pick_claims",
    "read_claim_labels",
    "render_label_page",
]
