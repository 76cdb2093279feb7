"""An input that grows while it is read, and the file that remembers."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eventlog.core.errors import InvalidValue, Misuse, Refused
from eventlog.core.tables import Tables
from eventlog.gbase.faults import SessionOver
from eventlog.gbase.records import Error, Number
from eventlog.gbase.settings import GbaseSettings
from eventlog.gbase.transactions import Position
from eventlog.sequence.delivery import Delivery
from eventlog.sources.growing_stream import FollowedStream, Growing
from tests.gbase.helpers import HERE, T1, StreamBuilder

pytestmark = pytest.mark.quick


def stream(count: int) -> bytes:
    built = StreamBuilder().table(7, T1)
    for at in range(count):
        start = 10 * at + 1
        built.begin(start, 1).row(Number.INSERT, start + 1, 1, 7, (at, "x")).commit(start + 2, 1)
    return built.data


def followed(
    name: str,
    refused: list[Refused],
    state: str | None = None,
    wait: Callable[[], bool] | None = None,
    **given: Any,
) -> FollowedStream:
    return FollowedStream(name, Tables(), GbaseSettings(**given), state, refused.append, wait)


def changes(source: FollowedStream, follow: bool) -> Iterator[object]:
    for delivery in source.round(follow):
        assert isinstance(delivery, Delivery)
        yield from (change.after["c1"] for change in delivery.changes)


def read(source: FollowedStream, follow: bool = False) -> list[object]:
    """Return the values of all changes of a round."""
    return list(changes(source, follow))


def values(path: Path, endless: bool = False, wait: Callable[[], bool] | None = None) -> list[object]:
    return read(followed(str(path), [], wait=wait), endless)


def test_a_file_is_read_on_as_it_grows(tmp_path: Path) -> None:
    path, data = tmp_path / "capture", stream(3)
    path.write_bytes(data[:100])
    rest = [data[100:150], data[150:], b""]

    def grow() -> bool:
        piece = rest.pop(0)
        with path.open("ab") as file:
            file.write(piece)
        return bool(piece)

    assert values(path, endless=True, wait=grow) == [0, 1, 2]


def test_a_file_that_shrinks_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(stream(1))

    def shrink() -> bool:
        path.write_bytes(b"")
        return True

    with pytest.raises(Misuse, match="became shorter"):
        values(path, endless=True, wait=shrink)


def test_a_file_that_is_emptied_and_written_longer_is_an_error(tmp_path: Path) -> None:
    """Refuse a file whose bytes from the old length on do not follow the old ones."""
    path, others = tmp_path / "capture", stream(3)[100:]
    path.write_bytes(stream(1))

    looks = [True, False]

    def rewrite() -> bool:
        path.write_bytes(others)
        return looks.pop(0)

    with pytest.raises(Misuse, match="was written anew"):
        values(path, endless=True, wait=rewrite)
    path.write_bytes(stream(1))
    growing = Growing(str(path), Tables(), GbaseSettings(), Position())
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
        values(path, endless=True, wait=replace)


def test_a_second_run_brings_only_what_is_new(tmp_path: Path) -> None:
    path, position = tmp_path / "capture", '{"restart": 13, "delivered": 13}'
    path.write_bytes(stream(2))
    source = followed(str(path), [])
    assert read(source) == [0, 1]
    assert source.state == position
    path.write_bytes(stream(4))
    assert read(followed(str(path), [], position)) == [2, 3]
    assert read(followed(str(path), [], source.state)) == [2, 3]


@pytest.mark.parametrize("text", ["[]", '{"restart": 1e400, "delivered": 1}'])
def test_a_state_that_is_none_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidValue, match="the state of a stream"):
        followed(str(tmp_path / "capture"), [], text)


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(stream(2),))
    writer.start()
    assert values(path, endless=True) == [0, 1]
    writer.join()


def test_a_dump_is_followed_too() -> None:
    name = str(HERE / "dump.txt")
    assert read(followed(name, [], framed=True)) == [15]


def test_the_reading_ends_where_a_length_is_unsound(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(stream(1) + bytes(40))
    refused: list[Refused] = []
    assert read(followed(str(path), refused), follow=True) == [0]
    assert "header size is 0" in refused[-1].reason


def session_over(path: Path) -> None:
    built = StreamBuilder().table(7, T1).begin(1, 1).row(Number.INSERT, 2, 1, 7, (4, "x")).commit(3, 1)
    path.write_bytes(built.say(Error(1, -83790)).data)


def test_an_error_that_ends_the_session_stops_a_live_reading_behind_what_came_before(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    session_over(path)
    source = followed(str(path), [], wait=lambda: pytest.fail("it went on"))
    found: list[object] = []
    with pytest.raises(SessionOver, match=r"-83790.*flags 1"):
        found.extend(changes(source, follow=True))
    assert (found, source.state) == ([4], '{"restart": 3, "delivered": 3}')


def test_an_error_in_a_file_is_reported_with_flag_and_code_and_ends_nothing(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    session_over(path)
    path.write_bytes(path.read_bytes() + StreamBuilder().say(Error(0, -83712)).data)
    refused: list[Refused] = []
    read(followed(str(path), refused))
    ended, warned = refused
    assert "-83790" in ended.reason
    assert "flags 1" in ended.reason
    assert "the session continues" in warned.reason
