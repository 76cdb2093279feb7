"""Captures and queues go on where they were delivered, transaction by transaction."""

from __future__ import annotations

import json
import os
import random
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.core.errors import EventlogError, Misuse, Refused
from eventlog.formats.gbase.faults import SessionOver
from eventlog.formats.gbase.records import Error, Number
from eventlog.formats.linter.columns import DISPATCH
from eventlog.transfer import job_output
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.loop import RunLength
from eventlog.transfer.report import Report
from tests.formats.gbase.helpers import T1, StreamBuilder
from tests.formats.linter.helpers import LAYOUT, ROW_1, ROW_2, end, operation
from tests.kit.databases import Database
from tests.kit.support import CLOCK
from tests.kit.tiers import drawn
from tests.transactions.killed import run_and_kill
from tests.transactions.reading import delivered

pytestmark = pytest.mark.quick


def capture(transactions: list[list[int]], chance: random.Random) -> bytes:
    """Return a capture of transactions that overlap."""
    sequences = count()
    built = StreamBuilder().table(7, T1)
    unfinished = [(number, rows.copy(), False) for number, rows in enumerate(transactions, 1)]
    while unfinished:
        at = chance.randrange(len(unfinished))
        number, rows, begun = unfinished[at]
        if not begun:
            built.begin(next(sequences), number)
            unfinished[at] = number, rows, True
        elif rows:
            built.row(Number.INSERT, next(sequences), number, 7, (rows.pop(0), "x"))
        else:
            built.commit(next(sequences), number)
            del unfinished[at]
    return built.data


def job(folder: Path, *names: str) -> Job:
    inputs = tuple(str(folder / name) for name in names)
    return Job("gbase", "changes", inputs, f"{folder / 'out'}/", state=folder / "state")


def read_deliveries(capture_job: Job, state: str | None = None) -> Iterator[tuple[list[object], str | None]]:
    for changes, after in delivered(capture_job, state):
        yield [change.after["c1"] for change in changes], after


TRANSACTIONS = st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=3), min_size=1, max_size=5)


@settings(max_examples=drawn(40))
@given(transactions=TRANSACTIONS, chance=st.randoms(use_true_random=False))
def test_every_state_of_a_capture_goes_on_behind_its_delivery(
    transactions: list[list[int]], chance: random.Random
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "one.bin").write_bytes(capture(transactions, chance))
        one = job(folder, "one.bin")
        whole = list(read_deliveries(one))
        assert sorted(rows for rows, _ in whole) == sorted(transactions)
        for number, (_, state) in enumerate(whole):
            assert list(read_deliveries(one, state)) == whole[number + 1 :]
        built = _converted(one)
        assert [change["fields"][0]["after"] for change in built] == [
            one for rows, _ in whole for one in rows
        ]
        commits = [change["extra"]["commit"] for change in built]
        assert commits == sorted(commits)
        later_changes = _converted(replace(one, options={"since": str(commits[0])}))
        assert later_changes == [change for change in built if change["extra"]["commit"] > commits[0]]


def test_a_run_reads_one_stream(tmp_path: Path) -> None:
    """Refuse two, because rows of one object may be in both: only `as-is` reads them one after the other."""
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(capture([[1]], random.Random(1)))
    both = job(tmp_path, "a", "b")
    for refused in (lambda: _converted(both), lambda: list(read_deliveries(both))):
        with pytest.raises(Misuse, match="a run reads one stream, and there are 2"):
            refused()
    assert len(_converted(replace(both, options={"order": "as-is"}))) == 2


def _converted(capture_job: Job, tell: Callable[[Refused], None] = lambda refused: None) -> list[Any]:
    out = Path(capture_job.inputs[0]).with_name("all.jsonl")
    convert(replace(capture_job, output=str(out), state=None), Report(tell), CLOCK)
    return [json.loads(line) for line in out.read_text().splitlines()]


@settings(max_examples=drawn(15))
@given(
    transactions=TRANSACTIONS,
    chance=st.randoms(use_true_random=False),
    kills=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 1000)), max_size=4),
)
def test_a_capture_that_grows_gives_each_transaction_once_whatever_is_killed(
    transactions: list[list[int]], chance: random.Random, kills: list[tuple[int, int]]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = capture(transactions, chance)
        size = 0
        for kill, more in [*kills, (10**6, len(data))]:
            size = min(len(data), size + more)
            (folder / "one.bin").write_bytes(data[:size])
            run_and_kill(lambda: _small(job(folder, "one.bin")), kill)
        parts = sorted((folder / "out").glob("part-*"))
        lines = [json.loads(line) for part in parts for line in part.read_text().splitlines()]
        (folder / "one.bin").write_bytes(data)
        assert [line["fields"][0]["after"] for line in lines] == [
            row for rows, _ in read_deliveries(job(folder, "one.bin")) for row in rows
        ]


def _small(capture_job: Job) -> None:
    job_output.CHANGES = 2  # type: ignore[misc]  # in a process of its own
    convert(capture_job, Report(lambda refused: None), CLOCK)


def test_since_is_the_number_of_a_commit(tmp_path: Path) -> None:
    (tmp_path / "one.bin").write_bytes(capture([[1], [2], [3]], random.Random(1)))
    both = job(tmp_path, "one.bin")
    commits = [change["extra"]["commit"] for change in _converted(both)]
    behind = replace(both, options={"since": str(commits[0])})
    assert len(_converted(behind)) == 2
    assert len(list(read_deliveries(behind))) == 2
    with pytest.raises(Misuse, match="the number of a commit"):
        list(read_deliveries(replace(both, options={"since": "x"})))


@pytest.mark.parametrize("state", ["", "7", '{"stream": "one.bin"}', '{"tasks": {}}'])
def test_a_state_that_is_none(tmp_path: Path, state: str) -> None:
    (tmp_path / "one.bin").write_bytes(b"")
    with pytest.raises(EventlogError, match="is not the state of a stream"):
        list(read_deliveries(job(tmp_path, "one.bin"), state))


def test_a_capture_that_the_state_does_not_know_tells_nothing_twice(tmp_path: Path) -> None:
    """One under another name, or of a session that was started again, holds what was delivered already."""
    data = capture([[1], [2], [3]], random.Random(1))
    (tmp_path / "one.bin").write_bytes(data)
    *_, (_, state) = read_deliveries(job(tmp_path, "one.bin"))
    again = job(tmp_path, "again.bin")
    (tmp_path / "again.bin").write_bytes(data)
    with pytest.raises(EventlogError, match=r"again.bin: it is not in the state.* --since"):
        list(read_deliveries(again, state))
    last = json.loads(state or "")["last"][0]
    assert list(read_deliveries(replace(again, options={"since": str(last)}), state)) == []
    assert len(list(read_deliveries(replace(again, options={"since": "0"}), state))) == 3


def test_a_capture_that_goes_on_after_another_is_read_whole(tmp_path: Path) -> None:
    for name, first in (("one.bin", 1), ("two.bin", 11)):
        built = StreamBuilder().table(7, T1).begin(first, 1).row(Number.INSERT, first + 1, 1, 7, (first, "x"))
        (tmp_path / name).write_bytes(built.commit(first + 2, 1).data)
    *_, (_, state) = read_deliveries(job(tmp_path, "one.bin"))
    assert [rows for rows, _ in read_deliveries(job(tmp_path, "two.bin"), state)] == [[11]]


def test_every_state_of_a_queue_goes_on_behind_its_delivery(postgres: Database) -> None:
    """Read on from each state while transactions overlap."""
    engine = postgres.engine()
    rows = [
        operation(2, ROW_1, TRANSACT_ID=5, SYSLOG_ADDR=100),
        operation(3, ROW_1, ROW_2, TRANSACT_ID=6, SYSLOG_ADDR=101),
        operation(2, ROW_2, TRANSACT_ID=7, SYSLOG_ADDR=102),
        operation(2, ROW_1, TRANSACT_ID=5, SYSLOG_ADDR=103),
        end(TRANSACT_ID=6, SYSLOG_ADDR=110),
        end(TRANSACT_ID=5, SYSLOG_ADDR=111),
        end(TRANSACT_ID=7, SYSLOG_ADDR=112),
    ]
    with engine.begin() as connection:
        kinds = {"int": "bigint", "bytes": "bytea"}
        columns = ", ".join(f"{c.name} {kinds.get(c.type, 'text')}" for c in DISPATCH)
        connection.exec_driver_sql(f"create table dispatch_queue ({columns})")
        marks = ", ".join("decode(%s, 'hex')" if c.type == "bytes" else "%s" for c in DISPATCH)
        for cells in rows:
            connection.exec_driver_sql(f"insert into dispatch_queue values ({marks})", cells)
    engine.dispose()
    url = postgres.address
    one = Job("linter", "changes", ("dispatch_queue",), tables=LAYOUT, url=url)

    def read_from(state: str | None = None) -> list[list[str | None]]:
        return [[change.position for change in changes] for changes, _ in delivered(one, state)]

    assert read_from() == [["DEMO/6/101"], ["DEMO/5/100", "DEMO/5/103"], ["DEMO/7/102"]]
    states = [state for _, state in delivered(one)]
    for number, state in enumerate(states):
        assert read_from(state) == read_from()[number + 1 :]


def test_a_capture_that_is_followed_is_written_in_parts(tmp_path: Path) -> None:
    """Each round is a part; what a run that was killed left half is written by the next one."""
    data = capture([[1, 2], [3], [4, 5]], random.Random(3))
    cuts = [data[:200], data[200:420], data[420:]]
    one = job(tmp_path, "a")
    (tmp_path / "a").write_bytes(cuts.pop(0))

    def grow(seconds: float) -> bool:
        if cuts:
            with (tmp_path / "a").open("ab") as file:
                file.write(cuts.pop(0))
            return True
        return False

    convert(one, Report(lambda refused: None), CLOCK, run_length=RunLength(True, grow))
    convert(one, Report(lambda refused: None), CLOCK)
    texts = [path.read_text() for path in sorted((tmp_path / "out").glob("part-*"))]
    values = [json.loads(line)["fields"][0]["after"] for text in texts for line in text.splitlines()]
    assert sorted(values) == [1, 2, 3, 4, 5]
    assert len(texts) > 1


def test_a_pipe_that_is_followed_ends_with_its_writer(tmp_path: Path) -> None:
    path = tmp_path / "a"
    os.mkfifo(path)
    data = capture([[1], [2, 3]], random.Random(1))
    writer = threading.Thread(target=lambda: path.write_bytes(data))
    writer.start()
    waits = count()

    def wait(seconds: float) -> bool:
        writer.join(0.1)
        return next(waits) < 600

    convert(job(tmp_path, "a"), Report(lambda refused: None), CLOCK, run_length=RunLength(True, wait))
    writer.join()
    assert next(waits) < 600, "it went on waiting"
    texts = [path.read_text() for path in sorted((tmp_path / "out").glob("part-*"))]
    assert sum(text.count("\n") for text in texts) == 3


def test_a_session_that_is_over_ends_it_behind_what_came_before(tmp_path: Path) -> None:
    built = StreamBuilder().table(7, T1).begin(1, 1).row(Number.INSERT, 2, 1, 7, (4, "x")).commit(3, 1)
    (tmp_path / "a").write_bytes(built.say(Error(1, -83790)).data)
    said: list[Refused] = []
    with pytest.raises(SessionOver, match=r"-83790.*flags 1"):
        convert(
            job(tmp_path, "a"), Report(said.append), CLOCK, run_length=RunLength(True, lambda seconds: True)
        )
    (part,) = (tmp_path / "out").glob("part-*")
    assert part.read_text().count("\n") == 1
    assert any("-83790" in refused.reason for refused in said)
