"""Every remedy that `check` prints is followed, as printed: afterwards `check` says nothing of it.

What is printed as a command is run, of the shell or of SQL; what only a person can do, a case does.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from click.testing import CliRunner

from eventlog.cli import cli
from eventlog.sql.capture.check import check
from eventlog.sql.capture.checks.finding import Finding
from eventlog.sql.capture.checks.log import LOG_CHECKS
from eventlog.sql.capture.checks.rows import ROW_CHECKS
from eventlog.sql.capture.checks.tables import TABLE_CHECKS
from eventlog.sql.schema import migrate
from tests.publisher.test_leadership import stranger
from tests.publisher.world import Receiver, World
from tests.sql.tracked import Tracked

pytestmark = pytest.mark.quick

POSTGRESQL = "postgresql"
MYSQL = "mysql mariadb"
NOTES = {"_encoding", "_ways_round"}  # nothing that a command could mend
ELSEWHERE = {"_replicated"}  # tests/sql/test_replicated.py, which has a subscription
USR = "create table usr (idu integer primary key, fname varchar(64), lname varchar(64))"


def row(**columns: str) -> str:
    given = {"event_type": "6", "table_name": "'usr'", "table_key": "'idu=1'"} | columns
    return f"insert into eventlog ({', '.join(given)}) values ({', '.join(given.values())})"


def publish(tracking: Tracked) -> None:
    """A publisher sends what is pending."""
    with World(tracking.engine, tracking.dialect).publisher(Receiver()) as publisher:
        publisher.cycle()


@dataclass(frozen=True)
class Case:
    """How a finding comes about, what it is called by, and how it is remedied where no command does it."""

    finding: str  # the function that finds it
    broken: tuple[str, ...]
    words: str
    where: str = f"{POSTGRESQL} {MYSQL}"
    mended: Callable[[Tracked], None] | None = None
    driver_user: str = "publisher"
    after: dict[str, str] = field(default_factory=dict)  # what `check` is given once it is mended


def sql(*statements: str) -> Callable[[Tracked], None]:
    return lambda tracking: tracking.run(*statements)


CASES = [
    Case(
        "_null_times",
        ("alter table eventlog alter column event_time drop not null", row(event_time="null")),
        "1 row has no event_time",
        POSTGRESQL,
    ),
    Case("_letters", (row(status="'n'"),), "status 'n', which is reserved"),
    Case("_types", (row(event_type="9"),), "event_type is 9", mended=publish),
    Case("_unusable", (row(record_id="-1"),), "1 pending rows have no usable record_id", mended=sql(
        "update eventlog set record_id = 1 where record_id = -1")),
    Case("_pending", (row(table_key="'idu'"),), "malformed key", mended=publish),
    Case("_pending", (row(), row(table_key="'idu= 1'")), "differ only in blanks", mended=sql(
        "update eventlog set table_key = 'idu=1'")),
    Case("_pending", (row(table_key="'IDU=1'"),), "two associations", mended=sql(
        "update eventlog set table_key = 'idu=1'")),
    Case("_pending", (row(table_name="'late'"), "create table late (idu integer primary key)"),
        "names late, which is no table", mended=lambda tracking: shell(tracking, "eventlog track late")),
    Case("_pending", (row(perpetrator="'idm'"),), "the work of idm", driver_user="idm",
        after={"driver_user": "publisher"}, mended=lambda tracking: None),
    Case("_overdue", (row(event_time="'2001-01-01 00:00:00'"),), "the oldest pending row has waited",
        mended=publish),
    Case("_index", ("drop index eventlog_pending",), "no index finds", POSTGRESQL),
    Case("_index", ("drop index eventlog_pending on eventlog",), "no index finds", MYSQL),
    Case("_sequence", ("alter table eventlog alter column record_id set cache 20",), "from a cache (20)",
        POSTGRESQL),
    Case("_position", ("update eventlog_state set highest_id = 1000",), "record ids come again"),
    Case("_done", ("update eventlog_state set done_last = 5",), "belongs to other rows than the log has"),
    Case("_made_anew", ("drop table usr",), "there is no such table any more"),
    Case("_made_anew", ("drop table usr", USR), "another table than the one", POSTGRESQL,
        mended=lambda tracking: first_of_two(tracking, "it is another table")),
    Case("_not_on_record", ("delete from eventlog_tracked",), "is not on record",
        mended=lambda tracking: first_of_two(tracking, "not on record")),
    Case("_drift", ("alter table usr add column mail varchar(64)",), "not those that track writes"),
    Case("_drift", ('drop trigger "!eventlog_insert" on usr',), "is missing on usr", POSTGRESQL),
    Case("_drift", ('alter table usr disable trigger "!eventlog_insert"',), "is disabled", POSTGRESQL),
    Case("_drift", ("alter table usr drop constraint usr_pkey",), "no longer fit", POSTGRESQL,
        mended=sql("alter table usr add primary key (idu)")),
    Case("_before_ours", (
        "create function f() returns trigger language plpgsql as $$ begin return null; end $$",
        'create trigger " f" after update on usr for each row execute function f()',
    ), "fires before capture", POSTGRESQL),
    Case("_cascades", (
        "create table dept (id integer primary key)",
        "alter table usr add column dept integer",
        "alter table usr add constraint fk foreign key (dept) references dept (id) on delete cascade",
    ), "fires no trigger", MYSQL, mended=sql(
        "alter table usr drop foreign key fk",
        "alter table usr add constraint fk2 foreign key (dept) references dept (id)",
    )),
]  # fmt: skip


def shell(tracking: Tracked, command: str) -> None:
    """Run a command of ours as a shell would."""
    program, *words = shlex.split(command)
    assert program == "eventlog"
    url = tracking.engine.url.render_as_string(hide_password=False)
    done = CliRunner().invoke(cli, words, env={"EVENTLOG_URL": url})
    assert done.exit_code in (0, 1), (command, done.output, done.exception)


def findings(tracking: Tracked, driver_user: str = "publisher") -> Iterator[Finding]:
    with tracking.engine.connect() as connection:
        found = check(connection, tracking.log, driver_user, timedelta(days=1))
        yield from (finding for finding in found if finding.fault)


def followed(tracking: Tracked, finding: Finding) -> int:
    """Run what a finding prints as commands; how many they were."""
    printed = (*finding.commands, *([finding.remedy] if finding.remedy.startswith("eventlog ") else []))
    for command in printed:
        if command.startswith("eventlog "):
            shell(tracking, command)
    statements = [command for command in printed if not command.startswith("eventlog ")]
    assert all(statement.endswith(";") for statement in statements)
    tracking.run(*(statement.removesuffix(";") for statement in statements))  # in one session
    return len(printed)


def first_of_two(tracking: Tracked, words: str) -> None:
    """A remedy that offers two ways: the first."""
    (finding,) = [finding for finding in findings(tracking) if words in finding.what]
    shell(tracking, finding.remedy.partition(", or ")[0])


def test_every_finding_has_its_case() -> None:
    known = {function.__name__ for function in (*ROW_CHECKS, *LOG_CHECKS, *TABLE_CHECKS)}
    assert known == {case.finding for case in CASES} | NOTES | ELSEWHERE | {"_lock"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.finding[1:]}: {case.words}")
def test_a_remedy_that_is_followed_mends(tracking: Tracked, case: Case) -> None:
    if tracking.dialect.name not in case.where:
        pytest.skip("it cannot come about here")
    tracking.run(USR)
    tracking.track("usr")
    assert list(findings(tracking)) == []
    tracking.run(*case.broken)
    (finding,) = [one for one in findings(tracking, case.driver_user) if case.words in one.what]
    if case.mended is not None:
        case.mended(tracking)
    else:
        assert followed(tracking, finding)
    left = findings(tracking, case.after.get("driver_user", case.driver_user))
    assert [one for one in left if case.words in one.what] == []


def test_a_lock_that_no_publisher_holds(tracking: Tracked) -> None:
    tracking.run(USR)
    tracking.track("usr")
    with stranger(World(tracking.engine, tracking.dialect)):
        (finding,) = findings(tracking)
        assert "the lock of its publisher is held by" in finding.what
        assert "end that session" in finding.remedy
    assert list(findings(tracking)) == []


def test_a_command_names_a_log_of_another_name(tracking: Tracked) -> None:
    other = Tracked(tracking.engine, replace(tracking.log, table="my log"))
    migrate.install(other.engine, other.log)
    other.run(USR)
    other.track("usr")
    other.run("alter table usr add column mail varchar(64)")
    (finding,) = findings(other)
    assert finding.remedy.endswith(" --log-table 'my log'")
    shell(other, finding.remedy)
    assert list(findings(other)) == []
