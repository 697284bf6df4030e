"""A trace that was sampled at its head counts for those that were left out there."""

from __future__ import annotations

import pytest

from claimspan_serve._judging import AfterHead, head_rate
from claimspan_tracing.options import settings_of


@pytest.mark.parametrize(
    ("state", "rate"),
    [
        ("", 1.0),
        ("ot=th:0", 1.0),
        ("ot=th:8", 0.5),
        ("ot=th:c", 0.25),
        ("ot=th:fd70a3d70a3d71", 0.01),
        ("vendor=1, ot=rv:123456789abcde;th:c ,other=2", 0.25),
        ("ot=p:8;r:62", 1.0),
        ("not=th:c", 1.0),
        ("ot=th:xyz", 1.0),
        ("ot=th:123456789abcdef", 1.0),
        ("ot=xth:c", 1.0),
    ],
)
def test_the_rate_of_the_head_is_read_as_opentelemetry_writes_it(state: str, rate: float) -> None:
    assert head_rate(state) == pytest.approx(rate)


def test_whoever_gives_no_sample_is_told_what_judging_costs_also_behind_the_head() -> None:
    assert settings_of({"sample": AfterHead(None)}).tells_cost
    assert not settings_of({"sample": AfterHead(1.0)}).tells_cost
