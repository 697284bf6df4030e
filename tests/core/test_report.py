from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimspan import Chunk, Claim, Evaluation, Label
from claimspan.errors import MissingExtraError
from claimspan.evaluation.judgement import judgement_of
from claimspan.metrics import METRICS
from claimspan.report import ReportClaim, ReportEntry, render_report, summarise

from shown_records import places_of, segments_of

CHUNKS = (
    Chunk(id="finally", text="The saved exception is discarded.", score=7.25),
    Chunk(id="else", text="The else clause runs when nothing was raised."),
)
INDEX: dict[str, str | None] = {"type": "application/json", "id": "index"}
"""The attributes of the one script element that is data, and runs nothing."""

EVIL = "</style></script><script>alert(1)</script>{{ 7 * 6 }}{% raw %}<img src=http://x.test/>'\"&"


def make_entry(**fields: object) -> ReportEntry:
    defaults: dict[str, object] = {
        "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
        "query": "What happens in finally?",
        "response": "It is discarded. It is printed.",
        "chunks": CHUNKS,
        "response_claims": (
            ReportClaim(text="It is discarded.", label=Label.ENTAILED, supported_by=("finally",)),
            ReportClaim(text="It is printed.", label=Label.NEUTRAL),
        ),
        "scores": {"faithfulness": 0.5},
        "status": "evaluated",
        "judge": "lexical",
        "started": datetime(2026, 3, 1, 12, 30, tzinfo=UTC),
        "seconds": 1.5,
    }
    return ReportEntry.model_validate(defaults | fields)


class Page(HTMLParser):
    """The elements of a page, as a browser would find them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def marks(self) -> list[dict[str, str | None]]:
        """The marks in texts from which claims were extracted."""
        return [mark for mark in self.all("mark") if "closest" not in (mark["class"] or "")]

    def all(self, name: str, **wanted: str) -> list[dict[str, str | None]]:
        return [a for tag, a in self.tags if tag == name and wanted.items() <= a.items()]


def claims(*texts: str) -> list[Claim]:
    return [Claim(text=text) for text in texts]


# --- the page ---


def test_a_page_shows_question_answer_chunks_and_scores() -> None:
    page = Page(render_report([make_entry()], title="Nightly"))
    for text in ("Nightly", "What happens in finally?", CHUNKS[0].text, "7.25", "0.50", "lexical"):
        assert text in page.text
    assert "It is discarded." in page.text


def test_text_of_a_record_is_never_markup() -> None:
    claim = ReportClaim(text=EVIL, sentence=EVIL, label=Label.ENTAILED, supported_by=(EVIL,))
    chunk = Chunk(id=EVIL, text=EVIL, metadata={EVIL: EVIL})
    entry = make_entry(
        **dict.fromkeys(("query", "response", "ground_truth", "status", "reason", "judge"), EVIL),
        **{"trace_id": EVIL, "chunks": (chunk,), "response_claims": (claim,)},
        **{"ground_truth_claims": (claim,), "undefined": {EVIL: EVIL}, "scores": {EVIL: 1.0}},
    )
    evil, good = (Page(render_report([e], title=EVIL)) for e in (entry, make_entry()))
    assert evil.all("script") == good.all("script") == [INDEX, {}]
    assert len(evil.all("style")) == len(good.all("style")) == 1
    assert not evil.all("img")
    assert evil.text.count("{{ 7 * 6 }}") >= 8


def test_a_page_refers_to_nothing_outside_itself() -> None:
    page = render_report([make_entry()])
    assert not re.findall(r"https?://|//[a-z]|@import|url\(", page)
    references = [
        value
        for _, attributes in Page(page).tags
        for name, value in attributes.items()
        if name in {"src", "href", "srcset", "action", "poster", "data"}
    ]
    assert references
    assert all(value and value.startswith("#") for value in references)


def test_a_page_forbids_every_script_but_its_own() -> None:
    page = Page(render_report([make_entry()]))
    (policy,) = page.all("meta", **{"http-equiv": "Content-Security-Policy"})
    assert "default-src 'none'" in (policy["content"] or "")
    assert re.search(r"script-src 'sha256-[\w+/]{43}='", policy["content"] or "")


def test_every_link_of_a_page_leads_somewhere() -> None:
    truth = ReportClaim(text="It is discarded.", label=Label.ENTAILED, supported_by=("finally",))
    entry = make_entry(
        ground_truth="It is discarded.",
        ground_truth_claims=(truth,),
        undefined={"precision": "every verdict is undecided"},
    )
    page = Page(render_report([entry, entry]))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {(a["href"] or "")[1:] for a in page.all("a")} <= set(ids)


def test_a_metric_without_any_value_is_explained_and_a_foreign_one_is_no_link() -> None:
    page = render_report(
        [make_entry(undefined={"soft_alignment": "no probabilities"}, scores={"my own": 0.5})]
    )

    assert 'href="#m-soft_alignment"' in page
    assert 'id="m-soft_alignment"' in page
    assert "#m-my own" not in page


@pytest.mark.parametrize(
    ("cost", "shown"),
    [
        (None, ""),
        (0.0, ""),  # a judge that runs here: "$0.0000" would look like a price too small to print
        (0.00002, "less than $0.0001"),
        (0.0213, "$0.0213"),
        (1234.5, "$1,234.50"),
    ],
)
def test_a_cost_is_shown_where_there_is_one(cost: float | None, shown: str) -> None:
    page = render_report([make_entry(cost_usd=cost, judge_calls=4)])

    (told,) = re.findall(r"judge <b>lexical</b>, 4 calls(?:, )?(.*?)</span>", page)
    assert told == shown


@pytest.mark.parametrize(
    ("recall", "undecided", "told"),
    [
        (0.0, 0, ("not retrieved", "irrelevant")),
        (0.0, 1, ("no chunk is known to hold it", "finally")),
    ],
)
def test_a_fact_is_called_missed_only_where_its_verdicts_are_decided(
    recall: float, undecided: int, told: tuple[str, str]
) -> None:
    fact = ReportClaim(text="It is lost.", label=Label.NEUTRAL)
    page = render_report(
        [
            make_entry(
                ground_truth="It is lost.",
                ground_truth_claims=(fact,),
                scores={"claim_recall": recall},
                claims_undecided=undecided,
            )
        ]
    )

    assert all(f">{each}<" in page for each in told)
    assert (">irrelevant<" in page) == (undecided == 0)


def test_an_undefined_metric_shows_its_reason_and_no_number() -> None:
    page = Page(render_report([make_entry(undefined={"precision": "no ground truth"})]))
    assert "undefined: no ground truth" in page.text
    assert "0.00" not in page.text


def test_a_claim_is_marked_in_the_answer_by_its_label() -> None:
    page = Page(render_report([make_entry()]))
    assert [(m["class"], m["title"]) for m in page.marks] == [
        ("entailed", "Claim 1: entailed"),
        ("neutral", "Claim 2: neutral"),
    ]


def test_a_stretch_with_several_claims_shows_the_worst_label() -> None:
    both = "It is discarded. It is printed."
    labelled = [
        ReportClaim(text=text, sentence=both, label=label)
        for text, label in (("One", Label.ENTAILED), ("Two", None), ("Three", Label.CONTRADICTED))
    ]
    for n, worst in enumerate(("entailed", "undecided", "contradicted"), start=1):
        page = Page(render_report([make_entry(response_claims=tuple(labelled[:n]))]))
        assert [mark["class"] for mark in page.marks] == [worst]


def test_a_claim_that_is_not_in_the_answer_is_listed_below_it() -> None:
    claim = ReportClaim(text="Nobody knows.", label=Label.CONTRADICTED)
    page = Page(render_report([make_entry(response_claims=(claim,))]))
    assert not page.marks
    assert "Nobody knows." in page.text
    assert "not found word for word in the response" in page.text


def test_chunks_and_claims_point_at_each_other() -> None:
    page = Page(render_report([make_entry()]))
    (claim,) = page.all("li", id="e0-r0")
    (chunk,) = page.all("article", id="e0-k0")
    assert claim["data-links"] == "k0"
    assert chunk["data-links"] == "r0"


def judged(**metrics: float) -> dict[str, object]:
    """The scores of an entry with what they say."""
    found = Evaluation(metrics=metrics, explanations={"polite": "It blames the user."})
    found = found.model_copy(update={"thresholds": {"polite": 0.75}} if "polite" in metrics else {})
    return {"scores": metrics, "judgement": judgement_of(found)}


def order(page: str) -> list[str]:
    return re.findall(r'class="query" dir="auto">(\w+)<', page)


def test_low_records_come_first_by_the_score_that_tells_most_then_unknown_then_good_ones() -> None:
    entries: dict[str, dict[str, object]] = {
        "good": judged(faithfulness=1.0, recall=0.9),
        "failed": {"scores": {}},
        "unknown": judged(context_precision=0.0),
        "declined": judged(recall=0.0) | {"abstained": True},
        "better": judged(faithfulness=0.5, recall=0.0),
        "worse": judged(faithfulness=0.25, recall=1.0),
        "impolite": judged(faithfulness=1.0, polite=0.0),
    }
    page = render_report([make_entry(query=name, **each) for name, each in entries.items()])

    assert order(page) == [
        *("worse", "better", "declined", "impolite"),
        *("unknown", "failed", "good"),
    ]


def test_a_row_says_the_answer_and_why_it_is_low() -> None:
    answer = "It is printed.\n\nAnd so on."
    page = render_report([make_entry(response=answer, **judged(faithfulness=0.5, polite=0.0))])
    row = page[page.index('<summary class="row s-low">') : page.index("</summary>")]

    assert "It is printed. And so on." in row
    assert "faithfulness 0.50 (also low: polite 0.00)" in row


def test_a_row_of_a_record_that_was_not_judged_says_why() -> None:
    entry = make_entry(status="timeout", reason="no verdicts within 30 s", scores={})
    page = render_report([entry])

    assert '<span class="why">no verdicts within 30 s</span>' in page
    assert '<span class="status timeout">timeout</span>' in page


def test_the_colour_of_a_score_is_its_label_and_not_its_height() -> None:
    page = Page(render_report([make_entry(**judged(faithfulness=0.0, context_precision=0.0))]))
    classes = [a.get("class") or "" for a in page.all("span")]

    assert [each for each in classes if "meter" in each] == ["meter s-low", "meter s-neutral"]
    assert {a["class"] for a in page.all("rect")} == {"s-low", "s-neutral"}


def test_what_a_criterion_was_judged_by_stands_beside_its_score() -> None:
    page = Page(render_report([make_entry(**judged(faithfulness=1.0, polite=0.0))]))

    assert "0.00 polite It blames the user." in " ".join(page.text.split())


def test_only_metrics_that_a_record_has_are_shown_as_tiles_columns_and_orders() -> None:
    entry = make_entry(undefined={"recall": "no ground truth"}, **judged(groundedness=0.5))
    page = Page(render_report([entry]))

    values = [a.get("value") for a in page.all("option")]
    assert [value for value in values if value in METRICS] == ["groundedness"]
    assert len(page.all("article", **{"class": "tile"})) == 1
    assert [a["data-order"] for a in page.all("button") if "data-order" in a] == ["groundedness"]


def test_lower_is_better_is_said_where_it_is_so() -> None:
    def tile(name: str) -> str:
        page = render_report([make_entry(scores={name: 0.25})])
        return page[page.index("<article") : page.index("</article>")]

    assert "lower is better" in tile("hallucination")
    assert "higher is better" in tile("faithfulness")
    assert "neither end is better" in tile("self_knowledge")


@pytest.mark.parametrize("status", ["judge_error", "timeout"])
def test_a_record_without_evaluation_says_why(status: str) -> None:
    entry = make_entry(status=status, reason="429 five times", scores={}, response_claims=())
    text = Page(render_report([entry])).text
    assert status in text
    assert "429 five times" in text


def test_what_was_left_out_is_said() -> None:
    text = Page(render_report([make_entry(chunks_left_out=3, claims_left_out=4)])).text
    assert "2 of 5 retrieved" in text
    assert "3 more chunks were retrieved" in text
    assert "4 more claims were judged" in text


def test_nothing_is_said_of_chunks_and_claims_where_all_of_them_are_there() -> None:
    text = Page(render_report([make_entry()])).text
    assert "2 retrieved" in text
    assert " more " not in text


def test_a_page_without_records_is_a_page() -> None:
    assert "0 records" in Page(render_report([])).text


def test_a_page_is_small() -> None:
    assert len(render_report([]).encode()) < 30_000


def test_a_missing_jinja2_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=re.escape("claimspan[cli]")):
        render_report([])


# --- the numbers ---


def test_a_mean_covers_the_records_in_which_the_metric_is_defined() -> None:
    entries = [make_entry(scores=s) for s in ({"f1": 0.0}, {"f1": 1.0}, {})]
    (summary,) = summarise(entries)
    assert (summary.mean, summary.n) == (0.5, 2)
    assert summary.bins == (1, 0, 0, 0, 0, 0, 0, 0, 0, 1)


def test_an_unknown_metric_is_summarised_after_ours() -> None:
    names = [s.metric.name for s in summarise([make_entry(scores={"mrr": 0.5, "alignment": 1.0})])]
    assert names == ["alignment", "mrr"]


def test_the_direction_of_a_metric_of_the_users_own_is_the_one_that_its_records_name() -> None:
    entry = make_entry(scores={"rude": 0.0, "kind": 1.0}, lower_is_better=("rude",))

    assert {s.metric.name: s.metric.lower_is_better for s in summarise([entry])} == {
        "rude": True,
        "kind": None,
    }


# --- claims in the answer ---


def found(text: str, wanted: Sequence[Claim]) -> list[tuple[str, tuple[int, ...]]]:
    return [(segment.text, places_of(segment)) for segment in segments_of(text, wanted)]


def test_spaces_case_and_full_stop_do_not_matter() -> None:
    assert found("So: it is\n  late, friend", claims("It is late.")) == [
        ("So: ", ()),
        ("it is\n  late", (0,)),
        (", friend", ()),
    ]


def test_repeated_sentences_belong_to_repeated_claims_in_turn() -> None:
    assert found("Yes. No. Yes.", claims("Yes.", "No.", "Yes.")) == [
        ("Yes.", (0,)),
        (" ", ()),
        ("No.", (1,)),
        (" ", ()),
        ("Yes.", (2,)),
    ]


def test_claims_of_one_sentence_share_it() -> None:
    sentence = "Rome is old and big."
    both = [
        Claim(text="Rome is old", sentence=sentence),
        Claim(text="Big it is", sentence=sentence),
    ]
    assert found(f"{sentence} Yes.", both) == [
        ("Rome is old", (0, 1)),
        (" and big.", (1,)),
        (" Yes.", ()),
    ]


def test_words_are_looked_for_inside_their_own_sentence() -> None:
    claim = Claim(text="it works", sentence="Here it works.")
    assert found("It works. Here it works.", [claim]) == [
        ("It works. Here ", ()),
        ("it works.", (0,)),
    ]


def test_overlapping_claims_split_where_they_overlap() -> None:
    assert found("a b c", claims("a b", "b c")) == [("a ", (0,)), ("b", (0, 1)), (" c", (1,))]


def test_a_claim_out_of_order_is_still_found() -> None:
    assert found("One. Two.", claims("Two.", "One.")) == [("One.", (1,)), (" ", ()), ("Two.", (0,))]


@given(
    st.text(alphabet="ab .\n。İß(", max_size=30),
    st.lists(st.text(alphabet="ab .。İß(", min_size=1, max_size=6), max_size=6),
)
def test_segments_joined_are_the_text(text: str, words: list[str]) -> None:
    segments = segments_of(text, claims(*words))
    assert "".join(segment.text for segment in segments) == text
    assert all(segment.text for segment in segments)


@given(st.lists(st.sampled_from(["It rains.", "It is wet.", "Go in."]), min_size=1, max_size=6))
def test_every_sentence_of_a_text_is_found_in_its_place(sentences: list[str]) -> None:
    segments = segments_of(" ".join(sentences), claims(*sentences))
    marked = [places_of(each) for each in segments if each.claims]
    assert marked == [(i,) for i in range(len(sentences))]
