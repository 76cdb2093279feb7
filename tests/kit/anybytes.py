"""What holds for each reader of foreign bytes, whatever they are: for Hypothesis, for atheris on demand."""

from __future__ import annotations

import io
import tomllib
from collections.abc import Callable
from contextlib import suppress

from lxml import etree

from eventlog.core import tablekey
from eventlog.core.errors import EventlogError, InvalidDocument, InvalidValue, MalformedKey
from eventlog.core.formats import Object, Row
from eventlog.files import csv, jsonlines
from eventlog.netiq import export
from eventlog.netiq.translate import as_toml, translate
from eventlog.sql.dialects import DIALECTS
from eventlog.xds import answers, split

_PIECE = 7  # bytes of a chunk


def _reported(chunks: list[bytes]) -> list[tuple[str, str, bytes]]:
    return [
        (f.where, f.reason, f.raw)
        if isinstance(f, split.Broken)
        else (f.where, "", etree.tostring(f.element, with_tail=False))
        for f in split.split(chunks)
    ]


def check_split(data: bytes) -> None:
    """Check that all chunks refuse the same, and that only what precedes a fault is read."""
    at_once = _reported([data])
    pieces = _reported([data[at : at + _PIECE] for at in range(0, len(data), _PIECE)])
    assert [where for where, reason, _ in at_once if reason] == [
        where for where, reason, _ in pieces if reason
    ]
    assert {record for record in at_once if not record[1]} <= set(pieces)
    assert not any(b"<!DOCTYPE" in raw for _, reason, raw in at_once if not reason)


def check_answers(data: bytes) -> None:
    """An answer is written and read again, or it is none."""
    with suppress(InvalidDocument):
        statuses = answers.read(data)
        assert [s.level for s in answers.read(answers.write(statuses).encode())] == [
            s.level for s in statuses
        ]


def check_table_key(data: bytes) -> None:
    """A key is written and read again, or the place of its fault is in it."""
    text = data.decode("utf-8", "surrogateescape")
    try:
        pairs = tablekey.read(text)
    except MalformedKey as fault:
        place = fault.args[0]
    else:
        place = 1
        assert tablekey.read(tablekey.write(pairs)) == pairs
    assert 1 <= place <= len(text) + 1


def check_csv(data: bytes) -> None:
    """Every sound row is written and read again; every line is in a row or a refusal."""
    with suppress(InvalidDocument):
        columns, rows = csv.read(io.BytesIO(data), "f")
        sound = [row.cells for row in rows if isinstance(row, Row)]
        out = io.BytesIO()
        writer = csv.CsvWriter(out, columns)
        for cells in sound:
            writer.write(cells)
        if len(columns) > 1:  # a single null would be a blank line
            _, reread_rows = csv.read(io.BytesIO(out.getvalue()), "f")
            assert [row.cells for row in reread_rows if isinstance(row, Row)] == sound


def check_json_lines(data: bytes) -> None:
    """Every byte is in a value or a refusal, and every value is written on a line and read again."""
    reported = list(jsonlines.read(io.BytesIO(data), "f"))
    arrays = any(line.lstrip().startswith(b"[") for line in data.split(b"\n"))  # known by their elements
    if not arrays:
        assert _without_blanks(b"".join(record.raw or b"" for record in reported)) == _without_blanks(data)
    lines = [jsonlines.dump_line(record.value) for record in reported if isinstance(record, Object)]
    flat = [line for line in lines if not line.startswith(b"[")]
    reread = jsonlines.read(io.BytesIO(b"".join(flat)), "f")
    assert [record.raw for record in reread if isinstance(record, Object)] == flat


def _without_blanks(data: bytes) -> bytes:
    return data.translate(None, b" \t\n\r\v\f")


def check_query_back_key(data: bytes) -> None:
    """A key's text is sent as text, or refused."""
    text = data.decode("utf-8", "surrogateescape")
    for dialect in DIALECTS.values():
        for key_type in set(dialect.values.key_types.values()):
            with suppress(InvalidValue, EventlogError):
                assert "\0" not in key_type.sent(text)


def check_import_config(data: bytes) -> None:
    """Check that the output for an export is TOML."""
    with suppress(EventlogError):
        tomllib.loads(as_toml("driver.xml", translate(export.read("driver.xml", data))))


CHECKS: dict[str, Callable[[bytes], None]] = {
    "split": check_split,
    "answers": check_answers,
    "table_key": check_table_key,
    "csv": check_csv,
    "json_lines": check_json_lines,
    "query_back_key": check_query_back_key,
    "import_config": check_import_config,
}
SOUND: dict[str, bytes] = {
    "split": b'<?xml version="1.0"?><!-- c --><nds dtdversion="4.0"><input><add class-name="t">'
    b"<association>k=1,table=t</association><add-attr attr-name='a'><value><![CDATA[<]]>&#65;</value>"
    b"</add-attr></add></input></nds>\n<nds/>",
    "answers": b'<nds><output><status level="error" event-id="a">why</status></output></nds>',
    "table_key": b'a=1+b="x, \\" \\\\ y"+c=',
    "csv": b'a,b\n1,"x ""y"" \n z"\n,""\n',
    "json_lines": b'{"a":[1,2.5,"\\u00e4",null,true]}\n\n"x"\n',
    "query_back_key": b"2024-02-29 01:02:03.5+01:00",
    "import_config": b'<d><publisher-options><definition name="log-table"><value>l</value></definition>'
    b'</publisher-options><definition name="polling-interval"><value>5</value></definition></d>',
}
