"""Alerts: found within some records, rarely by chance, said once, and bounded in memory."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable

import pytest

from claimspan.errors import ConfigError
from claimspan.evaluation.selection import FunctionMetric, Selection
from claimspan_tracing import Alert, AlertEvent, AlertState
from claimspan_tracing.alert import MAX_SAMPLES, Sample, Window, check_measured
from claimspan_tracing.estimates import Observation, effective_size, estimate_mean

Draw = Callable[[random.Random], float]

BELOW = Alert("faithfulness", below=0.8, window_seconds=1000.0)


def feed(
    window: Window, values: Iterable[float], *, start: float = 0.0, step: float = 1.0
) -> list[AlertEvent]:
    """Give a window one value each ``step`` seconds; returns what it says."""
    events: list[AlertEvent] = []
    for i, value in enumerate(values):
        at = start + i * step
        event = window.add(Sample(at, Observation(f"{at}", 1.0, value)))
        events += [] if event is None else [event]
    return events


def states(events: Iterable[AlertEvent]) -> list[AlertState]:
    return [event.state for event in events]


def zero_or_one(mean: float) -> Draw:
    return lambda numbers: float(numbers.random() < mean)


def five_claims(mean: float) -> Draw:
    return lambda numbers: sum(numbers.random() < mean for _ in range(5)) / 5


# --- chance ---


@pytest.mark.no_cover  # a thousand windows cover what one does
@pytest.mark.parametrize(
    ("alert", "draw", "weights"),
    [
        (Alert("faithfulness", below=0.8), zero_or_one(0.8), (1.0,)),
        (Alert("faithfulness", below=0.8), five_claims(0.8), (1.0,)),
        (Alert("faithfulness", below=0.8), zero_or_one(0.82), (1.0,)),
        (Alert("faithfulness", below=0.8), zero_or_one(0.8), (1.0, 1.0, 20.0)),
        (Alert("hallucination", above=0.1), zero_or_one(0.1), (1.0, 20.0)),
        # The hard case: few ones, whose number is lopsided to the side of the alarm.
        (Alert("recall", below=0.1), zero_or_one(0.1), (1.0,)),
    ],
    ids=["at", "claims", "slightly good", "weighted", "above", "lopsided"],
)
def test_a_mean_at_its_threshold_brings_a_false_alarm_in_few_of_1000_windows(
    alert: Alert, draw: Draw, weights: tuple[float, ...]
) -> None:
    numbers = random.Random(7)
    false = 0
    for _ in range(1_000):
        window, fired = Window(alert), False
        for i in range(150):  # a window that fills, and half of which is replaced
            at, weight = i * alert.window_seconds / 100, numbers.choice(weights)
            event = window.add(Sample(at, Observation(str(i), weight, draw(numbers))))
            fired = fired or event is not None
        false += fired

    # Two standard deviations above the bound, which is for means that are normally distributed.
    bound = (1 - alert.confidence) / 2
    assert false / 1_000 <= bound + 2 * math.sqrt(bound * (1 - bound) / 1_000)


@pytest.mark.parametrize(("mean", "records"), [(0.5, 80), (0.6, 130)])
def test_a_real_drop_is_found_within_the_stated_number_of_records(
    mean: float, records: int
) -> None:
    found = 0
    for seed in range(200):
        numbers = random.Random(seed)
        values = [float(numbers.random() < mean) for _ in range(records)]
        found += bool(feed(Window(BELOW), values, step=0.1))

    assert found >= 0.95 * 200


def test_a_drop_in_a_window_full_of_good_records_is_found_once_it_has_moved_the_mean() -> None:
    numbers = random.Random(3)
    window = Window(BELOW)
    assert feed(window, [float(numbers.random() < 0.95) for _ in range(1_000)]) == []

    events = feed(window, [float(numbers.random() < 0.4) for _ in range(1_000)], start=1_000.0)

    assert states(events) == [AlertState.FIRING]
    assert events[0].high < 0.8
    assert 0.6 < events[0].mean < 0.8


def test_fewer_records_than_asked_for_never_fire_however_bad() -> None:
    window = Window(BELOW)

    assert feed(window, [0.0] * 29) == []
    assert states(feed(window, [0.0] * 10, start=29.0)) == [AlertState.FIRING]


def test_a_few_heavy_records_do_not_count_as_many() -> None:
    window = Window(BELOW)

    events = [
        window.add(Sample(float(i), Observation(str(i), 1000.0 if i % 20 == 0 else 1.0, 0.0)))
        for i in range(200)
    ]

    assert effective_size([1000.0] * 10 + [1.0] * 190) < 30
    assert events == [None] * 200


def test_the_mean_is_that_of_the_traffic_and_not_of_the_sample() -> None:
    # Half of the sample is bad, but the good ones stand for twenty each.
    window = Window(Alert("faithfulness", below=0.8, window_seconds=10_000.0))
    events = [
        window.add(Sample(float(i), Observation(str(i), *((20.0, 1.0) if i % 2 else (1.0, 0.0)))))
        for i in range(400)
    ]

    assert events == [None] * 400


# --- what is said, and how often ---


def test_an_alert_fires_once_resolves_once_and_may_then_fire_again() -> None:
    window = Window(BELOW)

    events = feed(window, [0.5, 0.6] * 300, start=0.0)
    assert states(events) == [AlertState.FIRING]
    events = feed(window, [1.0] * 2_000, start=600.0)
    assert states(events) == [AlertState.RESOLVED]
    assert events[0].mean >= 0.8
    events = feed(window, [0.5, 0.6] * 1_000, start=2_600.0)
    assert states(events) == [AlertState.FIRING]


def test_an_alert_that_goes_on_is_said_again_after_its_cooldown() -> None:
    alert = Alert("faithfulness", below=0.8, window_seconds=100.0, cooldown_seconds=500.0)

    events = feed(Window(alert), [0.5, 0.6] * 600)

    assert states(events) == [AlertState.FIRING] * 3


def test_scores_that_are_all_the_same_fire_too() -> None:
    assert states(feed(Window(BELOW), [0.5] * 60)) == [AlertState.FIRING]
    assert feed(Window(BELOW), [0.8] * 60) == []


def test_a_high_mean_fires_where_little_is_good() -> None:
    alert = Alert("hallucination", above=0.1, window_seconds=1000.0)

    (event,) = feed(Window(alert), [0.0, 1.0] * 50)

    assert event.state is AlertState.FIRING
    assert event.low > 0.1


def test_the_message_says_what_is_wrong_in_one_line() -> None:
    (event,) = feed(Window(BELOW), [0.5] * 60)

    assert event.message.startswith("alert firing: faithfulness below 0.8: mean 0.500 (0.")
    assert event.message.endswith("of 30 records in the last 1000 s")


# --- the window ---


def test_what_has_left_the_window_counts_no_more() -> None:
    window = Window(BELOW)
    feed(window, [0.0] * 29)

    assert feed(window, [1.0] * 200, start=2_000.0) == []


def test_a_window_keeps_a_bounded_number_of_records() -> None:
    alert = Alert("faithfulness", below=0.8, window_seconds=1e9)
    window = Window(alert)
    feed(window, [1.0] * MAX_SAMPLES, step=0.001)
    # All records that were good would outweigh these for long, were they still there.
    events = feed(window, [0.0] * MAX_SAMPLES, start=1000.0, step=0.001)

    assert states(events) == [AlertState.FIRING]
    assert events[0].records == MAX_SAMPLES


# --- estimates ---


def test_a_stricter_confidence_gives_a_wider_interval() -> None:
    sample = [Observation(str(i), 1.0, i % 4 / 3) for i in range(40)]
    usual, strict = estimate_mean(sample), estimate_mean(sample, 0.9975)

    assert usual.mean == strict.mean
    assert strict.low is not None
    assert strict.high is not None
    assert usual.low is not None
    assert usual.high is not None
    assert strict.low < usual.low < usual.high < strict.high
    # Student's t with 39 degrees of freedom: 2.0227 at 97.5 %, 3.2322 at 99.875 %.
    assert (strict.high - strict.mean) / (usual.high - usual.mean) == pytest.approx(
        3.2322 / 2.0227, abs=1e-3
    )


def test_equal_scores_leave_room_for_others_on_both_sides() -> None:
    found = estimate_mean([Observation(str(i), 1.0, 0.5) for i in range(10)])
    least = 0.025**0.1

    assert found.low == pytest.approx(0.5 * least)
    assert found.high == pytest.approx(0.5 * least + 1 - least)


# --- what cannot work ---


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Alert("", below=0.8), "give a name, such as 'faithfulness'"),
        (lambda: Alert("mean of f1", below=0.8), "give a name, such as 'faithfulness'"),
        (lambda: Alert(None, below=0.8), "give a name"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - what is refused
        (lambda: Alert("faithfulness"), "below=... or above=..."),
        (lambda: Alert("faithfulness", below=0.8, above=0.9), "one threshold"),
        (lambda: Alert("faithfulness", below=80), "0.0 to 1.0.* such as 0.8 for 80 %"),
        (lambda: Alert("faithfulness", below="80%"), "such as 0.8 for 80 %"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - what is refused
        (lambda: Alert("faithfulness", above=-0.1), "0.0 to 1.0"),
        (lambda: Alert("faithfulness", above=math.inf), "0.0 to 1.0"),
        (lambda: Alert("faithfulness", below=0.0), "can be beyond"),
        (lambda: Alert("faithfulness", above=1.0), "can be beyond"),
        (lambda: Alert("faithfulness", below=math.nan), "0.0 to 1.0"),
        (lambda: Alert("faithfulness", below=True), "0.0 to 1.0"),
        (lambda: Alert("faithfulness", below=0.8, window_seconds=0), "window_seconds"),
        (lambda: Alert("faithfulness", below=0.8, window_seconds=math.nan), "window_seconds"),
        (lambda: Alert("faithfulness", below=0.8, cooldown_seconds=-1), "cooldown_seconds"),
        (lambda: Alert("faithfulness", below=0.8, min_records=3), "min_records"),
        (lambda: Alert("faithfulness", below=0.8, confidence=95), "confidence.* 0.95 for 95 %"),
        (lambda: Alert.of_state("queue_full", above=0.1), "give one of abandoned"),
        (lambda: Alert.of_state("broken", above=0.1), "give one of abandoned"),
        (lambda: Alert.of_state("judge_error"), "below=... or above=..."),
    ],
)
def test_an_alert_that_cannot_work_is_refused_with_what_to_do(
    make: Callable[[], Alert], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        make()


@pytest.mark.parametrize(
    ("metric", "says"),
    [
        ("faithfullness", "unknown metric 'faithfullness': did you mean 'faithfulness'"),
        ("polit", "did you mean 'polite'"),
        ("hallucination", "'hallucination', which is not measured: add it to metrics"),
        ("quality", "give one of faithfulness, .*, low, "),
    ],
)
def test_an_alert_on_a_score_that_is_not_made_is_refused_with_what_was_meant(
    metric: str, says: str
) -> None:
    selection = Selection.of(["default", FunctionMetric(lambda _: 1.0, name="polite")])

    check_measured([Alert("f1", below=0.5), Alert("polite", below=0.5)], selection)
    check_measured([Alert("low", above=0.2), Alert.of_state("timeout", above=0.2)], selection)
    with pytest.raises(ConfigError, match=says):
        check_measured([Alert(metric, below=0.5)], selection)


def test_an_alert_is_called_what_it_watches_unless_it_has_a_name() -> None:
    assert Alert("f1", below=0.5, route="support").name == "f1 below 0.5 on support"
    assert Alert.of_state("timeout", above=0.25).name == "share of timeout above 0.25"
    assert Alert("f1", below=0.5, name="quality").name == "quality"
