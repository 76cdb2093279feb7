"""The neutral JSON Lines: any change, there and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given

from eventlog.core.change import ABSENT, Change, Field, Op, Raw, Undecoded
from eventlog.core.errors import WrongRow
from eventlog.files.jsonlines import dump_line
from eventlog.formats import neutral
from tests.kit.strategies import any_changes
from tests.kit.support import run_convert

pytestmark = pytest.mark.quick


@given(any_changes())
def test_what_is_written_is_read(change: Change) -> None:
    line = dump_line(neutral.dump(change))
    assert line.count(b"\n") == 1
    back = neutral.load(json.loads(line))
    assert back == change
    assert repr(back) == repr(change)  # 1, 1.0 and True are not the same


def test_a_change_reads_as_a_person_would_write_it() -> None:
    change = Change(
        Op.UPDATE,
        "indirect",
        "usr",
        (("idu", 1),),
        (
            Field("idu", 1, 1),
            Field("fname", "Jack", "John"),
            Field("photo", ABSENT, b"\xbb\xbb"),
            Field("x", None, ABSENT),
        ),
        "17",
        "39",
        "2025-03-23T10:57:19Z",
    )
    assert dump_line(neutral.dump(change)).decode() == (
        '{"op":"update","schema":"indirect","table":"usr","key":{"idu":1},"fields":[{"column":"idu","before":1,"after":1},'
        '{"column":"fname","before":"Jack","after":"John"},{"column":"photo","after":{"base64":"u7s="}},'
        '{"column":"x","before":null}],"position":"17","transaction":"39","time":"2025-03-23T10:57:19Z","user":null}\n'
    )


def test_bytes_that_are_no_text_and_images_that_no_layout_explains() -> None:
    change = Change(Op.DELETE, None, "t", fields=(Field("a", Undecoded(b"\xff")),), raw=Raw(b"\x01"))
    line = neutral.dump(change)
    assert line["fields"] == [{"column": "a", "before": {"bytes": "/w=="}}]
    assert (line["decoded"], line["raw"]) == (False, {"before": {"base64": "AQ=="}})
    assert neutral.load(line) == change


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[]", "must be a JSON object"),
        ("{}", "op is None"),
        ('{"op":"upsert","table":"t"}', "op is 'upsert', not one of insert"),
        ('{"op":"insert"}', "table is missing"),
        ('{"op":"insert","table":"t","x":1}', "unknown member 'x'"),
        ('{"op":"insert","table":"t","fields":[1]}', "a field must be an object"),
        ('{"op":"insert","table":"t","fields":[{"column":"a","after":{"base64":"?"}}]}', "not Base64"),
        ('{"op":"insert","table":"t","fields":[{"column":"a","after":{"b":1}}]}', "is no value"),
        ('{"op":"insert","table":"t","fields":[{"column":"a","after":NaN}]}', "is no value"),
        ('{"op":"insert","table":"t","extra":{"table_key":"x"}}', "malformed key"),
    ],
)
def test_a_line_that_is_no_change_is_refused(line: str, reason: str) -> None:
    with pytest.raises(Exception, match=reason) as caught:
        neutral.load(json.loads(line))
    assert isinstance(caught.value, WrongRow) or "malformed" in reason


def test_lines_that_are_no_json_cost_themselves(tmp_path: Path) -> None:
    good = '{"op":"delete","schema":null,"table":"t","key":{"k":1}}'
    text, refused = run_convert(tmp_path, "changes", "xds", f'{good}\n{{"op":\n\n{good}\n', name="c.jsonl")
    assert text.count("<delete ") == 2
    assert [bad.where.rpartition("/")[2] for bad in refused] == ["c.jsonl:2"]


@pytest.mark.parametrize("target", ["xds", "log"])
def test_a_row_that_nobody_could_decode_is_no_row_without_a_key(tmp_path: Path, target: str) -> None:
    """The tables file states the key, so that advice to state it would mislead."""
    raw = Change(Op.INSERT, "indirect", "usr", raw=Raw(None, b"x"))
    line = dump_line(neutral.dump(raw))
    _, refused = run_convert(tmp_path, "changes", target, line, name="c.jsonl")
    assert [one.reason for one in refused] == ["its row images could not be decoded"]


@pytest.mark.parametrize("target", ["xds", "log"])
def test_updates_that_change_nothing_are_counted_where_they_are_left_out(target: str, tmp_path: Path) -> None:
    fields = (Field("fname", "Jack", "Jack"),)
    same = [Change(Op.UPDATE, "indirect", "usr", (("idu", n),), fields, str(n)) for n in (1, 2)]
    other = same[0]._replace(fields=(Field("fname", "Jack", "John"),), position="3")
    content = b"".join(dump_line(neutral.dump(change)) for change in (*same, other))
    written, reported = run_convert(tmp_path, "changes", target, content, name="in.jsonl")
    assert written.count("John") == 1
    assert [(one.where, one.reason, one.fault) for one in reported] == [
        ("usr", "2 updates that change nothing are left out, at usr:1, usr:2", False)
    ]
