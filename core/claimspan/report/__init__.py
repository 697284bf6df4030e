"""Renders evaluated records as one self-contained HTML page.

`ReportEntry` is the input, `render_report` makes the page, and `summarise` gives the mean of each
metric over many entries.
"""

from __future__ import annotations

from claimspan.report.entries import ReportClaim, ReportEntry
from claimspan.report.page import render_report
from claimspan.report.summary import MetricSummary, summarise

__all__ = ["MetricSummary", "ReportClaim", "ReportEntry", "render_report", "summarise"]
