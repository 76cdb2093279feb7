"""What logical replication writes is logged too, by `track --replicated`: a real subscription applies it.

The server of these tests writes its log for replication; EVENTLOG_TEST_LOGICAL_URL names another one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from sqlalchemy import text
from sqlalchemy.engine import URL, make_url

from eventlog.embedded import FAST, embedded_postgres
from eventlog.fold import Rules
from eventlog.sql.capture.check import check
from eventlog.sql.capture.track import untrack
from tests.sql.replicating import Replication, replicating
from tests.sql.tracked import Logged, Tracked

pytestmark = pytest.mark.long

USR = "create table usr (idu integer primary key, fname text, lname text)"
LOGICAL = FAST | {
    "wal_level": "logical",
    "max_logical_replication_workers": "8",
    "max_replication_slots": "20",
    "max_wal_senders": "20",
    "max_worker_processes": "20",
}


@pytest.fixture(scope="module")
def logical() -> Iterator[URL]:
    """A server whose wal_level is logical."""
    if named := os.environ.get("EVENTLOG_TEST_LOGICAL_URL"):
        yield make_url(named)
        return
    with embedded_postgres(settings=LOGICAL) as server:
        yield make_url(server.url)


@pytest.fixture
def replication(logical: URL) -> Iterator[Replication]:
    with replicating(logical) as replicated:
        yield replicated


def findings(tracking: Tracked) -> list[str]:
    with tracking.engine.connect() as connection:
        all_findings = check(connection, tracking.log, Rules())
        return [f"{finding.what} -> {finding.remedy}" for finding in all_findings if finding.fault]


def perpetrators(tracking: Tracked) -> set[str | None]:
    with tracking.engine.connect() as connection:
        return set(connection.execute(text("select perpetrator from eventlog")).scalars())


@pytest.mark.parametrize("granularity", ["statement", "row"])
def test_whatever_is_replicated_is_logged(replication: Replication, granularity: str) -> None:
    copy = replication.copy
    replication.both(USR)
    copy.track("usr", insert=1, update=2, replicated=True, granularity=granularity)
    replication.subscribe()
    replication.run("insert into usr values (1, 'Jack', 'Frost'), (2, 'Jane', null)")
    assert perpetrators(copy) == {None}
    assert copy.logged() == [
        Logged(1, "idu=1", "fname", None, "Jack"),
        Logged(1, "idu=1", "lname", None, "Frost"),
        Logged(1, "idu=2", "fname", None, "Jane"),
    ]
    replication.run("update usr set lname = 'Doe'")
    assert copy.logged() == [
        Logged(2, "idu=1", "lname", "Frost", "Doe"),
        Logged(2, "idu=2", "lname", None, "Doe"),
    ]
    replication.run("update usr set idu = 3, fname = 'John' where idu = 1")
    assert copy.logged() == [
        Logged(4, "idu=1"),
        Logged(1, "idu=3", "fname", None, "John"),
        Logged(1, "idu=3", "lname", None, "Doe"),
    ]
    replication.run("update usr set fname = fname", "delete from usr where idu = 3", "truncate usr")
    assert perpetrators(copy) == {None}
    assert copy.logged() == [Logged(4, "idu=3"), Logged(4, "idu=2")]
    assert replication.faults() == 0
    assert findings(copy) == []


def test_the_initial_copy_is_logged_once(replication: Replication) -> None:
    replication.both(USR)
    replication.copy.track("usr", replicated=True)
    with replication.source.begin() as connection:
        connection.execute(text("insert into usr select i, 'a' from generate_series(1, 500) i"))
    replication.subscribe()
    assert perpetrators(replication.copy) == {None}
    rows = replication.copy.logged()
    assert sorted(row.key for row in rows) == sorted(f"idu={number}" for number in range(1, 501))
    assert {row.type for row in rows} == {5}
    assert replication.faults() == 0


def test_sessions_of_the_copy_are_logged_as_before_and_once(replication: Replication) -> None:
    copy = replication.copy
    copy.run(USR)
    copy.track("usr", replicated=True)
    assert copy.after("insert into usr values (1), (2)", "update usr set idu = idu + 1 where idu = 2") == [
        Logged(5, "idu=1"),
        Logged(5, "idu=2"),
        Logged(4, "idu=2"),
        Logged(5, "idu=3"),
    ]
    copy.run("set session_replication_role = replica", "delete from usr where idu = 1", "truncate usr")
    assert perpetrators(copy) == {"eventlog"}
    assert copy.logged() == [Logged(4, "idu=1"), Logged(4, "idu=3")]
    replication.both("create table nothing ()")
    replication.subscribe()


def test_children_and_partitions_are_logged(replication: Replication) -> None:
    replication.both(
        USR,
        "create table phone (n integer primary key, idu integer references usr, phoneno text)",
        "create table p (k integer primary key, v text) partition by range (k)",
        "create table p1 partition of p for values from (0) to (10)",
        "create table p2 partition of p for values from (10) to (20)",
    )
    copy = replication.copy
    copy.track("usr", update=2, children=("phone.phoneno",), replicated=True)
    copy.track("p", insert=1, update=2, replicated=True)
    assert findings(copy) == []
    replication.subscribe()
    replication.run(
        "insert into usr values (1)",
        "insert into phone values (1, 1, '11')",
        "update phone set phoneno = '12'",
        "delete from phone",
        "insert into phone values (2, 1, '21')",
        "truncate phone",
        "insert into phone values (3, 1, '31')",
        "truncate usr, phone",
    )
    assert copy.logged() == [
        Logged(5, "idu=1"),
        Logged(2, "idu=1", "phone.phoneno", None, "11"),
        Logged(2, "idu=1", "phone.phoneno", "11", "12"),
        Logged(2, "idu=1", "phone.phoneno", "12", None),
        Logged(2, "idu=1", "phone.phoneno", None, "21"),
        Logged(2, "idu=1", "phone.phoneno", "21", None),
        Logged(2, "idu=1", "phone.phoneno", None, "31"),
        Logged(4, "idu=1"),
    ]
    replication.run("insert into p values (1, 'a')", "update p set k = 11", "truncate p")
    assert copy.logged() == [
        Logged(1, "k=1", "v", None, "a"),
        Logged(4, "k=1"),
        Logged(1, "k=11", "v", None, "a"),
        Logged(4, "k=11"),
    ]
    assert replication.faults() == 0
    assert untrack(copy.engine, copy.log, "p").statements
    replication.run("insert into p values (1, 'a')")
    assert copy.logged() == []


def test_a_table_that_a_subscription_writes_to_is_a_finding_until_it_is_tracked_so(
    replication: Replication,
) -> None:
    copy = replication.copy
    replication.both(USR)
    copy.track("usr", update=2, without=("lname",))
    replication.subscribe()
    replication.run("insert into usr values (1)")
    assert copy.logged() == []
    (found,) = findings(copy)
    assert "subscription copied writes to it as a replica, which fires no trigger of ours" in found
    assert found.endswith("-> eventlog track public.usr --update 2 --without lname --replicated")
    copy.track("usr", update=2, without=("lname",), replicated=True)
    assert findings(copy) == []
    assert not copy.track("usr", update=2, without=("lname",), replicated=True).statements
    replication.run("insert into usr values (2)")
    assert copy.logged() == [Logged(5, "idu=2")]


@pytest.mark.parametrize(
    ("trigger", "how"),
    [("replicated", "enable"), ("replicated", "enable always"), ("insert", "enable always")],
)
def test_how_a_trigger_is_enabled_is_checked_and_mended(
    replication: Replication, trigger: str, how: str
) -> None:
    copy = replication.copy
    replication.both(USR)
    copy.track("usr", replicated=True)
    replication.subscribe()
    copy.run(f'alter table usr {how} trigger "!eventlog_{trigger}"')
    (found,) = findings(copy)
    assert f"trigger !eventlog_{trigger} on usr is disabled, or enabled in another way" in found
    assert found.endswith("eventlog track public.usr --replicated")
    copy.track("usr", replicated=True)
    assert findings(copy) == []
    replication.run("insert into usr values (1)")
    assert copy.logged() == [Logged(5, "idu=1")]


def test_a_subscription_of_the_publishers_own_user_is_no_loopback(replication: Replication) -> None:
    """Publish the changes of the subscription's owner, because the perpetrator under apply is empty."""
    copy = replication.copy
    replication.both(USR)
    copy.track("usr", replicated=True)
    copy.run("create role idm superuser login")
    try:
        replication.subscribe(owner="idm")
        replication.run("insert into usr values (1)")
        assert perpetrators(copy) == {None}
        assert replication.faults() == 0
    finally:
        copy.run("alter subscription copied owner to eventlog", "drop owned by idm", "drop role idm")
