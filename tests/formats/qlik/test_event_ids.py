"""Event-ids of change tables and messages: one for each change of one object, whatever the way of reading."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.formats.qlik.helpers import seq
from tests.kit.commands import Shell
from tests.kit.statements import run_statements

pytestmark = pytest.mark.quick

TABLES = """\
[tables.usr]
key = ["id"]
columns = { id = "integer", name = "varchar(9)" }
"""
HEADING = "header__change_seq,header__change_oper,header__change_mask,id,name\n"
LOADED = [("", "I", "", "1", "Jack"), ("", "I", "", "2", "Jane")]
MOVED = [(seq(5), "D", "08", "1", "Jack"), (seq(5), "I", "18", "7", "Jack")]


def table(*rows: Sequence[str]) -> str:
    """Return a change table with four columns besides `id`, which has bit 3, and `name`."""
    return HEADING + "".join(f"{','.join(row)}\n" for row in rows)


def message(operation: str, number: int | None, row: Mapping[str, Any], mask: str | None) -> str:
    """Return a message as the manual describes it; that of a full load has empty headers."""
    headers = {
        "operation": operation,
        "changeSequence": "" if number is None else seq(number),
        "timestamp": "" if number is None else "2024-01-01T12:00:00.000",
        "streamPosition": "" if number is None else "0003;4",
        "transactionId": "" if number is None else f"{0xAB:032X}",
        "changeMask": mask,
        "columnMask": None if number is None else "03",
    }
    envelope = {"magic": "atMSG", "type": "DT", "headers": None, "messageSchemaId": None}
    content = {"data": row, "beforeData": None, "headers": headers}
    return json.dumps(envelope | {"messageSchema": None, "message": content}) + "\n"


MESSAGES = (
    message("REFRESH", None, {"id": 1, "name": "Jack"}, None)
    + message("REFRESH", None, {"id": 2, "name": "Jane"}, None)
    + message("DELETE", 5, {"id": 1, "name": "Jack"}, "01")
    + message("INSERT", 5, {"id": 7, "name": "Jack"}, "03")
)


def documents(folder: Path, files: Mapping[str, str], *words: str) -> str:
    """Return the documents of what `convert` reads."""
    shell = Shell(folder).with_files({"tables.toml": TABLES, **files})
    done = shell.run("convert", "--to", "xds", "--tables", "tables.toml", *words)
    assert done.code == 0, done
    return done.stdout


def events(text: str) -> list[tuple[str, str, str]]:
    """Return kind, id and key of each event."""
    return re.findall(r'<(add|delete)[^>]* event-id="(.*?)"><association>id=(\d+)', text)


def ids(text: str) -> list[str]:
    return [event_id for _, event_id, _ in events(text)]


READ_TABLE, READ_MESSAGES = ("--from", "qlik-table"), ("--from", "qlik-message")


@pytest.mark.parametrize("order", ["sequence", "as-is"])
@pytest.mark.parametrize("rows", [MOVED, MOVED[::-1]], ids=["D, I", "I, D"])
def test_both_events_of_a_key_change_have_an_event_id_of_their_own(
    rows: Sequence[Sequence[str]], order: str, tmp_path: Path
) -> None:
    files = {"usr__ct.csv": table(*rows), "usr.jsonl": "".join(MESSAGES.splitlines(keepends=True)[2:])}
    if rows != MOVED:
        files["usr.jsonl"] = "".join(files["usr.jsonl"].splitlines(keepends=True)[::-1])
    of_table = documents(tmp_path, files, *READ_TABLE, "usr__ct.csv", "--order", order)
    of_messages = documents(tmp_path, files, *READ_MESSAGES, "usr.jsonl", "--order", order)
    moved = {("delete", f"usr:{seq(5)}", "1"), ("add", f"usr:{seq(5)}.2", "7")}
    assert {*events(of_table)} == {*events(of_messages)} == moved


def test_an_insert_alone_has_the_event_id_of_its_change_seq(tmp_path: Path) -> None:
    files = {"usr__ct.csv": table(MOVED[1])}
    assert ids(documents(tmp_path, files, *READ_TABLE, "usr__ct.csv")) == [f"usr:{seq(5)}"]


def test_rows_of_a_key_change_that_come_again_are_the_same_events(tmp_path: Path) -> None:
    """Count neighbours of one change_seq, not pairs: an export twice over may have both inserts first."""
    files = {"usr__ct.csv": table(MOVED[1], MOVED[1], MOVED[0], MOVED[0])}
    again = ids(documents(tmp_path, files, *READ_TABLE, "usr__ct.csv", "--order", "as-is"))
    assert again == [f"usr:{seq(5)}.2"] * 2 + [f"usr:{seq(5)}"] * 2


@pytest.mark.parametrize("form", ["table", "messages"])
def test_a_loaded_row_has_an_event_id_of_its_values(form: str, tmp_path: Path) -> None:
    """Load two rows, then in another run these rows in another order with one changed and one new."""
    later = [("", "I", "", "3", "Jane"), ("", "I", "", "2", "Joan"), ("", "I", "", "1", "Jack")]

    def loaded(rows: Iterable[Sequence[str]]) -> list[str]:
        lines = (message("REFRESH", None, {"id": int(r[3]), "name": r[4]}, None) for r in rows)
        files = {"usr__ct.csv": table(*rows), "usr.jsonl": "".join(lines)}
        words = (*READ_TABLE, "usr__ct.csv") if form == "table" else (*READ_MESSAGES, "usr.jsonl")
        return ids(documents(tmp_path, files, *words))

    jack, jane = loaded(LOADED)
    new, joan, jack_again = loaded(later)
    assert jack_again == jack
    assert len({jack, jane, new, joan}) == 4
    assert loaded([LOADED[0]] * 2) == [jack, jack]


def test_null_and_text_and_numbers_differ_in_the_event_id_of_a_loaded_row(tmp_path: Path) -> None:
    rows = ({"id": 1, "name": name} for name in (None, "", "None", "1", 1, 1.5, True, "true"))
    files = {"usr.jsonl": "".join(message("REFRESH", None, row, None) for row in rows)}
    files["tables.toml"] = '[tables.usr]\nkey = ["id"]\n'
    shell = Shell(tmp_path).with_files(files)
    done = shell.run("convert", *READ_MESSAGES, "--to", "xds", "--tables", "tables.toml", "usr.jsonl")
    assert len({*ids(done.stdout)}) == 8, done


def test_files_databases_messages_and_states_give_one_event_one_id(tmp_path: Path) -> None:
    """A database and a run that goes on from a state read what a file has."""
    files = {"usr__ct.csv": table(*LOADED, *MOVED), "usr.jsonl": MESSAGES}
    of_file = events(documents(tmp_path, files, *READ_TABLE, "usr__ct.csv"))
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'db'}")
    columns = "header__change_seq text, header__change_oper text, header__change_mask blob, id integer"
    statements = [f"create table usr__ct ({columns}, name text)"]
    for change_seq, letter, mask, key, name in (*LOADED, *MOVED):
        cells = f"nullif('{change_seq}', ''), '{letter}', x'{mask}', {key}, '{name}'"
        statements.append(f"insert into usr__ct values ({cells})")
    run_statements(engine, *statements)
    url = ("--url", f"sqlite:///{tmp_path / 'db'}")
    assert events(documents(tmp_path, files, *READ_TABLE, *url, "usr__ct")) == of_file
    assert events(documents(tmp_path, files, *READ_MESSAGES, "usr.jsonl")) == of_file

    state = (*READ_TABLE, "--state", "state", "--settle", "0", "-o", "out.xml", "usr__ct.csv")
    for rows in (LOADED[:1], LOADED, [*LOADED, *MOVED]):
        documents(tmp_path, {"usr__ct.csv": table(*rows)}, *state)
    assert events((tmp_path / "out.xml").read_text()) == of_file
