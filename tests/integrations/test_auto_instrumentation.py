"""``opentelemetry-instrument python app.py``: no line of the application is about claimspan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from claimspan.errors import ConfigError
from claimspan_tracing.environment import options_of

from processes import TRACES, environment, statuses_in

APPS = {
    "langchain": """
from lc_pipelines import rag_chain
rag_chain().invoke("the question")
""",
    "llama_index": """
from li_driver import LlamaIndexDriver
from pipelines import Recipe
LlamaIndexDriver().build(Recipe()).run("the question")
""",
    "haystack": """
from hs_driver import HaystackDriver
from pipelines import Recipe
HaystackDriver().build(Recipe()).run("the question")
""",
}

OTHERS = "langchain,llama_index,haystack"
"""The instrumentations of OpenInference that the tests have installed; one attaches, not both."""

LANGCHAIN_ALONE = f"{OTHERS},claimspan_llama_index,claimspan_haystack"
"""All but one of ours as well: each loads its framework, which takes seconds."""

OPENTELEMETRY_INSTRUMENT = (
    "from opentelemetry.instrumentation.auto_instrumentation import run; run()"
)
"""The command of that name, if its script is in no folder of programs."""


def run_app(
    folder: Path, app: str, disabled: str = OTHERS, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs an application that knows nothing of us, as OpenTelemetry's documentation says."""
    (folder / "app.py").write_text(app)
    return subprocess.run(
        [sys.executable, "-c", OPENTELEMETRY_INSTRUMENT, sys.executable, "app.py"],
        cwd=folder,
        env=environment() | {"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": disabled} | variables,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


@pytest.mark.parametrize("framework", APPS)
def test_an_application_without_a_line_of_ours_is_recorded_and_judged(
    tmp_path: Path, framework: str
) -> None:
    ended = run_app(tmp_path, APPS[framework])

    assert ended.returncode == 0, ended.stderr
    assert statuses_in(tmp_path) == {"evaluated": 1}


def test_options_come_from_variables_of_the_environment(tmp_path: Path) -> None:
    without = {"CLAIMSPAN_SAMPLE": "0", "CLAIMSPAN_CAPTURE_CONTENT": "0"}
    ended = run_app(tmp_path, APPS["langchain"], LANGCHAIN_ALONE, **without)

    assert ended.returncode == 0, ended.stderr
    assert statuses_in(tmp_path) == {"not_sampled": 1}
    assert "the question" not in (tmp_path / TRACES).read_text()


def test_a_variable_that_cannot_be_read_is_said_and_leaves_the_application_alone(
    tmp_path: Path,
) -> None:
    app = APPS["langchain"] + "print('done')"
    ended = run_app(tmp_path, app, LANGCHAIN_ALONE, CLAIMSPAN_SAMPLE="often")

    assert ended.returncode == 0
    assert "done" in ended.stdout
    assert "claimspan is not attached: CLAIMSPAN_SAMPLE cannot be read" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / TRACES).exists()


def test_each_plain_option_is_read_as_its_type() -> None:
    read = options_of(
        {
            "CLAIMSPAN_SAMPLE": "0.05",
            "CLAIMSPAN_METRICS": "faithfulness,recall",
            "CLAIMSPAN_SERVERLESS": "true",
            "CLAIMSPAN_MAX_QUEUE_RECORDS": "12",
            "CLAIMSPAN_SPOOL": "",
            "CLAIMSPAN_JUDGE": "local",  # every monitor reads it by itself
            "PATH": os.environ["PATH"],
        }
    )

    assert json.loads(json.dumps(read)) == {
        "sample": 0.05,
        "metrics": "faithfulness,recall",
        "serverless": True,
        "max_queue_records": 12,
    }


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("CLAIMSPAN_SAMPEL", "did you mean sample?"),
        ("CLAIMSPAN_SINKS", "no variable can say this option"),
        ("CLAIMSPAN_MAX_CPU_SHARE", "CLAIMSPAN_MAX_CPU_SHARE cannot be read"),
    ],
)
def test_a_variable_that_says_nothing_is_refused_by_its_name(name: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told.replace("?", r"\?")):
        options_of({name: "some"})
