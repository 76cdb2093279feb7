"""Events that were refused are tried again, unless a later event of their object was applied."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import Engine

from eventlog.core.change import Change, Op
from eventlog.core.errors import Refused
from eventlog.sql.connect import DatabaseFailed, connect
from eventlog.transactions.delivery import by_transaction
from eventlog.transfer.report import Report
from eventlog.transfer.targets.tables import database as applying
from eventlog.transfer.targets.tables.apply_settings import ApplySettings
from eventlog.transfer.targets.tables.database import Database
from eventlog.transfer.targets.tables.writer import TableWriter
from tests.kit.commands import Shell
from tests.kit.databases import Database as Postgres
from tests.kit.statements import run_statements, select_rows
from tests.transfer.targets.model import changed
from tests.transfer.targets.support import TABLES, apply

pytestmark = pytest.mark.quick


def event(number: int, op: Op, key: int, key_before: int | None = None, **after: Any) -> Change:
    """Return a change of an object under an event-id."""
    return changed(op, key, key_before, **after)._replace(extra=(("event_id", f"e{number}"),))


def write(engine: Engine, *events: Change, **options: Any) -> tuple[str, Sequence[Refused]]:
    """Return what became of events."""
    tally, refused = apply(engine, events, format_name="xds", **options)
    return str(tally), refused


BAD, GOOD = event(1, Op.INSERT, 1, n="none"), event(1, Op.INSERT, 1, n=1)
NOTHING = "0 inserted, 0 updated, 0 deleted"
OVERTAKEN = "it was refused, and is not tried again: a later event of its object was applied"


@pytest.mark.parametrize("group", [1, 100])
def test_a_refused_event_is_tried_again(engine: Engine, group: int) -> None:
    """Keep the record of an event once in a run, and once in the next one that refuses it."""
    second_bad = event(2, Op.INSERT, 2, n="none")
    for _ in range(2):
        _, refused = write(engine, BAD, second_bad, BAD, event(3, Op.INSERT, 3, n=3), group=group)
        assert [one.where for one in refused if one.raw] == ["usr:e1", "usr:e2"]
    assert write(engine, GOOD, second_bad)[0] == "1 inserted, 0 updated, 0 deleted, 1 refused"
    assert write(engine, GOOD)[0] == f"{NOTHING}, 1 skipped"
    assert write(engine, event(2, Op.INSERT, 2, n=2))[0].startswith("1 inserted")
    assert select_rows(engine, "select idu, n from usr order by idu") == [(1, 1), (2, 2), (3, 3)]
    assert select_rows(engine, "select * from eventlog_applied_refused") == []


@pytest.mark.parametrize("group", [1, 100])
def test_several_refused_events_of_an_object_are_applied_in_their_order(engine: Engine, group: int) -> None:
    bad = [event(n, Op.INSERT, 1, n="none", fname=str(n)) for n in range(3)]
    assert write(engine, *bad, group=group)[0] == f"{NOTHING}, 3 refused"
    good = [event(n, Op.INSERT, 1, n=n) for n in range(3)]
    assert write(engine, good[0], bad[1], good[2], group=group)[0].endswith("1 refused")
    tally, refused = write(engine, *good, group=group)
    assert (tally, [one.reason for one in refused]) == (f"{NOTHING}, 3 skipped", [OVERTAKEN])
    assert select_rows(engine, "select n from usr") == [(2,)]


@pytest.mark.parametrize("group", [1, 100])
@pytest.mark.parametrize(
    "later", [event(2, Op.DELETE, 1), event(2, Op.UPDATE, 5, 1, n=7, fname="", lname="")]
)
def test_an_event_that_a_later_one_of_its_object_overtook_is_not_tried(
    engine: Engine, group: int, later: Change
) -> None:
    """Report that, which is no refusal; another object's events change nothing about it."""
    bad_other = event(4, Op.INSERT, 3, n="none")
    write(
        engine, event(3, Op.INSERT, 9, n=1), BAD, bad_other, later, event(5, Op.INSERT, 2, n=1), group=group
    )
    rows = select_rows(engine, "select idu from usr order by idu")
    tally, refused = write(engine, GOOD, event(4, Op.INSERT, 3, n=1), group=group)
    assert tally == "1 inserted, 0 updated, 0 deleted, 1 skipped"
    assert [(one.where, one.reason, one.raw, one.fault) for one in refused] == [
        ("usr:e1", OVERTAKEN, None, False)
    ]
    assert select_rows(engine, "select idu from usr order by idu") == sorted([*rows, (3,)])


def test_an_event_is_overtaken_whatever_type_its_key_was_read_as(engine: Engine) -> None:
    write(engine, event(0, Op.INSERT, 1, n=0), event(1, Op.UPDATE, 1, n="none"))
    text_key = event(2, Op.UPDATE, 1, n=2)._replace(key=(("idu", "1"),))
    assert write(engine, text_key)[0] == "0 inserted, 1 updated, 0 deleted"
    assert [one.reason for one in write(engine, event(1, Op.UPDATE, 1, n=1))[1]] == [OVERTAKEN]


def test_a_target_of_an_earlier_version_gets_the_table_of_refused_events(engine: Engine) -> None:
    write(engine, event(2, Op.INSERT, 2, n=2))
    run_statements(engine, "drop table eventlog_applied_refused")
    assert write(engine, BAD, event(2, Op.INSERT, 2, n=2))[0] == f"{NOTHING}, 1 refused, 1 skipped"
    assert write(engine, GOOD)[0].startswith("1 inserted")


def test_an_error_of_a_whole_group_refuses_no_event(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let another session hold the row of the first event, and report what else is refused only once."""
    waits = {"postgresql": ("set lock_timeout = '50ms'",)}.get(
        engine.dialect.name, ("set innodb_lock_wait_timeout = 1",)
    )
    write(engine, event(0, Op.INSERT, 1, n=0))
    monkeypatch.setattr(applying, "PAUSES", (0.0,))
    impatient, refused = connect(engine.url, waits), list[Refused]()
    with closing(Database(impatient, "test", TABLES, ApplySettings(), refused.append)) as target:
        writer = TableWriter(target, "test", "xds", ApplySettings(), refused.append)
        with engine.begin() as blocker:
            blocker.exec_driver_sql("update usr set n = 5 where idu = 1")
            with pytest.raises(DatabaseFailed):
                _apply(writer, event(1, Op.UPDATE, 1, n=1), event(2, Op.INSERT, 2, n="none"))
    impatient.dispose()
    assert select_rows(engine, "select * from eventlog_applied_refused") == []
    assert write(engine, event(1, Op.UPDATE, 1, n=1))[0] == "0 inserted, 1 updated, 0 deleted"


RAISING = {
    "postgresql": (
        (
            "create function fail() returns trigger language plpgsql as $$"
            " begin raise exception 'deadlock' using errcode = '40P01'; end $$"
        ),
        "create trigger fails before update on eventlog_applied for each row execute function fail()",
    ),
}
_MYSQL = (
    (
        "create trigger fails before update on eventlog_applied for each row"
        " signal sqlstate '40001' set mysql_errno = 1213, message_text = 'deadlock'"
    ),
)


def test_a_group_that_is_done_again_reports_a_refused_event_once(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let the database fail as the group is noted, once its refusals were reported."""
    monkeypatch.setattr(applying, "PAUSES", (0.0, 0.0))
    refused: list[Refused] = []
    with closing(Database(engine, "test", TABLES, ApplySettings(), refused.append)) as target:
        for statement in RAISING.get(engine.dialect.name, _MYSQL):
            run_statements(engine, statement)
        writer = TableWriter(target, "test", "xds", ApplySettings(), refused.append)
        with pytest.raises(DatabaseFailed):
            _apply(writer, BAD)
    assert len(refused) == 1


def _apply(writer: TableWriter, *events: Change) -> None:
    writer.write(Report(print).accepted(by_transaction(events)), lambda: None)


LOSES_FRACTIONS = (
    "eventlog: usr: born may have fractions of a second, which documents with --time-syntax 1 lose;"
    " --time-syntax 3 of the publisher keeps them"
)


def test_a_corrected_command_applies_what_was_refused(
    shell: Shell, postgres: Postgres, tmp_path: Path
) -> None:
    """Refuse the seconds that documents have by default, until a tables file states the type."""
    engine = connect(postgres.url)
    run_statements(engine, "create table usr (idu integer primary key, born timestamp)")
    association = "<association>idu=1,table=usr</association>"
    value = '<add-attr attr-name="born"><value type="time">86400</value></add-attr>'
    document = f'<nds><input><add class-name="usr" event-id="e1">{association}{value}</add></input></nds>'
    tables = '[tables.usr]\nkey = ["idu"]\ncolumns = { idu = "integer", born = "timestamp" }\n'
    shell.with_files({"one.xml": document, "tables.toml": tables})
    command = (
        "apply",
        "--from",
        "xds",
        "--to-url",
        postgres.address,
        "--refused",
        "refused.jsonl",
        "one.xml",
    )
    done = shell.run(*command)
    assert (done.code, "--tables" in done.stderr, "--time-syntax 3" in done.stderr) == (1, True, True)
    done = shell.run(*command, "--tables", "tables.toml")
    assert done.code == 0
    assert done.stderr.splitlines() == [LOSES_FRACTIONS, "eventlog: 1 inserted, 0 updated, 0 deleted"]
    assert [str(born) for (born,) in select_rows(engine, "select born from usr")] == ["1970-01-02 00:00:00"]
    (line,) = (shell.folder / "refused.jsonl").read_text().splitlines()
    assert json.loads(line)["table"] == "usr"


@pytest.mark.parametrize(("column", "syntax"), [("timestamp(0)", 1), ("date", 1), ("timestamp", 3)])
def test_columns_that_lose_no_fractions_are_not_named(
    shell: Shell, postgres: Postgres, column: str, syntax: int
) -> None:
    run_statements(connect(postgres.url), f"create table usr (idu integer primary key, born {column})")
    text = "86400" if syntax == 1 else "1970-01-02 00:00:00.5"
    association = "<association>idu=1,table=usr</association>"
    value = f'<add-attr attr-name="born"><value type="time">{text}</value></add-attr>'
    document = f'<nds><input><add class-name="usr" event-id="e1">{association}{value}</add></input></nds>'
    kind = column.partition("(")[0]
    tables = f'[tables.usr]\nkey = ["idu"]\ncolumns = {{ idu = "integer", born = "{kind}" }}\n'
    shell.with_files({"one.xml": document, "tables.toml": tables})
    words = ("--tables", "tables.toml", "--time-syntax", str(syntax), "one.xml")
    done = shell.run("apply", "--to-url", postgres.address, *words)
    assert (done.code, done.stderr) == (0, "eventlog: 1 inserted, 0 updated, 0 deleted\n")
