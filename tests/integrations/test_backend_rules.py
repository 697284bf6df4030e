"""Scores are there once and whole, whatever a backend makes of the spans that it is sent.

Real pipelines send over the wire; the rules of the backends are in ``backend_rules``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import product

import pytest

from backend_rules import RULES, TEMPO_ATTRIBUTE_BYTES, Rule, Shown
from otlp_receiver import Request
from pipelines import Driver
from sent_ways import DRIVERS, QUERY, WAYS, Way, late, sending

SCORE = "claimspan.score.faithfulness"
LABEL = "claimspan.evaluation.label"
KIND = "openinference.span.kind"
WHOLE = Counter({"CHAIN": 1, "RETRIEVER": 1, "LLM": 1, "EVALUATOR": 1})
SENT = [
    pytest.param(pair, id=f"{pair[0]().name}-{pair[1].__name__}") for pair in product(DRIVERS, WAYS)
]


@pytest.fixture(scope="module", params=SENT)
def way_and_requests(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Way, Sequence[Request]]]:
    """What one query sends, in one framework and one way."""
    pair: tuple[Callable[[], Driver], Way] = request.param
    make, way = pair
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("claimspan_tracing.records.table.EXPORT_RETRY_SECONDS", 0.2)
        patch.setattr("claimspan_tracing.spool.spool.LEASE_SECONDS", 0.6)
        with sending(tmp_path_factory.mktemp("sent")) as at:
            way(make(), at)
            at.provider.force_flush()
            yield way, list(at.received.requests)


@pytest.fixture
def requests(way_and_requests: tuple[Way, Sequence[Request]]) -> Sequence[Request]:
    return way_and_requests[1]


@pytest.fixture(params=RULES)
def shown(request: pytest.FixtureRequest, requests: Sequence[Request]) -> list[Shown]:
    """The trace as a backend shows it."""
    name: str = request.param
    rule: Rule = RULES[name]
    return rule(requests)


def root_of(shown: Sequence[Shown]) -> Shown:
    (root,) = [span for span in shown if not span.parent]
    return root


def claims_of(shown: Sequence[Shown]) -> Shown:
    (claims,) = [span for span in shown if span.name == "claimspan.evaluate"]
    return claims


def test_the_tree_is_whole_and_each_span_is_there_once(
    shown: Sequence[Shown], way_and_requests: tuple[Way, Sequence[Request]]
) -> None:
    root = root_of(shown)
    # Scores that come late have a span of their own, beside the one of the claims.
    carriers = Counter({"EVALUATOR": int(way_and_requests[0] is late)})

    assert Counter(str(span.attributes[KIND]) for span in shown) == WHOLE + carriers
    assert root.attributes["input.value"] == QUERY
    assert {span.trace_id for span in shown} == {root.trace_id}
    assert {span.parent for span in shown if span is not root} == {root.span_id}


def test_the_scores_are_there_once_and_are_numbers(
    shown: Sequence[Shown], way_and_requests: tuple[Way, Sequence[Request]]
) -> None:
    is_late = way_and_requests[0] is late
    (span,) = [s for s in shown if SCORE in s.attributes and s.attributes[KIND] != "LLM"]

    assert span.attributes[KIND] == ("EVALUATOR" if is_late else "CHAIN")
    value = span.attributes[SCORE]
    assert not isinstance(value, list)
    assert float(value) == 0.5
    # The one exact tag by which backends without a comparison of numbers are searched.
    assert [s.attributes.get(LABEL) for s in shown if LABEL in s.attributes] == ["low"]
    assert span.attributes[LABEL] == "low"
    status = root_of(shown).attributes["claimspan.evaluation.status"]
    assert status == ("timeout" if is_late else "evaluated")


def test_the_trace_is_as_long_as_its_root(shown: Sequence[Shown]) -> None:
    root = root_of(shown)

    assert min(span.start for span in shown) == root.start
    assert max(span.end for span in shown) == root.end
    for span in shown:
        assert span.links == ((root.span_id,) if span.attributes[KIND] == "EVALUATOR" else ())


def test_the_claims_are_whole_texts_and_their_evidence_is_whole_json(
    shown: Sequence[Shown],
) -> None:
    evidence = claims_of(shown).attributes
    claims = {n: v for n, v in evidence.items() if n.startswith("claimspan.claim.")}
    lists = [v for n, v in claims.items() if n.endswith(("supported_by", "contradicted_by"))]

    assert len([n for n in claims if n.endswith(".text")]) == 4
    assert len(lists) == 2
    for value in claims.values():
        assert isinstance(value, str)
        assert "\N{REPLACEMENT CHARACTER}" not in value
        assert len(value.encode("utf-8")) <= TEMPO_ATTRIBUTE_BYTES
    for text in lists:
        ids = json.loads(str(text))
        assert len(ids) > 10
        assert all(id_.startswith("a-document-with-a-long-id-") for id_ in ids)


def test_what_is_sent_again_has_the_same_ids(
    way_and_requests: tuple[Way, Sequence[Request]], shown: Sequence[Shown]
) -> None:
    way, requests = way_and_requests
    ids = [
        s.span_id
        for request in requests
        for r in request.message.resource_spans
        for scope in r.scope_spans
        for s in scope.spans
    ]

    copies = len(ids) / len(set(ids))
    assert (copies > 1) == (way.__name__ == "sent_again")
    assert len(set(ids)) == len(shown)
