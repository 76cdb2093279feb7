"""A truncate of a child table on PostgreSQL: the log has what a delete of the rows would have left in it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.engine import Connection

from eventlog.fold import Rules
from eventlog.sql.capture.check import check
from eventlog.sql.capture.findings import Finding
from eventlog.sql.capture.track import untrack
from eventlog.sql.connect import DatabaseFailed, connect_at, execute_plain
from eventlog.sql.error_causes import blames_other_transaction
from tests.sql.tracked import Logged, Tracked

pytestmark = pytest.mark.quick

FAMILY = (
    "create table p (k integer primary key, v text)",
    "create table c (p integer references p on delete cascade, n text)",
)
CHILD_ROWS = st.lists(
    st.tuples(st.none() | st.integers(1, 3), st.none() | st.sampled_from(["a", "b", ""])), max_size=8
)


@pytest.fixture(params=[2, 6, 8])
def family(request: pytest.FixtureRequest, pg: Tracked) -> Tracked:
    """A parent and its child, tracked with each type that a child's rows may have."""
    pg.run(*FAMILY, "insert into p values (1), (2), (3)")
    pg.track("p", update=request.param, children=("c.n",))
    return pg


@pytest.mark.family
@given(rows=CHILD_ROWS)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@example(rows=[(1, "a"), (1, "a"), (None, "b"), (2, None)])
def test_a_truncate_logs_what_a_delete_of_all_rows_logs(
    family: Tracked, rows: list[tuple[int | None, str | None]]
) -> None:
    with family.engine.connect() as connection:
        for parent, value in rows:
            connection.execute(text("insert into c values (:p, :n)"), {"p": parent, "n": value})
        connection.execute(text("delete from eventlog"))
        for truncating, deleting in (
            ("truncate c", "delete from c"),
            ("truncate p cascade", "delete from p"),
            ("truncate c, p", "delete from p"),
        ):
            assert logged_by(connection, truncating) == logged_by(connection, deleting)


def logged_by(connection: Connection, statement: str) -> list[Logged]:
    """Return what a statement logs, and take it back."""
    columns = "event_type, table_key, column_name, old_value, new_value"
    with connection.begin_nested() as savepoint:
        connection.execute(text(statement))
        rows = [Logged(*row) for row in connection.execute(text(f"select {columns} from eventlog"))]
        savepoint.rollback()
    return sorted(rows, key=repr)


@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
def test_a_truncate_of_child_rows_that_its_snapshot_does_not_see_is_refused(
    pg: Tracked, isolation: str
) -> None:
    pg.run(*FAMILY, "insert into p values (1)")
    pg.track("p", update=2, children=("c.n",))
    with connect_at(pg.engine, isolation) as truncating:
        truncating.execute(text("select 1"))
        pg.run("insert into c values (1, 'late')")
        with pytest.raises(DatabaseFailed, match="c is not truncated: a transaction committed") as refused:
            truncating.execute(text("truncate c"))
        assert blames_other_transaction(refused.value, pg.dialect)
    pg.run("truncate c")
    assert pg.logged() == [Logged(2, "k=1", "c.n", None, "late"), Logged(2, "k=1", "c.n", "late", None)]


def test_a_truncate_of_many_child_rows_looks_for_their_parents_together(pg: Tracked) -> None:
    pg.run(
        *FAMILY,
        "insert into p select i from generate_series(1, 30000) i",
        "insert into c select i, 'a' from generate_series(1, 30000) i",
    )
    pg.track("p", update=2, children=("c.n",))
    with pg.engine.begin() as connection:
        execute_plain(connection, "set local statement_timeout to '20s'")
        execute_plain(connection, "truncate c")
    assert len(pg.logged()) == 30000


def test_who_may_truncate_a_child_needs_no_right_on_the_log_or_the_parent(pg: Tracked) -> None:
    pg.run(*FAMILY, "insert into p values (1)", "insert into c values (1, 'a')", "create role cleaner")
    try:
        pg.run("grant truncate on c to cleaner")
        pg.track("p", update=2, children=("c.n",))
        assert pg.after("set role cleaner", "truncate c", "reset role") == [
            Logged(2, "k=1", "c.n", "a", None)
        ]
    finally:
        pg.run("drop owned by cleaner", "drop role cleaner")


def test_columns_may_have_the_names_of_the_triggers_own_variables(pg: Tracked) -> None:
    pg.run(
        'create table p ("exclusive" integer primary key, eventlog_truncate text, logged boolean)',
        'create table c (eventlog_truncate integer references p, "exclusive" text, relation oid)',
        "insert into p values (1)",
        "insert into c values (1, 'a', 5)",
    )
    pg.track("p", update=2, children=("c.exclusive", "c.relation"))
    assert pg.after("begin; truncate c; commit") == [
        Logged(2, "exclusive=1", "c.exclusive", "a", None),
        Logged(2, "exclusive=1", "c.relation", "5", None),
    ]
    pg.run("insert into c values (1, 'b')")
    assert pg.logged()
    assert pg.after("begin; lock table p; truncate c; commit") == [
        Logged(8, "exclusive=1", "c.exclusive"),
        Logged(8, "exclusive=1", "c.relation"),
    ]


def test_capture_that_is_switched_off_logs_no_truncate(pg: Tracked) -> None:
    pg.run(*FAMILY, "insert into p values (1)", "insert into c values (1, 'a')")
    pg.track("p", update=2, children=("c.n",))
    assert pg.after("select eventlog_capture_off('load')", "truncate c", "select eventlog_capture_on()") == []


def test_triggers_of_before_are_reported_until_the_table_is_tracked_again(pg: Tracked) -> None:
    """A child whose triggers were made without one for truncate."""
    pg.run(*FAMILY, "insert into p values (1)", "insert into c values (1, 'a')")
    pg.track("p", update=2, children=("c.n",))
    for event in ("truncate", "truncated"):
        pg.run(
            f'drop trigger "!eventlog_{event}$p" on c',
            f'drop function "eventlog$public$p$public$c${event}"',
        )
    (finding,) = findings(pg)
    assert finding.fault
    assert "trigger !eventlog_truncate$p is missing on c" in finding.what
    assert finding.remedy == "eventlog track public.p --update 2 --child public.c.n"
    assert pg.track("p", update=2, children=("c.n",)).statements
    assert findings(pg) == []
    assert pg.after("truncate c") == [Logged(2, "k=1", "c.n", "a", None)]
    assert untrack(pg.engine, pg.log, "p").statements
    assert pg.after("insert into c values (1, 'b')", "truncate c") == []


def findings(pg: Tracked) -> list[Finding]:
    """Return the faults that `check` reports."""
    with pg.engine.connect() as connection:
        all_findings = check(connection, pg.log, Rules(driver_user="publisher"), timedelta(days=1))
        return [finding for finding in all_findings if finding.fault]
