"""An input that grows while it is read, and the file that remembers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from eventlog.core.errors import Misuse, Refused
from eventlog.core.tables import Tables
from eventlog.files.limits import LIMITS
from eventlog.formats.gbase.faults import SessionOver
from eventlog.formats.gbase.gbase_settings import GbaseSettings
from eventlog.formats.gbase.records import Error, Number
from eventlog.formats.gbase.transactions import START
from eventlog.transfer.sources.captured_files import Growing, capture
from eventlog.transfer.sources.stream_feed import StreamFeed
from tests.formats.gbase.helpers import HERE, T1, StreamBuilder

pytestmark = pytest.mark.quick


def stream(count: int) -> bytes:
    built = StreamBuilder().table(7, T1)
    for at in range(count):
        start = 10 * at + 1
        built.begin(start, 1).row(Number.INSERT, start + 1, 1, 7, (at, "x")).commit(start + 2, 1)
    return built.data


def followed(path: Path, *, state: str | None = None, follow: bool = True, **settings: Any) -> StreamFeed:
    reading = GbaseSettings(**settings)
    return capture(
        str(path), Tables(), reading, "", state, follow=follow, limits=LIMITS, advance=lambda size: None
    )


def changes(source: StreamFeed, refused: list[Refused], wait: Callable[[], bool]) -> Iterator[object]:
    """Yield the values of all changes, round after round."""
    with closing(source):
        while True:
            for item in source.round(True):
                if isinstance(item, Refused):
                    refused.append(item)
                else:
                    yield from (change.after["c1"] for change in item.changes)
            if source.ended or not wait():
                return


def values(path: Path, wait: Callable[[], bool] = lambda: False, **settings: Any) -> list[object]:
    return list(changes(followed(path, **settings), [], wait))


def test_a_file_that_shrinks_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(stream(1))

    def shrink() -> bool:
        path.write_bytes(b"")
        return True

    with pytest.raises(Misuse, match="became shorter"):
        values(path, wait=shrink)


def test_a_file_that_is_emptied_and_written_longer_is_an_error(tmp_path: Path) -> None:
    """Refuse a file whose bytes from the old length on do not follow the old ones."""
    path, others = tmp_path / "capture", stream(3)[100:]
    path.write_bytes(stream(1))

    looks = [True, False]

    def rewrite() -> bool:
        path.write_bytes(others)
        return looks.pop(0)

    with pytest.raises(Misuse, match="was written anew"):
        values(path, wait=rewrite)
    path.write_bytes(stream(1))
    growing = Growing(str(path), Tables(), GbaseSettings(), START)
    assert len(list(growing.answers(True))) == 1
    path.write_bytes(others)
    with pytest.raises(Misuse, match="was written anew"):
        list(growing.answers(True))
    growing.close()


def test_a_file_that_is_replaced_is_an_error(tmp_path: Path) -> None:
    """Refuse a file that was replaced under its name; one that was only moved away is read on."""
    path = tmp_path / "capture"
    path.write_bytes(stream(1))

    steps = ["move", "write", "end"]

    def replace() -> bool:
        step = steps.pop(0)
        if step == "move":
            path.rename(tmp_path / "capture.1")
        elif step == "write":
            path.write_bytes(stream(2))
        return step != "end"

    with pytest.raises(Misuse, match="was replaced"):
        values(path, wait=replace)


def test_a_dump_is_read_on_from_a_state() -> None:
    assert values(HERE / "dump.txt", follow=False, framed=True) == [15]


def test_a_dump_is_not_followed() -> None:
    with pytest.raises(Misuse, match="a dump is read to its end"):
        values(HERE / "dump.txt", framed=True)


def test_the_reading_ends_where_a_length_is_unsound(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(stream(1) + bytes(40))
    refused: list[Refused] = []
    assert list(changes(followed(path), refused, lambda: pytest.fail("it went on"))) == [0]
    assert "header size is 0" in refused[-1].reason


def session_over(path: Path) -> None:
    built = StreamBuilder().table(7, T1).begin(1, 1).row(Number.INSERT, 2, 1, 7, (4, "x")).commit(3, 1)
    path.write_bytes(built.say(Error(1, -83790)).data)


def test_an_error_that_ends_the_session_stops_a_live_reading_behind_what_came_before(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    session_over(path)
    source = followed(path)
    found: list[object] = []
    with pytest.raises(SessionOver, match=r"-83790.*flags 1"):
        found.extend(changes(source, [], lambda: pytest.fail("it went on")))
    assert found == [4]
    assert json.loads(source.state or "")["position"] == {"restart": 3, "delivered": 3}


def test_an_error_in_a_file_is_reported_with_flag_and_code_and_ends_nothing(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    session_over(path)
    path.write_bytes(path.read_bytes() + StreamBuilder().say(Error(0, -83712)).data)
    refused: list[Refused] = []
    list(changes(followed(path, follow=False), refused, lambda: False))
    ended, warned = refused
    assert "-83790" in ended.reason
    assert "flags 1" in ended.reason
    assert "the session continues" in warned.reason
