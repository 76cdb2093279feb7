"""Which statements of the operator may touch the log: exactly those that leave pending rows alone."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from eventlog.cli import cli
from eventlog.publisher.cleanup import cleaned_rows
from eventlog.publisher.postpoll import UnsafeStatement, check_safe, unseen
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.dialects import DIALECTS
from eventlog.sql.names import Log
from eventlog.sql.postgresql import POSTGRESQL
from tests.publisher.world import World, key

pytestmark = pytest.mark.quick

OLD = "event_time < "


def may_run(statement: str, dialect: Dialect = POSTGRESQL, **log: Any) -> bool:
    try:
        check_safe([statement], Log(dialect, **log))
    except UnsafeStatement:
        return False
    return True


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize(
    "statement",
    [
        "delete from eventlog where record_id = 5",
        "delete from eventlog where record_id in (5)",
        "DELETE\nFROM EventLog\tWHERE Record_Id IN ( 5 ,6, 7 )",
        "delete from {q}{n}{q} where record_id = 5",
        "delete from app.eventlog where status = 'S'",
        "delete from {q}my app{q} . {q}{n}{q} where status = 'W'",
        "delete from eventlog where status in ('S')",
        "delete from eventlog where status in ('W', 'S')",
        "delete /* where record_id = 1 */ from eventlog -- the log\n where status = 'S' -- what is done",
        f"delete from eventlog where status in ('S', 'W') and {OLD}current_timestamp - interval '7' day",
        f"delete from eventlog where status = 'S' and {OLD}timestamp '2025-01-01 00:00:00'",
        f"delete from eventlog where status = 'S' and {OLD}cast('2025-01-01' as date)",
        f"delete from eventlog where status = 'S' and {OLD}'2025-01-01'",
        "delete from archive",
        "call tidy(5)",
        "refresh materialized view people",
        "update people set seen = 'it''s -- eventlogs'",
        "select * from eventlog_archive",
    ],
)
def test_what_leaves_pending_rows_alone_may_run(dialect: Dialect, statement: str) -> None:
    name = dialect.fold("eventlog")
    assert may_run(statement.replace("{q}", dialect.quote_mark).replace("{n}", name), dialect)


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("delete from app.eventlog where status = 'S'", " status = 'S'"),
        (
            "delete /* where record_id = 1 */ from eventlog -- where\n WHERE\n status in ('S') -- where",
            "\n status in ('S') -- where",
        ),
        ("delete from eventlog where status = 'E'", None),
        ("delete from archive where status = 'S'", None),
        ("call tidy(5)", None),
    ],
)
def test_it_is_known_which_rows_a_statement_cleans_up(statement: str, rows: str | None) -> None:
    assert cleaned_rows(statement, Log(POSTGRESQL)) == rows


@pytest.mark.parametrize(
    ("dialect", "expression"),
    [
        ("postgresql", "now() - interval '7 days'"),
        ("postgresql", "(now() at time zone 'UTC') - '7 days'::interval"),
        ("postgresql", "date_trunc('day', clock_timestamp()) - 2 * interval '1 week'"),
        ("postgresql", "cast('2025-01-01' as timestamp(3) without time zone)"),
        ("mysql", "now() - interval 7 day"),
        ("mariadb", "date_sub(utc_timestamp(6), interval 7 day)"),
        ("oracle", "sysdate - 7"),
        ("oracle", "sys_extract_utc(systimestamp) - numtodsinterval(7, 'DAY')"),
    ],
)
def test_each_database_has_its_own_words_for_times(dialect: str, expression: str) -> None:
    statement = f"delete from eventlog where status = 'S' and {OLD}{expression}"
    assert may_run(statement, DIALECTS[dialect])


REFUSED = [
    "delete from eventlog",
    "delete from eventlog where status <> 'N'",
    "delete from eventlog where status = 'N'",
    "delete from eventlog where status = 'E'",
    "delete from eventlog where status = 's'",
    "delete from eventlog where status in ('S', 'N')",
    "delete from eventlog where status in ()",
    "delete from eventlog where status in ('S' 'W')",
    "delete from eventlog where status in ('S') or 1 = 1",
    "delete from eventlog where not status = 'S'",
    "delete from eventlog where 'S' = 'S'",
    "delete from eventlog where other = 'S'",
    "delete from eventlog where status = E'S'",
    "delete from eventlog where status = N'S'",
    "delete from eventlog where status = 'S' --1 or 1 = 1",
    "delete from eventlog where status = 'S' /*! or 1 = 1 */",
    "delete from eventlog where status = 'S' /*M! or 1 = 1 */",
    "delete from eventlog where status = 'S' /* /* */ or 1 = 1 /* */",
    "delete from eventlog where status = 'S' # or 1 = 1",
    "delete from eventlog where status = 'S\\' or 1 = 1 -- '",
    "delete from eventlog where status = 'S' limit 5",
    "delete from eventlog where status = 'S' returning tidy()",
    "delete from eventlog e where status = 'S'",
    "delete from eventlog using people where status = 'S'",
    "delete from eventlog where record_id < 5",
    "delete from eventlog where record_id = 1 or 1 = 1",
    "delete from eventlog where record_id = 1.0",
    "delete from eventlog where record_id = record_id",
    "delete from eventlog where record_id in (1, record_id)",
    "delete from eventlog where record_id in (select record_id from eventlog)",
    "delete from eventlog where record_id in (1, 2",
    "delete from a.b.eventlog where record_id = 1",
    'DELETE FROM "eventlog" WHERE record_id < 5',
    "delete/**/from/**/eventlog",
    "update eventlog set status = 'S'",
    "truncate table eventlog",
    "truncate EVENTLOG",
    'drop table app."eventlog"',
    "insert into archive select * from eventlog where status = 'S'",
    "select count(*) from eventlog",
    "do $$ begin delete from eventlog; end $$",
    "execute immediate 'delete from eventlog'",
    'delete from u&"\\0065ventlog"',
    "begin execute immediate q'[a' -- ]' || 'delete from eventlog'",
    "/*! delete from eventlog */",
    "delete from eventlog_batch where record_id = 1",
    "delete from eventlog_waiting",
    "update app.eventlog_state set epoch = 0",
    "alter sequence eventlog_sequence restart",
]


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize("statement", REFUSED)
def test_what_else_names_the_log_is_refused(dialect: Dialect, statement: str) -> None:
    assert not may_run(statement, dialect)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize(
    "expression",
    [
        "tidy()",
        "app.now()",
        "now() or 1 = 1",
        "now()) or (1 = 1",
        "(select max(event_time) from people)",
        "now() || 1",
        "now() = now()",
        "event_time",
        "current_timestamp and 1 = 1",
        "current_timestamp union select 1",
        "'2025-01-01'::people",
        "cast('2025-01-01' as people)",
        "case when tidy() then now() end",
        "",
        "()",
        "-1",
    ],
)
def test_an_expression_with_anything_of_the_users_is_refused(dialect: Dialect, expression: str) -> None:
    assert not may_run(f"delete from eventlog where status = 'S' and {OLD}{expression}", dialect)


def test_names_are_the_logs_own() -> None:
    custom: dict[str, Any] = {"table": "Event Log", "columns": {"status": "State", "record_id": "S"}}
    assert may_run("""delete from "Event Log" where "State" = 'S'""", **custom)
    assert may_run("""delete from "Event Log" where "S" in (1)""", **custom)
    assert not may_run("""delete from "Event Log" where state = 'S'""", **custom)
    assert not may_run("""delete from "Event Log" where "S" = 'S'""", **custom)
    assert not may_run("""delete from "event log" where "State" = 'S'""", **custom)
    # MySQL takes double quotes for a text, which is always true
    assert not may_run("""delete from eventlog where "status" = 'S'""", DIALECTS["mysql"])


def test_a_word_for_times_of_another_database_may_be_a_users_routine() -> None:
    assert not may_run(f"delete from eventlog where status = 'S' and {OLD}utc_timestamp()")


WORDS = ["delete", "from", "eventlog", "where", "status", "record_id", "event_time", "=", "<", "in", "(", ")"]
WORDS += [
    "'S'",
    "'W'",
    "'N'",
    "and",
    "or",
    "1",
    ",",
    "now()",
    "-",
    "interval",
    "day",
    ";",
    "--",
    "/*",
    "*/",
    "'",
]


@given(st.lists(st.sampled_from(WORDS), max_size=25))
def test_no_soup_of_words_passes_that_could_touch_a_pending_row(words: list[str]) -> None:
    statement = " ".join(["delete from eventlog where", *words])
    if may_run(statement):
        assert "'N'" not in statement.partition("--")[0].partition("/*")[0]
        assert words[0] in ("status", "record_id")
        assert words[1] in ("=", "in")


def test_a_call_may_run_and_check_warns_of_it(world: World) -> None:
    log = world.log
    assert list(unseen(["call tidy()", "select app.tidy(5)", "do $$ begin end $$"], log)) != []
    quiet = [
        "delete from people where id in (1)",
        "insert into seen (id) values (1)",
        "delete from old where d < now()",
    ]
    assert list(unseen(quiet, log)) == []
    url = world.engine.url.render_as_string(hide_password=False)
    environment = {"EVENTLOG_URL": url, "EVENTLOG_POST_POLL_STMT": "call tidy(); truncate eventlog"}
    result = CliRunner().invoke(cli, ["check"], env=environment)
    assert result.exit_code == 1
    assert "cannot be seen" in result.output
    assert "call tidy()" in result.output
    assert "truncate eventlog" in result.output


def test_the_databases_take_the_forms_that_may_run(world: World) -> None:
    world.write(*(key(number) for number in range(5)))
    world.change("update eventlog set status = 'S' where record_id = 2")
    world.change("update eventlog set status = 'W' where record_id = 3")
    old = {
        "postgresql": "now() at time zone 'UTC' + interval '1 day'",
        "oracle": "sys_extract_utc(systimestamp) + 1",
    }
    later = old.get(world.log.dialect.name, "utc_timestamp(6) + interval 1 day")
    for statement in (
        "delete from eventlog where record_id in (5)",
        f"delete from eventlog where status in ('S', 'W') and {OLD}{later}",
    ):
        assert may_run(statement, world.log.dialect)
        world.change(statement)
    assert world.letters() == {1: "N", 4: "N"}
