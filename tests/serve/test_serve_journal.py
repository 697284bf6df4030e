"""What was put down for who judges is read once, in order, and goes when all in it is judged."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from claimspan.errors import ConfigError
from claimspan_serve._journal import Journal, Judged, JudgedTrace, Segments, segment_of


def put(journal: Journal, *bodies: bytes) -> list[bool]:
    return [journal.append(body, is_json=False, is_packed=True) for body in bodies]


def read(segments: Segments) -> list[bytes]:
    return [each.body for each in iter(segments.next, None)]


def test_a_reader_gets_each_request_once_in_its_order_while_more_come(tmp_path: Path) -> None:
    with closing(Journal(tmp_path, 64 * 20)) as journal, closing(Segments(tmp_path)) as segments:
        assert put(journal, b"a", b"b" * 30, b"") == [True] * 3
        assert read(segments) == [b"a", b"b" * 30, b""]

        put(journal, b"c")
        entry = segments.next()

        assert entry is not None
        assert (entry.body, entry.is_json, entry.is_packed) == (b"c", False, True)
        assert segments.next() is None


def test_what_a_killed_process_left_half_written_is_passed_over(tmp_path: Path) -> None:
    with closing(Journal(tmp_path, 10_000)) as journal:
        put(journal, b"whole", b"half")
    (file,) = tmp_path.glob("*.otlp")
    file.write_bytes(file.read_bytes()[:-1])

    with closing(Journal(tmp_path, 10_000)) as journal, closing(Segments(tmp_path)) as segments:
        assert read(segments) == [b"whole"]
        put(journal, b"next")

        assert read(segments) == [b"next"]


def test_there_is_no_room_until_what_is_read_is_judged(tmp_path: Path) -> None:
    with closing(Journal(tmp_path, 100)) as journal, closing(Segments(tmp_path)) as segments:
        assert put(journal, b"x" * 40, b"y" * 40, b"z" * 40) == [True, True, False]
        first, second = segments.next(), segments.next()
        assert first is not None
        assert second is not None
        segments.next()
        segments.delete(Counter({segment_of(first.position): 1}))
        journal.refresh()
        assert not journal.has_room(60)

        segments.delete(Counter())
        journal.refresh()

        assert put(journal, b"z" * 40) == [True]
        assert read(segments) == [b"z" * 40]


def test_a_disk_that_is_full_refuses_a_request_and_takes_the_next(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with closing(Journal(folder, 1_000)) as journal:
        folder.rmdir()
        assert put(journal, b"lost") == [False]
        folder.mkdir()

        assert put(journal, b"kept") == [True]


def test_traces_that_were_judged_are_known_to_the_next_process_alone(tmp_path: Path) -> None:
    judged = Judged(tmp_path)
    seen = JudgedTrace(7, "late", b"resource")
    judged.note(1, seen)
    judged.note(2, seen)
    judged.keep([(1, seen)])
    with pytest.raises(ConfigError, match="end the other claimspan serve"):
        Judged(tmp_path, wait_seconds=0.0)
    judged.close()

    again = Judged(tmp_path)

    assert (again.get(1), again.get(2)) == (seen, None)
    again.close()
