"""XDS: what is written validates, and reads back to the same changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op, Undecoded
from eventlog.core.errors import Refused
from eventlog.core.formats import Source
from eventlog.xds.documents import document, indent, write
from eventlog.xds.read import read
from eventlog.xds.write import EventWriter
from eventlog.xds.xds_settings import XdsFileSettings, XdsSettings
from tests.kit.strategies import xds_changes
from tests.xds.dtd import check_valid

pytestmark = pytest.mark.quick

TABLES = tablesfile.read(
    """
[tables.person]
schema = "hr"
key = ["id", "name"]

[tables.person.columns]
id = "integer"
name = "text"
active = "boolean"
photo = "blob"
born = "date"
note = "text"
n = "integer"
"""
)
PERSON = TABLES.get("person")
PLAIN = XdsFileSettings()


def written(changes: list[Change], settings: XdsSettings = PLAIN) -> bytes:
    records = list(write(changes, TABLES, settings))
    assert [item for item in records if isinstance(item, Refused)] == []
    return b"".join(item for item in records if isinstance(item, bytes))


def read_back(text: bytes, size: int = 1 << 20) -> list[Change | Refused]:
    chunks = [text[at : at + size] for at in range(0, len(text), size)]
    return list(read([Source("file", "file", (), chunks)], TABLES, PLAIN))


def essence(change: Change | Refused) -> tuple[object, ...]:
    assert isinstance(change, Change), change
    return change.op, change.schema, change.table, change.key, change.fields


@given(st.lists(xds_changes(PERSON), max_size=5), st.integers(1, 4), st.booleans())
def test_what_is_written_validates_and_reads_back(changes: list[Change], batch: int, pretty: bool) -> None:
    text = written(changes, XdsSettings(batch_size=batch, pretty=pretty))
    check_valid(text)
    assert [essence(change) for change in read_back(text)] == [essence(change) for change in changes]


@given(st.lists(xds_changes(PERSON), min_size=1, max_size=3), st.integers(1, 40))
@pytest.mark.long
def test_a_stream_reads_the_same_in_pieces_of_any_size(changes: list[Change], size: int) -> None:
    text = written(changes)
    assert read_back(text, size) == read_back(text)


@given(st.lists(xds_changes(PERSON), max_size=5))
def test_a_document_is_a_line_and_no_object_stands_in_it_twice(changes: list[Change]) -> None:
    text = written(changes, XdsSettings(batch_size=100))
    for line in text.splitlines(keepends=True):
        assert line.startswith(b"<nds ")
        assert line.endswith(b"</nds>\n")
        keys = [change.fact("table_key") for change in read_back(line) if isinstance(change, Change)]
        assert len(keys) == len(set(keys))


def write_event(change: Change, **settings: object) -> str:
    writer = EventWriter(TABLES, XdsSettings(**settings))  # type: ignore[arg-type]
    return writer.write(change, "e:1")


def values(text: str) -> list[str]:
    return [part.split("</value>")[0] for part in text.split("<value ")[1:]]


def test_values_have_the_types_of_their_columns() -> None:
    fields = (
        Field("active", ABSENT, True),
        Field("photo", ABSENT, b"\xbb\xbb"),
        Field("born", ABSENT, "1970-01-02"),
        Field("n", ABSENT, 5),
        Field("unknown", ABSENT, 1.5),
    )
    change = Change(Op.INSERT, "hr", "person", (("id", 1), ("name", "x")), fields)
    assert values(write_event(change)) == [
        'type="state">true',
        'type="octet">u7s=',
        'type="time">86400',
        'type="int">5',
        'type="string">1.5',
    ]
    as_texts = change._replace(fields=(Field("active", ABSENT, "true"), Field("n", ABSENT, "5")))
    assert values(write_event(as_texts)) == ['type="state">true', 'type="int">5']
    assert values(write_event(change, time_syntax=2))[2] == 'type="string">19700102'
    assert values(write_event(change, time_syntax=3))[2] == 'type="string">1970-01-02'


def test_a_key_that_nobody_knows_is_named() -> None:
    (refused,) = write([Change(Op.DELETE, None, "ghost", position="7")], TABLES, PLAIN)
    assert isinstance(refused, Refused)
    assert refused.where == "ghost:7"
    assert '[tables.ghost] key = ["…"]' in refused.reason


def test_a_moved_key_is_a_delete_and_an_insert() -> None:
    fields = (Field("id", 1, 2), Field("name", "x", "x"), Field("note", "a", "b"))
    change = Change(Op.UPDATE, "hr", "person", (("id", 2), ("name", "x")), fields, "9")
    gone, come = read_back(written([change]))
    assert essence(gone) == (Op.DELETE, "hr", "person", (("id", 1), ("name", "x")), ())
    assert essence(come)[0] is Op.INSERT
    assert isinstance(gone, Change)
    assert isinstance(come, Change)
    assert (gone.fact("event_id"), come.fact("event_id")) == ("hr.person:9", "hr.person:9.2")


def test_truncate_and_bytes_that_are_no_text_are_refused_with_the_reason() -> None:
    found = write(
        [
            Change(Op.TRUNCATE, "hr", "person", (), (), "1"),
            Change(
                Op.INSERT,
                "hr",
                "person",
                (("id", 1), ("name", "")),
                (Field("note", ABSENT, Undecoded(b"\xff")),),
            ),
            Change(Op.UPDATE, "hr", "person", (("id", 1), ("name", "")), (Field("note", "a", ABSENT),)),
        ],
        TABLES,
        PLAIN,
    )
    reasons = [item.reason for item in found if isinstance(item, Refused)]
    assert "--expand-truncate" in reasons[0]
    assert "not text in their code set: ff" in reasons[1]
    assert "was not captured" in reasons[2]


REFERENCES = tablesfile.read(
    """
[tables.usr]
schema = "indirect"
key = ["idu"]
columns = { idu = "integer", mgr = "integer" }
references = { mgr = "usr" }
"""
)


def test_a_foreign_key_is_a_reference_both_ways() -> None:
    change = Change(Op.INSERT, "indirect", "usr", (("idu", 1),), (Field("mgr", ABSENT, 2),))
    (text,) = write([change], REFERENCES, XdsSettings())
    assert isinstance(text, bytes)
    check_valid(text)
    assert b'<value type="dn" association-ref="idu=2,table=usr,schema=indirect">2</value>' in text
    (back,) = read([Source("f", "f", (), [text])], REFERENCES, PLAIN)
    assert essence(back) == essence(change)
    (refused,) = read([Source("f", "f", (), [text])], TABLES, PLAIN)
    assert isinstance(refused, Refused)
    assert "state it under `references`" in refused.reason


VIEW = tablesfile.read(
    """
[tables.view_usr]
view = true
columns = { pk_empno = "integer", sv_name = "text", mv_phone = "text", fk_mv__idg__mbr_of = "integer" }
"""
)


def test_the_prefixes_of_a_view_name_its_attributes() -> None:
    fields = (
        Field("sv_name", ABSENT, "a"),
        Field("mv_phone", ABSENT, ("1", "2")),
        Field("fk_mv__idg__mbr_of", ABSENT, 3),
    )
    change = Change(Op.INSERT, None, "view_usr", (("pk_empno", 1),), fields)
    (text,) = write([change], VIEW, XdsSettings())
    assert isinstance(text, bytes)
    check_valid(text)
    assert [part.split(b'"')[0] for part in text.split(b'attr-name="')[1:]] == [
        b"name",
        b"phone",
        b"fk_mbr_of",
    ]
    (back,) = read([Source("f", "f", (), [text])], VIEW, PLAIN)
    assert essence(back) == essence(change)


def test_pretty_documents_keep_their_values() -> None:
    change = Change(
        Op.INSERT, "hr", "person", (("id", 1), ("name", "x")), (Field("note", ABSENT, " a\r\nb "),)
    )
    text = document([write_event(change)])
    assert indent(text).count("\n") > 5
    assert [essence(c) for c in read_back(indent(text).encode())] == [essence(change)]


def test_a_document_that_does_not_follow_the_dtd_would_be_seen() -> None:
    with pytest.raises(AssertionError, match="modify"):
        check_valid(document(['<modify class-name="a"><association>k=1,table=a</association></modify>']))
