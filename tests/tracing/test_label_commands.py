"""Claims of traces are labelled and calibrated as those of results are."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing.testing import InMemoryMonitor
from claimspan_tracing.trace_file.writing import OtlpFileExporter

from command_line import invoke, run
from lc_pipelines import rag_chain


def write_traces(path: Path, n: int) -> Path:
    with InMemoryMonitor() as monitor:
        monitor.provider.add_span_processor(SimpleSpanProcessor(OtlpFileExporter(path)))
        handler = ClaimspanCallbackHandler(monitor)
        for index in range(n):
            rag_chain().invoke(f"question {index}", {"callbacks": [handler]})
    return path


def test_labels_of_traces_are_joined_by_trace_id_and_measured(tmp_path: Path) -> None:
    traces, page = write_traces(tmp_path / "traces.jsonl", 6), tmp_path / "label.html"
    with traces.open("a") as file:
        file.write('{"torn')

    told = invoke("label", str(traces), "-o", str(page))

    assert "1 lines that are not JSON" in told.output
    data = json.loads(page.read_text("utf-8").partition('id="data">')[2].partition("</script>")[0])
    records = {claim["cells"][0] for claim in data["claims"]}
    assert len(records) == 6
    assert all(len(record) == 32 for record in records)
    labels = tmp_path / "labels.csv"
    with labels.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["trace_id", "claim", "label"])
        writer.writerows((c["cells"][0], c["text"], "E") for c in data["claims"])
    found = json.loads(
        invoke("calibrate", str(traces), str(labels), "--json").stdout.splitlines()[-1]
    )
    assert found["labels"] == len(data["claims"])
    assert found["calibration"] is None
    assert found["warnings"]


def test_a_page_to_label_on_can_be_read_by_its_owner_alone(tmp_path: Path) -> None:
    traces, page = write_traces(tmp_path / "traces.jsonl", 1), tmp_path / "label.html"

    told = json.loads(run("label", str(traces), "-o", str(page), "--json"))

    assert told["page"] == str(page)
    assert told["random"] == told["claims"]
    assert page.stat().st_mode & 0o077 == 0
