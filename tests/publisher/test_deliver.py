"""Documents of a file, delivered as the publisher delivers them."""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from datetime import datetime
from itertools import islice
from pathlib import Path

import pytest
from click.testing import CliRunner

from eventlog.cli import cli
from eventlog.opening.waits import Waits
from eventlog.operate import file_delivery
from eventlog.operate.file_delivery import AnswerMemory, FileDelivery
from eventlog.sinks.sink import OutgoingDocument, Reply, unanswered, unreachable
from eventlog.xds.answers import Level, Status
from eventlog.xds.documents import document
from tests.kit.logs import Answering, Crash, Receiver, crash
from tests.laws.resume.power import Disk, unsynced

pytestmark = pytest.mark.quick


def event(number: int, idu: int) -> str:
    return f'<delete event-id="e{number}"><association>idu={idu},table=usr</association></delete>'


FILE = "\n".join(
    [document([event(1, 1), event(2, 2)]), document([event(3, 1)]), "rubbish", document([event(4, 3)])]
)


def deliver(
    folder: Path, answering: Answering, waits: list[float] | None = None
) -> tuple[Receiver, FileDelivery]:
    receiver = Receiver(answering)
    memory = AnswerMemory(folder / "memory")
    slept = [] if waits is None else waits
    delivery = FileDelivery(receiver, memory, Waits(1, 4), lambda words: None, slept.append)
    delivery.run(lambda: [FILE.encode()])
    memory.close()
    return receiver, delivery


def test_every_document_is_sent_and_a_broken_one_is_reported(tmp_path: Path) -> None:
    receiver, delivery = deliver(tmp_path, lambda document: Reply())
    assert receiver.event_ids == ["e1", "e2", "e3", "e4"]
    assert delivery.levels == {"success": 4, "refused": 1}
    receiver, delivery = deliver(tmp_path, lambda document: Reply())
    assert receiver.event_ids == []


def test_what_waits_holds_back_only_its_own_object(tmp_path: Path) -> None:
    tries = iter([True, True, False])
    waits: list[float] = []

    def answering(document: object) -> Reply:
        retry = "e1" in [item.event_id for item in document.items] and next(tries)  # type: ignore[attr-defined]
        return Reply([Status(Level.RETRY, "e1")] if retry else [])

    receiver, _ = deliver(tmp_path, answering, waits)
    assert receiver.event_ids == ["e1", "e2", "e4", "e1", "e1", "e3"]
    assert waits == [1, 2]


@pytest.mark.parametrize("failing", [unanswered("time-out"), unreachable("nobody"), unanswered("busy", 7.0)])
def test_no_answer_is_a_retry(tmp_path: Path, failing: Reply) -> None:
    replies = iter([failing])
    waits: list[float] = []
    receiver, _ = deliver(tmp_path, lambda document: next(replies, Reply()), waits)
    assert sorted(set(receiver.event_ids)) == ["e1", "e2", "e3", "e4"]
    assert waits[0] == (failing.wait if failing.wait else 0.0 if not failing.arrived else 1.0)


def test_fatal_ends_it_and_a_second_run_goes_on(tmp_path: Path) -> None:
    receiver, delivery = deliver(tmp_path, lambda document: Reply([Status(Level.FATAL, "e3", "no")]))
    assert delivery.fatal
    assert receiver.event_ids == ["e1", "e2", "e3"]
    receiver, _ = deliver(tmp_path, lambda document: Reply())
    assert receiver.event_ids == ["e4"]


class Folder(Receiver):
    """A sink that keeps a record, and notes how many documents it gets at once."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def highest(self) -> int | None:
        """Return None: rows have no part in it."""

    def deliver(self, documents: Iterable[OutgoingDocument]) -> Iterator[Reply]:
        batch = list(documents)
        self.sizes.append(len(batch))
        return super().deliver(batch)


class Lazy(Folder):
    """A sink that takes one document of a batch."""

    def deliver(self, documents: Iterable[OutgoingDocument]) -> Iterator[Reply]:
        return islice(super().deliver(documents), 1)


LARGE = range(1, 701)  # documents, more than a sink gets at once


def cut_short(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield chunks of a file on a disk that fails after them."""
    yield from chunks
    raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_sink_with_a_record_gets_many_documents_at_once(tmp_path: Path, *, is_cut: bool) -> None:
    """Send also what precedes a fault of the file, except the document that may go on after it."""
    chunks = [document([event(number, number % 7)]).encode() for number in LARGE]
    memory, folder = AnswerMemory(tmp_path / "memory"), Folder()
    delivery = FileDelivery(folder, memory, Waits(1, 4), lambda words: None, lambda seconds: None)
    with pytest.raises(OSError, match="Input/output") if is_cut else nullcontext():
        delivery.run(lambda: cut_short(chunks) if is_cut else chunks)
    memory.close()
    sent = [f"e{number}" for number in LARGE][: len(LARGE) - is_cut]
    assert folder.event_ids == [event_id for event_id, _ in memory_lines(tmp_path)] == sent
    assert folder.sizes == [500, len(sent) - 500]


def test_after_an_answer_that_a_kill_cut_all_later_ones_are_known(tmp_path: Path) -> None:
    deliver(tmp_path, lambda document: Reply())
    record = tmp_path / "memory"
    record.write_bytes(record.read_bytes()[:-4])  # of the answer to e4
    for left in (["e4"], []):
        receiver, _ = deliver(tmp_path, lambda document: Reply())
        assert receiver.event_ids == left


def test_an_event_that_comes_again_is_sent_once(tmp_path: Path) -> None:
    memory, folder = AnswerMemory(tmp_path / "memory"), Folder()
    delivery = FileDelivery(folder, memory, Waits(1, 4), lambda words: None, lambda seconds: None)
    delivery.run(lambda: [document([event(number, 1)]).encode() for number in (1, 2, 1, 3)])
    memory.close()
    assert folder.event_ids == ["e1", "e2", "e3"]


def test_documents_without_a_reply_leave_with_the_next_try(tmp_path: Path) -> None:
    memory, folder = AnswerMemory(tmp_path / "memory"), Lazy()
    delivery = FileDelivery(folder, memory, Waits(1, 4), lambda words: None, lambda seconds: None)
    delivery.run(lambda: [FILE.encode()])
    memory.close()
    assert folder.event_ids == ["e1", "e2", "e3", "e4"]
    assert folder.sizes == [3, 2, 1]


@pytest.mark.parametrize("patience", [0.0, 60.0])
def test_after_a_power_failure_answers_of_a_second_are_missing_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    """Stop the machine before the last document is sent, or once all is done."""
    monkeypatch.setattr(file_delivery, "_PATIENCE", patience)
    for seed in range(5):
        folder, disk = tmp_path / str(seed), Disk(seed)
        folder.mkdir()
        (folder / "memory").touch()

        def answer_or_stop(document: OutgoingDocument) -> Reply:
            return crash(document) if patience == 0 and document.items[0].event_id == "e4" else Reply()

        with unsynced(disk), suppress(Crash):
            deliver(folder, answer_or_stop)
        disk.fail()
        receiver, _ = deliver(folder, lambda document: Reply())
        assert receiver.event_ids == (["e4"] if patience == 0 else [])


def memory_lines(folder: Path) -> list[list[object]]:
    """Return the lines on record, without the times."""
    _, *lines = (folder / "memory").read_text().splitlines()
    facts = [json.loads(line) for line in lines]
    assert all(datetime.fromisoformat(each[3]) for each in facts if each[2:])
    return [[*each[:3], *each[4:]] for each in facts]


def test_each_answer_that_is_no_first_success_is_on_record(tmp_path: Path) -> None:
    replies = iter([Reply([Status(Level.RETRY, "e1", "busy")]), unanswered("time-out")])
    last = Reply([Status(Level.ERROR, "e1", "no such department")])
    deliver(tmp_path, lambda document: next(replies, last))
    assert sorted(memory_lines(tmp_path), key=str) == [
        ["e1", "error", 2, "no such department"],
        ["e1", "error"],
        ["e1", "retry", 1, "busy"],
        ["e2", "success"],
        ["e3", "success"],
        ["e4", "retry", 1, "time-out"],
        ["e4", "success", 2, ""],
        ["e4", "success"],
    ]


def test_the_record_of_an_event_with_many_tries_stays_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_delivery, "_MOST_DROPPED", 3)
    numbers = iter(range(1, 31))

    def answering(document: OutgoingDocument) -> Reply:
        is_first = document.items[0].event_id == "e1" and (number := next(numbers, None)) is not None
        return Reply([Status(Level.RETRY, "e1", f"busy {number}")] if is_first else [])

    deliver(tmp_path, answering)
    lines = memory_lines(tmp_path)
    tries = [each for each in lines if each[2:]]
    assert len(tries) < 20
    assert tries[:3] == [["e1", "retry", number, f"busy {number}"] for number in (1, 2, 3)]
    assert tries[-1] == ["e1", "success", 31, ""]
    memory = AnswerMemory(tmp_path / "memory")
    assert [each.number for each in memory.tries["e1"]] == [1, 2, 3, *range(25, 32)]
    assert memory.done == dict.fromkeys(("e1", "e2", "e3", "e4"), "success")
    memory.close()
    receiver, _ = deliver(tmp_path, lambda document: Reply())
    assert receiver.event_ids == []


def test_what_comes_by_a_pipe_is_sent_again_too(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    answers = [f'<nds><output><status level="{level}"/></output></nds>' for level in ("retry", "success")]
    program = tmp_path / "receiver.py"
    program.write_text(f"for answer in {answers!r}:\n  input(); print(answer, flush=True)\n")
    writer = threading.Thread(target=lambda: pipe.write_text(document([event(1, 1)])))
    writer.start()
    command = f"{sys.executable} {program}"
    words = ["deliver", str(pipe), "--retry-wait", "0", "--sink", "command", "--command", command]
    result = CliRunner().invoke(cli, words)
    writer.join()
    assert (result.exit_code, result.output) == (0, "eventlog: 1 success\n")


def test_what_is_no_xml_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("record_id,status\n1,N\n")
    for name, words in (
        ("in.csv", "in.csv holds no XDS documents: make them with"),
        ("none.xml", "none.xml"),
    ):
        words_of_sink = ("--sink", "files", "--files-folder", str(tmp_path / "out"))
        done = CliRunner().invoke(cli, ["deliver", str(tmp_path / name), *words_of_sink])
        assert words in str(done.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]
    done = CliRunner().invoke(cli, ["deliver", "--state", str(tmp_path / "memory")], input="a,b\n")
    assert "standard input holds no XDS documents" in str(done.exception)
    assert not (tmp_path / "memory").exists()


def test_the_limit_of_tries_is_named(tmp_path: Path) -> None:
    (tmp_path / "in.xml").write_text(document([event(1, 1), event(2, 2)]))
    words = ["deliver", str(tmp_path / "in.xml"), "--sink", "http", "--http-url", "http://127.0.0.1:1/"]
    given_up = CliRunner().invoke(cli, [*words, "--tries", "2", "--retry-wait", "0.01"])
    assert given_up.exit_code == 1
    assert given_up.output.count("no answer: ") == 2
    sentences = ["try 2 of 2 in 0.01 s", "given up after 2 tries: events are left", "no event was answered"]
    assert [line for line in given_up.output.splitlines() if "no answer: " not in line] == [
        f"eventlog: {sentence}" for sentence in sentences
    ]
    assert "[default: no limit]" in " ".join(CliRunner().invoke(cli, ["deliver", "--help"]).output.split())
    sentences = []
    replies = iter([unreachable("nobody")])
    delivery = FileDelivery(
        Receiver(lambda document: next(replies, Reply())),
        AnswerMemory(tmp_path / "memory"),
        Waits(1, 4),
        sentences.append,
        lambda seconds: None,
    )
    delivery.run(lambda: [(tmp_path / "in.xml").read_bytes()])
    assert sentences == ["no answer: nobody", "try 2 in 1 s, without a limit of tries (--tries)"]


def test_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "in.xml").write_text(FILE.replace("rubbish", ""))
    words = ["deliver", str(tmp_path / "in.xml"), "--sink", "files", "--files-folder", str(tmp_path / "out")]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0
    assert "4 success" in result.output
    assert len(list((tmp_path / "out").glob("*.xml"))) == 3
    assert "nothing was left" in CliRunner().invoke(cli, words).output


def test_a_file_has_no_rows_for_documents_that_need_them(tmp_path: Path) -> None:
    (tmp_path / "in.xml").write_text(FILE)
    words = ["deliver", str(tmp_path / "in.xml"), "--sink", "http", "--http-url", "http://127.0.0.1:1/"]
    result = CliRunner().invoke(cli, [*words, "--document", "entra-bulk"])
    assert "the setting document is of another kind" in str(result.exception)
    assert not (tmp_path / "in.xml.delivered").exists()
