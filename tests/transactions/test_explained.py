"""`explain` of change tables and messages: each record, its group, and the order."""

from __future__ import annotations

import json

import pytest

from tests.formats.qlik.helpers import seq, write_messages
from tests.formats.qlik.test_broker import insert
from tests.kit.commands import Done, Shell
from tests.transactions import exports

pytestmark = pytest.mark.quick

HEADING = "header__change_seq,header__change_oper,header__change_mask,id,v"


def table(shell: Shell, name: str, *rows: str) -> str:
    """Return a change table in a file; each row as `2 U 10 1 b`."""
    cells = [(seq(int(number)), *other_cells) for number, *other_cells in (row.split(" ") for row in rows)]
    (shell.folder / name).write_text("\n".join([HEADING, *(",".join(row) for row in cells)]) + "\n")
    return name


def outcomes(done: Done) -> list[tuple[str, str, str | None]]:
    """Return the place, the outcome and the place of the row before, of each line of JSON."""
    reported = [json.loads(line) for line in done.stdout.splitlines()]
    return [(record["where"], record["outcome"], record.get("before")) for record in reported]


def test_rows_that_stand_apart_are_joined_as_they_are_read(shell: Shell) -> None:
    update = table(shell, "usr__ct.csv", "2 U 10 1 b", "1 I 18 1 a", "1 I 18 1 a", "7 B  1 a")
    (shell.folder / "later").mkdir()
    image = table(shell, "later/usr__ct.csv", "2 B  1 a", "8 X  1 a")
    done = shell.run("explain", "--from", "qlik-table", "--json", update, image)
    assert sorted(outcomes(done)) == [
        ("later/usr__ct.csv:3", "refused", None),
        ("usr__ct.csv:2", "sent", "later/usr__ct.csv:2"),
        ("usr__ct.csv:3", "sent", None),
        ("usr__ct.csv:4", "repeated", None),
        ("usr__ct.csv:5", "refused", None),
    ]
    assert done.code == 1
    assert "2 records are refused" in done.stderr
    text = shell.run("explain", "--from", "qlik-table", update, image).stdout
    assert "sent: update usr  at 2024010112000000" in text
    assert "with its before row at later/usr__ct.csv:2" in text


@pytest.mark.parametrize("source", ["log", "qlik-table"])
def test_a_file_that_cannot_be_read_ends_as_in_a_conversion(shell: Shell, source: str) -> None:
    """Report it in the same words, under the same code."""
    (shell.folder / "file.bin").write_bytes(b"\xc1\xff" * 50)
    words = ("--from", source, "--as", "csv", "file.bin")
    explained = shell.run("explain", *words)
    converted = shell.run("convert", "--to", "changes", *words)
    assert (explained.code, converted.code) == (2, 2)
    assert explained.stderr.splitlines()[-1] == converted.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("--table", "nosuch"), 1, "no row of the inputs is of nosuch"),
        (("--key", "idu=9"), 1, "no row of the inputs is of idu=9"),
        (("--table", "usr"), 0, ""),
    ],
)
def test_that_no_record_is_meant_is_reported(
    shell: Shell, words: tuple[str, ...], code: int, sentence: str
) -> None:
    (shell.folder / "log.csv").write_text(
        "record_id,status,event_type,event_time,perpetrator,table_name,table_key,column_name,old_value,new_value\n"
        "1,N,4,2024-01-01 00:00:00,,usr,id=1,,,\n"
    )
    rows = table(shell, "usr__ct.csv", "1 I 18 1 a")
    for source, options in (("log", ("--unknown-tables", "string", "log.csv")), ("qlik-table", (rows,))):
        done = shell.run("explain", "--from", source, *words, *options)
        assert (done.code, sentence in done.stderr, bool(done.stdout)) == (code, True, not code)


def test_in_the_order_of_the_inputs_nothing_that_stands_apart_is_joined(shell: Shell) -> None:
    rows = table(shell, "usr__ct.csv", "2 U 10 1 b", "1 I 18 1 a", "2 B  1 a")
    done = shell.run("explain", "--from", "qlik-table", "--order", "as-is", "--json", rows)
    assert [outcome for _, outcome, _ in outcomes(done)] == ["sent", "sent", "refused"]


def test_the_real_export_is_explained_to_its_last_row(shell: Shell) -> None:
    (shell.folder / "item__ct.csv").write_text(exports.csv(exports.export()))
    found = outcomes(shell.run("explain", "--from", "qlik-table", "--json", "item__ct.csv"))
    assert len([one for one in found if one[2]]) == 390
    assert len([one for one in found if one[1] == "refused"]) == 98
    assert len(found) + 390 == 1000


def test_messages_are_explained_and_chosen_by_table_and_key(shell: Shell) -> None:
    _, earlier = write_messages([insert(1)])
    lines = [json.dumps(one) for one in (*write_messages([insert(2)]), earlier)]
    (shell.folder / "m.jsonl").write_text("\n".join(lines) + "\n")
    words = ("explain", "--from", "qlik-message", "--json", "m.jsonl")
    assert outcomes(shell.run(*words)) == [("m.jsonl:3", "sent", None), ("m.jsonl:2", "sent", None)]
    assert outcomes(shell.run(*words, "--key", "id=2")) == [("m.jsonl:2", "sent", None)]
    assert outcomes(shell.run(*words, "--table", "other")) == []


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("--from", "qlik-table", "--driver-user", "x"), "--driver-user is of a log"),
        (("--from", "qlik-table", "--url", "x"), "--url is of a log"),
        (("--order", "as-is"), "--order is of change tables and messages"),
    ],
)
def test_flags_of_the_other_kind_are_misuse(shell: Shell, words: tuple[str, ...], reported: str) -> None:
    rows = table(shell, "usr__ct.csv", "1 I 18 1 a")
    done = shell.run("explain", *words, rows)
    assert done.code == 2
    assert reported in done.stderr
