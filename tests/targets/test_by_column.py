"""Batches become rows as their changes do one by one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import count, groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.engine import Engine

from eventlog.columnar.captures.column_values import ARROW_TYPES, NotPlain
from eventlog.columnar.change_batch import ChangeBatch
from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.errors import Refused
from eventlog.jobs.job import Job
from eventlog.jobs.report import Report
from eventlog.sequence.delivery import ChangesOfBatches, Delivery
from eventlog.sql.connect import connect
from eventlog.sql.postgresql import POSTGRESQL
from eventlog.targets.tables.array_cells import to_array
from eventlog.targets.tables.cells import to_cell
from eventlog.targets.tables.database import Database
from eventlog.targets.tables.settings import ApplySettings
from eventlog.targets.tables.table_writer import TableWriter
from eventlog.targets.tables.tally import Tally
from eventlog.transfer.given import all_given
from eventlog.transfer.opening import open_from_state
from eventlog.transfer.places import Opening
from tests.commands import Shell
from tests.databases import Database as Placed
from tests.gbase.helpers import write_changes
from tests.targets.support import rows, run
from tests.targets.test_blocks import TABLE, TYPES
from tests.tiers import drawn

pytestmark = pytest.mark.quick

COLUMNS = ("idu", "name", "paid", "born", "at", "here", "big")
ARROW = dict(zip(COLUMNS, map(ARROW_TYPES.__getitem__, (int, str, str, str, str, bool, float)), strict=True))
MAKE = """create table {} (idu integer primary key, name varchar(8), paid numeric(8, 2), born date,
at timestamp(3), here boolean, big double precision, check (name <> 'bad'))"""
TABLES = tablesfile.read(
    "".join(f'[tables.{name}]\nkey = ["idu"]\ncolumns = {{ idu = "integer" }}\n' for name in ("one", "two"))
)
Row = dict[str, Any]
_SOURCES = count()


class ByColumn(ChangeBatch):
    """A batch that fails if its changes are taken one by one."""

    __slots__ = ()

    def changes(self) -> Any:
        raise AssertionError("its changes were taken one by one")


def changed(op: Op, table: str, before: Row | None, after: Row | None, place: int) -> Change:
    """Return a change with whole rows."""
    sides = [[ABSENT if side is None else side[name] for name in COLUMNS] for side in (before, after)]
    fields = tuple(map(Field, COLUMNS, *sides))
    key = after or before or {}
    return Change(op, None, table, (("idu", key["idu"]),), fields, f"{place:09}", f"t{place // 3}")


def batch_of(changes: Sequence[Change], kind: type[ChangeBatch] = ChangeBatch) -> ChangeBatch:
    """Return changes of one table as a batch."""
    kinds = pa.struct(list(ARROW.items()))
    columns = {
        "op": pa.array([change.op.value for change in changes]).dictionary_encode(),
        "position": pa.array([change.position for change in changes]),
        "transaction": pa.array([change.transaction for change in changes]),
        "time": pa.nulls(len(changes), pa.string()),
        "user": pa.nulls(len(changes), pa.string()),
        "before": pa.array([change.before or None for change in changes], kinds),
        "after": pa.array([change.after or None for change in changes], kinds),
    }
    return kind(None, changes[0].table, ("idu",), (), pa.RecordBatch.from_pydict(columns))


def batches_of(changes: Sequence[Change], kind: type[ChangeBatch] = ChangeBatch) -> ChangesOfBatches:
    """Return changes as batches, one for those of a table that follow each other."""
    runs = (list(run) for _, run in groupby(changes, lambda change: change.table))
    return ChangesOfBatches([batch_of(run, kind) for run in runs])


def apply(engine: Engine, deliveries: Sequence[Delivery], **given: Any) -> tuple[Tally, list[Refused]]:
    """Return what became of deliveries, each in a transaction of its own, and what was refused."""
    refused: list[Refused] = []
    chosen = ApplySettings(group=1, **given)
    with closing(Database(engine, f"s{next(_SOURCES)}", TABLES, chosen, refused.append)) as target:
        writer = TableWriter(target, "s", "gbase", chosen, refused.append, has_states=True)
        writer.write(deliveries)
    return writer.tally, refused


def held(engine: Engine) -> list[list[Any]]:
    """Return the rows of both tables."""
    return [rows(engine, f"select * from {name} order by idu") for name in ("one", "two")]


@pytest.fixture
def engine(postgres: Placed) -> Engine:
    """An engine on a database with both tables, which are known to changes."""
    made = connect(postgres.url)
    run(made, MAKE.format("one"), MAKE.format("two"))
    return made


_PLAIN = {
    "idu": st.integers(0, 3),
    "name": st.sampled_from((None, "", "a", "b ", 'c"d', "e,f\n", "g\\N\t", "\\.", "h\n\\.\n", "é\r\n")),
    "paid": st.sampled_from((None, "1.5", "-2")),
    "born": st.sampled_from((None, "2025-03-23")),
    "at": st.sampled_from((None, "2025-03-23T10:57:19.123", "2025-03-23 10:57:19")),
    "here": st.sampled_from((None, True, False)),
    "big": st.sampled_from((None, 0.1, -0.0, 1e300, float("inf"))),
}
_ODD = {
    "idu": st.sampled_from((0, 1, None)),
    "name": st.sampled_from(("a", "bad", "x" * 9)),
    "paid": st.sampled_from(("1.5", "3.125")),
    "born": st.sampled_from(("2025-03-23", "0999-02-30")),
}
_ROWS = st.fixed_dictionaries(_PLAIN)
_ODD_ROWS = st.fixed_dictionaries(_PLAIN | _ODD)


@st.composite
def histories(draw: Any) -> list[list[Change]]:
    """Draw deliveries of changes with whole rows, mostly of rows as they are then."""
    there: dict[tuple[str, int], Row] = {}
    place = 0
    found = []
    some_rows = draw(st.sampled_from((_ROWS, _ROWS, _ODD_ROWS)))
    for _ in range(draw(st.integers(1, 4))):
        delivery = []
        for _ in range(draw(st.integers(1, 8))):
            table = draw(st.sampled_from(("one", "one", "two")))
            row = draw(some_rows)
            op = draw(st.sampled_from((Op.INSERT, Op.INSERT, Op.UPDATE, Op.UPDATE, Op.DELETE)))
            old = there.get((table, row["idu"]), row)
            if op is Op.UPDATE and draw(st.integers(0, 4)) == 0:
                old = draw(_ROWS)  # the key changes, mostly
            sides = {Op.INSERT: (None, row), Op.UPDATE: (old, row), Op.DELETE: (old, None)}[op]
            delivery.append(changed(op, table, *sides, place))
            there[table, row["idu"]] = row
            place += 1
        found.append(delivery)
    return found


def one_by_one(changes: Sequence[Change]) -> list[Change]:
    """Return the changes with floats as changes have them."""
    return list(batches_of(changes))


def test_any_batches_give_what_their_changes_give(engine: Engine) -> None:
    taken = [
        changed(Op.INSERT, table, None, dict.fromkeys(COLUMNS) | {"idu": 9}, 0) for table in ("one", "two")
    ]

    @settings(max_examples=drawn(120))
    @given(histories())
    def check(history: list[list[Change]]) -> None:
        found = []
        for form in (batches_of, one_by_one):
            run(engine, "truncate one, two")
            deliveries = [Delivery(form([taken[0]]), "a"), Delivery(form([taken[1]]), "b")]
            deliveries += [Delivery(form(changes), str(n)) for n, changes in enumerate(history)]
            tally, refused = apply(engine, deliveries)
            found.append((held(engine), tally, refused))
        assert found[0] == found[1]

    check()


def row(key: int, **given: Any) -> Row:
    """Return a plain row."""
    plain = {"idu": key, "name": "é", "paid": "1.50", "born": "2025-03-23", "at": "2025-03-23T10:57:19"}
    return {**plain, "here": True, "big": 0.1, **given}


def test_plain_batches_are_written_by_column(engine: Engine) -> None:
    """Copy new rows and stage existing ones; in both ways no change is made of a batch."""
    first = [changed(Op.INSERT, "one", None, row(n), n) for n in range(3)]
    new = [changed(Op.INSERT, "one", None, row(n), n) for n in range(3, 6)]
    mixed = [
        changed(Op.UPDATE, "one", row(1), row(1, name="b"), 6),
        changed(Op.INSERT, "one", None, row(2, name="there"), 7),
        changed(Op.DELETE, "one", row(3), None, 8),
        changed(Op.INSERT, "one", None, row(3, name="again"), 9),
        changed(Op.DELETE, "one", row(4), None, 10),
        changed(Op.DELETE, "one", row(4), None, 11),
        changed(Op.DELETE, "one", row(8), None, 12),
    ]
    known = Delivery(batches_of(first), "a")  # the table is looked up for its changes
    deliveries = [known, *(Delivery(batches_of(some, ByColumn), "b") for some in (new, mixed))]
    tally, refused = apply(engine, deliveries)
    assert refused == []
    assert tally == Tally(inserted=8, updated=1, deleted=2, missing=2)
    names = rows(engine, "select idu, name from one order by idu")
    assert names == [(0, "é"), (1, "b"), (2, "there"), (3, "again"), (5, "é")]


def test_one_refused_change_of_a_batch_costs_no_other(engine: Engine) -> None:
    first = [changed(Op.INSERT, "one", None, row(0), 0)]
    more = [changed(Op.INSERT, "one", None, row(n, name="bad" if n == 2 else "good"), n) for n in (1, 2, 3)]
    tally, refused = apply(engine, [Delivery(batches_of(some), "a") for some in (first, more)])
    assert [one.where for one in refused] == [f"one:{2:09}"]
    assert (tally.inserted, tally.refused) == (3, 1)
    assert rows(engine, "select idu from one order by idu") == [(0,), (1,), (3,)]


@pytest.mark.parametrize(("policy", "inserted"), [("refuse", 0), ("ignore", 4), ("apply", 4)])
def test_a_column_that_the_target_lacks(engine: Engine, policy: str, inserted: int) -> None:
    """Follow the policy, also once the table is known; nothing is left out silently."""
    run(engine, "alter table one drop column big")
    groups = [[changed(Op.INSERT, "one", None, row(n), n) for n in (a, a + 1)] for a in (0, 2)]
    tally, refused = apply(engine, [Delivery(batches_of(g), "a") for g in groups], schema_changes=policy)
    assert (tally.inserted, len(refused)) == (inserted, 4 - inserted)
    assert rows(engine, "select count(*) from one") == [(inserted,)]
    if policy == "apply":
        assert rows(engine, "select distinct big from one") == [(0.1,)]


def test_a_late_change_meets_the_rows_of_batches(engine: Engine) -> None:
    """Refuse it: any row of a table with batches may have changed."""
    early = changed(Op.UPDATE, "one", row(1), row(1, name="late"), 1)
    later = [changed(Op.INSERT, "one", None, row(n), n) for n in (5, 6)]
    tally, refused = apply(engine, [Delivery(batches_of(later), "a"), Delivery([early], "b", late=True)])
    assert (tally.inserted, tally.refused) == (2, 1)
    assert f"a change at {6:09}" in refused[0].reason


def captured(size: int) -> bytes:
    """Return a capture of more than one piece: a transaction of seven rows, and others of so many."""
    changes = [
        Change(op, None, "usr", (("id", n),), _capture_fields(op, n), transaction=str((n + size - 7) // size))
        for n in range(9_000)
        for op in ((Op.INSERT, Op.UPDATE) if n % 3 else (Op.INSERT, Op.UPDATE, Op.DELETE))
    ]
    return write_changes(changes, USR)


@pytest.mark.parametrize("size", [7, 8_993])
def test_the_state_after_batches_goes_on_with_what_follows(tmp_path: Path, size: int) -> None:
    capture = tmp_path / "usr.bin"
    capture.write_bytes(captured(size))
    job = Job("gbase", "changes", inputs=(str(capture),), tables=USR)

    def read(state: str | None) -> list[tuple[list[Change], str | None]]:
        report = Report(lambda refused: pytest.fail(refused.reason))
        source = open_from_state(
            Opening(replace(job, given=all_given(job, "")), state, report, by_column=True)
        )
        assert source is not None
        with closing(source):
            return [(list(one.changes), _noted(one)) for one in report.good(source.round())]

    kinds: set[type] = set()

    def _noted(one: Delivery) -> str | None:
        kinds.add(type(one.changes))
        return one.state

    whole = read(None)
    assert ChangesOfBatches in kinds
    assert sum(len(changes) for changes, _ in whole) == 21_000
    for number, (_, state) in enumerate(whole, 1):
        rest = read(state)
        assert [c for changes, _ in rest for c in changes] == [
            c for changes, _ in whole[number:] for c in changes
        ]
        assert [state for _, state in rest[-1:]] == [state for _, state in whole[number:][-1:]]


@pytest.mark.parametrize(("cut", "size"), [(0.3, 7), (0.8, 7), (0.8, 8_993)])
def test_a_capture_that_grows_is_applied_once(
    postgres: Placed, tmp_path: Path, cut: float, size: int
) -> None:
    """Apply a part of a capture, cut anywhere, and then all of it."""
    data = captured(size)
    capture, tables = tmp_path / "usr.bin", tmp_path / "t.toml"
    tables.write_text(USR_FILE)
    words = ("apply", "--from", "gbase", "--to-url", postgres.url.render_as_string(hide_password=False))
    inserted = 0
    for part in (data[: int(len(data) * cut)], data):
        capture.write_bytes(part)
        done = Shell(tmp_path).run(*words, "--tables", str(tables), str(capture))
        inserted += int(done.stderr.split(" inserted")[0].split()[-1])
    assert (done.code, inserted) == (0, 9_000), done
    kept = [n for n in range(9_000) if n % 3]
    found = rows(connect(postgres.url), "select id, name from usr order by id")
    assert found == [(n, f"John {n}") for n in kept]


USR_FILE = '[tables.usr]\nnumber = 1\nkey = ["id"]\ncolumns = { id = "integer", name = "varchar(40)" }\n'
USR = tablesfile.read(USR_FILE)


def _capture_fields(op: Op, number: int) -> tuple[Field, ...]:
    old = ABSENT if op is Op.INSERT else f"{'John' if op is Op.DELETE else 'Jack'} {number}"
    new = ABSENT if op is Op.DELETE else f"{'Jack' if op is Op.INSERT else 'John'} {number}"
    key = Field("id", ABSENT if op is Op.INSERT else number, ABSENT if op is Op.DELETE else number)
    return key, Field("name", old, new)


_CELLS = {
    int: st.integers(-2, 10**7),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    bytes: st.binary(max_size=3),
    str: st.one_of(
        st.sampled_from(("", "a", "ab ", "é€", "a\0", "a\n", "\\N", "\\.", "abcd", "abcde")),
        st.sampled_from(("0", "1.5", "-12.345", "1.", "007", "12.3400", "1e3", "NaN", "9" * 120)),
        st.sampled_from(("2025-03-23", "2025-03-23T10:57:19", "2025-03-23 10:57:19.123", "10:57:19")),
        st.sampled_from(("2025-03-23T10:57:19.1234", "2025-03-23T10:57:19Z", "2025-03-23\n")),
    ),
}


_USUAL = {"k": int, "f": float, "g": float, "b": bool, "o": bytes}


@pytest.mark.parametrize("name", list(TYPES))
@given(st.data())
def test_the_cells_of_an_array_are_those_of_its_values(name: str, data: st.DataObject) -> None:
    column = TABLE.columns[name]
    kind = data.draw(st.sampled_from((_USUAL.get(name, str), *_CELLS)))
    values: list[Any] = data.draw(st.lists(st.one_of(st.none(), _CELLS[kind]), max_size=4))
    try:
        found = to_array(column, POSTGRESQL)(pa.array(values, ARROW_TYPES[kind]))
    except NotPlain:
        return
    assert found.to_pylist() == [to_cell(column, POSTGRESQL)(value) for value in values]


@pytest.mark.parametrize(("name", "text"), [("t", "a\0"), ("t", "abcde"), ("n", "1.234"), ("m", "10:57:19")])
def test_a_text_that_needs_a_closer_look_is_not_plain(name: str, text: str) -> None:
    with pytest.raises(NotPlain):
        to_array(TABLE.columns[name], POSTGRESQL)(pa.array([text]))
