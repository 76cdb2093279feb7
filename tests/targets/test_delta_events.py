"""Events of a log and of documents go into Delta tables once, whatever their order, repeats and kills."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from eventlog.targets.tables.delta_marks import FOLDER
from tests.commands import Shell

pytestmark = pytest.mark.quick

TABLES = "".join(
    f'[tables.{name}]\nkey = ["id"]\ncolumns = {{ id = "integer", n = "varchar(8)" }}\n' for name in "ab"
)
HEAD = "record_id,event_type,event_time,table_name,table_key,column_name,old_value,new_value\n"
INSERTS = [f"{n},1,2025-03-23 10:57:0{n},{t},id=1,n,,new" for n, t in enumerate("ab", 1)]
UPDATES = [f"{n},2,2025-03-23 10:57:0{n},{t},id=1,n,new,then" for n, t in enumerate("ab", 3)]
DELETE = "5,4,2025-03-23 10:57:05,a,id=1,,,"
TO = ("--to-delta", "lake", "--tables", "tables.toml")
NOTHING = "eventlog: 0 inserted, 0 updated, 0 deleted"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    (tmp_path / "tables.toml").write_text(TABLES)
    made = Shell(tmp_path)
    yield made
    made.close()


def apply(shell: Shell, lines: list[str], *more: str) -> Any:
    (shell.folder / "log.csv").write_text(HEAD + "".join(f"{line}\n" for line in lines))
    return shell.run("apply", "--from", "log", *TO, *more, "log.csv")


def rows(shell: Shell, table: str) -> list[tuple[Any, ...]]:
    found = DeltaTable(shell.folder / "lake" / table).to_pyarrow_table().to_pylist()
    return sorted((row["id"], row["n"]) for row in found)


@pytest.mark.parametrize("group", ["1", "10000"])
def test_repeats_growth_and_other_orders_apply_each_event_once(shell: Shell, group: str) -> None:
    some = ("--group", group)
    assert apply(shell, INSERTS, *some).stderr == "eventlog: 2 inserted, 0 updated, 0 deleted\n"
    grown = apply(shell, [*INSERTS, *UPDATES], *some)
    assert (grown.code, grown.stderr) == (0, "eventlog: 0 inserted, 2 updated, 0 deleted, 2 skipped\n")
    DeltaTable(shell.folder / "lake" / "a").vacuum(
        retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True
    )
    last = apply(shell, [DELETE, *UPDATES, *INSERTS], *some)
    assert (last.code, last.stderr) == (0, "eventlog: 0 inserted, 0 updated, 1 deleted, 4 skipped\n")
    assert apply(shell, [*INSERTS, *UPDATES], *some).stderr == f"{NOTHING}, 4 skipped\n"
    assert (rows(shell, "a"), rows(shell, "b")) == ([], [(1, "then")])


def test_documents_are_applied_once(shell: Shell) -> None:
    (shell.folder / "log.csv").write_text(HEAD + "".join(f"{line}\n" for line in [*INSERTS, *UPDATES]))
    made = shell.run("convert", "--from", "log", "--to", "xds", *TO[2:], "-o", "docs.xml", "log.csv")
    assert made.code == 0, made.stderr
    done = shell.run("apply", "--from", "xds", *TO, "docs.xml")
    assert (done.code, rows(shell, "a"), rows(shell, "b")) == (0, [(1, "then")], [(1, "then")])
    again = shell.run("apply", "--from", "xds", *TO, "docs.xml")
    assert again.stderr.startswith(f"{NOTHING}, ")


def test_a_run_that_ends_between_two_tables_loses_and_doubles_nothing(shell: Shell) -> None:
    """Pass over what the first table has; the second gets its events, whose names were on disk."""
    apply(shell, INSERTS)
    log = shell.folder / "lake" / "b" / "_delta_log"
    in_the_way = log / f"{DeltaTable(log.parent).version() + 1:020}.json"
    in_the_way.mkdir()
    assert apply(shell, [*INSERTS, *UPDATES]).code == 1
    in_the_way.rmdir()
    assert (rows(shell, "a"), rows(shell, "b")) == ([(1, "then")], [(1, "new")])
    assert len(list((log.parent / FOLDER).glob("*/*.parquet"))) == 2
    version = DeltaTable(shell.folder / "lake" / "a").version()
    rest = apply(shell, [*UPDATES, *INSERTS])
    assert (rest.code, rest.stderr) == (0, "eventlog: 0 inserted, 1 updated, 0 deleted, 3 skipped\n")
    assert (rows(shell, "a"), rows(shell, "b")) == ([(1, "then")], [(1, "then")])
    assert DeltaTable(shell.folder / "lake" / "a").version() == version
    assert apply(shell, [*INSERTS, *UPDATES]).stderr == f"{NOTHING}, 4 skipped\n"


def test_what_met_no_row_is_noted_and_does_not_come_later(shell: Shell) -> None:
    """An update without its row is refused for good, as in a database: its row may be a later one by now."""
    wide = TABLES.replace("columns = {", 'columns = { more = "varchar(8)",')
    (shell.folder / "tables.toml").write_text(wide)
    apply(shell, [INSERTS[0].replace("id=1", "id=9")])
    refused = apply(shell, UPDATES[:1])
    assert (refused.code, refused.stderr.splitlines()[-1]) == (1, f"{NOTHING}, 1 refused")
    apply(shell, [INSERTS[0].replace("1,1,", "8,1,", 1)])
    again = apply(shell, UPDATES[:1])
    assert (again.code, again.stderr) == (0, f"{NOTHING}, 1 skipped\n")
    assert rows(shell, "a") == [(1, "new"), (9, "new")]


def test_lost_names_are_reported_and_nothing_is_applied_again(shell: Shell) -> None:
    apply(shell, INSERTS)
    (kept,) = (shell.folder / "lake" / "a" / FOLDER).glob("*/*.parquet")
    kept.unlink()
    done = apply(shell, [*INSERTS, *UPDATES])
    assert done.code == 1
    assert "no longer records how far" in done.stderr
    other = apply(shell, INSERTS, "--source", "../x'é")
    assert other.stderr == "eventlog: 2 inserted, 0 updated, 0 deleted\n"
    assert apply(shell, INSERTS, "--source", "../x'é").stderr == f"{NOTHING}, 2 skipped\n"
