"""Two tables of databases are compared by segments, with the result of reading all rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.engine import Connection, Engine

from eventlog.compare.segments import (
    Segments,
    SegmentSelection,
    SegmentSum,
    TableSide,
    differing_rows,
    differing_segments,
)
from eventlog.compare.table_snapshot import at_hand, snapshot
from tests.kit.commands import Shell
from tests.kit.databases import Database
from tests.kit.statements import run_statements
from tests.kit.tiers import drawn

pytestmark = pytest.mark.quick

COLUMNS = "id bigint primary key, a varchar(40), b varchar(40), n numeric(9,2)"
ROWS = 4_000
Row = tuple[str | None, str | None, str | None]

_PIECES = st.sampled_from(["", ",", ";", "|", ".", ",;", ",|", ",.", "x", "ä", "'"])
_TEXT = st.none() | st.lists(_PIECES, max_size=4).map("".join)
_STATE = st.dictionaries(st.integers(-4, 4), st.tuples(_TEXT, _TEXT, st.none() | st.just("1.00")))


@pytest.fixture
def engine(database: Database) -> Iterator[Engine]:
    engine = database.engine()
    run_statements(engine, *(f"create table {name} ({COLUMNS})" for name in ("old_t", "new_t")))
    yield engine
    engine.dispose()


def _fill(connection: Connection, name: str, rows: Mapping[int, Row]) -> None:
    connection.execute(text(f"delete from {name}"))
    bound = [{"id": key, "a": a, "b": b, "n": n} for key, (a, b, n) in rows.items()]
    if bound:
        connection.execute(text(f"insert into {name} values (:id, :a, :b, :n)"), bound)


def _state(connection: Connection, name: str) -> TableSide:
    readable = at_hand(connection, name)
    return TableSide(connection, readable.table, readable, readable.table)


@settings(max_examples=drawn(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_STATE, _STATE)
@example({0: ("x", "y,|z", None)}, {0: ("x,|y", "z", None)})
@example({0: (None, "", None)}, {0: (",;", None, None)})
def test_sums_differ_where_the_rows_of_a_segment_do(
    engine: Engine, old: dict[int, Row], new: dict[int, Row]
) -> None:
    with engine.begin() as connection:
        _fill(connection, "old_t", old)
        _fill(connection, "new_t", new)
    with snapshot(engine) as moment:
        connection = moment.connection
        sides = (_state(connection, "old_t"), _state(connection, "new_t"))
        if not sides[0].dialect.values.escaped:
            pytest.skip("this database makes no sums")
        before, after = (Segments(-4, 2, "salt").sums(side, "1 = 1") for side in sides)
    keys = (key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    assert {one.segment for one in before ^ after} == {(key + 4) // 2 for key in keys}


def test_only_segments_that_differ_are_read(engine: Engine) -> None:
    _fill_both(engine)
    with snapshot(engine) as moment:
        connection = moment.connection
        old, new = _state(connection, "old_t"), _state(connection, "new_t")
        if not old.dialect.values.escaped:
            pytest.skip("this database makes no sums")
        read = [sum(rows.num_rows for rows in side) for side in differing_rows(old, new)]
    assert 0 < read[0] <= 8
    assert read[1] <= 8


def test_all_of_many_neighbours_that_differ_are_read(engine: Engine) -> None:
    rows: dict[int, Row] = {3 * number: ("Jack", "Frost", None) for number in range(ROWS)}
    changed = {3 * number: ("John", "Frost", None) for number in range(1_000, 1_050)}
    with engine.begin() as connection:
        _fill(connection, "old_t", rows)
        _fill(connection, "new_t", rows | changed)
    with snapshot(engine) as moment:
        sides = [_state(moment.connection, name) for name in ("old_t", "new_t")]
        read = [{key for rows in side for key in rows["key"].to_pylist()} for side in differing_rows(*sides)]
    assert all({f"id={key}" for key in changed} <= keys for keys in read)


def test_keys_that_no_database_counts_with_are_compared_row_by_row(engine: Engine) -> None:
    key = "bigint unsigned" if engine.dialect.name in ("mysql", "mariadb") else "numeric(20)"
    columns = f"id {key} primary key, a varchar(40)"
    for name, value in (("old_t", "Jack"), ("new_t", "John")):
        run_statements(
            engine,
            f"drop table {name}",
            f"create table {name} ({columns})",
            f"insert into {name} values ({2**64 - 1}, '{value}')",
        )
    with snapshot(engine) as moment:
        sides = [_state(moment.connection, name) for name in ("old_t", "new_t")]
        read = [[key for rows in side for key in rows["key"].to_pylist()] for side in differing_rows(*sides)]
    assert read == [[f"id={2**64 - 1}"]] * 2


def test_a_segment_with_a_row_without_a_hash_may_differ() -> None:
    without_hash = {SegmentSum(3, 0, 0, 0), SegmentSum(4, 2, 5, 6)}
    assert differing_segments(without_hash, without_hash) == {3}


@given(
    st.sets(st.builds(SegmentSum, st.integers(0, 5), st.integers(0, 1), st.integers(0, 1), st.just(0))),
    st.sets(st.builds(SegmentSum, st.integers(0, 5), st.integers(0, 1), st.integers(0, 1), st.just(0))),
)
@example({SegmentSum(1, 0, 0, 0), SegmentSum(2, 1, 1, 0)}, {SegmentSum(1, 0, 0, 0), SegmentSum(2, 1, 1, 0)})
def test_a_segment_is_left_out_only_if_its_sums_prove_it_equal(
    before: set[SegmentSum], after: set[SegmentSum]
) -> None:
    differing = differing_segments(before, after)
    for number in range(6):
        old, new = ({part for part in side if part.segment == number} for side in (before, after))
        proves = old == new and all(part.rows for part in old)
        assert (number in differing) != proves


def test_each_row_of_segments_that_differ_is_in_one_condition(engine: Engine) -> None:
    rows: dict[int, Row] = dict.fromkeys(range(-8, 40), ("x", None, None))
    with engine.begin() as connection:
        _fill(connection, "old_t", rows)
    with snapshot(engine) as moment:
        side = _state(moment.connection, "old_t")
        segments = Segments(-8, 4, "salt")
        for differing in ({0, 4, 5, 6, 11}, set(range(12)), set[int]()):
            read = [
                key
                for rows_read in side.rows(SegmentSelection(segments, differing))
                for key in rows_read["key"].to_pylist()
            ]
            expected = {f"id={number}" for number in rows if (number + 8) // 4 in differing}
            assert (len(read), set(read)) == (len(expected), expected)


@pytest.mark.slow("starts a shell and fills two tables")
def test_the_changes_are_those_of_all_rows(engine: Engine, database: Database, tmp_path: Path) -> None:
    _fill_both(engine)
    shell = Shell(tmp_path)
    words = ("compare", "old_t", "new_t", "--to", "changes", "--url")
    url = database.address
    by_segment = shell.run(*words, url)
    all_rows = shell.run(*words, url, "--keep", "kept.parquet")  # which keeps every row, so reads it
    shell.close()
    assert (by_segment.code, all_rows.code) == (0, 0), by_segment.stderr + all_rows.stderr
    assert by_segment.stdout == all_rows.stdout
    assert by_segment.stdout.count("\n") == 8


def _fill_both(engine: Engine) -> None:
    """Fill both tables; eight rows differ, two of them by exchanged values."""
    rows: dict[int, Row] = {
        number * 3 - ROWS: (f"Jack{number}", "Frost", f"{number % 7}.00") for number in range(ROWS)
    }
    keys = sorted(rows)
    with engine.begin() as connection:
        _fill(connection, "old_t", rows)
        del rows[keys[0]]
        rows[keys[100]], rows[keys[101]] = rows[keys[101]], rows[keys[100]]
        rows[keys[1000]] = (None, "Frost", "1.00")
        rows[keys[2000]] = ("", "Frost", "1.00")
        rows[keys[3000]] = ("Jack,3000", "Frost", "1.01")
        rows[keys[-1] + 1] = rows[keys[-1] + 900] = ("new", None, None)
        _fill(connection, "new_t", rows)
