"""Batches of a stream become rows of a target, which knows those that it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from eventlog_spark.stream.holding import Released
from eventlog_spark.stream.table_sink import OtherBatch, TableSink, TargetAhead, TargetOfAnother

from eventlog.core.errors import EventlogError, Refused
from eventlog.library import RecordRefused
from eventlog.qlik.message_settings import MessageSettings
from eventlog.sequence.transactions import Incomplete
from eventlog.targets.tables.progress import NoState
from eventlog.targets.tables.settings import ApplySettings
from tests.databases import Database
from tests.spark.messages import TABLES, message
from tests.targets.support import rows

pytestmark = pytest.mark.quick


def out(turn: int, n: int, op: str = "INSERT", late: bool = False, **data: Any) -> Released:
    """Return a change of an account as the state hands it out."""
    data = {"id": 1, **data}
    return Released("message", turn, late, False, "bank", 0, n, message("account", op, data, n, turn))


class Held:
    """A target, whose runs begin anew each time."""

    def __init__(self, rows: Callable[[], list[tuple[Any, ...]]], **where: Any) -> None:
        self.rows = rows
        self.refused: list[Refused] = []
        self._where = where

    def batch(self, number: int, *reported: Released, query: str = "q", **chosen: Any) -> None:
        """One batch, applied by a process of its own."""
        with closing(self.sink(**chosen)) as sink:
            sink.apply(reported, query, number)

    def sink(self, heard: bool = True, **chosen: Any) -> TableSink:
        reading = MessageSettings(table_of_topic=True)
        tell = self.refused.append if heard else None
        return TableSink(TABLES, ApplySettings(**chosen), reading, tell, **self._where)

    @property
    def reasons(self) -> list[str]:
        return [reported.reason for reported in self.refused]


@pytest.fixture(params=["database", "delta"])
def held(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Held]:
    if request.param == "delta":

        def read() -> list[tuple[Any, ...]]:
            found = DeltaTable(tmp_path / "account").to_pyarrow_table(columns=["id", "amount"])
            return sorted(tuple(row.values()) for row in found.to_pylist())

        yield Held(read, folder=tmp_path)
        return
    made: Database = request.getfixturevalue("postgres")
    engine = made.engine()
    url = made.url.render_as_string(hide_password=False)
    yield Held(lambda: sorted(rows(engine, "select id, amount from account")), url=url)
    engine.dispose()


def test_a_batch_that_comes_again_changes_nothing(held: Held) -> None:
    first, second = out(1, 1, amount=1), out(2, 2, "UPDATE", amount=2)
    held.batch(0, first)
    held.batch(0, first)
    held.batch(3, second)
    assert held.rows() == [(1, 2)]
    held.batch(3, second)
    held.batch(4, out(3, 3, "DELETE"))
    assert held.rows() == []
    assert held.refused == []


@pytest.mark.parametrize(
    ("number", "query", "fault"), [(4, "other", TargetOfAnother), (2, "q", TargetAhead), (3, "q", OtherBatch)]
)
def test_what_is_not_the_next_batch_is_an_error(
    held: Held, number: int, query: str, fault: type[EventlogError]
) -> None:
    held.batch(3, out(1, 1, amount=1))
    with pytest.raises(fault):
        held.batch(number, out(2, 2, amount=9), query=query)
    assert held.rows() == [(1, 1)]


def test_two_streams_into_one_target_have_names(held: Held) -> None:
    held.batch(3, out(1, 1, amount=1))
    held.batch(0, out(1, 1, id=2, amount=2), query="other", source="branch")
    assert held.rows() == [(1, 1), (2, 2)]


def test_batches_of_one_process_follow_each_other(held: Held) -> None:
    with closing(held.sink()) as sink:
        for number in range(3):
            sink.apply([out(number, number, "UPDATE" if number else "INSERT", amount=number)], "q", number)
        assert (sink.tally.inserted, sink.tally.updated) == (1, 2)
    assert held.rows() == [(1, 2)]


def test_nothing_of_a_batch_that_stops_is_applied(held: Held) -> None:
    held.batch(0, out(1, 1, amount=1))
    with pytest.raises(Incomplete, match="transaction 7 lacks its change 2"):
        held.batch(
            1, out(2, 2, "UPDATE", amount=2), Released("stop", reason="transaction 7 lacks its change 2")
        )
    assert held.rows() == [(1, 1)]


@pytest.mark.parametrize("restarted", [False, True])
def test_what_comes_late_changes_no_row_that_was_changed_since(held: Held, restarted: bool) -> None:
    """Refuse all late changes after a restart, because their rows are unknown then."""
    late, other = out(2, 3, "UPDATE", late=True, amount=3), out(3, 4, late=True, id=2, amount=4)
    first = [out(1, 9, amount=9)]
    if restarted:
        held.batch(0, *first)
        held.batch(1, late, other)
    else:
        held.batch(0, *first, late, other)
    assert held.rows() == ([(1, 9)] if restarted else [(1, 9), (2, 4)])
    assert sum("a change at" in reason for reason in held.reasons) == 1 + restarted
    assert sum("came late" in reason and "a change at" not in reason for reason in held.reasons) == 2


def test_what_contradicts_itself_in_a_transaction_is_refused_with_it(held: Held) -> None:
    one = Released(
        "message", 2, False, False, "bank", 0, 5, message("account", "INSERT", {"id": 5}, 5, 2, 1, True)
    )
    other = one._replace(value=message("account", "INSERT", {"id": 6}, 5, 2, 1, True), offset=6)
    held.batch(0, out(1, 1, amount=1), one, other)
    assert held.rows() == [(1, 1)]
    assert len(held.reasons) == 2
    assert "has two different values" in held.reasons[0]


def test_what_nobody_hears_of_ends_the_stream(held: Held) -> None:
    held.batch(0, out(1, 1, amount=1))
    lost = Released("refused", where="bank[0]:7", reason="not JSON", value=b"{")
    with pytest.raises(RecordRefused, match=r"bank\[0\]:7: not JSON"):
        held.batch(1, out(2, 2, "UPDATE", amount=2), lost, heard=False)
    assert held.rows() == [(1, 1)]


def test_a_target_of_which_files_were_applied_is_another_source(held: Held, tmp_path: Path) -> None:
    from eventlog.jobs.job import Job
    from eventlog.jobs.report import Report
    from eventlog.transfer.apply import apply_to_database, apply_to_delta

    (tmp_path / "in.jsonl").write_bytes(message("account", "INSERT", {"id": 1, "amount": 1}, 1, 1) + b"\n")
    job = Job("qlik-message", "changes", (str(tmp_path / "in.jsonl"),), tables=TABLES)
    where: Any = held.sink()
    if where.url is not None:
        apply_to_database(job, where.url, ApplySettings(), Report(print), "", lambda size: None)
    else:
        apply_to_delta(job, where.folder, ApplySettings(), Report(print), "", lambda size: None)
    with pytest.raises(NoState):
        held.batch(0, out(1, 1, amount=2))


def test_one_table_that_fails_keeps_no_other_from_a_batch(tmp_path: Path) -> None:
    def reported(table: str, n: int, turn: int) -> Released:
        return Released(
            "message", turn, False, False, "bank", 0, n, message(table, "INSERT", {"id": n}, n, turn)
        )

    def sizes() -> Sequence[int]:
        return [len(DeltaTable(tmp_path / name).to_pyarrow_table()) for name in ("account", "entry")]

    held = Held(list, folder=tmp_path)
    held.batch(0, reported("account", 1, 1), reported("entry", 2, 1))
    in_the_way = (
        tmp_path / "account" / "_delta_log" / f"{DeltaTable(tmp_path / 'account').version() + 1:020}.json"
    )
    in_the_way.mkdir()
    second = reported("account", 3, 2), reported("entry", 4, 2)
    with pytest.raises(EventlogError, match="account: "):
        held.batch(1, *second)
    assert sizes() == [1, 2]
    in_the_way.rmdir()
    held.batch(1, *second)
    assert sizes() == [2, 2]
