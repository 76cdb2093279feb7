"""A record that is left out is kept as it came; one of a container without lines as JSON."""

from __future__ import annotations

import json

import pytest

from eventlog.core.errors import Refused
from eventlog.core.formats import Object, Row, Source

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("record", "kept"),
    [
        (Row(1, ("idu=1", b"\xab\x01", 7), None), b'{"key": "idu=1", "image": "AB01", "number": 7}\n'),
        (Row(1, ("idu=1",), b"idu=1,\xff\n"), b"idu=1,\xff\n"),
        (Object(1, {"key": b"\x0f"}), b'{"key": "0F"}\n'),
    ],
)
def test_a_record_is_kept(record: Row | Object, kept: bytes) -> None:
    source: Source[Row | Object] = Source("log.parquet", "log", ("key", "image", "number"), [])
    assert source.refuse(record, "no number") == Refused("log.parquet:1", "no number", kept)


@pytest.mark.parametrize("content", [b"", b"\xab\xcd", b"\x00\xff"])
def test_bytes_of_a_record_are_kept_in_capitals_as_csv_has_them(content: bytes) -> None:
    source: Source[Row | Object] = Source("t.parquet", "t", ("image",), [])
    digits = content.hex().upper()
    assert json.loads(source.raw(Row(1, (content,)))) == {"image": digits}
    assert json.loads(source.raw(Object(1, {"images": [content]}))) == {"images": [digits]}
