"""docs/names.md has every option, score, state, attribute and metric, with a true example."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Final, cast

import pytest
from celery import Celery
from opentelemetry.sdk.trace import TracerProvider

from claimspan.cost import Budget
from claimspan.evaluation.estimate import REASONING_TOKENS_PER_CALL
from claimspan.judges import OpenAIJudge, default_judge
from claimspan.judges.choice import OPTIONS as JUDGE_OPTIONS
from claimspan.judges.choice import PROVIDERS, parse_options
from claimspan.metrics import METRICS, measure
from claimspan.verdicts import Label, Verdict, VerdictMatrices, VerdictMatrix
from claimspan_celery import CeleryDispatcher
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_phoenix import PhoenixWriter
from claimspan_tracing import Alert, Monitor, Status, semconv
from claimspan_tracing.monitor import MonitorOptions
from claimspan_tracing.options import Settings, settings_of

from instruments import INSTRUMENTS
from lc_pipelines import rag_chain
from support import MonitorFactory, Spans, attributes

ROOT: Final = Path(__file__).parents[1]
TEXT: Final = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")

NO_ATTRIBUTES: Final = re.compile(
    r"SCOPE|SPAN_\w+|OPERATION_\w+|KIND_\w+|MIME_\w+|EVENT_\w+|EVALUATION_FEEDBACK|LANGFUSE_TRACE_ID"
    r"|\w+_PREFIX|CLAIM_\w+|MESSAGE_\w+|BUFFERED_ATTRIBUTES"
)
"""Constants of the table that are no whole name of an attribute, a metric or a key."""


def rows(section: str) -> list[list[str]]:
    """The cells of the tables of a section, without their headers."""
    text = TEXT.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def bare(cell: str) -> str:
    return cell.strip("| ").removeprefix("`").removesuffix("`")


def attribute_examples() -> Iterator[tuple[str, str]]:
    """Each attribute with its example."""
    for section in re.findall(r"^## (Attributes .*|Log events)$", TEXT, re.MULTILINE):
        yield from ((bare(row[0]), bare(row[1])) for row in rows(section))


EXAMPLES: Final = dict(attribute_examples())
OPTIONS: Final = {
    bare(row[0]): (bare(row[1]), bare(row[2])) for row in rows("Options of a monitor")
}


# --- options ---


def test_every_option_is_there_once_in_the_order_of_the_code() -> None:
    assert list(OPTIONS) == list(MonitorOptions.__annotations__)


@pytest.mark.parametrize("option", MonitorOptions.__annotations__)
def test_an_option_has_its_default_and_an_example_that_a_monitor_takes(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "golden.jsonl").write_text('{"query": "q", "ground_truth": "g"}')
    app = Celery(broker="memory://", set_as_current=False)
    names: dict[str, object] = {
        **{"Alert": Alert, "Budget": Budget, "PhoenixWriter": PhoenixWriter, "app": app},
        **{"CeleryDispatcher": CeleryDispatcher, "provider": TracerProvider()},
        **{"note": print, "page": print},
    }
    default, example = OPTIONS[option]
    # The texts are those of our own page, and this test exists to run them.
    made = eval(f"Monitor({example})", names | {"Monitor": Monitor})  # noqa: S307 - see above

    assert example.startswith(f"{option}=")
    assert isinstance(made, Monitor)
    assert made.shutdown(5)
    said = cast(MonitorOptions, {option: eval(default)})  # noqa: S307 - see above
    assert comparable(settings_of(said)) == comparable(settings_of({}))


def comparable(settings: Settings) -> dict[str, object]:
    """The settings, with objects that are made anew each time by what they are made from."""
    values: dict[str, object] = {
        each.name: getattr(settings, each.name) for each in fields(settings)
    }
    for name in ("judge", "sampler", "source"):
        values[name] = type(values[name]).__name__, getattr(values[name], "rate", 0)
    return values


def test_every_option_of_a_judge_has_an_example_that_a_judge_takes() -> None:
    shown = {bare(row[0]): bare(row[1]) for row in rows("Naming and setting a judge")[4:]}
    priced = shown.pop("input_price`, `output_price").split()
    default_judge("openai:m", options=parse_options([shown["base_url"], *priced]))

    assert list(shown) == list(JUDGE_OPTIONS)
    for name, example in shown.items():
        options = {"base_url": "http://127.0.0.1:9/v1"} | parse_options([example])
        assert name in options
        judge = default_judge("openai:m", options=options)
        assert isinstance(judge, OpenAIJudge)


def test_every_provider_is_named() -> None:
    text = TEXT.partition("\n## Naming and setting a judge\n")[2].partition("\n## ")[0]

    assert [name for name in PROVIDERS if f"`{name}`" not in text] == []
    assert f"{REASONING_TOKENS_PER_CALL:,} tokens" in text


# --- scores and states ---


def test_every_score_has_the_value_of_the_example() -> None:
    block = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)[0]
    names: dict[str, dict[str, float]] = {}
    exec(compile(block, "names.md", "exec"), names)  # noqa: S102 - the text is our own page
    shown = {bare(row[0]): row[1] for row in rows("Scores")}

    assert shown == {
        name: f"{names['metrics'][name]:.2f}" if name in names["metrics"] else "none"
        for name in METRICS
    }


def test_the_score_that_needs_probabilities_has_the_value_of_its_row() -> None:
    (row,) = [row for row in rows("Scores") if bare(row[0]) == "soft_alignment"]
    entailed, contradicted = ((0.9, 0.1, 0.2, 0.8), (0.05, 0.8, 0.1, 0.1))
    labels = (Label.ENTAILED, Label.CONTRADICTED, Label.NEUTRAL, Label.ENTAILED)
    verdicts = [
        [Verdict(label=label, entailed=e, contradicted=c, neutral=1 - e - c)]
        for label, e, c in zip(labels, entailed, contradicted, strict=True)
    ]
    matrices = VerdictMatrices(ground_truth_vs_response=VerdictMatrix.of(verdicts, 1))

    value = f"{measure(matrices).metrics['soft_alignment']:.2f}"
    assert row[-1].rstrip("| ").endswith(f": {value}")


def test_every_state_has_an_example() -> None:
    shown = {bare(row[0]): row[1] for row in rows("States of a record")}

    assert set(shown) == {status.value for status in Status}
    assert all(shown.values())


# --- attributes, events and metrics ---


def test_every_name_of_the_table_of_names_is_on_the_page() -> None:
    named = {
        name: value
        for name, value in vars(semconv).items()
        if name.isupper() and isinstance(value, str) and not NO_ATTRIBUTES.fullmatch(name)
    }

    missing = {name for name, value in named.items() if value not in TEXT}
    assert missing == set()
    fields = [vars(semconv)[name] for name in vars(semconv) if re.fullmatch(r"CLAIM_\w+", name)]
    for field in {each for each in fields if not each.startswith("claimspan.")}:
        assert semconv.response_claim(0, field) in EXAMPLES
    for event in (semconv.EVENT_EVALUATION, semconv.EVENT_ALERT):
        assert f"`{event}`" in TEXT


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_of_an_attribute_is_a_value_in_json(name: str) -> None:
    assert json.loads(EXAMPLES[name]) is not None


async def test_what_a_pipeline_writes_is_on_the_page_with_values_of_the_same_kind(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    question = "Is it?"
    monitor = make_monitor(ground_truth={question: f"Answer to {question}."})
    about = {"session_id": "s", "user_id": "u", "team": "t"}
    handler = ClaimspanCallbackHandler(monitor)
    config = {"callbacks": [handler], "metadata": about, "tags": ["beta"]}
    await rag_chain().ainvoke(question, config)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - a literal of this form is a config
    assert monitor.flush(20)

    written = {name: value for span in spans.all for name, value in attributes(span).items()}
    assert len(written) > 50
    for name, value in written.items():
        example = json.loads(EXAMPLES[_on_page(name)])
        assert isinstance(value, type(example) if not isinstance(example, list) else tuple), name


def _on_page(name: str) -> str:
    """The name as the page has it: the number 0, and one score for all."""
    numbered = re.sub(r"\.\d+\.", ".0.", name)
    if numbered.startswith(semconv.GROUND_TRUTH_CLAIM_PREFIX):
        numbered = numbered.replace(".ground_truth.claim.", ".claim.")
    is_score = numbered.startswith(semconv.SCORE_PREFIX)
    return semconv.score("faithfulness") if is_score else numbered


def test_every_metric_of_opentelemetry_has_its_unit_and_an_example() -> None:
    shown = {bare(row[0]): (bare(row[1]), row[2]) for row in rows("OpenTelemetry metrics")}

    assert sorted(shown) == INSTRUMENTS
    assert all(unit and example for unit, example in shown.values())
