"""Oracle's statements without an Oracle: each is read by a parser of that dialect, as it would be sent."""

from __future__ import annotations

import pytest
import sqlfluff

from eventlog.sql.common.dialect import Dialect
from eventlog.sql.common.templates import read, statements
from eventlog.sql.dialects import DIALECTS
from eventlog.sql.oracle import ORACLE

pytestmark = pytest.mark.quick

TABLES = ("applied", "applied_marks", "applied_refused", "applied_ddl")
OURS = {name: f'"HR"."EVENTLOG_{name.upper()}"' for name in TABLES}
HOLES = OURS | {
    "applied_key": '"K1"',
    "applied_marks_key": '"K2"',
    "applied_refused_key": '"K3"',
    "applied_refused_objects_key": '"K4"',
    "long_text": ORACLE.schema.words["type_long"],
    "table_options": ORACLE.schema.table_options,
    "utc_now": ORACLE.values.utc_now,
    "table": '"HR"."USR"',
    "stage": '"ORA$PTT_EVENTLOG_0"',
    "same": 't."IDU" = s.c0',
    "keys": "s.c0",
    "cells": "s.c0, case when substr(s.mask, 2, 1) = '1' then s.c1 else t.\"FNAME\" end",
    "names": '"IDU", "FNAME"',
    "values": ":c0, :c1",
    "settings": """t."FNAME" = case when s.mask is null or substr(s.mask, 2, 1) = '1'
      then s.c1 else t."FNAME" end""",
    "same_before": 't."IDU" = s.b0',
    "columns": 't."IDU" as c0, t."FNAME" as c1',
    "key_name": '"USR_KEY"',
    "key": '"IDU"',
    "schema": '"HR"',
    "alias": "t",
    "column": '"LNAME" varchar2(64 char)',
    "value": "s.c1",
}
HOLES_OF_STATEMENT = {"apply_create": {"columns": '"IDU" number(10) not null, "FNAME" varchar2(64 char)'}}
# The parser knows tables that are temporary for everybody only.
UNKNOWN_TO_THE_PARSER = {"private temporary": "global temporary", "preserve definition": "preserve rows"}
PIECES = {"apply_setting"}
OF_APPLY = ("applied", "apply_", "stage_")
COPIES = {"stage_copy"}  # of databases that take rows by copy
FOLDERS = {folder for dialect in DIALECTS.values() for folder in dialect.folders}
EVERYWHERE = sorted({name for folder in FOLDERS for name in read(folder) if name.startswith(OF_APPLY)})


@pytest.mark.parametrize("name", [name for name in EVERYWHERE if name not in PIECES | COPIES])
@pytest.mark.family
def test_a_statement_is_oracles(name: str) -> None:
    for statement in statements(ORACLE, name, HOLES | HOLES_OF_STATEMENT.get(name, {})):
        text = statement
        for words, instead in UNKNOWN_TO_THE_PARSER.items():
            text = text.replace(words, instead)
        assert "unparsable" not in str(sqlfluff.parse(text + "\n", dialect="oracle")), text


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_every_database_has_every_statement(dialect: Dialect) -> None:
    for name in EVERYWHERE:
        if name not in COPIES or dialect.statements.copies:
            found = [*statements(dialect, name, HOLES)]
            assert all("{" not in statement for statement in found), found
