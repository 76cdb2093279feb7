"""A transaction that comes late is applied where nothing later changed its rows, and else refused whole."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Any

import pytest

from eventlog.core.change import Change, Op
from eventlog.core.errors import Refused
from eventlog.sql.connect import connect
from eventlog.transactions.delivery import Delivery
from eventlog.transfer.targets.tables.apply_progress import LateChanges
from eventlog.transfer.targets.tables.apply_settings import ApplySettings
from eventlog.transfer.targets.tables.database import Database
from eventlog.transfer.targets.tables.writer import TableWriter
from tests.kit.commands import Done, Shell
from tests.kit.databases import Database as Placed
from tests.kit.statements import run_statements, select_rows
from tests.transfer.targets.model import changed
from tests.transfer.targets.support import TABLES

pytestmark = pytest.mark.quick


def at(place: int, op: Op, key: int, key_before: int | None = None, **after: Any) -> Change:
    return changed(op, key, key_before, **after)._replace(position=f"{place:035}", transaction=str(place))


TRUNCATE = Change(Op.TRUNCATE, "indirect", "usr", position=f"{5:035}")
LATE = [at(3, Op.UPDATE, 1, n=3), at(4, Op.UPDATE, 2, n=4)]


@pytest.mark.parametrize(
    ("later", "applied"),
    [
        ([at(9, Op.UPDATE, 3, n=9)], True),
        ([at(9, Op.UPDATE, 2, n=9)], False),
        ([at(9, Op.DELETE, 1)], False),
        ([at(9, Op.UPDATE, 7, 1, n=9)], False),
        ([TRUNCATE], False),
        ([at(2, Op.UPDATE, 2, n=9), at(9, Op.UPDATE, 3, n=9)], True),
    ],
)
def test_what_comes_late(postgres: Placed, later: list[Change], applied: bool) -> None:
    engine = connect(postgres.url)
    run_statements(engine, "create table usr (idu integer primary key, fname text, lname text, n integer)")
    run_statements(engine, "insert into usr values (1, '', '', 0), (2, '', '', 0), (3, '', '', 0)")
    refused: list[Refused] = []
    settings = ApplySettings()
    deliveries = [Delivery(later), Delivery(LATE, late=True)]
    with closing(Database(engine, "s", TABLES, settings, refused.append)) as target:
        rows_of = TableWriter(target, "s", "qlik-message", settings, refused.append, has_states=True)
        rows_of.write(deliveries, lambda: "a")
    assert len(refused) == (0 if applied else 2)
    assert (select_rows(engine, "select n from usr where idu = 1 and n = 3") == [(3,)]) == applied
    assert (select_rows(engine, "select n from usr where idu = 2 and n = 4") == [(4,)]) == applied


def test_what_is_no_longer_remembered_is_refused() -> None:
    """Refuse late changes before forgotten rows, because memory is bounded."""
    later = LateChanges(max_rows=3)
    later.note([at(place, Op.INSERT, place) for place in range(10, 13)])
    assert later.overtaking([at(5, Op.INSERT, 5)]) is None
    assert later.overtaking([at(5, Op.INSERT, 11)]) is not None
    later.note([at(13, Op.INSERT, 13)])
    assert later.overtaking([at(5, Op.INSERT, 5)]) is not None
    assert later.overtaking([at(14, Op.INSERT, 5)]) is None


def test_a_row_that_is_not_named_may_be_any() -> None:
    unnamed = at(3, Op.UPDATE, 1, n=1)._replace(key=())
    later = LateChanges()
    later.note([at(9, Op.INSERT, 9)])
    assert later.overtaking([unnamed]) is not None
    later.note([unnamed._replace(position=f"{9:035}")])
    assert later.overtaking([at(3, Op.INSERT, 1)]) is not None
    assert later.overtaking([at(3, Op.INSERT, 1)._replace(table="other")]) is None


# --- rows of change tables that became visible late

HEADING = "header__change_seq,header__change_oper,header__change_mask,header__transaction_id,idu,n"
NAMES = '[tables.usr]\nkey = ["idu"]\ncolumns = { idu = "integer", n = "integer" }\n'


def line(number: int, letter: str, key: int, value: int) -> str:
    seq = f"20231114221320{number:02}{number:019}"
    return f"{seq},{letter},{'30' if letter == 'I' else '20'},{number:X},{key},{value}"


DELIVERED = [line(1, "I", 1, 1), line(2, "I", 2, 2), line(8, "U", 1, 8)]
LATE_ROWS = {  # what the table holds then
    "of another row": ([line(5, "U", 2, 5)], [(1, 8), (2, 5)]),
    "of a row that changed later, which is set back": ([line(5, "U", 1, 5)], [(1, 5), (2, 2)]),
    "a row that changed later again": ([line(5, "U", 2, 5), line(9, "U", 2, 9)], [(1, 8), (2, 9)]),
}


@pytest.fixture
def shell(shell: Shell) -> Shell:
    return shell.with_files({"tables.toml": NAMES})


def apply_rows(shell: Shell, database: Placed, lines: list[str], *flags: str) -> Done:
    path = shell.folder / "usr__ct.csv"
    path.write_text("\n".join([HEADING, *lines, ""]))
    os.utime(path, (1_700_100_000, 1_700_100_000))
    url = database.address
    return shell.run(
        "apply", "--from", "qlik-table", "--tables", "tables.toml", *flags, "--to-url", url, path.name
    )


@pytest.mark.parametrize("case", LATE_ROWS)
def test_late_rows_of_change_tables_are_applied_as_they_are_accepted(
    shell: Shell, postgres: Placed, case: str
) -> None:
    late, wanted = LATE_ROWS[case]
    assert apply_rows(shell, postgres, DELIVERED).code == 0
    stopped = apply_rows(shell, postgres, [*DELIVERED, *late])
    assert stopped.code == 1
    assert "--accept-late" in stopped.stderr
    done = apply_rows(shell, postgres, [*DELIVERED, *late], "--accept-late")
    assert done.code == 0, done.stderr
    assert "1 change became visible late, delivered now and marked late: in tables they may" in done.stderr
    assert select_rows(connect(postgres.url), "select idu, n from usr order by idu") == wanted
    assert apply_rows(shell, postgres, [*DELIVERED, *late]).code == 0
