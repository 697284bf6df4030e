"""The guides in docs/ say what is true: their code runs, their names, bounds and tests exist."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest

from claimspan import Evaluations
from claimspan.cli.main import SUMMARIES
from claimspan.evaluation.evaluate import MAX_CALLS, MAX_CLAIMS, MAX_TOKENS
from claimspan.metrics import METRICS as METRIC_NAMES
from claimspan.report import ReportEntry
from claimspan.report.entries import TraceLinks
from claimspan_tracing import Status, semconv
from claimspan_tracing.capture.table import MAX_AGE_SECONDS, MAX_OPEN_TREES, MAX_TREE_RUNS
from claimspan_tracing.decide.status import DROPPED
from claimspan_tracing.dispatch.pacing import MAX_CPU_SHARE
from claimspan_tracing.lifecycle import EXIT_TIMEOUT, KERNEL_TIMEOUT
from claimspan_tracing.monitor import MonitorOptions
from claimspan_tracing.read.values import MAX_RUNS
from claimspan_tracing.records.table import MAX_BYTES, MAX_RECORDS
from claimspan_tracing.spool.spool import MAX_BYTES as SPOOL_BYTES

from installed import only_with
from instruments import INSTRUMENTS, SIGNALS
from judge_server import judge_server
from processes import run_python, start, statuses_in, wait_for

ROOT: Final = Path(__file__).parents[1]
OPERATIONS: Final = ROOT / "docs" / "operations.md"
MONITORS: Final = tuple(
    ROOT / "docs" / f"{name}.md"
    for name in (
        "production",
        "hosts",
        "providers",
        "code",
        "feedback",
        "sampling",
        "budgets",
        "durability",
        "privacy",
        "workers",
        "operations",
        "alerts",
    )
)
"""The pages whose blocks make a monitor each."""

BACKENDS: Final = ROOT / "docs" / "backends.md"
RELIABILITY: Final = ROOT / "docs" / "reliability.md"
QUICKSTART: Final = ROOT / "docs" / "quickstart.md"
EVALUATION: Final = ROOT / "docs" / "evaluation.md"
TROUBLESHOOTING: Final = ROOT / "docs" / "troubleshooting.md"
PAGES: Final = (
    *MONITORS,
    ROOT / "docs" / "backfill.md",
    ROOT / "docs" / "extending.md",
    ROOT / "docs" / "leaned_on.md",
    ROOT / "docs" / "releasing.md",
    BACKENDS,
    RELIABILITY,
    EVALUATION,
    ROOT / "docs" / "names.md",
    ROOT / "docs" / "benchmarks.md",
    QUICKSTART,
    ROOT / "docs" / "index.md",
    ROOT / "docs" / "judges.md",
    ROOT / "docs" / "migration.md",
    ROOT / "docs" / "scores.md",
    TROUBLESHOOTING,
    ROOT / "docs" / "typescript.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
)

LINKING: Final = sorted(
    page
    for pattern in ("*.md", ".github/*.md", "docs/*.md", "core/**/*.md", "examples/**/*.md")
    for page in ROOT.glob(pattern)
)
"""Every page that is read in the repository, or beside it."""

MIB: Final = 1024 * 1024
RUN_BLOCKS: Final = """
import json, re
from pathlib import Path
from claimspan_langchain import ClaimspanCallbackHandler
from lc_pipelines import rag_chain

QUESTION = "Is it true? Mail ana@example.com."
names = {}
sections = [
    section
    for page in json.loads(os.environ["PAGES"])
    for section in re.split(r"^## ", Path(page).read_text(encoding="utf-8"), flags=re.M)
]
for section in sections:
    if section.startswith("# "):  # a page stands for itself
        names = {"chain": rag_chain(), "question": QUESTION}
    for block in re.findall(r"^```python\\n(.*?)^```", section, re.M | re.S):
        exec(compile(block, section.splitlines()[0], "exec"), names)
        monitor = names.pop("monitor")
        if "lambda_handler" in names:
            names.pop("lambda_handler")({"question": QUESTION}, None)
        with_all = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
        for _ in range(3):
            rag_chain().invoke(QUESTION, with_all | {"metadata": {"claimspan.sample": True}})
        is_flushed = monitor.flush(20)
        stats = monitor.stats
        counts = {"evaluated": stats.evaluated, **stats.skipped, **stats.dropped}
        title = section.splitlines()[0].strip("# ")
        print(json.dumps([title, is_flushed, stats.faults, counts]), flush=True)
        monitor.shutdown(5)
"""
"""Runs each Python block of the pages, and asks three times through the monitor that it made."""


def texts_of(page: Path) -> list[tuple[str, str]]:
    """Each language with the text of a block."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, bool, int, dict[str, int]]]:
    """For each block: its section, and what became of three queries through its monitor."""
    folder = tmp_path_factory.mktemp("production")
    with judge_server() as server:
        ended = run_python(
            RUN_BLOCKS,
            folder,
            PAGES=json.dumps([str(page) for page in MONITORS]),
            CLAIMSPAN_BROKER_URL="memory://",
            JUDGE_URL=server.url,
            JUDGE_KEY="a key",
        )
    assert ended.stderr == ""
    assert ended.code == 0
    return [tuple(json.loads(line)) for line in ended.stdout.splitlines()]


def test_every_block_of_the_pages_on_production_runs_and_its_monitor_works(
    runs: list[tuple[str, bool, int, dict[str, int]]],
) -> None:
    n_blocks = sum(language == "python" for page in MONITORS for language, _ in texts_of(page))

    assert len(runs) == n_blocks > 16
    for section, is_flushed, faults, counts in runs:
        state = "dispatched" if "Celery" in section else "evaluated"
        assert (section, is_flushed, faults) == (section, True, 0)
        # A block that asks by itself leaves the decision to its sampler.
        assert counts[state] >= 3
        assert {each for each, n in counts.items() if n} <= {state, "not_sampled"}


def test_every_command_of_the_pages_exists() -> None:
    lines = [
        line
        for page in PAGES
        for language, block in texts_of(page)
        if language == "console"
        for line in block.splitlines()
        if re.match(r"\$ (?!pip |npm |npx )", line)  # neither others' nor what is printed
    ]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    known = {"make": targets, "claimspan": SUMMARIES}

    assert lines
    for line in lines:
        program, argument, *rest = line.removeprefix("$ ").split()
        if argument == "bench" and program == "claimspan":
            argument = f"bench.{rest[0]}"
        if program == "python":
            assert (ROOT / argument).is_file(), line
        else:
            assert argument in known[program], line


def links_of(page: Path) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


def test_every_file_and_heading_that_a_page_links_to_is_there() -> None:
    missing: list[tuple[str, str]] = []
    n_anchors = 0
    for page in LINKING:
        for link in links_of(page):
            target, _, anchor = link.partition("#")
            if urlsplit(link).scheme:
                continue
            linked = page.parent / target if target else page
            n_anchors += bool(anchor)
            if not linked.exists() or (anchor and anchor not in anchors_of(linked)):
                missing.append((str(page.relative_to(ROOT)), link))

    assert missing == []
    assert n_anchors > 40


def test_every_address_that_a_page_links_to_names_a_host_by_https() -> None:
    links = {(page.name, link) for page in LINKING for link in links_of(page) if ":" in link}

    assert links
    assert [each for each in links if not re.match(r"https://[\w.-]+\.\w+(/|$)", each[1])] == []


def test_the_guide_has_every_state_and_what_it_counts_as() -> None:
    table = re.findall(
        r"^\| `(\w+)` \| (evaluated|skipped|dropped) \|",
        OPERATIONS.read_text("utf-8"),
        re.MULTILINE,
    )
    expected = {s.value: "dropped" if s in DROPPED else "skipped" for s in Status}

    assert dict(table) == expected | {"evaluated": "evaluated"}
    assert len(table) == len(Status)


def test_the_guide_has_every_metric_with_its_unit() -> None:
    text = OPERATIONS.read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| metric \|.*?\n\n", text, re.MULTILINE | re.DOTALL)

    for name in INSTRUMENTS:
        assert name in table.replace("`, `.", "`, `claimspan.evaluation."), name
    units = set(re.findall(r'unit="([^"]+)"', SIGNALS))
    assert {unit for unit in units if f"`{unit}`" not in table} == set()


def test_every_option_that_the_guide_names_is_one() -> None:
    text = OPERATIONS.read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| what \| default \|.*?\n\n", text, re.MULTILINE | re.DOTALL)
    options = set(re.findall(r"^\|[^|]*\|[^|]*\| `(\w+)` \|", table, re.MULTILINE))

    assert options
    assert options <= {*MonitorOptions.__annotations__, "Budget"}


def test_the_bounds_of_the_guide_are_those_of_the_code() -> None:
    text = OPERATIONS.read_text(encoding="utf-8")

    for what, default in {
        "records under way": f"{MAX_RECORDS:,}",
        "bytes that they keep alive": f"{MAX_BYTES // MIB} MiB",
        "open queries; age of one": f"{MAX_OPEN_TREES:,}; {MAX_AGE_SECONDS / 3600:g} hour",
        "runs; spans of one query": f"{MAX_TREE_RUNS:,}; {MAX_RUNS}",
        "claims of one text": f"{MAX_CLAIMS}",
        "judge calls; tokens of one record": f"{MAX_CALLS}; {MAX_TOKENS:,}",
        "processor time of evaluation here": f"{100 * MAX_CPU_SHARE:g} % of one core",
        "spool": f"{SPOOL_BYTES // MIB} MiB",
        "end of the process": f"{EXIT_TIMEOUT:g} s; in a kernel of Jupyter {KERNEL_TIMEOUT:g} s",
    }.items():
        assert f"| {what} | {default} |" in text


# --- docs/quickstart.md, docs/scores.md and docs/troubleshooting.md ---

PROGRAMS: Final = [text for language, text in texts_of(QUICKSTART) if language == "python"]
INSTALLS: Final = re.findall(r"^`pip install (.*?)`", QUICKSTART.read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("number", range(4), ids=["langchain", "llama-index", "haystack", "none"])
def test_each_program_of_the_quick_start_runs_as_it_stands_and_says_its_scores(
    number: int, tmp_path: Path
) -> None:
    program = only_with(INSTALLS[number]) + PROGRAMS[number]
    ended = wait_for(start(["-c", program], tmp_path, HAYSTACK_TELEMETRY_ENABLED="False"))

    assert ended.code == 0, ended.stderr
    assert "claimspan captures queries: spans go to a provider of our own" in ended.stderr
    assert "claimspan wrote its first scores: faithfulness 0." in ended.stderr
    assert statuses_in(tmp_path) == {"evaluated": 1}


def test_the_quick_start_has_no_other_program() -> None:
    assert len(PROGRAMS) == len(INSTALLS) == 4


def test_every_score_and_attribute_of_the_pages_on_scores_exists() -> None:
    known = {value for value in vars(semconv).values() if isinstance(value, str)}
    text = (ROOT / "docs" / "scores.md").read_text("utf-8") + TROUBLESHOOTING.read_text("utf-8")
    shown = {line.split("`")[1] for line in text.splitlines() if line.startswith("| `")}

    assert shown
    assert set(re.findall(r"`(claimspan\.[a-z_.]+)`", text)) <= known
    assert {*METRIC_NAMES, *(status.value for status in Status)} >= shown


def test_the_page_on_scores_says_of_each_metric_what_it_is_the_share_of() -> None:
    text = (ROOT / "docs" / "scores.md").read_text("utf-8")
    (table,) = re.findall(r"^\| score \| meaning \|.*?\n\n", text, re.MULTILINE | re.DOTALL)

    # The two kinds of noise share a line.
    named = [name for name in METRIC_NAMES if not name.endswith("_in_irrelevant")]
    assert [name for name in named if f"`{name}`" not in table] == []


# --- docs/evaluation.md ---


def test_the_table_of_the_guide_to_evaluation_is_what_its_block_makes() -> None:
    block = next(text for _, text in texts_of(EVALUATION) if "evaluate_many" in text)
    names: dict[str, object] = {}
    # The text is our own guide, and this test exists to run it.
    exec(compile(block, "evaluation.md", "exec"), names)  # noqa: S102 - see above
    evaluations = names["evaluations"]
    assert isinstance(evaluations, Evaluations)

    rows = [(row["id"], row["faithfulness"], row["abstained"]) for row in evaluations.table()]
    assert rows == [("q1", 0.0, False), ("q2", None, True)]


TEMPLATES: Final = re.findall(
    r"^\| [\w, ]+ \| `(http\S+)` \|", EVALUATION.read_text("utf-8"), re.MULTILINE
)


def test_the_guide_has_a_trace_address_for_every_backend_of_the_page_of_backends() -> None:
    backends = re.findall(r"^## (.*)$", BACKENDS.read_text("utf-8"), re.MULTILINE)
    table = EVALUATION.read_text("utf-8").partition("| backend | template |")[2]

    assert len(TEMPLATES) == 8
    for name in (
        "Phoenix",
        "MLflow",
        "Langfuse",
        "Tempo",
        "Jaeger",
        "Zipkin",
        "Logfire",
        "Datadog",
    ):
        assert any(name in heading for heading in backends), name
        assert name in table, name


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_of_the_guide_is_taken_and_gets_the_ids(template: str) -> None:
    entry = ReportEntry(
        query="q", response="r", status="evaluated", trace_id="a" * 32, span_id="b" * 16
    )
    url = TraceLinks(template).url(entry)

    assert url is not None
    assert "a" * 32 in url
    assert "{" not in url
    panes = parse_qs(urlsplit(url).query).get("panes", [])
    assert [json.loads(each)["t"]["queries"][0]["query"] for each in panes] == ["a" * 32] * len(
        panes
    )


# --- docs/reliability.md ---

ROWS: Final = {"L": 7, "F": 21, "I": 5, "P": 4, "S": 7}
"""How many rows of the matrix each letter has."""


class Row(NamedTuple):
    """A row of the matrix on the page."""

    name: str
    situation: str
    tests: str
    long_form: str
    reason: str


def rows() -> list[Row]:
    lines = RELIABILITY.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return [Row(*row) for row in cells if row and re.fullmatch(r"[A-Z]\d+", row[0])]


def test_every_row_of_the_matrix_is_there_once_and_in_order() -> None:
    expected = [f"{letter}{n}" for letter, count in ROWS.items() for n in range(1, count + 1)]

    assert [row.name for row in rows()] == expected
    assert all(row.situation for row in rows())


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_every_test_and_command_of_a_row_exists_or_there_is_a_reason(row: Row) -> None:
    tests = re.findall(r"`([\w/]+\.py)::(\w+)`", row.tests)

    assert row.tests.count("`") == 2 * len(tests)
    assert tests or row.reason
    for file, name in tests:
        assert name in functions_of(file), f"{file} has no {name}"
    for command in re.findall(r"`([^`]+)`", row.long_form):
        program, script = command.split()[:2]
        assert program == "python"
        assert (ROOT / script).is_file()


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_a_test_of_each_row_names_the_row_or_there_is_a_reason(row: Row) -> None:
    files = set(re.findall(r"`([\w/]+\.py)::", row.tests))
    named = [file for file in files if re.search(rf"\b{row.name}\b", docstring_of(file))]

    assert named or row.reason


def docstring_of(file: str) -> str:
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    return ast.get_docstring(tree) or ""


@cache
def functions_of(file: str) -> set[str]:
    """Names of the test functions of a file, by its place under ``tests``."""
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    return {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
