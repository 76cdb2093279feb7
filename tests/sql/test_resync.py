"""The first load: every row once, in order of the key, from where the last run stopped."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from uuid import uuid4

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from eventlog.cli import cli
from eventlog.core.entry import read_entry
from eventlog.core.tables import Table
from eventlog.sql.capture.resync import NoKey, Resync, UnlikeKey, dump_key, load_key, resync
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.log.pending import PickUpFilter
from eventlog.sql.log.store import Store

pytestmark = pytest.mark.quick


@pytest.fixture
def store(store: Store) -> Store:
    rows = [
        {"a": a, "b": b, "c": date(2025, 1, c), "n": a * 100 + c}
        for a in (3, 1, 2)
        for b in ("x", "y:z", 'q"')
        for c in (2, 1)
    ]
    columns = "a integer, b varchar(20), c date, n integer, primary key (a, b, c)"
    with store.engine.begin() as connection:
        connection.execute(text(f"create table item ({columns})"))
        connection.execute(text("insert into item values (:a, :b, :c, :n)"), rows)
    return store


def item(store: Store, name: str = "item") -> Table:
    with store.engine.connect() as connection:
        return Catalogue(connection).find(name).table


def run(store: Store, request: Resync, chunks: int = 1000) -> int:
    """Run until done or for so many chunks; how many rows this run logged."""
    rows = 0
    for done, progress in enumerate(resync(store, request, lambda rows: None), 1):
        rows = progress.rows
        if done == chunks:
            break
    return rows


def logged(store: Store) -> list[tuple[int, str]]:
    with store.snapshot() as snapshot:
        entries = [read_entry(tuple(cells)) for cells in snapshot.pick_up(PickUpFilter()).cells]
    return [(entry.event_type, entry.table_key) for entry in entries]


@pytest.mark.parametrize("chunk", [1, 4, 18, 100])
def test_every_row_is_logged_once_in_order_of_the_key(store: Store, chunk: int) -> None:
    assert run(store, Resync(item(store), chunk=chunk)) == 18
    keys = [key for _, key in logged(store)]
    assert len(set(keys)) == len(keys) == 18
    assert [key[:3] for key in keys] == ["a=1"] * 6 + ["a=2"] * 6 + ["a=3"] * 6
    assert 'a=1+b="q\\""+c=2025-01-01' in keys
    assert "a=3+b=y:z+c=2025-01-02" in keys


def test_a_stopped_run_goes_on_and_a_finished_one_starts_over(store: Store) -> None:
    wanted = Resync(item(store), chunk=5)
    assert run(store, wanted, chunks=2) == 10
    assert [(p.rows, p.earlier_rows, p.done) for p in resync(store, wanted, lambda rows: None)] == [
        (5, 10, False),
        (8, 10, True),
    ]
    assert len(logged(store)) == 18
    assert run(store, wanted) == 18
    assert len(logged(store)) == 36


def test_the_command_reports_how_far_it_is_and_its_own_rows(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventlog.cli.resync._SILENCE", 0.0)
    run(store, Resync(item(store), chunk=5), chunks=1)
    url = store.engine.url.render_as_string(hide_password=False)
    done = CliRunner().invoke(
        cli, ["resync", "item", "--chunk", "5"], env={"EVENTLOG_URL": url, "EVENTLOG_SYNC_TABLES": "item"}
    )
    assert [line.partition(": ")[2] for line in done.stderr.splitlines()] == [
        "5 rows logged so far",
        "10 rows logged so far",
        "13 rows logged, 5 by the run before",
    ]


def test_another_choice_starts_over(store: Store) -> None:
    run(store, Resync(item(store), chunk=5), chunks=1)
    assert run(store, Resync(item(store), 6, "n < 200 and b <> 'a:b'", chunk=5)) == 6
    assert [kind for kind, _ in logged(store)] == [5] * 5 + [6] * 6


def test_the_same_rows_as_another_event_type_start_over(store: Store) -> None:
    run(store, Resync(item(store), chunk=5), chunks=1)
    assert run(store, Resync(item(store), 6)) == 18
    assert [kind for kind, _ in logged(store)] == [5] * 5 + [6] * 18


def test_a_stopped_run_of_the_command_is_not_continued_as_another_event_type(store: Store) -> None:
    run(store, Resync(item(store), chunk=5), chunks=1)
    url = store.engine.url.render_as_string(hide_password=False)
    words = ["resync", "item", "--event-type", "6"]
    CliRunner().invoke(cli, words, env={"EVENTLOG_URL": url, "EVENTLOG_SYNC_TABLES": "item"})
    assert len([kind for kind, _ in logged(store) if kind == 6]) == 18


def test_the_rows_are_nobodys_loopback(store: Store) -> None:
    run(store, Resync(item(store)))
    with store.snapshot() as snapshot:
        assert {cells[4] for cells in snapshot.pick_up(PickUpFilter()).cells} == {None}


def test_a_table_without_key_is_refused(store: Store) -> None:
    with store.engine.begin() as connection:
        connection.execute(text("create table heap (n integer)"))
    with pytest.raises(NoKey, match="heap has no primary key"):
        run(store, Resync(item(store, "heap")))


SCALARS = (
    st.integers(-(2**63), 2**63)
    | st.text()
    | st.binary()
    | st.booleans()
    | st.dates()
    | st.datetimes()
    | st.times()
    | st.uuids()
    | st.decimals(allow_nan=False)
    | st.floats(allow_nan=False)
)


@given(st.lists(SCALARS, min_size=1, max_size=4))
def test_a_key_is_kept_as_it_is(values: list[object]) -> None:
    key = tuple(values)
    table = Table(None, "t", {}, tuple(f"c{n}" for n in range(len(key))))
    loaded = load_key(dump_key(table, key))
    assert loaded == key
    assert [type(value) for value in loaded] == [type(value) for value in key]


def test_a_key_of_a_type_that_cannot_be_kept_is_named() -> None:
    with pytest.raises(UnlikeKey, match=r"key column c of s\.t holds complex"):
        dump_key(Table("s", "t", {}, ("c",)), (1j,))
    assert load_key(None) is None
    assert load_key(dump_key(Table(None, "t", {}, ("a", "b")), (Decimal("1.50"), u := uuid4()))) == (
        Decimal("1.50"),
        u,
    )
