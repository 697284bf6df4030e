"""What ends the judging process each time is set aside, and all else is judged."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from otlp_receiver import receiver
from served import Served, asked, body_of, scored, serving, until

POISON: Final = "How deep is the Drava?"

KILLS: Final = f"""
import os
from claimspan.judges import LexicalJudge

class Kills(LexicalJudge):
    def extract_claims(self, text, *given, **named):
        if {POISON!r} in repr((text, given, named)):
            os._exit(9)
        return super().extract_claims(text, *given, **named)

def redact(text):
    if {POISON!r} in text:
        os._exit(9)
    return text

judge = Kills()
"""


def n_aside(served: Served) -> int:
    """Records and spans that were set aside."""
    health = served.health()
    return health["records"].get("given_up", 0) + health["spans"].get("set_aside", 0)


@pytest.mark.parametrize("what", ["judge", "redact"])
def test_what_ends_the_judging_process_is_set_aside_and_all_others_are_judged(
    tmp_path: Path, what: str
) -> None:
    (tmp_path / "kills.py").write_text(KILLS)
    config = tmp_path / "serve.yaml"
    config.write_text(f"{what}: kills.py:{what}\n")
    with receiver() as backend:
        where = backend.url.removesuffix("/v1/traces")
        options = ("--config", str(config), "--export", where, "--spool", str(tmp_path / "kept"))
        judge = None if what == "judge" else "lexical"
        with serving(tmp_path, *options, judge=judge) as served:
            for question in ("How long is it?", POISON, "Where does it rise?"):
                served.post(body_of(asked(question)))

            until(lambda: served.health()["judge"]["restarts"] == 3)
            until(lambda: n_aside(served) > 0)
            served.post(body_of(asked("Where does it end?")))
            until(lambda: len({trace for trace, _ in scored(backend)}) == 3)
            restarts = served.health()["judge"]["restarts"]
            ended = served.stop()

    assert restarts == 3
    told = [line for line in ended.stderr.splitlines() if "attempts" in line or "aside" in line]
    assert len(told) == 1
    assert str(tmp_path / "kept") in told[0]
    assert POISON not in ended.stderr
    if what == "redact":
        (file,) = (tmp_path / "kept").glob("aside-*")
        assert POISON.encode() in file.read_bytes()
        assert file.stat().st_mode & 0o077 == 0
