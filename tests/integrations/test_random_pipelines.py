"""Evidence is text from outside that reached the answer, whatever the pipeline is like."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial

import pytest

import claimspan_haystack
import claimspan_langchain
import claimspan_llama_index
from claimspan_tracing.testing import InMemoryMonitor

from captured import attached
from li_agents import agents_look_around
from made_up_texts import Passage
from oi_spans import langchain_traced, monitored
from provenance import Composition, Made, Pipeline, Prompt, as_yaml, one_line, plain, texts_of
from provenance_frameworks import HAYSTACK, LANGCHAIN, LLAMA_INDEX, Way, Ways
from random_pipelines import asking, drawn, graded, grading, noting, refined

SEEDS = range(60)

# OpenInference calls LangChain's texts like functions, which LangChain deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:Calling .text")


@contextmanager
def openinference() -> Generator[InMemoryMonitor]:
    with monitored() as made, langchain_traced(made):
        yield made


@dataclass(frozen=True)
class Framework:
    """How pipelines are written and watched."""

    attached: Callable[[], AbstractContextManager[InMemoryMonitor]]
    ways: Ways
    has_ids: bool = True
    """Whether its documents have the ids of the store."""


FRAMEWORKS = {
    "langchain": Framework(partial(attached, claimspan_langchain.instrument), LANGCHAIN),
    "llama_index": Framework(partial(attached, claimspan_llama_index.instrument), LLAMA_INDEX),
    "haystack": Framework(partial(attached, claimspan_haystack.instrument), HAYSTACK),
    "openinference": Framework(openinference, LANGCHAIN, has_ids=False),
}


@dataclass(frozen=True)
class Watched:
    """A framework that a monitor is attached to."""

    framework: Framework
    monitor: InMemoryMonitor

    def differences(self, pipeline: Pipeline, way: Way) -> dict[str, str]:
        """Run a pipeline, and return what its record says otherwise than the pipeline."""
        self.monitor.clear()
        assert way(pipeline) == pipeline.response, pipeline
        seen = self.monitor.only_record()
        record = seen.record
        passages = {text: each for each, texts in pipeline.read.items() for text in texts}
        read = sorted(passages.get(one_line(each.text), each.text) for each in record.chunks)
        facts: dict[str, tuple[object, object]] = {
            "question": (record.query, pipeline.question),
            "answer": (record.response, pipeline.response),
            "status": (str(seen.status), "evaluated" if pipeline.read else "no_context"),
            "passages": (read, list(pipeline.read)),
        }
        if self.framework.has_ids:
            ids = {each.id for each in record.chunks}
            facts["ids"] = (sorted(ids & pipeline.documents), sorted(pipeline.documents))
        return {
            name: f"{found!r} instead of {right!r}"
            for name, (found, right) in facts.items()
            if found != right
        }

    def check(self, pipeline: Pipeline, *ways: Way) -> None:
        """Check that the chunks of a run are the passages that reached its answer, each once.

        Args:
            pipeline: Is run.
            ways: How it is written; in all ways of the framework, unless it is said.
        """
        found = {
            way.__name__: wrong
            for way in ways or self.framework.ways.in_full
            if (wrong := self.differences(pipeline, way))
        }
        assert found == {}, f"{found}\n\n{pipeline}"


@pytest.fixture(scope="module", params=FRAMEWORKS)
def watched(request: pytest.FixtureRequest) -> Iterator[Watched]:
    framework = FRAMEWORKS[request.param]
    with framework.attached() as monitor:
        yield Watched(framework, monitor)
        assert monitor.stats.faults == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_pipeline_is_judged_by_what_reached_its_answer(watched: Watched, seed: int) -> None:
    ways = watched.framework.ways.in_full
    watched.check(drawn(seed), ways[seed % len(ways)])


# --- what drawing seldom comes to, or what failed once -------------------------------------------

QUESTION = "What do our employees have to know?"

VACATION = Passage(
    "vacation",
    "Everybody with a full contract gets 25 days off a year. Five of them may be taken later.",
)
SICKNESS = Passage(
    "sickness",
    "From the third day of an illness a doctor's note has to reach the office in the annexe.",
)
TRAVEL = Passage(
    "travel",
    "Flights below six hours are in economy class, and a hotel costs at most 140 euros a night.",
)
HANDBOOK = [VACATION, SICKNESS, TRAVEL]

FREE = "Staff enjoy generous breaks, and can move a few to spring."
INVENTED = "Regarding absences, one should mention the hotline with extension 4711."
QUOTING = f'About trips it reads: "{TRAVEL.text}"'
SUMMED_UP = "There is a lot of leisure, some paperwork, and modest comfort on trips."
DRAFT = "Leisure is plentiful here, paperwork is bearable, trips are humble."
ANSWER = "Relax often, hand in your forms on time, and travel humbly."


def shortening(question: str, documents: list[Passage]) -> Prompt:
    """Make a prompt that does not tell the question."""
    return "Shorten this text.", plain(texts_of(documents))


def vacation_of(text: str) -> list[Passage]:
    """Make a document of what a model said on vacation."""
    return [Passage(VACATION.id, text)]


def first_two(documents: list[Passage]) -> list[Passage]:
    """Leave the first two documents."""
    return documents[:2]


def with_source(answer: str) -> str:
    """Name the source that an answer cites by its number."""
    return answer.replace("[1]", "(travel.pdf)")


@pytest.fixture
def composition() -> Composition:
    return Composition(QUESTION)


def test_notes_on_documents_are_no_evidence_whether_they_quote_or_invent(
    watched: Watched, composition: Composition
) -> None:
    found = composition.retrieve("found", composition.question, HANDBOOK)
    notes = [
        composition.model(f"note_{place}", said, noting(place), composition.question, found)
        for place, said in enumerate([FREE, INVENTED, QUOTING])
    ]
    answer = composition.model("answer", ANSWER, asking(), composition.question, *notes)

    watched.check(composition.pipeline(answer))


@pytest.mark.parametrize("is_asked", [True, False], ids=["asked the question", "not asked"])
def test_what_a_model_made_of_documents_is_judged_by_the_documents(
    watched: Watched, composition: Composition, is_asked: bool
) -> None:
    found = composition.retrieve("found", composition.question, HANDBOOK)
    told = asking("Shorten the context.") if is_asked else shortening
    summary = composition.model("summary", SUMMED_UP, told, composition.question, found)
    answer = composition.model("answer", ANSWER, asking(), composition.question, summary)

    watched.check(composition.pipeline(answer))


def test_documents_whose_text_a_model_wrote_are_judged_as_they_were_found(
    watched: Watched, composition: Composition
) -> None:
    found = composition.retrieve("found", composition.question, [VACATION])
    note = composition.model("note", FREE, noting(0), composition.question, found)
    made = composition.code("made", vacation_of, note, reads=found.evidence)
    answer = composition.model("answer", ANSWER, asking(), composition.question, made)

    watched.check(composition.pipeline(answer))


def test_an_answer_that_was_refined_by_one_document_after_the_other_rests_on_all(
    watched: Watched, composition: Composition
) -> None:
    found = composition.retrieve("found", composition.question, HANDBOOK)
    told: list[Made] = []
    for place, said in enumerate([FREE, INVENTED, ANSWER]):
        taken = [composition.question, found, *told]
        told = [composition.model(f"refined_{place}", said, refined(place), *taken)]

    watched.check(composition.pipeline(*told))


@agents_look_around
def test_what_a_sub_agent_reports_is_judged_by_what_it_has_read(
    watched: Watched, composition: Composition
) -> None:
    found = composition.retrieve("found", composition.question, HANDBOOK)
    report = composition.model("report", SUMMED_UP, asking(), composition.question, found)
    answer = composition.model("answer", ANSWER, asking(), composition.question, report)

    watched.check(composition.pipeline(answer), watched.framework.ways.as_a_tool)


def test_of_documents_in_yaml_one_may_stand_there_as_it_is_and_another_with_escapes(
    watched: Watched, composition: Composition
) -> None:
    escaped = Passage(
        "island",
        "The bureau at Korčula, of which Ms Žunić is in charge, pays for lunch on working days "
        "up to 12 euros, and for dinner as soon as one stays until nine.",
    )
    assert VACATION.text in as_yaml(texts_of([VACATION, escaped])).replace("\n    ", " ")
    assert "Kor\\u010Dula" in as_yaml(texts_of([VACATION, escaped]))
    found = composition.retrieve("found", composition.question, [VACATION, escaped])
    told = asking(form=as_yaml)
    answer = composition.model("answer", ANSWER, told, composition.question, found)

    watched.check(composition.pipeline(answer))


@pytest.mark.parametrize("reads_again", [False, True], ids=["draft alone", "documents again"])
def test_a_draft_and_its_revision_have_read_each_document_once(
    watched: Watched, composition: Composition, reads_again: bool
) -> None:
    found = composition.retrieve("found", composition.question, HANDBOOK)
    draft = composition.model("draft", DRAFT, asking(), composition.question, found)
    taken = [draft, found] if reads_again else [draft]
    told = asking("Improve the draft in the context.")
    answer = composition.model("answer", ANSWER, told, composition.question, *taken)

    watched.check(composition.pipeline(answer))


@pytest.mark.parametrize("kept", [[], [1], [0, 2]], ids=str)
def test_what_a_grader_rejects_is_no_evidence(
    watched: Watched, composition: Composition, kept: list[int]
) -> None:
    found = composition.retrieve("found", composition.question, HANDBOOK)
    grades = [
        composition.model(
            f"grade_{place}",
            "yes" if place in kept else "no",
            grading(place),
            composition.question,
            found,
        )
        for place in range(len(HANDBOOK))
    ]
    left = composition.code("left", graded, found, *grades)
    answer = composition.model("answer", ANSWER, asking(), composition.question, left)

    watched.check(composition.pipeline(answer))


def test_what_a_tool_returned_is_evidence_beside_documents(
    watched: Watched, composition: Composition
) -> None:
    found = composition.retrieve("found", composition.question, HANDBOOK[:2])
    page = composition.tool("page", composition.question, TRAVEL)
    answer = composition.model("answer", ANSWER, asking(), composition.question, found, page)

    watched.check(composition.pipeline(answer))


def test_documents_that_were_given_with_the_question_are_evidence(
    watched: Watched, composition: Composition
) -> None:
    given = composition.give("documents", HANDBOOK)
    left = composition.code("left", first_two, given)
    answer = composition.model("answer", ANSWER, asking(), composition.question, left)

    watched.check(composition.pipeline(answer))


def test_what_a_model_has_read_to_search_once_more_is_no_evidence_of_an_edited_answer(
    watched: Watched, composition: Composition
) -> None:
    found = composition.retrieve("found", composition.question, HANDBOOK[:2])
    told = asking("What else should be looked for?")
    query = composition.model("query", "allowances abroad", told, composition.question, found)
    more = composition.retrieve("more", query, HANDBOOK[2:])
    said = composition.model("said", f"{ANSWER} [1]", asking(), composition.question, more)
    answer = composition.code("answer", with_source, said)

    watched.check(composition.pipeline(answer))
