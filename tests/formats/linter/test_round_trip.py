"""Changes to rows and back, from any container; hostile rows; a queue in a database table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.core.change import ABSENT, Change, Field, Op, Raw, Value
from eventlog.core.errors import Misuse, Refused
from eventlog.core.tables import Tables
from eventlog.formats.linter.format import FORMAT
from eventlog.formats.linter.linter_settings import LinterSettings
from eventlog.formats.linter.queue_progress import JournalPlace, QueueProgress, QueueState
from eventlog.transfer.sources.queues import described, rows
from tests.formats.linter.helpers import (
    COMMIT,
    LAYOUT,
    NAMES,
    ROLLBACK,
    ROW_1,
    ROW_2,
    WHEN,
    end,
    only,
    operation,
    read_queue,
    write_queue,
)
from tests.kit.tiers import drawn

pytestmark = pytest.mark.quick

text = st.text("abcÖя", max_size=6)
images = st.binary(min_size=1, max_size=40) | st.binary(min_size=1, max_size=3).map(lambda b: b * 2500)
moments = st.integers(0, 1_100_000_000).map(lambda n: n.to_bytes(4, "big").hex() + "8000")


@st.composite
def queues(draw: st.DrawFn) -> list[Change]:
    """Draw changes as a reader returned them for some queue."""
    reported: list[Any] = []
    for transaction in range(draw(st.integers(1, 3))):
        cells: dict[str, Any] = {"TRANSACT_ID": transaction, "DBNODE": draw(st.sampled_from(("A", "DEMO")))}
        commit = draw(st.none() | st.integers((transaction << 61) + 4, (transaction + 1 << 61) - 9))
        places = st.lists(st.integers(0, commit or 0), min_size=4, max_size=4, unique=True)
        addresses = [None] * 4 if commit is None else sorted(draw(places))
        for address in range(draw(st.integers(0, 4))):
            typ = draw(st.sampled_from((1, 2, 3, 4, 7, 8, 9)))
            first = draw(images)
            second = draw(images) if typ == 3 else draw(st.just(b"") | images) if typ > 4 else b""
            cells |= {"SYSLOG_ADDR": addresses[address], "ROWID_SRC": address}
            cells |= {
                "DST_SERVER": draw(text),
                "OPER_DATE": draw(moments),
                "TABNUM_SRC": draw(st.sampled_from((7, 8))),
            }
            cells |= {
                "CHANNEL": draw(st.none() | st.integers(-1, 9)),
                "BLOBATR": draw(st.integers(-5, 5)) if typ > 3 else 0,
            }
            if len(first + second) > 3400:
                data = first + second
                for at in range(0, len(data), 3400):
                    lengths = {"LEN1": len(first), "LEN2": len(second), "DATA": data[at : at + 3400].hex()}
                    reported.append(operation(typ, b"", EXTDATA=at // 3400, **{**cells, **lengths}))
            else:
                reported.append(operation(typ, first, second, **cells))
        reported.append(end(**{**cells, "SYSLOG_ADDR": commit}))
    answers = read_queue(reported, Tables(), time_order="big")
    assert all(isinstance(answer, Change) for answer in answers), answers
    return answers  # type: ignore[return-value]


@settings(max_examples=drawn(150))
@given(queues(), st.sampled_from(("row", "operation", "auto")), st.sampled_from(("big", "little")))
def test_changes_written_and_read_are_the_same_changes(
    changes: list[Change], lengths: str, order: str
) -> None:
    cells = write_queue(changes, Tables(), lengths=lengths, time_order=order)
    again = read_queue(cells, Tables(), lengths=lengths, time_order=order)
    strip = [c._replace(position=None) if c.position is None else c for c in changes]
    assert [without_addresses(a) for a in again] == [without_addresses(c) for c in strip]


def without_addresses(change: Change | Refused) -> Change:
    """Return a change whose journal address was null gets one when it is written: leaves addresses out."""
    assert isinstance(change, Change), change
    facts = tuple((name, fact) for name, fact in change.extra if name != "commit_syslog_addr")
    return change._replace(position=None, extra=facts)


def test_addresses_come_back() -> None:
    change = only(read_queue([operation(2, ROW_1), end()]))
    assert only(read_queue(write_queue([change], LAYOUT))) == change


rows_of_usr = st.tuples(st.integers(-(1 << 31), (1 << 31) - 1), st.text("abcd", max_size=8))


@given(st.sampled_from((Op.INSERT, Op.UPDATE, Op.DELETE)), rows_of_usr, rows_of_usr)
def test_rows_of_a_layout_come_back(op: Op, old: tuple[int, str], new: tuple[int, str]) -> None:
    names = ("idu", "fname")
    befores: Any = old if op is not Op.INSERT else (ABSENT, ABSENT)
    afters: Any = new if op is not Op.DELETE else (ABSENT, ABSENT)
    fields = tuple(Field(*side) for side in zip(names, befores, afters, strict=True))
    change = Change(
        op, "own", "usr", (("idu", (old if op is Op.DELETE else new)[0]),), fields, time="2020-05-05T01:02:03"
    )
    back = only(read_queue(write_queue([change], LAYOUT)))
    assert (back.op, back.schema, back.table, back.key, back.fields, back.time) == (
        change.op,
        change.schema,
        change.table,
        change.key,
        change.fields,
        change.time,
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (Change(Op.TRUNCATE, None, "usr"), "empties a table"),
        (Change(Op.INSERT, None, "other", fields=(Field("a", ABSENT, 1),)), "the record layout of other"),
        (
            Change(Op.INSERT, "own", "usr", fields=(Field("idu", ABSENT, 1),)),
            "column fname is not captured after",
        ),
        (Change(Op.INSERT, "own", "usr"), "no values"),
        (
            Change(Op.UPDATE, "own", "usr", fields=(Field("idu", ABSENT, 1), Field("fname", ABSENT, "a"))),
            "one side was not captured",
        ),
        (
            Change(Op.INSERT, None, "usr", time="1980-01-01T00:00:00", raw=Raw(None, b"x")),
            "between 1990 and 2126",
        ),
    ],
)
def test_what_a_queue_cannot_hold_is_refused(change: Change, reason: str) -> None:
    (refused,) = FORMAT.write([change], LAYOUT, LinterSettings())
    assert reason in refused.reason


def test_bytes_of_parquet_are_read_as_hex_is() -> None:
    plain = [operation(2, ROW_1), end()]
    binary = (NAMES.index("OPER_DATE"), NAMES.index("DATA"))
    typed = [
        tuple(bytes.fromhex(cell) if at in binary and cell else cell for at, cell in enumerate(row))
        for row in plain
    ]
    assert read_queue(typed) == read_queue(plain)
    assert read_queue(
        [tuple(memoryview(c) if isinstance(c, bytes) else c for c in row) for row in typed]
    ) == read_queue(plain)


cell: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.integers(-(1 << 70), 1 << 70),
    st.sampled_from(("", "0", "5", "-1", "00", "zz", "3b9aca004000", "00" * 20)),
    st.text(max_size=5),
    st.binary(max_size=8),
    st.floats(),
    st.booleans(),
    st.lists(st.integers(), max_size=2),
)
mutations = st.lists(st.tuples(st.integers(0, 7), st.integers(0, len(NAMES) - 1), cell), max_size=6)


@settings(max_examples=drawn(600))
@given(mutations, st.permutations(range(8)))
def test_hostile_rows_are_read_safely(changes: list[tuple[int, int, Any]], order: list[int]) -> None:
    """Return only answers for hostile rows, and nothing of a transaction that did not commit."""
    reported = [
        operation(2, ROW_1),
        operation(3, ROW_1, ROW_1),
        operation(8, b"b", TRANSACT_ID=6),
        operation(1, ROW_1, TRANSACT_ID=7),
    ]
    reported += [end(), end(ROLLBACK, TRANSACT_ID=6), operation(2, ROW_1, TRANSACT_ID=8), end(TRANSACT_ID=8)]
    table = [list(reported[at]) for at in order]
    for address, cells in enumerate(table):
        cells[NAMES.index("SYSLOG_ADDR")] = str(address)
    for row, column, value in changes:
        table[row][column] = value
    committed = {
        str(row[NAMES.index("TRANSACT_ID")]).strip()
        for row in table
        if str(row[NAMES.index("TYP")]).strip(" +") in ("4", "4.0")
    }
    answers: list[Change | Refused] = []
    with suppress(Misuse):  # an address may be changed to one that goes back
        answers = read_queue([tuple(row) for row in table])
    for answer in answers:
        if isinstance(answer, Change):
            assert answer.transaction is not None
            number = answer.transaction.rpartition("/")[2]
            assert number in {plain(name) for name in committed}
        else:
            assert answer.reason


def plain(name: str) -> str:
    try:
        return str(int(float(name))) if "." in name or "e" in name else str(int(name))
    except (ValueError, OverflowError):
        return name


@contextmanager
def database(*reported: tuple[Value, ...]) -> Iterator[sa.Connection]:
    """A connection to a database with a queue and its attributes."""
    engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
    with engine.begin() as connection:
        types = {"OPER_DATE": "blob", "DATA": "blob", "EXTDATA": "integer", "SYSLOG_ADDR": "integer"}
        columns = [f"{name} {types.get(name, 'text')}" for name in NAMES]
        connection.exec_driver_sql(f"create table queue ({', '.join(columns)})")
        marks = ", ".join("?" * len(NAMES))
        connection.exec_driver_sql(f"insert into queue values ({marks})", list(reported))
        connection.exec_driver_sql(
            "create table attrs (TABNUM_SRC int, NAME text, ATRNUM int, TYP int, PKEY int, LEN int)"
        )
        connection.exec_driver_sql(
            "insert into attrs values (7, 'IDU', 1, 2, 1, 4), (7, 'FNAME', 2, 1, 0, 8)"
        )
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def test_a_queue_in_a_database_table_is_read_in_the_order_of_the_journal() -> None:
    with database(end(SYSLOG_ADDR=200), operation(2, ROW_1, SYSLOG_ADDR=30)) as connection:
        tables = Tables(described(connection, "attrs"))
        source = rows(connection, "queue").source
        change = only(FORMAT.read([source], tables, LinterSettings()))
        assert (change.table, change.key, change.after["FNAME"]) == ("table_7", (("IDU", 1),), "Jack")
        start = JournalPlace(100, bytes.fromhex(WHEN))
        later = rows(connection, "queue", QueueState("big", {"DEMO": QueueProgress(start)}))
        assert [row.cells[NAMES.index("TYP")] for row in later.source.records] == [str(COMMIT)]  # type: ignore[union-attr]


def test_a_table_that_is_no_queue_says_so() -> None:
    with database(end()) as connection:
        with pytest.raises(Misuse, match="no table nothing"):
            rows(connection, "nothing")
        with pytest.raises(Misuse, match="no column NAME, ATRNUM, PKEY, LEN"):
            described(connection, "queue")


def test_a_contradiction_that_was_kept_comes_back() -> None:
    """An INSERT and a DELETE with a second part; without the setting both are refused."""
    for typ in (1, 2):
        rows = [operation(typ, ROW_1, ROW_2), end()]
        change = only(read_queue(rows, keep_contradictions=True))
        cells = write_queue([change], LAYOUT)
        assert only(read_queue(cells, keep_contradictions=True)) == change


def test_a_change_of_another_format_is_queued_under_its_own_name() -> None:
    """A fact that another format calls `commit` is not one of a queue's."""
    fields = (Field("idu", ABSENT, 1), Field("fname", ABSENT, "Jack"))
    change = Change(
        Op.INSERT, "own", "usr", (("idu", 1),), fields, transaction="39@47", extra=(("commit", 5),)
    )
    row, ending = write_queue([change], LAYOUT)
    assert [row[NAMES.index(name)] for name in ("TABNUM_SRC", "DST_OWNER", "DST_TABLE")] == [7, "own", "usr"]
    assert row[NAMES.index("TRANSACT_ID")] == ending[NAMES.index("TRANSACT_ID")]
    back = only(read_queue([row, ending]))
    assert (back.schema, back.table, back.fields) == ("own", "usr", fields)
