"""What a run says at its end, as a table and as JSON."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from claimspan.results.rows import ResultRow
from claimspan_tracing.run.session import RunSettings

__all__ = ["as_json", "as_table"]


def as_json(rows: Sequence[ResultRow], settings: RunSettings) -> str:
    """Return the means, the failures by the key of their question, and the files."""
    failed = {row.id or f"#{row.index + 1}": row.error for row in rows if row.error is not None}
    return json.dumps(
        {
            "questions": len(rows),
            "failed": failed,
            "metrics": _means(rows),
            "cost_usd": _cost(rows),
            **{name: None if path is None else str(path) for name, path in _files(settings)},
        }
    )


def as_table(rows: Sequence[ResultRow], questions: int, settings: RunSettings) -> str:
    """Return the means a line, why some failed, and where everything was written."""
    failures = Counter(row.error for row in rows if row.error is not None)
    done = len(rows) - failures.total()
    lines = [f"{done} of {questions} questions answered"]
    if settings.evaluate:
        lines[0] += " and evaluated"
    means = _means(rows)
    width = max(map(len, means), default=0)
    for name, each in means.items():
        lines.append(f"  {name:<{width}}  {each['mean']:.3f}  over {each['n']:.0f}")
    if settings.evaluate:
        lines.append(f"  cost ${_cost(rows):.4f}")
    lines += [f"failed: {count} x {why}" for why, count in failures.most_common()]
    lines += [f"{name}: {path}" for name, path in _files(settings) if path is not None]
    return "\n".join(lines)


def _means(rows: Sequence[ResultRow]) -> Mapping[str, Mapping[str, float]]:
    """Metric to its mean, over the questions where it is defined, and their number."""
    values: defaultdict[str, list[float]] = defaultdict(list)
    for row in rows:
        # A metric that is undefined for a question is missing there, and counts for nothing: not as
        # 0.
        for name, value in row.metrics.items():
            values[name].append(value)
    return {name: {"mean": sum(each) / len(each), "n": len(each)} for name, each in values.items()}


def _cost(rows: Sequence[ResultRow]) -> float:
    return sum(row.evaluation.usage.cost_usd for row in rows)


def _files(settings: RunSettings) -> list[tuple[str, object]]:
    return [
        ("output", settings.output),
        ("traces", settings.traces),
        ("report", settings.report),
    ]
