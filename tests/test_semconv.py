"""One table holds every attribute name, no name twice, and the names are those of the design."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from claimspan.metrics import METRICS
from claimspan_tracing import semconv
from claimspan_tracing.model_calls import PROVIDERS, provider_of

ROOT: Final = Path(__file__).parents[1]
TABLE: Final = ROOT / "tracing" / "claimspan_tracing" / "semconv.py"
DIALECTS: Final = ROOT / "integrations" / "claimspan_openinference" / "_dialects.py"
"""What others call the same, each name with what it means in our table."""

ATTRIBUTE_NAME: Final = re.compile(
    r"""
    ( claimspan\.($|[a-z])
    | gen_ai\.
    | openinference\.
    | llm\.
    | retrieval\.documents
    | evaluations\.
    | (input|output)\.(value|mime_type)\b
    | error\.type\b
    )\S*
    """,
    re.VERBOSE,
)

NOT_ATTRIBUTES: Final = {
    "claimspan.evaluate": "name of a Celery task",
    "claimspan.chat_models": "entry-point group of the adapters of frameworks' models",
    "claimspan.checks": "entry-point group of what `claimspan doctor` looks at",
    "claimspan.commands": "entry-point group of the command line",
    "claimspan.retrievers": "entry-point group of the adapters of frameworks' retrievers",
    "claimspan.sinks": "entry-point group of the writers to backends",
    "claimspan.pipelines": "entry-point group of what `claimspan run` can run",
    "openinference.instrumentation": "package of the instrumentations of others",
}
"""Strings of other files that look like an attribute name, and what they are."""


def strings_of(source: str) -> set[str]:
    """Every string constant of a source, parts of f-strings too, docstrings not."""
    tree = ast.parse(source)
    described = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in described
    }


def attribute_names(source: str) -> set[str]:
    """The strings of a source that look like the name of an attribute."""
    found = {text for text in strings_of(source) if ATTRIBUTE_NAME.fullmatch(text)}
    return found - set(NOT_ATTRIBUTES)


def other_sources() -> Iterator[Path]:
    for folder in ("core", "tracing", "integrations", "examples"):
        yield from sorted((ROOT / folder).rglob("*.py"))


def constants() -> dict[str, str]:
    """Name to value of every constant of the table."""
    values = vars(semconv).items()
    return {name: value for name, value in values if name.isupper() and isinstance(value, str)}


# --- the only table ---


def test_no_attribute_name_stands_outside_of_the_table() -> None:
    paths = [path for path in other_sources() if path not in (TABLE, DIALECTS)]

    assert len(paths) > 20
    stray = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in paths
        for name in attribute_names(path.read_text(encoding="utf-8"))
    }
    assert stray == set()


def test_the_names_of_other_dialects_are_none_of_our_own() -> None:
    found = attribute_names(DIALECTS.read_text("utf-8"))

    assert found
    assert {*constants().values()}.isdisjoint(found)


def test_every_tracer_meter_and_logger_comes_from_the_module_of_our_scope() -> None:
    makes = re.compile(r"\bget_(tracer|meter|logger)\(")
    texts = {path.name: path.read_text("utf-8") for path in other_sources()}
    # Celery has a function of the same name.
    ours = {name: text for name, text in texts.items() if "from celery.utils.log" not in text}
    found = [name for name, text in ours.items() if makes.search(text)]

    assert found == ["scope.py"]


def test_every_allowed_string_is_still_in_use() -> None:
    written = {text for path in other_sources() for text in strings_of(path.read_text("utf-8"))}

    assert set(NOT_ATTRIBUTES) <= written


def test_the_check_finds_what_the_table_has() -> None:
    found = attribute_names(TABLE.read_text(encoding="utf-8"))

    assert {semconv.JUDGE_NAME, semconv.GEN_AI_WORKFLOW_NAME, semconv.INPUT_VALUE} <= found
    assert "retrieval.documents." in found  # part of an f-string


@pytest.mark.parametrize(
    "source",
    [
        'span.set_attribute("claimspan.score.precision", 1.0)',
        'name = f"claimspan.{metric}"',
        'name = f"claimspan.score.{metric}"',
        'def f():\n    return {"gen_ai.request.model": 1}',
        'if key == "error.type":\n    pass',
        'key.startswith("llm.")',
        'X = "openinference.span.kind"',
        'x = f"retrieval.documents.{index}.document.id"',
        'x = f"evaluations.{index}"',
        'x = ["input.value", 1]',
        'x = "output.value"',
    ],
)
def test_a_stray_name_is_found(source: str) -> None:
    assert len(attribute_names(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        '"""claimspan.score.precision"""',
        'X = 1\n"""gen_ai.request.model"""',
        'group = "claimspan.commands"',
        'print(f"claimspan: {error}")',
        'raise ValueError("llm. is no name, this is a sentence")',
        "import claimspan.errors",
        "x = error.type",
    ],
)
def test_what_is_no_name_is_let_through(source: str) -> None:
    assert attribute_names(source) == set()


# --- the table ---


def test_no_two_names_stand_for_the_same_string() -> None:
    of_spans = ("SPAN_", "OPERATION_")  # a span is called after its operation
    values = [value for name, value in constants().items() if not name.startswith(of_spans)]

    assert [value for value, times in Counter(values).items() if times > 1] == []


def test_every_name_is_ascii_without_spaces() -> None:
    names = [
        *constants().values(),
        semconv.document(0, "id"),
        semconv.annotation(0, "name"),
    ]

    assert [name for name in names if not re.fullmatch(r"[!-~]+", name)] == []


@pytest.mark.parametrize(
    ("constant", "name"),
    [
        ("EVALUATION_STATUS", "claimspan.evaluation.status"),
        ("EVALUATION_REASON", "claimspan.evaluation.reason"),
        ("EVALUATION_UNDEFINED", "claimspan.evaluation.undefined"),
        ("CLAIMS_RESPONSE", "claimspan.claims.response.count"),
        ("CLAIMS_GROUND_TRUTH", "claimspan.claims.ground_truth.count"),
        ("CLAIMS_UNKNOWN", "claimspan.claims.unknown.count"),
        ("CLAIMS_CONFLICTING", "claimspan.claims.conflicting.count"),
        ("CHUNKS_COUNT", "claimspan.chunks.count"),
        ("CHUNKS_RECORDED", "claimspan.chunks.recorded"),
        ("JUDGE_NAME", "claimspan.judge.name"),
        ("JUDGE_VERSION", "claimspan.judge.version"),
        ("JUDGE_CALLS", "claimspan.judge.calls"),
        ("JUDGE_TOKENS_INPUT", "claimspan.judge.tokens.input"),
        ("JUDGE_TOKENS_OUTPUT", "claimspan.judge.tokens.output"),
        ("JUDGE_COST", "claimspan.judge.cost_usd"),
        ("JUDGE_SECONDS", "claimspan.judge.seconds"),
        ("JUDGE_NOTES", "claimspan.judge.notes"),
        ("SAMPLE_RATE", "claimspan.sample.rate"),
        ("SAMPLE_WEIGHT", "claimspan.sample.weight"),
        ("SAMPLE_REASON", "claimspan.sample.reason"),
        ("GEN_AI_OPERATION_NAME", "gen_ai.operation.name"),
        ("GEN_AI_REQUEST_MODEL", "gen_ai.request.model"),
        ("GEN_AI_RETRIEVAL_DOCUMENTS", "gen_ai.retrieval.documents"),
        ("EVENT_EVALUATION", "gen_ai.evaluation.result"),
        ("OPENINFERENCE_SPAN_KIND", "openinference.span.kind"),
        ("INPUT_VALUE", "input.value"),
        ("OUTPUT_VALUE", "output.value"),
        ("ERROR_TYPE", "error.type"),
    ],
)
def test_the_names_of_the_design_stand(constant: str, name: str) -> None:
    assert constants()[constant] == name


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_has_its_score(metric: str) -> None:
    assert semconv.score(metric) == f"claimspan.score.{metric}"


@pytest.mark.parametrize(
    ("field", "name"),
    [
        (semconv.CLAIM_TEXT, "claimspan.claim.3.text"),
        (semconv.CLAIM_LABEL, "claimspan.claim.3.label"),
        (semconv.CLAIM_SUPPORTED_BY, "claimspan.claim.3.supported_by"),
    ],
)
def test_a_claim_of_the_response_has_its_number_in_its_names(field: str, name: str) -> None:
    assert semconv.response_claim(3, field) == name


def test_claims_of_the_ground_truth_have_names_of_their_own() -> None:
    name = semconv.ground_truth_claim(0, semconv.CLAIM_TEXT)

    assert name == "claimspan.ground_truth.claim.0.text"


def test_chunks_and_scores_have_the_names_of_openinference() -> None:
    assert semconv.document(2, "content") == "retrieval.documents.2.document.content"
    assert semconv.annotation(1, "score") == "evaluations.1.evaluation.score"


# --- the conventions of others ---

CONVENTIONS: Final = json.loads((ROOT / "tests" / "conventions.json").read_text("utf-8"))
"""The names of both conventions, with the version that they were taken from."""

DEVIATIONS: Final = {
    "gen_ai.evaluation.target": "an extension that Logfire groups evaluations by",
    "gen_ai.evaluation.evaluator.version": "as above: scores of two versions are not comparable",
    "error.type": "of OpenTelemetry's general conventions",
}
"""Names that neither of the two has."""

OTHER_OPERATIONS: Final = {
    "evaluation": "no operation is predefined for the judging of an answer",
    "rerank": "only read: some instrumentations write it",
}

OTHER_PROVIDERS: Final = {"ibm": "OpenInference has no name for it"}


def names_on_the_page() -> set[str]:
    """The attributes that docs/names.md lists; what is written is held against it elsewhere."""
    page = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")
    sections = re.findall(
        r"^## (?:Attributes|Log events).*?(?=^## )", page, re.MULTILINE | re.DOTALL
    )
    listed = re.findall(r"^\| `([^`]+)` \|", "".join(sections), re.MULTILINE)
    return {name for name in listed if not name.startswith("claimspan.")}


def test_every_name_is_one_of_the_conventions_or_a_deviation_with_its_reason() -> None:
    known = {name for each in CONVENTIONS.values() for name in each["attributes"]}
    names = names_on_the_page()

    assert len(names) > 40
    # A list of OpenInference's has the number of the item between two names.
    unknown = {n for n in names if not known.issuperset(re.split(r"\.\d+\.", n))}
    assert unknown == set(DEVIATIONS)


def test_every_provider_of_the_registry_has_its_names_and_no_other_has() -> None:
    said = CONVENTIONS["opentelemetry"]["providers"]
    theirs = {provider_of(name).openinference for name in said}

    assert {provider_of(name).name for name in said} == set(said)
    assert {provider.name for provider, _ in PROVIDERS} == set(said)
    assert theirs - set(CONVENTIONS["openinference"]["providers"]) == set(OTHER_PROVIDERS)
    systems = {provider_of(name).system for name in said} - {""}
    assert systems == set(CONVENTIONS["openinference"]["systems"])


def test_every_operation_is_one_of_the_registry_or_a_deviation() -> None:
    ours = {value for name, value in constants().items() if name.startswith("OPERATION_")}

    assert ours - set(CONVENTIONS["opentelemetry"]["operations"]) == set(OTHER_OPERATIONS)
