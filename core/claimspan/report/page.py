"""Renders entries as one HTML page that loads nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING, Final

from claimspan.errors import MissingExtraError
from claimspan.report.entries import ReportEntry
from claimspan.report.glossary import GLOSSARY, MAIN_METRICS, Metric
from claimspan.report.summary import MetricSummary, summarise
from claimspan.report.views import (
    UNDECIDED,
    TileView,
    score_order,
    view_record,
    view_score,
    view_tile,
)
from claimspan.text.visible import visible
from claimspan.verdicts import Label

if TYPE_CHECKING:
    import jinja2

__all__ = ["render_report"]

_TEMPLATE: Final = "report.html.j2"
_SCRIPT: Final = "report.js"
_STYLE: Final = "report.css"

_ROW_METRICS: Final = (
    "faithfulness",
    "f1",
    "claim_recall",
    "hallucination",
    "contradicted_by_chunks",
    "context_precision",
)
_ROW_LIMIT: Final = 4
"""Number of score columns; more would leave no room for the question."""


def render_report(entries: Sequence[ReportEntry], *, title: str = "RAG evaluation") -> str:
    """Render one self-contained page. It makes no request and opens offline.

    All content of a record is escaped: markup in a chunk is shown as text and never runs, and
    characters that would reorder the page or command a terminal are shown by their code.

    Args:
        entries: The records, in any order; the page shows those with the lowest scores first.
        title: The heading of the page.

    Returns:
        The HTML of the page.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    script, summaries = _read(_SCRIPT), summarise(entries)
    return (
        _environment()
        .get_template(_TEMPLATE)
        .render(
            title=title,
            script=script,
            # The Content-Security-Policy admits only the script with this hash, so that markup
            # in a chunk could not run even if it were not escaped.
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            style=_read(_STYLE),
            records=[view_record(i, e) for i, e in enumerate(sorted(entries, key=score_order))],
            view_score=view_score,
            glossary=[metric for metric in GLOSSARY.values() if _shown(metric.name, summaries)],
            columns=_columns(summaries),
            **_tiles(summaries),
            **_overview(entries),
        )
    )


def _environment() -> jinja2.Environment:
    try:
        import jinja2
    except ModuleNotFoundError:
        raise MissingExtraError("jinja2", "report") from None
    return jinja2.Environment(
        loader=jinja2.PackageLoader("claimspan", "report"),
        autoescape=True,
        finalize=_printed,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _printed(value: object) -> object:
    """What the template prints of a value; text of a record must not reorder what stands by it."""
    # Markup is ours: macros print their own values through here, script and style are files.
    return value if hasattr(value, "__html__") or not isinstance(value, str) else visible(value)


def _read(name: str) -> str:
    return resources.files("claimspan.report").joinpath(name).read_text("utf-8")


def _shown(name: str, summaries: Sequence[MetricSummary]) -> bool:
    return any(summary.metric.name == name for summary in summaries)


def _columns(summaries: Sequence[MetricSummary]) -> list[Metric]:
    return [GLOSSARY[name] for name in _ROW_METRICS if _shown(name, summaries)][:_ROW_LIMIT]


def _tiles(summaries: Sequence[MetricSummary]) -> dict[str, list[TileView]]:
    by_name = {summary.metric.name: view_tile(summary) for summary in summaries}
    return {
        "main_tiles": [by_name[name] for name in MAIN_METRICS if name in by_name],
        "other_tiles": [tile for name, tile in by_name.items() if name not in MAIN_METRICS],
    }


def _overview(entries: Sequence[ReportEntry]) -> dict[str, object]:
    claims = Counter(c.label or UNDECIDED for e in entries for c in e.response_claims)
    costs = [entry.cost_usd for entry in entries if entry.cost_usd is not None]
    return {
        "statuses": Counter(entry.status for entry in entries).most_common(),
        "judges": sorted({entry.judge for entry in entries if entry.judge}),
        "judge_calls": sum(entry.judge_calls for entry in entries),
        "cost_usd": sum(costs) if costs else None,
        "first": min((entry.started for entry in entries), default=None),
        "last": max((entry.started for entry in entries), default=None),
        "labels": [(label, claims[label]) for label in (*Label, UNDECIDED) if claims[label]],
        "n_claims": claims.total(),
    }
