"""The records of a report link to their traces, and to nothing else."""

from __future__ import annotations

import re
from typing import Final

import pytest

from claimspan.errors import ConfigError
from claimspan.report import (
    ReportEntry,
    ReportSystem,
    TraceLinks,
    compare_entries,
    outline,
    render_comparison,
    render_markdown,
    render_report,
)

TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN: Final = "00f067aa0ba902b7"
TEMPLATE: Final = "http://localhost:6006/projects/x/traces/{trace_id}"
LINK: Final = re.compile(r'<a href="([^"#][^"]*)"([^>]*)>')


def entry(**fields: object) -> ReportEntry:
    defaults: dict[str, object] = {"query": "q", "response": "r", "status": "evaluated"}
    return ReportEntry.model_validate(defaults | {"trace_id": TRACE, "span_id": SPAN} | fields)


# --- the address ---


@pytest.mark.parametrize(
    ("template", "address"),
    [
        (TEMPLATE, f"http://localhost:6006/projects/x/traces/{TRACE}"),
        (
            "HTTPS://t.example/#/t/tr-{trace_id}?x=a%20b",
            f"HTTPS://t.example/#/t/tr-{TRACE}?x=a%20b",
        ),
        ("https://[::1]:1/{trace_id}/{span_id}", f"https://[::1]:1/{TRACE}/{SPAN}"),
        ("http://t/{trace_id}/{trace_id}", f"http://t/{TRACE}/{TRACE}"),
        ("http://t?id={trace_id}", f"http://t?id={TRACE}"),
    ],
)
def test_the_ids_of_a_record_stand_where_the_template_names_them(
    template: str, address: str
) -> None:
    assert TraceLinks(template).url(entry()) == address


@pytest.mark.parametrize(
    "template",
    [
        "http://localhost:6006/traces",
        "http://localhost:6006/traces/{span_id}",
        "http://t/{trace_id}/{user}",
        "http://t/{trace_id}/{}",
        "http://t/{trace_id.__class__}",
        "http://t/{trace_id[0]}",
        "http://t/{trace_id!r}",
        "http://t/{trace_id:>99999999}",
        "http://t/{trace_id:{span_id}}",
        "http://t/{trace_id",
        "http://t/{trace_id}}",
        "http://t/{{trace_id}}",
        "http://t/{{{trace_id}}}",
        "javascript:alert('{trace_id}')",
        "ftp://t/{trace_id}",
        "file:///tmp/{trace_id}",
        "//t/{trace_id}",
        "/traces/{trace_id}",
        "{trace_id}://t/",
        "",
        "http:{trace_id}",
        "http:///{trace_id}",
        "http://{trace_id}.example/",
        "http://t:{trace_id}/",
        "http://[::1/{trace_id}",
        "http://me:pw@t/{trace_id}",
        "http://t/ {trace_id}",
        " http://t/{trace_id}",
        "java\nscript://t/{trace_id}",
        "http://t/\u202e{trace_id}",
        'http://t/"onclick=x{trace_id}',
        "http://t/<script>{trace_id}",
        "http://t\\@evil/{trace_id}",
        "http://t/{trace_id:}",
        "http://t/{trace_id}/{SPAN_ID}",
        "http://t",
    ],
)
def test_a_template_that_cannot_work_is_refused_with_what_one_has_to_be(template: str) -> None:
    with pytest.raises(ConfigError, match="behind the host write"):
        TraceLinks(template)


def test_what_is_said_of_a_template_does_not_repeat_a_key_in_it() -> None:
    with pytest.raises(ConfigError) as raised:
        TraceLinks("https://t/{trace}?key=sesame")

    assert "sesame" not in str(raised.value)


@pytest.mark.parametrize("trace_id", ["", "..", "a/../b", "x y", "\u202e", "é", "0" * 65, "٣"])
def test_what_is_no_id_of_a_trace_has_no_address(trace_id: str) -> None:
    assert TraceLinks(TEMPLATE).url(entry(trace_id=trace_id)) is None


def test_a_record_without_the_span_that_the_template_names_has_no_address() -> None:
    assert TraceLinks(f"{TEMPLATE}/{{span_id}}").url(entry(span_id="")) is None


# --- the page ---


def test_a_record_of_a_page_opens_its_trace_in_a_new_tab() -> None:
    page = render_report([entry()], links=TraceLinks(TEMPLATE))

    ((address, rest),) = LINK.findall(page)
    assert address == f"http://localhost:6006/projects/x/traces/{TRACE}"
    assert 'target="_blank"' in rest
    assert 'rel="noopener"' in rest


def test_an_address_is_escaped_on_the_page() -> None:
    page = render_report([entry()], links=TraceLinks("http://t/?a='1'&lt={trace_id}"))

    assert f'href="http://t/?a=&#39;1&#39;&amp;lt={TRACE}"' in page


@pytest.mark.parametrize(
    ("trace_id", "template"), [("", TEMPLATE), ("</a><b>", TEMPLATE), (TRACE, None)]
)
def test_a_record_without_a_trace_or_a_template_has_no_link(
    trace_id: str, template: str | None
) -> None:
    links = TraceLinks(template) if template else None

    page = render_report([entry(trace_id=trace_id)], links=links)

    assert not LINK.findall(page)
    assert "<b>" not in page.partition("<main>")[2].partition("glossary")[0]


def test_a_link_needs_no_script() -> None:
    linked, plain = (
        render_report([entry()], links=links) for links in (TraceLinks(TEMPLATE), None)
    )

    assert linked.count("<script") == plain.count("<script")
    assert not re.search(r"<a [^>]*\bon\w+=", linked)


def test_each_system_of_a_comparison_links_its_own_trace() -> None:
    other = TRACE[::-1]
    systems = [
        ReportSystem("plain", (entry(scores={"f1": 0.25}),)),
        ReportSystem("tuned", (entry(trace_id=other, scores={"f1": 0.5}),)),
        ReportSystem("filed", (entry(trace_id="", scores={"f1": 0.5}),)),
    ]
    page = render_comparison(
        systems, compare_entries(systems, progress=False), links=TraceLinks(TEMPLATE)
    )

    assert [address.rpartition("/")[2] for address, _ in LINK.findall(page)] == [TRACE, other]


# --- Markdown and JSON ---


def test_an_answer_in_markdown_links_its_trace() -> None:
    links = TraceLinks("http://t/(a)?x=1&copy;={trace_id}")
    entries = (entry(scores={"f1": 0.0}), entry(trace_id="", query="filed", scores={"f1": 1.0}))

    text = render_markdown(outline([ReportSystem("", entries)], links=links))

    assert text.count("[trace]") == 1
    assert f"[trace](<http://t/(a)?x=1&amp;copy;={TRACE}>)\n" in text


def test_json_has_the_address_of_a_trace_where_there_is_one() -> None:
    entries = (entry(scores={"f1": 0.0}), entry(trace_id="", scores={"f1": 1.0}))

    report = outline([ReportSystem("", entries)], links=TraceLinks(TEMPLATE))

    found = [answer.trace_url for question in report.worst for answer in question.answers]
    assert found == [f"http://localhost:6006/projects/x/traces/{TRACE}", None]
    assert "[trace]" not in render_markdown(outline([ReportSystem("", entries)]))
