"""Where no text may be written: names, ids and classes that are made of one. Row P3."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from langchain_core.documents import Document

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing.testing import CapturedRecord, InMemoryMonitor

from lc_pipelines import Shelf, rag_chain

TEXTS = ["How long is the Drava?", "jan.novak@example.com", "多瑙河有多长", "Drava/jan novak.pdf"]


def asked(
    name: str = "support", *, ids: list[str] | None = None, error: Exception | None = None
) -> tuple[str, CapturedRecord]:
    """All that is written of a query, and its record."""
    found = [Document(id=id_, page_content="The Drava is 725 km long.") for id_ in ids or ["doc-0"]]
    with InMemoryMonitor(capture_content=False) as monitor:
        config = {"callbacks": [ClaimspanCallbackHandler(monitor)], "run_name": name}
        with suppress(Exception):
            rag_chain(retriever=Shelf(documents=found, error=error)).invoke("q", config)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - a config may be any mapping
        record = monitor.only_record()
        written = [span.to_json() for span in monitor.spans()]
        written += [record.job.to_json(), record.outcome.to_json()]
    return json.dumps([json.loads(each) for each in written], ensure_ascii=False), record


@pytest.mark.parametrize("text", TEXTS)
def test_a_run_that_is_called_by_a_text_is_called_otherwise(text: str) -> None:
    written, record = asked(text)

    assert text not in written
    assert record.status == "evaluated"
    assert record.job.route == "[not captured]"


@pytest.mark.parametrize("text", TEXTS)
def test_chunks_whose_ids_are_texts_stay_apart(text: str) -> None:
    written, record = asked(ids=[text, "doc-1", f"{text} 2"])

    assert text not in written
    assert record.status == "evaluated"
    kept = ["[not captured] 1", "doc-1", "[not captured] 2"]
    assert [chunk.id for chunk in record.job.record.chunks] == kept
    assert '"retrieval.documents.2.document.id": "[not captured] 2"' in written


@pytest.mark.parametrize("text", TEXTS)
def test_an_exception_whose_class_is_called_by_a_text_has_another_class(text: str) -> None:
    error: Exception = type(text, (Exception,), {})("no such shelf")

    written, record = asked(error=error)

    assert text not in written
    assert record.status == "app_error"
    assert '"error.type": "_OTHER"' in written


def test_names_as_code_has_them_and_ids_that_are_numbers_stay() -> None:
    ids = ["6f1b0c9e-7f0e-4d7a-9d0c-0a4c3b2d1e0f", "doc1#chunk2", "17", "page 3"]

    written, record = asked("support.de", ids=ids, error=None)
    failed, _ = asked(error=LookupError("no such shelf"))

    assert record.job.route == "support.de"
    assert [chunk.id for chunk in record.job.record.chunks] == ids
    assert '"error.type": "LookupError"' in failed
    assert "[not captured] 1" not in written
