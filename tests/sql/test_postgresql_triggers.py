"""What only PostgreSQL can do: statement-level triggers, partitions, truncate, merge, the wake-up."""

from __future__ import annotations

from contextlib import suppress

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Connection

from eventlog.sql.capture.readers import READERS, plan_reader
from eventlog.sql.capture.refusals import CannotTrack
from eventlog.sql.capture.track import untrack
from eventlog.sql.connect import DatabaseFailed, connect_at, execute_plain
from eventlog.sql.error_causes import blames_other_transaction
from eventlog.sql.postgresql.triggers import wake_key
from tests.sql.tracked import Logged, Tracked, query_back

pytestmark = pytest.mark.quick

T = "create table t (k integer primary key deferrable, v text)"


@pytest.mark.parametrize("granularity", ["statement", "row"])
def test_all_deletes_of_a_statement_come_before_all_inserts(pg: Tracked, granularity: str) -> None:
    pg.run(T, "insert into t select i from generate_series(1, 3) i")
    pg.track("t", granularity=granularity)
    rows = pg.after("update t set k = k + 1")
    assert [row.type for row in rows] == [4, 4, 4, 5, 5, 5]
    assert {row.key for row in rows[:3]} == {"k=1", "k=2", "k=3"}
    assert {row.key for row in rows[3:]} == {"k=2", "k=3", "k=4"}


@pytest.mark.parametrize("granularity", ["statement", "row"])
def test_swapped_keys_are_changes_of_key(pg: Tracked, granularity: str) -> None:
    pg.run(T, "insert into t values (1, 'a'), (2, 'b'), (3, 'c')")
    pg.track("t", insert=1, update=2, granularity=granularity)
    rows = pg.after(
        "update t set k = case k when 3 then 3 else 3 - k end, v = case k when 2 then v else v || 'x' end"
    )
    assert sorted(rows[:2]) == [Logged(4, "k=1"), Logged(4, "k=2")]
    assert sorted(rows[2:4], key=str) == [Logged(1, "k=1", "v", None, "b"), Logged(1, "k=2", "v", None, "ax")]
    assert rows[4:] == [Logged(2, "k=3", "v", "c", "cx")]


def test_a_trigger_that_changes_the_same_row_is_logged_after_what_made_it_fire(pg: Tracked) -> None:
    pg.run(
        T,
        "create function again() returns trigger language plpgsql as $$ begin"
        " update t set v = v || '!' where k = new.k; return null; end $$",
        "create trigger again after insert or update on t for each row"
        " when (pg_trigger_depth() < 1) execute function again()",
    )
    pg.track("t", insert=1, update=2)
    assert pg.after("insert into t values (1, 'a'), (2, 'b')") == [
        Logged(1, "k=1", "v", None, "a"),
        Logged(1, "k=2", "v", None, "b"),
        Logged(2, "k=1", "v", "a", "a!"),
        Logged(2, "k=2", "v", "b", "b!"),
    ]
    rows = pg.after("update t set k = k + 10, v = 'c' where k = 1")
    assert rows == [
        Logged(4, "k=1"),
        Logged(1, "k=11", "v", None, "c"),
        Logged(2, "k=11", "v", "c", "c!"),
    ]


def test_a_self_reference_that_cascades_is_logged_in_order(pg: Tracked) -> None:
    pg.run(
        "create table t (k integer primary key, boss integer"
        " references t on update cascade on delete set null)",
        "insert into t values (1, 1), (2, 1)",
    )
    pg.track("t", insert=1, update=2)
    rows = pg.after("update t set k = 5 where k = 1")
    assert rows[:2] == [Logged(4, "k=1"), Logged(1, "k=5", "boss", None, "1")]
    assert sorted(rows[2:], key=str) == [
        Logged(2, "k=2", "boss", "1", "5"),
        Logged(2, "k=5", "boss", "1", "5"),
    ]
    assert pg.after("delete from t where k = 5") == [Logged(4, "k=5"), Logged(2, "k=2", "boss", "5", None)]


def test_merge_frees_a_key_before_it_is_taken(pg: Tracked) -> None:
    pg.run("create table t (k integer primary key, v text)", "insert into t values (1, 'a'), (2, 'b')")
    pg.track("t", insert=1, update=2)
    merge = (
        "merge into t using (values (1), (9)) s (k) on s.k = t.k"
        " when matched then {} when not matched then insert values (1, 'new')"
    )
    assert pg.after(merge.format("delete")) == [Logged(4, "k=1"), Logged(1, "k=1", "v", None, "new")]
    assert pg.after(merge.format("update set k = 3")) == [
        Logged(4, "k=1"),
        Logged(1, "k=3", "v", None, "new"),
        Logged(1, "k=1", "v", None, "new"),
    ]


DEFERRED = "create table t (k integer primary key deferrable initially deferred, v text)"


@pytest.mark.parametrize("granularity", ["statement", "row"])
@pytest.mark.parametrize(
    ("statements", "there"),
    [
        (("insert into t values (1, 'new')", "delete from t where v = 'old'"), {"k=1"}),
        (("insert into t values (1, 'new')", "update t set k = 2 where v = 'old'"), {"k=1", "k=2"}),
        (("insert into t values (1, 'new')", "update t set k = 2 where v = 'new'"), {"k=1", "k=2"}),
        (("insert into t values (1, 'a'), (2, 'b')", "delete from t where v <> 'old'"), {"k=1"}),
        (
            (
                "insert into t values (2, 'b'), (2, 'c')",
                "update t set k = case v when 'old' then 3 else 1 end where v in ('old', 'b')",
            ),
            {"k=1", "k=2", "k=3"},
        ),
        (("insert into t values (1, 'new')", "delete from t"), set()),
        (("delete from t", "insert into t values (1, 'new')"), {"k=1"}),
    ],
)
@pytest.mark.family
def test_an_object_whose_deferrable_key_was_had_twice_is_there_if_a_row_is(
    pg: Tracked, granularity: str, statements: tuple[str, ...], there: set[str]
) -> None:
    """Show by an object's last event whether it exists, and read it back if it was logged before."""
    pg.run(DEFERRED, "insert into t values (1, 'old')")
    pg.track("t", insert=1, update=2, granularity=granularity)
    with pg.engine.begin() as connection:
        for statement in statements:
            execute_plain(connection, statement)
    rows = pg.logged()
    assert {key for key, kind in {row.key: row.type for row in rows}.items() if kind != 4} == there
    with pg.engine.connect() as connection:
        assert set(query_back(connection, pg.dialect, pg.described("t"))) == there


def test_a_deferrable_key_of_another_type_is_compared_too(pg: Tracked) -> None:
    pg.run(
        "create type pair as (a integer, b text)",
        "create table t (k pair primary key deferrable initially deferred, v text)",
        "insert into t values ('(1,x)', 'old')",
    )
    pg.track("t")
    with pg.engine.begin() as connection:
        execute_plain(connection, "insert into t values ('(1,x)', 'new'), ('(2,x)', 'new')")
        execute_plain(connection, "delete from t where v = 'old' or k = '(2,x)'::pair")
    assert [row.type for row in pg.logged()] == [5, 5, 4, 4, 5]


def test_insert_on_conflict(pg: Tracked) -> None:
    pg.run("create table t (k integer primary key, v text)", "insert into t values (1, 'a')")
    pg.track("t")
    assert pg.after("insert into t values (1, 'b'), (2, 'c') on conflict (k) do update set v = 'd'") == [
        Logged(6, "k=1"),
        Logged(5, "k=2"),
    ]


def test_truncate_is_a_delete_of_each_row(pg: Tracked) -> None:
    pg.run(T, "insert into t values (1), (2)")
    pg.track("t")
    assert pg.after("truncate t") == [Logged(4, "k=1"), Logged(4, "k=2")]


PARTITIONED = (
    "create table p (k integer, v text, primary key (k)) partition by range (k)",
    "create table p1 partition of p for values from (0) to (10)",
    "create table p2 (v text, k integer not null)",
    "alter table p attach partition p2 for values from (10) to (20)",
)


def test_a_partitioned_table_is_logged_whatever_is_named(pg: Tracked) -> None:
    pg.run(*PARTITIONED)
    pg.track("p", insert=1, update=2)
    assert pg.after("insert into p values (1, 'a'), (11, 'b')") == [
        Logged(1, "k=1", "v", None, "a"),
        Logged(1, "k=11", "v", None, "b"),
    ]
    assert pg.after("update p2 set v = 'c'") == [Logged(2, "k=11", "v", "b", "c")]
    assert pg.after("update p set k = 12 where k = 1") == [
        Logged(4, "k=1"),
        Logged(1, "k=12", "v", None, "a"),
    ]
    assert sorted(pg.after("truncate p")) == [Logged(4, "k=11"), Logged(4, "k=12")]
    assert untrack(pg.engine, pg.log, "p").statements
    assert pg.after("insert into p values (1, 'a')", "truncate p") == []


def test_rows_that_their_new_partition_throws_away_are_deleted(pg: Tracked) -> None:
    pg.run(
        *PARTITIONED,
        "create function drop_it() returns trigger language plpgsql as $$ begin return null; end $$",
        "create trigger drop_it before insert on p2 for each row execute function drop_it()",
        "insert into p values (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')",
    )
    pg.track("p", insert=1, update=2)
    assert pg.after("update p set k = 11 where k = 1") == [Logged(4, "k=1")]
    rows = pg.after("update p set k = case k when 2 then 12 when 3 then 5 else k end, v = v || '!'")
    assert sorted(rows[:2]) == [Logged(4, "k=2"), Logged(4, "k=3")]
    assert rows[2:] == [Logged(1, "k=5", "v", None, "c!"), Logged(2, "k=4", "v", "d", "d!")]


def test_a_new_partition_is_tracked_by_tracking_again(pg: Tracked) -> None:
    pg.run(*PARTITIONED)
    pg.track("p")
    pg.run("create table p3 partition of p for values from (20) to (30)")
    assert pg.track("p").statements
    assert pg.after("insert into p3 values (21)", "truncate p3") == [Logged(5, "k=21"), Logged(4, "k=21")]


def test_values_of_a_partitioned_table_with_row_triggers_are_refused(pg: Tracked) -> None:
    pg.run(
        *PARTITIONED,
        "create function f() returns trigger language plpgsql as $$ begin return null; end $$",
        "create trigger f after update on p for each row execute function f()",
    )
    with pytest.raises(CannotTrack, match="--insert 5 --update 6"):
        pg.track("p", update=2)
    pg.track("p")


def test_types_without_equality_can_be_tracked(pg: Tracked) -> None:
    pg.run("create table t (k integer primary key, j json, p point)", "insert into t values (1)")
    pg.track("t", update=2, granularity="row")
    assert pg.after("""update t set j = '{"a":1}', p = '(1,2)'""") == [
        Logged(2, "k=1", "j", None, '{"a":1}'),
        Logged(2, "k=1", "p", None, "(1,2)"),
    ]


def test_writers_need_no_right_on_the_log(pg: Tracked) -> None:
    pg.run(T, "create role writer", "grant insert on t to writer")
    pg.track("t")
    try:
        rows = pg.after(
            "set role writer",
            "create temp table eventlog (a integer)",
            "set search_path to pg_temp, public",
            "insert into public.t values (1)",
            "reset role",
        )
        assert rows == [Logged(5, "k=1")]
        with pg.engine.connect() as connection:
            execute_plain(connection, "set role writer")
            with pytest.raises(DatabaseFailed, match="permission denied"):
                execute_plain(connection, "select eventlog_capture_off('mine')")
    finally:
        pg.run("drop owned by writer", "drop role writer")


def test_capture_that_a_user_switched_off_is_on_for_the_next_user_of_a_session(pg: Tracked) -> None:
    """The server gives the number of a session that ended to another one."""
    pg.run(T, "create role writer", "grant insert on t to writer")
    pg.track("t")
    try:
        rows = pg.after(
            "select eventlog_capture_off('load')",
            "insert into t values (1)",
            "set session authorization writer",
            "insert into t values (2)",
            "reset session authorization",
        )
        assert rows == [Logged(5, "k=2")]
    finally:
        pg.run("drop owned by writer", "drop role writer")


LINES: dict[str, tuple[str, bool]] = {  # values of a line, and whether it switches capture off
    "its own": ("session_user, 'capture off', pg_backend_pid(), 'load'", True),
    "another user's": ("'writer', 'capture off', pg_backend_pid(), 'load'", False),
    "another session's": ("session_user, 'capture off', pg_backend_pid() + 1, 'load'", False),
    "of something else": ("session_user, 'pause', pg_backend_pid(), 'load'", False),
    "without a reason": ("session_user, 'capture off', pg_backend_pid(), null", False),
}


def test_only_a_line_of_the_same_user_and_session_switches_capture_off(pg: Tracked) -> None:
    pg.run(T)
    pg.track("t")
    for number, values in enumerate(values for values, _ in LINES.values()):
        pg.run(
            f"insert into eventlog_notice (username, kind, session_id, words) values ({values})",
            "select set_config('eventlog.capture', max(notice_id)::text, false) from eventlog_notice",
            f"insert into t values ({number})",
            "select eventlog_capture_on()",
        )
    captured_keys = {row.key for row in pg.logged()}
    assert captured_keys == {f"k={number}" for number, (_, off) in enumerate(LINES.values()) if not off}


def test_a_user_without_grants_runs_no_routine_of_the_log(pg: Tracked, mallory: str) -> None:
    pg.run(T, "grant usage on schema public to public")
    pg.track("t")
    calls = ["eventlog_event(5, 't', 'k=1', null, null, null)", "eventlog_capture_off('mine')"]
    with pg.engine.connect() as connection:
        names = connection.execute(
            text("select proname from pg_proc where proname like 'eventlog%'")
        ).scalars()
        calls += [f'"{name}"()' for name in names if "$" in name]
        assert len(calls) > 2  # the functions of triggers, too
        execute_plain(connection, f"set role {mallory}")
        connection.commit()
        for call in calls:
            with pytest.raises(DatabaseFailed, match="permission denied"):
                execute_plain(connection, f"select public.{call}")
            connection.rollback()
        connection.invalidate()
    assert pg.logged() == []


def test_a_statement_wakes_a_publisher_that_sleeps_and_nobody_else(pg: Tracked) -> None:
    pg.run(T)
    pg.track("t")
    lock, key = "select {}({}, {})", wake_key(pg.log)
    with pg.engine.connect() as publisher:
        publisher.execute(text("listen eventlog"))
        publisher.commit()
        pg.run("insert into t values (1)")
        assert notifications(publisher) == []
        publisher.execute(text(lock.format("pg_advisory_lock", *key)))
        publisher.commit()
        pg.run("insert into t values (2)")
        assert notifications(publisher) == ["eventlog"]
        pg.run("update t set v = v", "insert into t select 9 where false", "delete from t where k = 99")
        assert notifications(publisher) == []
        publisher.execute(text(lock.format("pg_advisory_unlock", *key)))
        publisher.commit()
        pg.run("insert into t values (3)")
        assert notifications(publisher) == []


def test_functions_belong_to_whom_the_log_belongs_to(pg: Tracked) -> None:
    pg.run(
        "create role keeper",
        "alter table eventlog_tracked owner to keeper",
        "alter table eventlog owner to keeper",
        "alter table eventlog_notice owner to keeper",
    )
    try:
        pg.run(T, "grant select on t to keeper", "grant all on schema public to keeper")
        pg.track("t")
        with pg.engine.connect() as connection:
            found = connection.execute(
                text("select distinct proowner::regrole::text from pg_proc where proname like 'eventlog$%'")
            )
            assert found.scalars().all() == ["keeper"]
        assert pg.after("insert into t values (1)", "truncate t") == [Logged(5, "k=1"), Logged(4, "k=1")]
    finally:
        pg.run("reassign owned by keeper to eventlog", "drop owned by keeper", "drop role keeper")


def notifications(connection: object) -> list[str]:
    driver = connection.connection.driver_connection  # type: ignore[attr-defined]
    return [notice.payload for notice in driver.notifies(timeout=0.2)]


@pytest.mark.long
def test_a_bulk_update_after_a_single_one_is_not_a_loop_in_a_loop(pg: Tracked) -> None:
    """The plan is made for the first statement of a session; it must serve all."""
    pg.run(T, "insert into t select i, 'a' from generate_series(1, 30000) i")
    pg.track("t", update=2)
    with pg.engine.begin() as connection:
        execute_plain(connection, "update t set v = 'b' where k = 1")
        execute_plain(connection, "set local statement_timeout to '20s'")
        execute_plain(connection, "update t set v = 'c', k = k + 100000")
    assert len(pg.logged()) == 1 + 30000 * 2


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_a_row_that_a_truncate_takes_is_deleted_in_the_log(pg: Tracked, isolation: str) -> None:
    """A row is in the table or deleted in the log, also if it came after the snapshot of the truncate."""
    pg.run("create table t (k integer primary key)", "insert into t values (1)")
    pg.track("t")
    with connect_at(pg.engine, isolation) as truncating:
        truncating.execute(text("select 1"))
        pg.run("insert into t values (2)")
        with suppress(DatabaseFailed):
            truncating.execute(text("truncate t"))
            truncating.commit()
    with pg.engine.connect() as connection:
        rows_left = {f"k={key}" for key in connection.execute(text("select k from t")).scalars()}
    deleted_keys = {row.key for row in pg.logged() if row.type == 4}
    assert (rows_left | deleted_keys, rows_left & deleted_keys) == ({"k=1", "k=2"}, set())


@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
@pytest.mark.parametrize("reader", [None, *READERS])
def test_a_truncate_of_rows_that_its_snapshot_does_not_see_is_refused(
    pg: Tracked, reader: str | None, isolation: str
) -> None:
    pg.run("create table t (k integer primary key)", "insert into t values (1)")
    if reader is None:
        pg.track("t")
    else:
        with pg.engine.connect() as connection:
            plan_reader(connection, reader, "t", "k").run(pg.engine)
    with pg.engine.connect() as running, connect_at(pg.engine, isolation) as truncating:
        running.execute(text("insert into t values (2)"))
        for between in (running.commit, lambda: pg.run("insert into t values (3)")):
            truncating.execute(text("select 1"))
            between()
            with pytest.raises(
                DatabaseFailed, match="t is not truncated: a transaction committed"
            ) as refused:
                truncating.execute(text("truncate t"))
            assert blames_other_transaction(refused.value, pg.dialect)
            truncating.rollback()
        running.execute(text("create table unrelated (k integer)"))  # it stays open
        truncate_again(truncating)
    assert sorted(deleted(pg, reader)) == [1, 2, 3, 4]


def truncate_again(connection: Connection) -> None:
    """Write and truncate, again while transactions of other tests commit in between."""
    for _ in range(100):
        try:
            connection.execute(text("insert into t values (4)"))
            connection.execute(text("savepoint s"))
            connection.execute(text("insert into t values (5)"))
            connection.execute(text("rollback to savepoint s"))
            connection.execute(text("truncate t"))
            connection.commit()
            return
        except DatabaseFailed:
            connection.rollback()
    raise AssertionError("a repeated truncate never succeeds")


def deleted(pg: Tracked, reader: str | None) -> list[int]:
    """Return the keys of the deletes that the log or the reader's tables have."""
    if reader is None:
        return [int(row.key.removeprefix("k=")) for row in pg.logged() if row.type == 4]
    tables = ("t_queue",) if reader == "connid" else ("t_delta", "t_delta_waiting")
    rows = " union all ".join(f"select k from {table} where action = 'Delete'" for table in tables)
    with pg.engine.connect() as connection:
        return list(connection.execute(text(rows)).scalars())
