"""The place where Haystack's documentation has integrations, and its loader expects them.

``Pipeline.loads`` imports from a list of packages that it trusts; ``haystack_integrations``, which
several distributions share, is one of them.
"""

from __future__ import annotations

from claimspan_haystack import ClaimspanConnector

__all__ = ["ClaimspanConnector"]
