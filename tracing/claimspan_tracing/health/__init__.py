"""Health: whether everything that a monitor needs is there and answers, before traffic comes.

``diagnose`` makes the checks one after another. Each says what it found, and what to do about it.
"""

from __future__ import annotations

from claimspan_tracing.health.diagnosis import diagnose
from claimspan_tracing.health.findings import CHECKS, Diagnosis, Finding, State

__all__ = ["CHECKS", "Diagnosis", "Finding", "State", "diagnose"]
