"""With max-deletes, a run that would delete too many rows of a table ends before it does."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import Engine

from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.tables import Tables
from eventlog.transactions.delivery import by_transaction
from eventlog.transfer.report import Report
from eventlog.transfer.targets.tables.apply_settings import ApplySettings
from eventlog.transfer.targets.tables.database import Database
from eventlog.transfer.targets.tables.outcomes import TooManyDeletes
from eventlog.transfer.targets.tables.writer import TableWriter
from tests.kit.commands import Shell
from tests.kit.databases import Database as Server
from tests.kit.statements import run_statements, select_rows
from tests.transfer.targets.support import apply

pytestmark = pytest.mark.quick


@pytest.fixture
def filled(engine: Engine) -> Engine:
    """Make a table with 300 rows, and one with a row."""
    run_statements(engine, "create table t (id integer primary key, v integer)")
    run_statements(engine, "create table other (id integer primary key, v integer)")
    inserts = [change(Op.INSERT, number) for number in range(300)]
    apply(engine, numbered(inserts), tables=Tables(), source="first")
    return engine


def change(op: Op, key: int, table: str = "t") -> Change:
    fields = () if op is Op.DELETE else (Field("id", ABSENT, key), Field("v", ABSENT, key))
    return Change(op, None, table, (("id", key),), fields)


def deletes(keys: Iterable[int]) -> list[Change]:
    return [change(Op.DELETE, key) for key in keys]


def numbered(changes: Iterable[Change], size: int = 10) -> list[Change]:
    """Return the changes in transactions of so many."""
    pairs = enumerate(changes)
    return [change._replace(position=f"{n:035}", transaction=str(n // size)) for n, change in pairs]


def count(engine: Engine, table: str = "t") -> int:
    ((number,),) = select_rows(engine, f"select count(*) from {table}")
    return int(number)


def delete(engine: Engine, changes: Iterable[Change], limit: str, **options: Any) -> str:
    tally, refused = apply(engine, numbered(changes), tables=Tables(), max_deletes=limit, **options)
    assert not refused
    return str(tally)


@pytest.mark.parametrize(
    ("number", "limit", "stops"),
    [
        (100, "0%", False),
        (101, "0%", True),
        (150, "50%", False),
        (151, "50%", True),
        (300, "100%", False),
        (300, "auto", False),
        (20, "20", False),
        (21, "20", True),
        (1, "0", True),
    ],
)
@pytest.mark.family
def test_exactly_the_limit_passes(filled: Engine, number: int, limit: str, stops: bool) -> None:
    changes = [change(Op.INSERT, 1, "other"), *deletes(range(number))]
    if stops:
        with pytest.raises(TooManyDeletes, match=f"^{number} rows of .*t would be deleted"):
            delete(filled, changes, limit)
        assert (count(filled), count(filled, "other")) == (300, 0)
        assert delete(filled, changes, str(number)) == f"1 inserted, 0 updated, {number} deleted"
    else:
        delete(filled, changes, limit)
    assert (count(filled), count(filled, "other")) == (300 - number, 1)


def test_a_run_is_counted_over_its_groups_and_the_next_goes_on(filled: Engine) -> None:
    changes = deletes(range(40))
    with pytest.raises(TooManyDeletes, match=r"^30 rows"):
        delete(filled, changes, "25", group=10)
    assert count(filled) == 280
    with pytest.raises(TooManyDeletes, match=r"^10 rows"):
        delete(filled, changes, "9", group=10)
    assert delete(filled, changes, "20", group=10) == "0 inserted, 0 updated, 20 deleted, 20 skipped"
    assert count(filled) == 260


def test_a_percentage_is_of_the_rows_before_the_deletes_of_the_run(filled: Engine) -> None:
    delete(filled, deletes(range(150)), "50%", group=10)
    with pytest.raises(TooManyDeletes, match=r"^150 rows"):
        delete(filled, deletes(range(150, 300)), "70%", group=50, source="second")
    assert count(filled) == 50


def test_a_row_that_is_written_again_is_not_deleted(filled: Engine) -> None:
    keys = range(50)
    changes = [one for key in keys for one in (change(Op.DELETE, key), change(Op.INSERT, key))]
    moved = [
        Change(Op.UPDATE, None, "t", (("id", key + 1000),), (Field("id", key, key + 1000), Field("v", 0, 0)))
        for key in keys
    ]
    delete(filled, [*changes, *moved], "0")
    assert count(filled) == 300


def test_a_truncate_counts_with_every_row(filled: Engine) -> None:
    changes = [Change(Op.TRUNCATE, None, "t"), change(Op.INSERT, 1)]
    with pytest.raises(TooManyDeletes, match=r"^300 rows"):
        delete(filled, changes, "99%")
    delete(filled, changes, "300")
    assert count(filled) == 1


def test_each_look_at_the_source_is_counted_anew(filled: Engine) -> None:
    settings = ApplySettings(max_deletes="25")
    report = Report(lambda refused: pytest.fail(refused.reason))
    with closing(Database(filled, "test", Tables(), settings, report.refuse)) as target:
        writer = TableWriter(target, "test", "changes", settings, report.refuse)
        for first in (0, 20):
            writer.write(
                report.accepted(by_transaction(numbered(deletes(range(first, first + 20))))), lambda: None
            )
        with pytest.raises(TooManyDeletes, match=r"^26 rows"):
            writer.write(report.accepted(by_transaction(numbered(deletes(range(100, 126))))), lambda: None)
    assert count(filled) == 260


def test_the_command_stops_and_goes_on_with_a_larger_limit(tmp_path: Path, postgres: Server) -> None:
    engine = postgres.engine()
    run_statements(
        engine, "create table t (id integer primary key)", "insert into t select generate_series(1, 9)"
    )
    lines = "".join(
        f'{{"op": "delete", "table": "t", "key": {{"id": {n}}}, "fields": []}}\n' for n in range(1, 7)
    )
    (tmp_path / "changes.jsonl").write_text(lines)
    shell = Shell(tmp_path)
    url = postgres.address
    words = ("apply", "changes.jsonl", "--to-url", url, "--max-deletes")
    done = shell.run(*words, "5")
    assert done.code == 1
    assert "6 rows of public.t would be deleted, which --max-deletes 5 stops" in done.stderr
    assert count(engine) == 9
    done = shell.run(*words, "6")
    assert (done.code, "6 deleted" in done.stderr, count(engine)) == (0, True, 3)
    assert shell.run(*words, "some").code == 2
    shell.close()
    engine.dispose()
