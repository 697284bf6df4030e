"""One HTML page that shows evaluated records: answers, claims, chunks, scores."""

from __future__ import annotations

from claimspan.report.entries import ReportClaim, ReportEntry
from claimspan.report.page import render_report
from claimspan.report.summary import MetricSummary, summarise

__all__ = ["MetricSummary", "ReportClaim", "ReportEntry", "render_report", "summarise"]
