"""An input that grows while it is read, and the file that remembers."""

from __future__ import annotations

import os
import socket
import threading
from inspect import GEN_CLOSED, getgeneratorstate
from pathlib import Path

import pytest

from eventlog.core.errors import Misuse
from eventlog.core.tables import Tables
from eventlog.gbase.changes import Answer
from eventlog.gbase.faults import SessionOver
from eventlog.gbase.format import GbaseSettings
from eventlog.gbase.records import Error, Number
from eventlog.gbase.transactions import Position
from eventlog.places.growing_stream import Growing, StateFile, follow, pieces
from tests.gbase.helpers import HERE, T1, Told, changes_of, refusals_of

pytestmark = pytest.mark.quick


def stream(count: int) -> bytes:
    told = Told().table(7, T1)
    for at in range(count):
        start = 10 * at + 1
        told.begin(start, 1).row(Number.INSERT, start + 1, 1, 7, (at, "x")).commit(start + 2, 1)
    return told.data


def values(path: Path, state: Path | None = None, **options: object) -> list[object]:
    kept = StateFile(state) if state else None
    chunks = pieces(str(path), **options)  # type: ignore[arg-type]
    batches = follow(str(path), Tables(), GbaseSettings(), state=kept, chunks=chunks)
    return [change.after["c1"] for batch in batches for change in changes_of(batch)]


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
    """Its bytes from the old length on are not what follows the old ones."""
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
    """What is written under its name is never read; that it was moved away alone says nothing."""
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
    path, state = tmp_path / "capture", tmp_path / "state"
    path.write_bytes(stream(2))
    assert values(path, state) == [0, 1]
    assert StateFile(state).load() == Position(13, 13)
    path.write_bytes(stream(4))
    assert values(path, state) == [2, 3]
    assert values(path, state) == []


def test_a_position_is_saved_only_when_its_changes_were_taken(tmp_path: Path) -> None:
    path, state = tmp_path / "capture", tmp_path / "state"
    path.write_bytes(stream(2))
    batches = follow("x", Tables(), GbaseSettings(), state=StateFile(state), chunks=pieces(str(path)))
    list(next(batches))
    assert not state.exists()
    for answers in batches:
        list(answers)
    assert StateFile(state).load() == Position(13, 13)


@pytest.mark.parametrize("text", ["[]", '{"restart": 1e400, "delivered": 1}'])
def test_a_state_file_that_is_none_is_misuse(tmp_path: Path, text: str) -> None:
    (tmp_path / "state").write_text(text)
    with pytest.raises(Misuse, match="not a state file"):
        StateFile(tmp_path / "state").load()


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(stream(2),))
    writer.start()
    assert values(path, endless=True) == [0, 1]
    writer.join()


@pytest.mark.parametrize("family", ["tcp", "unix"])
def test_a_socket_is_read_to_its_end(tmp_path: Path, family: str) -> None:
    if family == "tcp":
        listening = socket.create_server(("127.0.0.1", 0))
        name = f"tcp://127.0.0.1:{listening.getsockname()[1]}"
    else:
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        name = f"unix:{tmp_path / 's'}"

    def serve() -> None:
        peer, _ = listening.accept()
        with peer:
            peer.sendall(stream(2))

    serving = threading.Thread(target=serve)
    serving.start()
    batches = follow(name, Tables(), GbaseSettings(), chunks=pieces(name, endless=True))
    assert [change.after["c1"] for batch in batches for change in changes_of(batch)] == [0, 1]
    serving.join()
    listening.close()


def test_an_address_without_port_is_misuse() -> None:
    with pytest.raises(Misuse, match="tcp://host:port"):
        next(pieces("tcp://localhost"))


def test_a_dump_is_followed_too() -> None:
    name = str(HERE / "dump.txt")
    batches = follow(name, Tables(), GbaseSettings(framed=True), chunks=pieces(name))
    (change,) = [change for batch in batches for change in changes_of(batch)]
    assert change.after == {"c1": 15, "c2": "abcabcabc"}


def test_the_reading_ends_where_a_length_is_unsound(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(stream(1) + bytes(40))
    chunks = pieces(str(path), endless=True)
    batches = follow("x", Tables(), GbaseSettings(), chunks=chunks)
    *_, last = [answer for answers in batches for answer in answers]
    assert "header size is 0" in last.reason  # type: ignore[union-attr]
    assert getgeneratorstate(chunks) == GEN_CLOSED


def session_over(path: Path) -> None:
    told = Told().table(7, T1).begin(1, 1).row(Number.INSERT, 2, 1, 7, (4, "x")).commit(3, 1)
    path.write_bytes(told.say(Error(1, -83790)).data)


def test_an_error_that_ends_the_session_stops_a_live_reading_behind_what_came_before(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    session_over(path)
    chunks = pieces(str(path), endless=True, wait=lambda: pytest.fail("it went on"))
    batches = follow(
        "x", Tables(), GbaseSettings(), state=StateFile(tmp_path / "state"), chunks=chunks, live=True
    )
    found: list[Answer] = []
    with pytest.raises(SessionOver, match=r"-83790.*flags 1"):
        found.extend(answer for answers in batches for answer in answers)
    assert [change.after["c1"] for change in changes_of(found)] == [4]
    assert StateFile(tmp_path / "state").load() == Position(3, 3)
    assert getgeneratorstate(chunks) == GEN_CLOSED


def test_an_error_in_a_file_is_reported_with_flag_and_code_and_ends_nothing(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    session_over(path)
    path.write_bytes(path.read_bytes() + Told().say(Error(0, -83712)).data)
    batches = follow("x", Tables(), GbaseSettings(), chunks=pieces(str(path)))
    ended, warned = refusals_of(answer for answers in batches for answer in answers)
    assert "-83790" in ended.reason
    assert "flags 1" in ended.reason
    assert "the session goes on" in warned.reason
