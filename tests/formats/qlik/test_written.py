"""What the output contains about itself: ids of structures and transactions, and updates that change
nothing."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op, Raw, Side, Value
from eventlog.core.errors import Refused
from eventlog.core.formats import SheetRow
from eventlog.formats.neutral import load
from tests.formats.qlik.helpers import read_messages, seq, write_messages, write_rows
from tests.kit.support import run_convert

pytestmark = pytest.mark.quick

TABLES = tablesfile.read('[tables.t]\nkey = ["id"]\ncolumns = { id = "integer", name = "nvarchar(20)" }\n')
WIDER = tablesfile.read(
    '[tables.t]\nkey = ["id"]\ncolumns = { id = "integer", name = "nvarchar(20)", age = "integer" }\n'
)
WITH_LOB = tablesfile.read(
    '[tables.t]\nkey = ["id"]\ncolumns = { id = "integer", name = "text", b = "blob" }\n'
)
JACK = Change(Op.INSERT, None, "t", (("id", 1),), (Field("id", ABSENT, 1), Field("name", ABSENT, "Jack")))


def update(before: Side, after: Side, number: int = 1, **reported: Any) -> Change:
    fields = (Field("id", 1, 1), Field("name", before, after))
    return Change(Op.UPDATE, None, "t", (("id", 1),), fields, seq(number), **reported)


def metadata(tables: Any = TABLES, **settings: Any) -> dict[str, Any]:
    message: dict[str, Any] = write_messages([JACK], tables, **settings)[0]
    assert message["type"] == "MD"
    return message


def test_the_id_of_a_structure_is_that_of_its_content_alone() -> None:
    one = metadata(replicate_server="a", task="x", now="2024-01-01 10:00:00")
    other = metadata(replicate_server="b", task="y", now="2025-01-01 10:00:00")
    assert one["messageSchemaId"] == other["messageSchemaId"]
    assert one["messageSchemaId"] != metadata(WIDER)["messageSchemaId"]
    assert one["messageSchemaId"] == "88192D389F9DFC5AF5A8BA7B958060BC"


@pytest.mark.parametrize(
    ("now", "reported"),
    [
        ("2024-01-01 10:00:00", "2024-01-01T10:00:00.000"),
        ("2024-01-01T10:00:00.1234567Z", "2024-01-01T10:00:00.123"),
        ("2024-01-01T10:00:00.5+02:00", "2024-01-01T08:00:00.500"),
    ],
)
def test_the_time_of_lineage_has_three_digits(now: str, reported: str) -> None:
    assert metadata(now=now)["message"]["lineage"]["timestamp"] == reported


def test_texts_are_shown_as_strings() -> None:
    columns = metadata()["message"]["tableStructure"]["tableColumns"]
    assert (columns["name"]["type"], columns["name"]["length"]) == ("STRING", 80)


@pytest.mark.parametrize(
    ("reported", "written"),
    [
        (None, ""),
        ("0" * 30 + "ab", "0" * 30 + "ab"),
        ("39@4711", hashlib.sha256(b"39@4711").hexdigest()[:32].upper()),
        ("2A", hashlib.sha256(b"2A").hexdigest()[:32].upper()),
    ],
)
def test_a_transaction_has_an_id_of_128_bits(reported: str | None, written: str) -> None:
    change = JACK._replace(transaction=reported)
    assert write_rows([change], TABLES)[0].cells[5] == written  # type: ignore[union-attr]
    assert write_messages([change], TABLES)[1]["message"]["headers"]["transactionId"] == written


LEFT_OUT = Refused("t", f"1 updates that change nothing are left out, at t:{seq(1)}", fault=False)


@pytest.mark.parametrize(
    ("change", "known", "no_op"),
    [
        (update("a", "a"), TABLES, True),
        (update("a", "b"), TABLES, False),
        (update(0.0, -0.0), TABLES, False),
        (update(ABSENT, "a"), TABLES, False),
        (update("a", ABSENT), TABLES, False),
        (update("a", "a"), WITH_LOB, False),
        (update("a", "a"), tablesfile.read(""), False),
        (JACK, TABLES, False),
    ],
    ids=[
        "the same",
        "another",
        "the sign of zero",
        "no before",
        "no after",
        "a LOB",
        "nobody knows",
        "an insert",
    ],
)
def test_an_update_of_nothing_is_left_out_of_change_tables_and_reported_in_messages(
    change: Change, known: Any, no_op: bool
) -> None:
    rows = write_rows([change], known)
    assert (rows == [LEFT_OUT]) == no_op
    assert write_rows([change], known, no_op_updates="drop") == rows
    assert no_op or not any(isinstance(row, Refused) for row in rows)
    assert write_rows([change], known, no_op_updates="write") != []
    data = [m for m in write_messages([change], known) if m["type"] == "DT"]
    assert len(data) == 1
    assert [m for m in write_messages([change], known, no_op_updates="write") if m["type"] == "DT"] == data
    if no_op:
        assert data[0]["message"]["headers"]["changeMask"] == "00"
    dropped = write_messages([change], known, no_op_updates="drop")
    assert (dropped == [LEFT_OUT]) == no_op


def places(messages: list[Any]) -> list[tuple[int, bool]]:
    """Return the place of each message in its transaction, and whether it is the last one."""
    headers = [message["message"]["headers"] for message in messages]
    return [(header["transactionEventCounter"], header["transactionLastEvent"]) for header in headers]


def test_a_transaction_is_counted_behind_what_is_dropped() -> None:
    reported = [{"event_counter": n, "last_event": n == 3} for n in (1, 2, 3)]
    changes = [
        update(before, "b", number, transaction="A" * 32, extra=tuple(facts.items()))
        for number, (before, facts) in enumerate(zip("aab", reported, strict=True), 1)
    ]
    written = write_messages(changes, TABLES, no_op_updates="drop", metadata=False)
    assert places(written[:-1]) == [(1, False), (2, True)]
    assert written[-1].reason == "1 updates that change nothing are left out, at t:" + seq(3)


def test_each_transaction_is_counted_behind_what_is_refused_of_it() -> None:
    changes = [
        update(
            "a",
            "b",
            number,
            transaction=name * 32,
            extra=(("event_counter", counter), ("last_event", counter == 3)),
            raw=Raw(None, b"x") if counter == 1 else None,
        )
        for number, (name, counter) in enumerate(product("AB", (1, 2, 3)), 1)
    ]
    written = write_messages(changes, TABLES, metadata=False)
    data = [message for message in written if not isinstance(message, Refused)]
    assert places(data) == [(1, False), (2, True)] * 2


def test_what_is_refused_outside_of_transactions_counts_in_none() -> None:
    facts = (("event_counter", 1), ("last_event", True))
    raw = Raw(None, b"x")
    changes = [update("a", "b", number, raw=raw) for number in (1, 2)]
    changes.append(update("a", "b", 3, transaction="A" * 32, extra=facts, raw=raw))
    changes.append(update("a", "b", 4, transaction="A" * 32, extra=(("event_counter", 2), facts[1])))
    *_, last = write_messages(changes, TABLES, metadata=False)
    assert places([last]) == [(1, True)]


def test_the_end_of_a_day_is_no_logical_time_of_avro() -> None:
    tables = tablesfile.read('[tables.t]\nkey = ["a"]\ncolumns = { a = "int", at = "time" }\n')
    change = JACK._replace(table="t", schema=None, key=(("a", 1),), fields=(Field("at", ABSENT, "24:00:00"),))
    assert [type(m) for m in write_messages([change], tables, encoding="avro")] == [bytes, bytes]
    *_, refused = write_messages([change], tables, encoding="avro", logical_types=True)
    assert refused.reason.endswith("'24:00:00' is after the last time of day that time-millis has")


UNKNOWN_COLUMNS = Refused(
    f"nobody:{seq(1)}", "the columns of table nobody are unknown: name them in the tables file"
)


def test_a_truncate_lays_out_no_change_table() -> None:
    """Lay out none, because a change table without columns would refuse all later changes."""
    empty = Change(Op.TRUNCATE, None, "nobody", position=seq(1), time="2024-01-01T10:00:00Z")
    first, second = JACK._replace(table="nobody", schema=None), empty._replace(position=seq(3))
    refused, *rows = write_rows([empty, first, second])
    assert refused == UNKNOWN_COLUMNS
    assert [row.cells[1] for row in rows] == ["I", "T"]  # type: ignore[union-attr]
    (written,) = write_rows([empty._replace(table="t")], TABLES)
    assert isinstance(written, SheetRow)


def test_a_change_without_key_and_fields_ends_nothing() -> None:
    empty = Change(Op.INSERT, None, "nobody", position=seq(1), time="2024-01-01T10:00:00Z")
    assert write_rows([empty]) == [UNKNOWN_COLUMNS]
    assert write_messages([empty], metadata=False)[0]["message"]["data"] == {}


UNDECODED = "its row images could not be decoded"


@pytest.mark.parametrize("write", [write_rows, write_messages])
def test_a_row_that_nobody_could_decode_is_refused_and_not_written_without_values(write: Any) -> None:
    """Give its table no columns either; the next change does."""
    raw = [
        Change(Op.INSERT, None, "nobody", position=seq(1), raw=Raw(None, b"x")),
        Change(Op.DELETE, None, "nobody", position=seq(2), raw=Raw(b"x", None)),
        Change(Op.UPDATE, None, "nobody", (), (Field("id", 1, ABSENT),), seq(3), raw=Raw(None, b"x")),
    ]
    whole = JACK._replace(table="nobody", position=seq(4))
    written = write([*raw, whole])
    assert written[:3] == [Refused(f"nobody:{seq(number)}", UNDECODED) for number in (1, 2, 3)]
    assert written[3:] == write([whole])


@pytest.mark.parametrize("write", [write_rows, write_messages])
def test_an_update_without_fields_whose_image_is_raw_is_refused(write: Any) -> None:
    blob = Change(Op.UPDATE, None, "t", (("id", 1),), position=seq(1), raw=Raw(b"x", None))
    written = write([blob], TABLES, no_op_updates="drop")
    assert written == [Refused(f"t:{seq(1)}", UNDECODED)]


def test_a_change_seq_that_is_made_has_the_time_of_the_commit() -> None:
    """Take the time of a queue's COMMIT, because the changes of a transaction have times before it."""
    commit = ("commit_oper_date", "2021-09-09T01:55:11.25")
    first = JACK._replace(
        position="100", transaction="DEMO/5", time="2021-09-09T01:50:55.25", extra=(commit,)
    )
    second = first._replace(position="101", time="2021-09-09T01:51:00")
    rows: list[Any] = write_rows([first, second])
    assert [row.cells[0][:16] for row in rows] == ["2021090901551125"] * 2
    by_change: list[Any] = write_rows([first._replace(extra=())])
    assert [row.cells[0][:16] for row in by_change] == ["2021090901505525"]


def test_an_update_whose_row_after_is_known_is_written() -> None:
    reported = update(ABSENT, "Jack")
    assert write_rows([reported._replace(raw=Raw(b"x", None))]) == write_rows([reported])


def test_a_column_that_changed_several_times_held_the_first_value_and_holds_the_last() -> None:
    """Skip the values in between, which an update of a log may contain row by row."""
    twice = JACK._replace(
        op=Op.UPDATE,
        position=seq(1),
        fields=(Field("id", 1, 1), Field("name", "Jack", "John"), Field("name", "John", "Joe")),
    )
    assert twice.before == {"id": 1, "name": "Jack"}
    assert twice.after == {"id": 1, "name": "Joe"}
    assert write_rows([twice]) == write_rows([update("Jack", "Joe")])
    assert write_messages([twice], TABLES) == write_messages([update("Jack", "Joe")], TABLES)
    unknown = twice._replace(fields=(Field("name", ABSENT, "John"), Field("name", "John", "Joe")))
    assert unknown.before == {}
    assert write_messages([unknown], TABLES)[1]["message"]["beforeData"] == {"id": 1}


def test_a_value_is_written_by_its_type_whatever_equals_it() -> None:
    data = write_messages([update(1, True)], TABLES)[1]["message"]
    assert (data["beforeData"]["name"], data["data"]["name"]) == ("1", "true")


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_the_images_of_an_update_are_its_first_and_its_last_values(tmp_path: Path, steps: int) -> None:
    """Fold rows of a log that change a column again and again into one update."""
    values = ["a", "b", "c", "d"][: steps + 1]
    rows = [f"{n},2,usr,idu=1,fname,{old},{new}" for n, (old, new) in enumerate(pairwise(values), 1)]
    heading = "record_id,event_type,table_name,table_key,column_name,old_value,new_value"
    text, refused = run_convert(tmp_path, "log", "changes", "\n".join([heading, *rows, ""]))
    assert refused == []
    *_, written = write_messages([load(json.loads(line)) for line in text.splitlines()])
    message = written["message"]
    assert (message["beforeData"]["fname"], message["data"]["fname"]) == ("a", values[-1])


@pytest.mark.parametrize("encoding", ["json", "avro"])
@pytest.mark.parametrize("sides", [("NaN", "NaN"), ("NaN", 1.5), (1.5, "NaN"), (1.5, 1.5), (1.5, 2.5)])
def test_a_column_has_changed_if_one_side_is_no_number(encoding: str, sides: tuple[Value, Value]) -> None:
    tables = tablesfile.read(
        '[tables.t]\nkey = ["k"]\ncolumns = { k = "integer", n = "real", v = "varchar(9)" }\n'
    )
    fields = (Field("k", 1, 1), Field("n", *sides), Field("v", "a", "b"))
    change = Change(Op.UPDATE, None, "t", (("k", 1),), fields, seq(1))
    answers = read_messages(write_messages([change], tables, encoding=encoding))
    assert [item.fields for item in answers if isinstance(item, Change)] == [fields]
    assert [item for item in answers if isinstance(item, Refused) and item.fault] == []


@pytest.mark.parametrize("write", [write_rows, write_messages])
def test_an_insert_of_several_values_of_a_column_is_refused(write: Any) -> None:
    several = JACK._replace(fields=(*JACK.fields, Field("name", ABSENT, "Joe")))
    assert "column name: several values" in write([several], TABLES)[0].reason
