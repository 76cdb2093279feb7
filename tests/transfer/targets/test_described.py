"""Tables that are made by their source's description: metadata messages."""

from __future__ import annotations

import json

import pytest

from eventlog.formats.qlik.structure import DataColumn, Structure
from eventlog.formats.qlik.types import Spec
from eventlog.sql.connect import connect
from eventlog.transfer.targets.tables.apply_settings import SourceSchema
from tests.kit.commands import Shell
from tests.kit.databases import Database
from tests.kit.statements import select_rows

pytestmark = pytest.mark.quick

TABLES = """\
[tables.usr]
schema = "hr"
key = ["idu", "part"]
columns = { idu = "integer", part = "varchar(4)", paid = "numeric(12,2)", born = "date", note = "varchar(9)" }
"""
ROW = {"idu": 1, "part": "a", "paid": "1.50", "born": "1970-01-01", "note": None}
CHANGE = {
    "op": "insert",
    "schema": "hr",
    "table": "usr",
    "key": {"idu": 1, "part": "a"},
    "fields": [{"column": name, "after": value} for name, value in ROW.items()],
    "position": f"20250101000000{1:021}",
    "transaction": "1",
}
CREATED_COLUMNS = [
    ("idu", "integer", None, None, "NO"),
    ("part", "character varying", 16, None, "NO"),
    ("paid", "numeric", None, 2, "YES"),
    ("born", "date", None, None, "YES"),
    ("note", "character varying", 36, None, "YES"),
]
LOOK = (
    "select column_name, data_type, character_maximum_length,"
    " case data_type when 'numeric' then numeric_scale end, is_nullable"
    " from information_schema.columns where table_name = 'usr' order by ordinal_position"
)


@pytest.fixture
def shell(shell: Shell) -> Shell:
    shell.with_files({"t.toml": TABLES, "c.jsonl": json.dumps(CHANGE) + "\n"})
    done = shell.run("convert", "--tables", "t.toml", "--to", "qlik-message", "-o", "m.jsonl", "c.jsonl")
    assert done.code == 0, done.stderr
    return shell


def test_a_table_is_made_as_its_source_describes_it(shell: Shell, postgres: Database) -> None:
    done = shell.run("apply", "--to-url", postgres.address, "--from", "qlik-message", "m.jsonl")
    assert (done.code, done.stderr) == (0, "eventlog: 1 inserted, 0 updated, 0 deleted\n")
    assert select_rows(connect(postgres.url), LOOK) == CREATED_COLUMNS


def test_the_tables_file_has_the_last_word(shell: Shell, postgres: Database) -> None:
    wider = TABLES.replace("varchar(9)", "varchar(200)").replace("numeric(12,2)", "numeric(12,4)")
    (shell.folder / "wider.toml").write_text(wider)
    words = ("--tables", "wider.toml", "--from", "qlik-message", "m.jsonl")
    assert shell.run("apply", "--to-url", postgres.address, *words).code == 0
    assert [row[2:4] for row in select_rows(connect(postgres.url), LOOK)][2:] == [
        (None, 4),
        (None, None),
        (200, None),
    ]


def test_a_change_that_no_column_can_hold_does_not_keep_others_from_a_new_table(
    shell: Shell, postgres: Database
) -> None:
    line = (
        '<nds dtdversion="4.0"><input><modify class-name="new" event-id="eventlog:{}:ab">'
        "<association>idu=1,table=new</association>"
        '<modify-attr attr-name="c"><add-value>{}</add-value></modify-attr></modify></input></nds>\n'
    )
    several = line.format("2-3", "<value>y</value><value>z</value>")
    (shell.folder / "d.xml").write_text(line.format(1, "<value>x</value>") + several)
    done = shell.run("apply", "--to-url", postgres.address, "--missing-rows", "insert", "d.xml")
    guess, *lines = done.stderr.splitlines()
    assert guess.startswith("eventlog: new takes columns with types that follow their first values: ")
    assert (done.code, lines) == (
        1,
        [
            "new:eventlog:2-3:ab: c: a column holds one value, and the change has several",
            "eventlog: 0 inserted, 1 updated, 0 deleted, 1 refused",
        ],
    )


def test_what_was_reported_last_holds_and_no_more_tables_are_kept_than_some() -> None:
    described = SourceSchema()
    first = Structure(
        "s", "t", (DataColumn("a", Spec("INT4", 10), 1), DataColumn("b", Spec("STRING", 5)), DataColumn("c"))
    )
    described.add_description(first)
    described.add_description(Structure("s", "t", (DataColumn("b", Spec("STRING", 9)),)))
    assert described.columns(("s", "t")) == {"a": Spec("INT4", 10), "b": Spec("STRING", 9)}
    assert list(described.key(("s", "t"))) == ["a"]
    for number in range(10_000):
        described.add_description(Structure(None, str(number), (DataColumn("a", Spec("INT4", 10), 1),)))
    assert described.columns(("s", "t")) == {}
    assert list(described.key((None, "9999"))) == ["a"]
