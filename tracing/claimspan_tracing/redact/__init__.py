"""Redact: what is taken out of every text before anybody else sees it."""

from __future__ import annotations

from claimspan_tracing.redact.redaction import Audience, Redaction, Redactor

__all__ = ["Audience", "Redaction", "Redactor"]
