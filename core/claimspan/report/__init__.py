"""Renders evaluated records as one self-contained HTML page, as Markdown, or as figures.

``ReportEntry`` is the input. ``render_report`` makes the page of one system, ``render_comparison``
that of several, which ``compare_entries`` compares. ``outline`` puts either into figures, which
``render_markdown`` writes. ``summarise`` gives the mean of each metric over many entries.
``TraceLinks`` link the records to their traces.
"""

from __future__ import annotations

from claimspan.report.entries import ReportClaim, ReportEntry, ReportSystem, TraceLinks
from claimspan.report.figures import MetricSummary, compare_entries, summarise
from claimspan.report.outline import ReportOutline, outline, render_markdown
from claimspan.report.page import render_comparison, render_report

__all__ = [
    "MetricSummary",
    "ReportClaim",
    "ReportEntry",
    "ReportOutline",
    "ReportSystem",
    "TraceLinks",
    "compare_entries",
    "outline",
    "render_comparison",
    "render_markdown",
    "render_report",
    "summarise",
]
