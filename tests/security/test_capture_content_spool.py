"""Rows of a process that captures no content, taken up by one that does. Row P1 of the matrix."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing.job import KeptSpan
from claimspan_tracing.spool import Spool
from claimspan_tracing.testing import InMemoryMonitor

from lc_pipelines import rag_chain
from spool_jobs import job

CANARY = "qxcanary"


@pytest.mark.parametrize("is_held", [True, False])
def test_a_row_whose_content_may_not_be_written_shows_none_in_any_process(
    tmp_path: Path, is_held: bool
) -> None:
    path = tmp_path / "spool.db"
    spool = Spool(path)
    record = job().record.model_copy(update={"response": f"{CANARY}."})
    kept = (KeptSpan(span_id=job().span_id),)
    lease = spool.add(
        replace(
            job(), record=record, capture_content=False, kept_spans=kept, root_ended=not is_held
        )
    )
    assert lease is not None
    spool.close()

    with InMemoryMonitor(spool=path) as monitor:
        config = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
        rag_chain().invoke("q", config)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - a config may be any mapping
        monitor.flush(20)
        spans = "".join(span.to_json() for span in monitor.spans())
        found = [each for each in monitor.records() if each.job.trace_id == job().trace_id]

    assert f"0x{job().trace_id}" in spans
    assert CANARY not in spans
    assert all(CANARY not in each.job.to_json() + each.outcome.to_json() for each in found)
