"""The fixture claimspan_gate in real runs of pytest: it fails tests as `claimspan gate` does."""

from __future__ import annotations

from importlib import import_module

import pytest

from claimspan.comparison.systems import read_system

from judge_server import judge_server
from result_files import Scores, write_results

pytest_plugins = ["pytester"]

# pytester unloads what its runs have imported, and a process can load numpy only once.
for name in ("claimspan.pytest_plugin.gate", "claimspan.judges.lexical", "scipy.stats"):
    import_module(name)

RECORDS = """
    from claimspan import Chunk, RagRecord

    def records(right=8, wrong=0):
        chunk = Chunk(id="a", text="The tower is in Paris. It has 7 floors.")
        answers = ["The tower is in Paris."] * right + ["The bridge crosses the Nile."] * wrong
        return [
            RagRecord(id=f"r{n}", query="Where is it?", chunks=(chunk,), response=answer)
            for n, answer in enumerate(answers)
        ]
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project of a user's, with records that the lexical judge can judge."""
    pytester.makepyfile(rag=RECORDS)
    pytester.makepyprojecttoml(
        """
        [tool.pytest.ini_options]
        addopts = ["--strict-markers", "--strict-config"]
        pythonpath = ["."]
        filterwarnings = ["error"]
        """
    )
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """A run of pytest with our plugin alone, by its entry point."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        return project.runpytest("-p", "claimspan", *arguments)


def test_a_test_passes_where_the_rules_hold_and_says_so(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from rag import records

        def test_rag(claimspan_gate):
            result = claimspan_gate(records(), judge="lexical", min={"faithfulness": 0.9})
            assert result.passed
        """
    )
    found = run(project)

    found.assert_outcomes(passed=1)
    found.stdout.fnmatch_lines(
        ["*claimspan gates*", "*::test_rag: claimspan gate: passed, 3 checks over 8 records; *"]
    )


def test_a_test_fails_with_the_table_of_the_gate_and_the_line_of_the_user(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(
        """
        from rag import records

        def test_rag(claimspan_gate):
            claimspan_gate(records(5, 3), judge="lexical", min={"faithfulness": 0.8})
        """
    )
    found = run(project)

    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(
        [
            '>*claimspan_gate(records(5, 3), judge="lexical", min={"faithfulness": 0.8})',
            "E*FAILED  min faithfulness  0.625 * 8  0.800  -0.175 *the mean is too low",
            "*claimspan gate: FAILED, 1 of 3 checks over 8 records: min faithfulness*",
        ]
    )
    assert "gate.py" not in found.stdout.str()  # no line of ours in the traceback


def test_an_asynchronous_test_awaits_the_gate_on_its_own_loop(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import asyncio
        import pytest
        from rag import records

        def test_rag(claimspan_gate):
            async def main():
                ticks = 0
                async def tick():
                    nonlocal ticks
                    while True:
                        ticks += 1
                        await asyncio.sleep(0)
                ticking = asyncio.create_task(tick())
                await claimspan_gate.acheck(records(), min={"faithfulness": 0.9}, judge="lexical")
                with pytest.raises(AssertionError, match="FAILED  max faithfulness"):
                    await claimspan_gate.acheck(records(), max={"faithfulness": 0.9})
                ticking.cancel()
                assert ticks > 2
                claimspan_gate(records(), min={"faithfulness": 0.9})  # blocks, and works
            asyncio.run(main())
        """
    )

    run(project).assert_outcomes(passed=1)


def test_a_judge_that_is_named_gets_its_options(project: pytest.Pytester) -> None:
    with judge_server() as server:
        project.makepyfile(
            f"""
            import pytest
            from claimspan.judges import LexicalJudge
            from rag import records

            OPTIONS = {{"base_url": {server.url!r}, "seed": 7}}

            @pytest.mark.claimspan_gate(judge="openai:m", judge_options=OPTIONS)
            def test_marked(claimspan_gate):
                claimspan_gate(records(), min={{"faithfulness": 0.9}})

            def test_lexical(claimspan_gate):
                claimspan_gate(records(), judge="lexical", judge_options={{"seed": 1}})

            def test_object(claimspan_gate):
                claimspan_gate(records(), judge=LexicalJudge(), judge_options={{"seed": 1}})

            def test_none(claimspan_gate):
                claimspan_gate(records(), judge=3)
            """
        )
        found = run(project)

        assert server.sent("seed") == {7}
    found.assert_outcomes(passed=1, failed=3)
    found.stdout.fnmatch_lines(["*'lexical' takes no options: leave seed out"])
    found.stdout.fnmatch_lines(["*judge_options is for a judge that is named*"])
    found.stdout.fnmatch_lines(["*judge is of type int: give an object with name*"])


def test_a_marker_gives_defaults_that_the_nearest_and_the_call_replace(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(
        """
        import pytest
        from rag import records

        pytestmark = pytest.mark.claimspan_gate(judge="lexical", min={"faithfulness": 1.0})

        def test_strict(claimspan_gate):
            claimspan_gate(records(7, 1))

        @pytest.mark.claimspan_gate(min={"faithfulness": 0.5})
        def test_lenient(claimspan_gate):
            claimspan_gate(records(7, 1))

        def test_called(claimspan_gate):
            claimspan_gate(records(7, 1), min={"faithfulness": 0.8})

        @pytest.mark.claimspan_gate(minimum={"faithfulness": 0.5})
        def test_wrong(claimspan_gate):
            claimspan_gate(records())
        """
    )
    found = run(project)

    found.assert_outcomes(passed=2, failed=2)
    found.stdout.fnmatch_lines(["*ConfigError: the marker*none is called minimum"])
    found.stdout.fnmatch_lines(["FAILED *::test_strict*", "FAILED *::test_wrong*"])


def test_files_of_records_and_of_results_start_at_the_root_of_the_project(
    project: pytest.Pytester,
) -> None:
    (project.path / "deep").mkdir()
    write_results(project.path / "deep" / "results.jsonl", [{"faithfulness": 0.4}] * 3)
    (project.path / "records.jsonl").write_text(
        '{"query": "Where?", "chunks": ["It is in Paris."], "response": "It is in Paris."}\n'
    )
    (project.path / "deep" / "test_files.py").write_text(
        "def test_results(claimspan_gate):\n"
        "    claimspan_gate('deep/results.jsonl', max={'faithfulness': 0.5})\n"
        "def test_records(claimspan_gate):\n"
        "    claimspan_gate('records.jsonl', judge='lexical', min={'faithfulness': 1})\n"
    )

    run(project, "deep").assert_outcomes(passed=2)


BASELINE = """
    from rag import records
    import os

    def test_rag(claimspan_gate):
        wrong = int(os.environ["WRONG"])
        claimspan_gate(records(20 - wrong, wrong), judge="lexical", baseline="golden/last.jsonl")
"""


def test_a_baseline_is_made_on_request_and_holds_later_runs(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    baseline = project.path / "golden" / "last.jsonl"
    baseline.parent.mkdir()
    project.makepyfile(BASELINE)
    monkeypatch.setenv("WRONG", "0")

    absent = run(project)
    absent.assert_outcomes(failed=1)
    absent.stdout.fnmatch_lines(["*there is no baseline*--claimspan-update-baseline*"])
    made = run(project, "--claimspan-update-baseline")
    made.assert_outcomes(passed=1)
    made.stdout.fnmatch_lines(["*they are the baseline*last.jsonl now*"])
    assert len(read_system(baseline).rows) == 20
    run(project).assert_outcomes(passed=1)
    before = baseline.read_bytes()
    monkeypatch.setenv("WRONG", "9")
    worse = run(project)
    worse.assert_outcomes(failed=1)
    worse.stdout.fnmatch_lines(["E*FAILED  baseline faithfulness*worse*"])
    assert baseline.read_bytes() == before
    run(project, "--claimspan-update-baseline").assert_outcomes(passed=1)
    assert baseline.read_bytes() != before
    run(project).assert_outcomes(passed=1)


def test_results_that_break_another_rule_become_no_baseline(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from rag import records

        def test_rag(claimspan_gate):
            claimspan_gate(
                records(1, 9), judge="lexical", baseline="last.jsonl", min={"faithfulness": 0.8}
            )
        """
    )

    run(project, "--claimspan-update-baseline").assert_outcomes(failed=1)
    assert not (project.path / "last.jsonl").exists()


def test_a_file_of_results_can_become_the_baseline(project: pytest.Pytester) -> None:
    rows: list[Scores] = [{"faithfulness": 0.4}] * 9
    results = write_results(project.path / "results.jsonl", rows)
    project.makepyfile(
        """
        def test_rag(claimspan_gate):
            claimspan_gate("results.jsonl", baseline="last.jsonl")
        """
    )

    run(project, "--claimspan-update-baseline").assert_outcomes(passed=1)
    assert (project.path / "last.jsonl").read_bytes() == results.read_bytes()


def test_results_are_kept_where_one_says_and_in_the_cache_otherwise(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(
        """
        import pytest
        from rag import records

        @pytest.mark.parametrize("name", ["a/b", "a_b"])
        def test_rag(claimspan_gate, name):
            claimspan_gate(records(), judge="lexical", min={"faithfulness": 0.9})
            claimspan_gate(records(), judge="lexical", max={"faithfulness": 1.0})

        def test_named(claimspan_gate):
            claimspan_gate(records(), min={"faithfulness": 0.9}, results="mine.jsonl")
        """
    )
    run(project).assert_outcomes(passed=3)
    cached = list((project.path / ".pytest_cache" / "d" / "claimspan").iterdir())
    run(project, "--claimspan-results", "out/gates").assert_outcomes(passed=3)
    run(project, "-p", "no:cacheprovider").assert_outcomes(passed=3)

    assert len(cached) == 4
    assert sorted(p.name for p in (project.path / "out" / "gates").iterdir()) == sorted(
        p.name for p in cached
    )
    for path in (*cached, project.path / "mine.jsonl"):
        assert len(read_system(path).rows) == 8


def test_a_junit_file_has_the_line_of_each_gate(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from rag import records

        def test_rag(claimspan_gate):
            claimspan_gate(records(), judge="lexical", min={"faithfulness": 0.9})
        """
    )
    run(project, "--junit-xml=junit.xml").assert_outcomes(passed=1)

    written = (project.path / "junit.xml").read_text(encoding="utf-8")
    assert '<property name="claimspan_gate" value="claimspan gate: passed, 3 checks' in written


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("claimspan_gate([], min={'f1': 0.5})", "there are no records"),
        ("claimspan_gate(records())", "lets everything pass"),
        ("claimspan_gate(records(), min={'f1': 'high'})", "min cannot be used"),
        ("claimspan_gate(records(), min={'f1': '80%'})", "such as 0.8 for 80 %"),
        ("claimspan_gate(records(), max={'f1': 80})", "max f1 is 80: give a mean between"),
        ("claimspan_gate(records(), min={'f1': float('nan')})", "min cannot be used"),
        ("claimspan_gate(records(), min={'f1': 0.5}, tolerance=5)", "tolerance cannot be used"),
        ("claimspan_gate('absent.jsonl', min={'f1': 0.5})", "absent.jsonl"),
    ],
)
def test_a_gate_that_cannot_decide_fails_with_what_to_do(
    project: pytest.Pytester, call: str, message: str
) -> None:
    project.makepyfile(f"from rag import records\ndef test_rag(claimspan_gate):\n    {call}\n")
    found = run(project)

    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines([f"E*Error: *{message}*"])


def test_a_plugin_that_no_test_uses_prints_nothing_and_imports_nothing_heavy(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(
        """
        import sys

        def test_other():
            ours = {name for name in sys.modules if name.partition(".")[0] == "claimspan"}
            assert ours == {"claimspan", "claimspan.pytest_plugin"}
            assert not sys.modules.keys() & {"pydantic", "numpy", "scipy", "openai", "typer"}
        """
    )
    # As users run it, in a process of its own and with what pytest finds by itself.
    options = ("-p", "no:asyncio", "-p", "no:langsmith_plugin", "--import-mode=importlib")
    found = project.runpytest_subprocess(*options, timeout=240)

    found.assert_outcomes(passed=1)
    assert "claimspan gates" not in found.stdout.str()
    assert not (project.path / ".pytest_cache" / "d").exists()


def test_the_plugin_can_be_switched_off(project: pytest.Pytester) -> None:
    project.makepyfile("def test_rag(claimspan_gate): ...")

    found = project.runpytest_subprocess("-p", "no:asyncio", "-p", "no:claimspan", timeout=240)

    found.assert_outcomes(errors=1)


def test_the_options_and_the_marker_are_described(project: pytest.Pytester) -> None:
    # As users run it, so that pytest finds the plugin by itself.
    found = project.runpytest_subprocess("-p", "no:asyncio", "--help", timeout=240)

    assert "--claimspan-update-baseline" in found.stdout.str()
    assert "@pytest.mark.claimspan_gate(judge=" in run(project, "--markers").stdout.str()


def test_what_is_measured_and_compared_can_be_chosen(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import pytest
        from rag import records

        def polite(evaluation):
            return 0.25

        MARK = dict(judge="lexical", baseline="last.jsonl")

        @pytest.mark.claimspan_gate(metrics=["faithfulness", polite], **MARK)
        def test_two(claimspan_gate):
            result = claimspan_gate(records())
            compared = [check.metric for check in result.checks if check.rule == "baseline"]
            assert compared in ([], ["faithfulness", "polite"])  # none for the first baseline

        @pytest.mark.claimspan_gate(metrics="faithfulness", primary="faithfulness", **MARK)
        def test_primary(claimspan_gate):
            claimspan_gate(records())
            with pytest.raises(AssertionError, match="FAILED  baseline faithfulness"):
                claimspan_gate(records(1, 7))

        def test_thresholds(claimspan_gate):
            rules = dict(judge="lexical", metrics="faithfulness", max={"low": 0.0})
            claimspan_gate(records(), **rules)
            with pytest.raises(AssertionError, match="FAILED  max low"):
                claimspan_gate(records(7, 1), **rules)
            claimspan_gate(records(7, 1), thresholds={"faithfulness": 0.0}, **rules)
        """
    )
    run(project, "--claimspan-update-baseline", "-k", "two").assert_outcomes(passed=1, deselected=2)

    run(project).assert_outcomes(passed=3)
