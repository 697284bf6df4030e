"""Which claims people are asked about, and how their labels come back to them."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from claimspan import Chunk, Label
from claimspan.errors import ClaimspanError, ConfigError, FileError
from claimspan.labelling import (
    ClaimLabel,
    join_labels,
    pick_claims,
    read_claim_labels,
    render_label_page,
)
from claimspan.labelling.claims import claim_digest
from claimspan.report import ReportClaim, ReportEntry

from command_line import invoke, run
from labelled_traffic import EVIL, write_traffic
from result_files import write_results

HEADER = "record,claim_digest,label\n"
DIGEST = claim_digest("It is so.")


def entry(number: int, confidence: float | None = 0.9, **fields: object) -> ReportEntry:
    claim = ReportClaim(
        text=f"Claim {number}.", label=Label.ENTAILED, confidence=confidence, entailed=confidence
    )
    defaults: dict[str, object] = {
        "record_id": f"r{number}",
        "query": "?",
        "response": claim.text,
        "chunks": (Chunk(id="c", text="A chunk."),),
        "response_claims": (claim,),
        "status": "evaluated",
        "judge": "lexical",
    }
    return ReportEntry.model_validate(defaults | fields)


ENTRIES = [entry(n, 0.5 + n / 2000) for n in range(1000)]


# --- which claims ---


def test_half_of_the_claims_are_the_least_sure_and_half_are_drawn_from_the_others() -> None:
    picked = pick_claims(ENTRIES, 100)

    doubtful = {each.record for each in picked if each.share == "doubtful"}
    others = [each for each in picked if each.share == "random"]
    assert doubtful == {f"r{n}" for n in range(50)}
    assert len(others) == 50
    assert {each.share_claims for each in others} == {950}
    assert 0.65 < sum(each.claim.confidence or 0 for each in others) / 50 < 0.85


def test_the_same_claims_are_picked_whatever_the_order_of_the_file() -> None:
    def keys(entries: Sequence[ReportEntry], seed: int = 0) -> list[str]:
        return [each.record for each in pick_claims(entries, 60, seed=seed)]

    assert keys(ENTRIES) == keys(ENTRIES[::-1])
    assert keys(ENTRIES) != keys(ENTRIES, seed=1)


def test_all_claims_are_asked_where_there_are_few_and_by_chance_without_confidence() -> None:
    few = pick_claims(ENTRIES[:30], 200)
    unknown = pick_claims([entry(n, None) for n in range(100)], 10)

    assert [(each.share, each.share_claims) for each in few] == [("random", 30)] * 30
    assert [(each.share, each.share_claims) for each in unknown] == [("random", 100)] * 10


def test_claims_that_cannot_be_labelled_are_left_out() -> None:
    undecided = ReportClaim(text="Nobody knows.")
    entries = [
        entry(1, chunks=()),
        entry(2, chunks=(Chunk(id="c", text=" "),)),
        entry(3, response_claims=(undecided,)),
    ]

    with pytest.raises(ConfigError, match="nothing to label"):
        pick_claims(entries)
    assert len(pick_claims([*entries, entry(4), entry(4)])) == 1


def test_the_page_asks_nothing_of_the_network_and_shows_no_verdict() -> None:
    claim = ReportClaim(text=EVIL, label=Label.CONTRADICTED, confidence=0.9, entailed=0.1)
    page = render_label_page(
        pick_claims([entry(1, response_claims=(claim,), query="\u202eevil")]), title=EVIL
    )

    assert page.count("<script") == 2
    assert "<img" not in page
    assert "\u202e" not in page
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "")
    data = page.partition('id="data">')[2].partition("</script>")[0]
    assert "contradicted" not in data


# --- what people say ---


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("cell", "label"),
    [("E", "E"), (" n ", "N"), ("Contradicted", "C"), ("ne", "NE"), ("U", None), ("", None)],
)
def test_labels_are_read_in_the_spellings_of_people(
    tmp_path: Path, cell: str, label: str | None
) -> None:
    path = written(tmp_path, f"trace_id;claim;label\na1;It is so.;E\nb2;It is so.;{cell}\n")

    found = read_claim_labels(path)

    assert [(each.record, each.digest) for each in found] == [("a1", DIGEST), ("b2", DIGEST)]
    assert found[1].label == label


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "holds no label"),
        (HEADER, "holds no label"),
        (f"{HEADER}a,{DIGEST},U\n", "holds no label"),
        (f"{HEADER}a,{DIGEST},E\na,,E\n", "line 3 needs record"),
        (f"record,claim_digest\na,{DIGEST}\n", "line 2 needs record"),
        (f"{HEADER}a,{DIGEST},yes\n", "line 2 has an unknown label: use E, N, C"),
        (f"{HEADER}a,{DIGEST}\n", "line 2: not as many cells as the header has"),
        (f"{HEADER}a,{DIGEST},E\na,{DIGEST},N\n", "lines 2 and 3 label one claim differently"),
        (
            f"record,claim_digest,label,claim_number\na,{DIGEST},E,first\n",
            "line 2 has a claim_number that is no number from 1 on",
        ),
    ],
)
def test_a_row_that_is_no_label_is_refused_by_its_line(
    tmp_path: Path, text: str, told: str
) -> None:
    with pytest.raises(FileError, match=told) as raised:
        read_claim_labels(written(tmp_path, text))

    assert "yes" not in str(raised.value)


# --- back to the claims ---


def label(number: int, **fields: object) -> ClaimLabel:
    defaults: dict[str, object] = {"line": number + 1, "record": f"r{number}", "number": 1}
    digest = claim_digest(f"Claim {number}.")
    return ClaimLabel(**{**defaults, "digest": digest, "label": "E", **fields})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - fields of a test


def test_a_label_stands_for_its_part_of_the_share() -> None:
    labels = [
        label(1, share="doubtful", share_claims=2),
        label(2, share="doubtful", share_claims=2),
        label(3, share="random", share_claims=998),
        label(4, share="random", share_claims=998, label=None),
        label(5),
    ]

    joined = join_labels(ENTRIES, labels)

    assert [each.weight for each in joined.verdicts] == [1.0, 1.0, 998.0, 1.0]
    assert (joined.judge, joined.unsure, joined.undecided) == ("lexical", 1, 0)


@pytest.mark.parametrize(
    ("entries", "labels", "told"),
    [
        ([entry(1)], [label(1), label(2)], r"1 of 2 labels are of claims .* \(lines 3 of"),
        ([entry(1), entry(2, judge="local")], [label(1), label(2)], "name lexical, local"),
        ([entry(1, judge="calibrated(lexical)")], [label(1)], "with the judge itself"),
        (
            [entry(1, response_claims=(ReportClaim(text="Claim 1."),))],
            [label(1)],
            "decided none of the labelled claims",
        ),
    ],
)
def test_labels_that_say_nothing_about_the_judge_are_refused(
    entries: list[ReportEntry], labels: list[ClaimLabel], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        join_labels(entries, labels)


# --- the command line ---


def labelled(results: Path) -> Path:
    """Labels of a person who reads what the claims say, made without a browser."""
    page = results.with_name("label.html")
    run("label", str(results), "-o", str(page))
    data = json.loads(page.read_text().partition('id="data">')[2].partition("</script>")[0])
    path = results.with_name("labels.csv")
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(data["columns"])
        for claim in data["claims"]:
            record, number, digest, share, n = claim["cells"]
            writer.writerow((record, number, digest, "EN"["wrong" in claim["text"]], share, n))
    return path


def test_calibrate_prints_what_the_labels_say(tmp_path: Path) -> None:
    results = write_traffic(tmp_path / "results.jsonl", 60)
    output = tmp_path / "calibration.json"

    shown = run("calibrate", str(results), str(labelled(results)), "-o", str(output))

    assert "lexical: 60 labels of 60 records (0 unsure, 0 undecided by the judge)" in shown
    rows = [line.split() for line in shown.splitlines()]
    assert ["judge", "as", "it", "is", "calibrated"] in rows
    assert ["agreement", "0.800"] in [row[:2] for row in rows]
    assert f"use it as --judge lexical@{output}" in shown
    assert json.loads(output.read_text())["labels"] == 60
    assert output.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("judge", "name", "usage"),
    [
        ("openai", "c.json", "--judge openai:MODEL@"),
        ("mistral_ai", "c.json", "--judge mistral:MODEL@"),
        ("local:org/name", "c.json", "--judge local:org/name@"),
        ("cascade(lexical,openai)", "c.json", "CalibratedJudge(judge, "),
        ("lexical", "c.txt", "CalibratedJudge(judge, "),
    ],
)
def test_calibrate_says_how_its_file_is_used(
    tmp_path: Path, judge: str, name: str, usage: str
) -> None:
    results = write_traffic(tmp_path / "results.jsonl", 60, judge=judge)

    shown = run("calibrate", str(results), str(labelled(results)), "-o", str(tmp_path / name))

    assert f"use it as {usage}" in shown


def test_a_calibration_is_not_written_where_there_is_none(tmp_path: Path) -> None:
    results = write_traffic(tmp_path / "results.jsonl", 12)
    output = tmp_path / "calibration.json"

    failed = invoke("calibrate", str(results), str(labelled(results)), "-o", str(output))

    assert "is not written: no calibration: " in str(failed.exception)
    assert not output.exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["labels.csv"], "give two files: traces or results, then labels.csv"),
        (["labels.csv", "results.jsonl"], "give two files"),
        (["results.jsonl", "labels.csv", "--judge", "local"], "--judge is for a cascade"),
        (["results.jsonl", "labels.csv", "--judge-option", "a=1"], "--judge-option is for a casc"),
        (["labelled.jsonl", "-o", "c.json"], "-o is for a calibration by labels"),
    ],
)
def test_the_two_forms_of_calibrate_are_not_mixed(arguments: list[str], told: str) -> None:
    failed = invoke("calibrate", *arguments)

    assert isinstance(failed.exception, ClaimspanError)
    assert told in str(failed.exception)


def test_a_file_without_claims_has_nothing_to_label(tmp_path: Path) -> None:
    results = write_results(tmp_path / "results.jsonl", [{"faithfulness": 1.0}])

    failed = invoke("label", str(results), "-o", str(tmp_path / "label.html"))

    assert "nothing to label" in str(failed.exception)
