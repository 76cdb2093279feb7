"""Oracle's tables for readers without an Oracle: each statement is read by a parser of that dialect."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eventlog.core.tables import Table
from eventlog.sql.capture.readers import READERS, _ReaderTable
from eventlog.sql.oracle import ORACLE
from tests.sql.test_oracle_texts import parse

pytestmark = pytest.mark.quick

QUESTIONS = ("delta_column", "deltas", "silent_filling", "silent_emptying", "stuck_in_delta")


def statements() -> Iterator[tuple[str, str]]:
    for reader, ending in READERS.items():
        reader_table = _ReaderTable(ORACLE, reader, Table("HR", "USR", {}), "LOGIN")
        for name in (f"create{ending}", f"drop{ending}"):
            for number, statement in enumerate(reader_table.statements(name, "VARCHAR2(20 char)")):
                yield f"{name} {number}", statement
        for name in QUESTIONS:
            yield f"{name} of {reader}", next(reader_table.statements(name))


STATEMENTS = dict(statements())


@pytest.mark.long
@pytest.mark.parametrize("name", STATEMENTS)
def test_sqlfluff_parses_the_statement(name: str) -> None:
    known_to_sqlfluff = STATEMENTS[name].replace("as identity (order)", "as identity")
    parse(known_to_sqlfluff, end="" if name.startswith(QUESTIONS) else "\n/")
