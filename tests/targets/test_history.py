"""With --history every change makes a version: held against a reference that goes one by one."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.engine import Engine

from eventlog.core.change import Change, Op
from eventlog.targets.tables.errors import NoHistory
from tests.targets.model import COLUMNS, Model, changed, transactions
from tests.targets.support import apply, places, rows, run
from tests.tiers import drawn

pytestmark = pytest.mark.quick

_SOURCES = count()
SPAN = "_from_seq, _to_seq, _op"
Version = tuple[Any, ...]


def expected(changes: list[Change], missing_rows: str) -> list[Version]:
    """Return the versions that changes make, one after the other."""
    model, made, current = Model(missing_rows), list[list[Any]](), dict[Any, list[Any]]()
    for change in changes:
        left, before = len(model.refused), dict(model.rows)
        model.apply([change])
        seq = change.position
        gone = set(current) - set(model.rows)
        if change.op is not Op.TRUNCATE:
            ((_, key),) = change.key
            applied = model.rows != before or (len(model.refused) == left and key in model.rows)
            if change.op is not Op.DELETE and applied:
                gone.add(key)
        for one in gone & set(current):
            current.pop(one)[-2] = seq
        if change.op not in (Op.TRUNCATE, Op.DELETE) and applied:
            current[key] = [*model.rows[key].values(), seq, None, change.op.value]
            made.append(current[key])
    return sorted(map(tuple, made), key=str)


@pytest.mark.parametrize("missing_rows", ["refuse", "insert"])
def test_any_changes_make_the_versions_that_one_by_one_makes(engine: Engine, missing_rows: str) -> None:
    apply(engine, [changed(Op.INSERT, 0, fname=None, lname=None, n=None)], history=True)

    @settings(max_examples=drawn(12))
    @given(transactions(), st.sampled_from((1, 3, 100)))
    def check(changes: list[Change], group: int) -> None:
        run(engine, "delete from usr")
        given: dict[str, Any] = {"missing_rows": missing_rows, "group": group, "history": True}
        tally, refused = apply(engine, changes, source=f"s{next(_SOURCES)}", **given)
        model = Model(missing_rows).apply(changes)
        found = rows(engine, f"select {', '.join(COLUMNS)}, {SPAN} from usr")
        assert sorted(found, key=str) == expected(changes, missing_rows)
        current = {row[0]: row[: len(COLUMNS)] for row in found if row[-2] is None}
        assert current == {key: tuple(row.values()) for key, row in model.rows.items()}
        assert places(refused) == [f"usr:{change.position}" for change in model.refused]
        assert tally.refused == len(refused)

    check()


def test_a_change_of_a_key_that_is_left_out_leaves_none_to_what_comes_behind_it(engine: Engine) -> None:
    """Refuse both, because neither row exists: the second depends on the first."""
    moved = changed(Op.UPDATE, 1, 0)
    later = changed(Op.UPDATE, 1)
    tally, refused = apply(engine, [moved, later], history=True)
    assert (tally.refused, len(refused)) == (2, 2)
    assert rows(engine, "select idu from usr") == []


def test_a_row_that_moved_is_no_longer_there_under_its_old_key(engine: Engine) -> None:
    new = changed(Op.INSERT, 1, fname="a", lname="b", n=1)
    tally, refused = apply(engine, [new, changed(Op.UPDATE, 2, 1), changed(Op.UPDATE, 1, n=2)], history=True)
    assert (tally.refused, len(refused)) == (1, 1)
    assert rows(engine, "select idu, n from usr where _to_seq is null") == [(2, 1)]


def test_a_version_says_when_and_a_time_that_is_unknown_is_null(engine: Engine) -> None:
    changes = [
        changed(Op.SNAPSHOT, 1, fname="a", lname="b", n=1)._replace(position="9"),
        changed(Op.UPDATE, 1, n=2)._replace(position="10", time="2025-03-23T10:57:19.123456789+02:00"),
        changed(Op.UPDATE, 1, n=3)._replace(position=None, time="yesterday"),
        changed(Op.DELETE, 1)._replace(position="12", time="2025-03-23T10:57:20"),
    ]
    tally, _ = apply(engine, changes, history=True)
    assert str(tally) == "1 inserted, 2 updated, 1 deleted"
    found = rows(engine, "select fname, n, _from_seq, _to_seq, _from_time, _to_time, _op from usr order by n")
    nine, ten, twelve = ("9".zfill(20), "10".zfill(20), "12".zfill(20))
    none = f"{0:020}.{2:09}"
    at = "2025-03-23 08:57:19.123456"
    assert [tuple(None if cell is None else str(cell) for cell in row) for row in found] == [
        ("a", "1", nine, ten, None, at, "snapshot"),
        ("a", "2", ten, none, at, None, "update"),
        ("a", "3", none, twelve, None, "2025-03-23 10:57:20", "update"),
    ]


def test_a_table_that_keeps_no_versions_is_misuse(engine: Engine) -> None:
    run(engine, "create table usr (idu integer primary key, fname varchar(9))")
    with pytest.raises(
        NoHistory, match=r"usr keeps no versions: .* drop it\s+so that apply creates it with them"
    ):
        apply(engine, [changed(Op.INSERT, 1, fname="a")], history=True)


def test_versions_take_the_numbers_of_the_source(engine: Engine) -> None:
    always = engine.dialect.name == "postgresql"
    kind = "integer generated always as identity" if always else "integer"
    run(
        engine,
        f"create table usr (idu {kind}, n integer, _from_seq varchar(40), _to_seq varchar(40),"
        " _from_time timestamp null, _to_time timestamp null, _op varchar(9), primary key (idu, _from_seq))",
    )
    changes = [changed(Op.INSERT, 7, n=1)._replace(position="1"), changed(Op.UPDATE, 7, n=2)]
    tally, refused = apply(engine, changes, history=True, schema_changes="ignore")
    assert (str(tally), refused) == ("1 inserted, 1 updated, 0 deleted", [])
    assert rows(engine, "select idu, n from usr order by n") == [(7, 1), (7, 2)]
