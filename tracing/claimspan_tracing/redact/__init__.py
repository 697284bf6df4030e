"""Redact: what is taken out of every text before anybody else sees it.

redaction  a redactor, for whom it works, and what happens if it fails texts      every text of a
job and of an outcome pii        the built-in redactor folding    the text that it searches keys
keys, tokens and passwords, by their form and by their names numbers    cards, bank accounts and
telephone numbers, with their check digits and plans
"""

from __future__ import annotations

from claimspan_tracing.redact.pii import PiiKind, PiiRedactor
from claimspan_tracing.redact.redaction import Audience, Redaction, Redactor

__all__ = ["Audience", "PiiKind", "PiiRedactor", "Redaction", "Redactor"]
