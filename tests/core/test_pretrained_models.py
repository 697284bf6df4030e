"""How ``LocalJudge`` uses a cross-encoder by others: here a tiny one that the tests write."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from claimspan.errors import ConfigError
from claimspan.judges.local.cross_encoder import CrossEncoder, ModelFiles
from claimspan.judges.local.judge import LocalJudge
from claimspan.verdicts import Claim, Label, Verdict

from tiny_onnx import write_cross_encoder

VOTES = {"yes": (0.0, 3.0, 0.0), "no": (3.0, 0.0, 0.0), "well": (0.0, 0.0, 3.0)}
LABELS = ("CONTRADICTION", "entailment", "neutral")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    write_cross_encoder(tmp_path / "tiny", VOTES, LABELS)
    return tmp_path / "tiny"


def _verdicts(model: Path, *references: str) -> list[Verdict]:
    matrix = asyncio.run(LocalJudge(model).check([Claim(text="a claim")], references))
    return [verdict for verdict in matrix.verdicts() if verdict]


def test_labels_come_in_the_order_that_the_configuration_names(model: Path) -> None:
    labels = [verdict.label for verdict in _verdicts(model, "yes it is", "no", "well now")]

    assert labels == [Label.ENTAILED, Label.CONTRADICTED, Label.NEUTRAL]


def test_a_model_of_two_labels_knows_no_contradiction(tmp_path: Path) -> None:
    votes = {"yes": (3.0, 0.0), "no": (0.0, 3.0)}
    write_cross_encoder(tmp_path, votes, ("entailment", "not_entailment"))
    yes, no = _verdicts(tmp_path, "yes", "no")

    assert (yes.label, no.label) == (Label.ENTAILED, Label.NEUTRAL)
    assert no.contradicted == 0.0


@pytest.mark.parametrize(
    "labels",
    [
        ("contradiction", "entailment", "neutral"),  # cross-encoder/nli-deberta-v3-small
        ("entailment", "neutral", "contradiction"),  # MoritzLaurer/mDeBERTa-v3-base-mnli-xnli
        ("CONTRADICTION", "NEUTRAL", "ENTAILMENT"),  # as the authors of roberta-large-mnli write
    ],
)
def test_every_order_and_spelling_of_the_labels_is_read(
    tmp_path: Path, labels: tuple[str, ...]
) -> None:
    words = {"entailment": "yes", "contradiction": "no", "neutral": "well"}
    votes = {
        words[label.lower()]: tuple(3.0 * (at == column) for column in range(3))
        for at, label in enumerate(labels)
    }
    write_cross_encoder(tmp_path, votes, labels)

    found = [verdict.label for verdict in _verdicts(tmp_path, "yes", "no", "well")]
    assert found == [Label.ENTAILED, Label.CONTRADICTED, Label.NEUTRAL]


def test_labels_without_a_name_are_refused_with_what_to_do(tmp_path: Path) -> None:
    write_cross_encoder(tmp_path, VOTES, ("LABEL_0", "LABEL_1", "LABEL_2"))

    with pytest.raises(ConfigError, match="id2label names entailment"):
        _verdicts(tmp_path, "yes")


def test_a_model_without_token_types_is_read(model: Path) -> None:
    # As DeBERTa and RoBERTa are exported; the tiny one takes ids and attention mask alone.
    assert _verdicts(model, "yes")[0].label == Label.ENTAILED


@pytest.mark.parametrize("extra", ["token_type_ids", "position_ids"])
def test_a_model_that_wants_more_inputs_of_a_pair_gets_them(tmp_path: Path, extra: str) -> None:
    write_cross_encoder(tmp_path, VOTES, LABELS, inputs=("attention_mask", extra))

    assert _verdicts(tmp_path, "yes")[0].label == Label.ENTAILED


def test_a_model_of_something_else_than_text_pairs_is_refused(tmp_path: Path) -> None:
    write_cross_encoder(tmp_path, VOTES, LABELS, inputs=("attention_mask", "pixel_values"))

    with pytest.raises(ConfigError, match="pixel_values"):
        _verdicts(tmp_path, "yes")


def test_chunks_read_together_are_read_by_a_model_by_others_too(model: Path) -> None:
    judge = LocalJudge(model)
    cells = {(0, 0), (0, 1), (0, 2)}
    found = asyncio.run(
        judge.check_context(
            [Claim(text="a long claim of rivers and lakes")], ["no rivers", "yes lakes"], cells,
            context=[0, 1],
        )
    )  # fmt: skip

    assert found.labels == [[Label.CONTRADICTED, Label.ENTAILED, Label.ENTAILED]]


def test_the_best_window_of_a_long_reference_counts(model: Path) -> None:
    filler = "nothing is said of the matter in this sentence here. " * 60

    assert _verdicts(model, f"no. {filler} yes.")[0].label == Label.ENTAILED


def test_the_name_tells_which_model_it_is(model: Path) -> None:
    assert LocalJudge(model).name == f"local:{model}"


@pytest.mark.parametrize("lost", ["model.onnx", "tokenizer.json", "config.json"])
def test_a_model_that_lacks_a_file_is_refused(model: Path, lost: str) -> None:
    (model / lost).unlink()

    with pytest.raises(ConfigError, match="lacks"):
        _verdicts(model, "yes")


def test_a_model_for_something_else_is_refused(tmp_path: Path) -> None:
    write_cross_encoder(tmp_path, {"yes": (1.0, 0.0)}, ("positive", "negative"))

    with pytest.raises(ConfigError, match="labels"):
        _verdicts(tmp_path, "yes")


@pytest.mark.parametrize(
    "config",
    ["", "[]", '{"id2label": ["entailment"]}', '{"id2label": {"0": "entailment", "2": "neutral"}}'],
    ids=["empty", "a list", "labels in a list", "a gap"],
)
def test_a_configuration_without_a_label_for_each_number_is_refused(
    model: Path, config: str
) -> None:
    (model / "config.json").write_text(config, encoding="utf-8")

    with pytest.raises(ConfigError, match="id2label names entailment"):
        _verdicts(model, "yes")


class _Hub(BaseHTTPRequestHandler):
    """Serves the files of one folder as the hub serves those of ``org/tiny``."""

    folder: Path

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self.wfile.write(self._answer())

    def _answer(self) -> bytes:
        name = self.path.removeprefix("/org/tiny/resolve/main/")
        path = self.folder / name
        content = path.read_bytes() if path.is_file() else b""
        self.send_response(200 if path.is_file() else 404)
        if not path.is_file():
            is_model = self.path.startswith("/org/tiny/")
            self.send_header("X-Error-Code", "EntryNotFound" if is_model else "RepoNotFound")
        self.send_header("ETag", f'"{len(content)}-{name}"')
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        return content

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub(model: Path) -> Iterator[str]:
    handler = type("Hub", (_Hub,), {"folder": model})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _ask_by_name(model: str, endpoint: str, cache: Path) -> str:
    """Prints the label or the error in a new process: the hub's address is read at import."""
    script = (
        "import asyncio, sys, time\n"
        "time.sleep = lambda seconds: None\n"  # the hub's client waits between its tries
        "from claimspan.errors import ConfigError\n"
        "from claimspan.judges.local import LocalJudge\n"
        "from claimspan.verdicts import Claim\n"
        "try:\n"
        "    judge = LocalJudge(sys.argv[1])\n"
        "    found = asyncio.run(judge.check([Claim(text='a claim')], ['yes it is']))\n"
        "    print(found.labels[0][0])\n"
        "except ConfigError as error:\n"
        "    print(error)\n"
    )
    settings = {"HF_ENDPOINT": endpoint, "HF_HOME": str(cache), "HF_HUB_DISABLE_XET": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", script, model],
        capture_output=True, text=True, check=True, timeout=120, env=os.environ | settings,
    )  # fmt: skip
    return ended.stdout.strip()


def test_a_model_is_fetched_from_the_hub_by_its_name(hub: str, tmp_path: Path) -> None:
    assert _ask_by_name("org/tiny", hub, tmp_path / "cache") == "entailed"


def test_a_name_that_the_hub_does_not_know_is_refused(hub: str, tmp_path: Path) -> None:
    said = _ask_by_name("org/none", hub, tmp_path / "cache")

    assert said == "'org/none' is neither a folder nor a model on the hub: check the spelling"


def test_a_hub_that_does_not_answer_is_named(tmp_path: Path) -> None:
    said = _ask_by_name("org/tiny", "http://127.0.0.1:9", tmp_path / "cache")

    assert said == ("'org/tiny' cannot be downloaded: the hub does not answer; try again")


def test_a_name_that_is_no_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="neither a folder nor"):
        _verdicts(Path("no such model!"), "yes")


def test_pairs_come_back_in_their_order_whatever_their_length(model: Path) -> None:
    encoder = CrossEncoder(ModelFiles(model / "model.onnx", model / "tokenizer.json"))
    pairs = [("well", "yes " * (1 + at * 37 % 400)) for at in range(60)]
    pairs += pairs[:5]

    found = encoder.logits(pairs)

    assert [row[1] for row in found] == [min(3.0 * len(b.split()), 3.0 * 508) for _, b in pairs]
    assert encoder.logits([]) == []


def test_a_file_that_was_changed_is_refused(model: Path) -> None:
    files = ModelFiles(model / "model.onnx", model / "tokenizer.json", {"model.onnx": "0" * 64})

    with pytest.raises(ConfigError, match="not the published file"):
        CrossEncoder(files)


def test_a_file_that_is_missing_is_named(model: Path) -> None:
    with pytest.raises(ConfigError, match=r"lost\.onnx"):
        CrossEncoder(ModelFiles(model / "lost.onnx", model / "tokenizer.json"))
