"""Parts where they do not belong, rows that come twice, and what identifies an operation.

The rows are those of the vendor's page: an operation of 4000 bytes has two rows, with 3400 and 600 bytes of
DATA. "For the first part of the data this field contains zero, for the second one, and so on."
"""

from __future__ import annotations

import json
import re
from collections import Counter
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.core.change import Change, Raw
from eventlog.core.errors import InvalidValue, Refused
from eventlog.core.formats import Row, Source
from eventlog.core.tables import Tables
from eventlog.formats.linter.changes import QueueReader
from eventlog.formats.linter.linter_settings import LinterSettings
from eventlog.formats.linter.queue_progress import START, dump_state, load_state
from eventlog.formats.linter.times import dump_time, load_time, read_zone
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.report import Report
from eventlog.transfer.sources.queues import rows as rows_of
from eventlog.xds.format import FORMAT as XDS
from eventlog.xds.xds_settings import XdsSettings
from tests.formats.linter.helpers import (
    LAYOUT,
    NAMES,
    ROW_1,
    ROW_2,
    end,
    only,
    operation,
    read_queue,
    reasons,
    write_queue,
)
from tests.kit.support import CLOCK
from tests.kit.tiers import drawn

pytestmark = pytest.mark.quick

NONE = Tables()
RECORD = bytes(range(250)) * 16  # 4000 bytes
Cells = tuple[Any, ...]


def long_insert(address: int = 100, *, second: dict[str, Any] | None = None, **cells: Any) -> list[Cells]:
    """Return the two rows of an insert of 4000 bytes; `second` are cells of the second one alone."""
    cells = {"SYSLOG_ADDR": address, **cells}
    return [
        operation(2, RECORD[:3400], **cells, DATA=RECORD[:3400].hex()),
        operation(2, RECORD[3400:], **{**cells, "EXTDATA": 1, **(second or {})}),
    ]


def changes_of(answers: list[Change | Refused]) -> list[Change]:
    return [answer for answer in answers if isinstance(answer, Change)]


def images(answers: list[Change | Refused]) -> list[Raw | None]:
    return [change.raw for change in changes_of(answers)]


def test_an_operation_of_two_rows_is_whole() -> None:
    assert only(read_queue([*long_insert(), end()], NONE)).raw == Raw(None, RECORD)


WRONG_HERE = [
    ({"TYP": 99}, "TYP is 99, which is not documented"),
    ({"TYP": 6}, "TYP is 6, which is not documented"),
    ({"TYP": 5}, "TYP is 5, COMMIT or ROLLBACK of an older version"),
    ({"TYP": 10}, "TYP 10 ends a transaction, but EXTDATA is 1"),
    ({"TYP": 4}, "TYP of part 1 is 4, and 2 of part 0"),
    ({"TYP": 3}, "TYP of part 1 is 3, and 2 of part 0"),
    ({"TYP": None}, "TYP is null"),
    ({"TYP": 99, "LEN2": "x"}, "LEN2: 'x' is not an integer"),
    ({"TABNUM_SRC": 8}, "TABNUM_SRC of part 1 is 8, and 7 of part 0"),
    ({"TABNUM_SRC": None}, "TABNUM_SRC of part 1 is None, and 7 of part 0"),
    ({"ROWID_SRC": 2}, "ROWID_SRC of part 1 is 2, and 1 of part 0"),
    ({"CHANNEL": 4}, "CHANNEL of part 1 is 4, and 3 of part 0"),
    ({"EXTDATA": None}, "EXTDATA is null"),
    ({"EXTDATA": 0}, "SYSLOG_ADDR 100 has rows of different content with EXTDATA 0"),
    ({"EXTDATA": 2}, "part 2 follows part 0: the operation is incomplete"),
    ({"DST_SERVER": "B"}, "a part at SYSLOG_ADDR 100 has another destination than part 0"),
    ({"DST_OWNER": "B"}, "a part at SYSLOG_ADDR 100 has another destination than part 0"),
    ({"DST_TABLE": "B"}, "a part at SYSLOG_ADDR 100 has another destination than part 0"),
]


@pytest.mark.parametrize(("cells", "reason"), WRONG_HERE, ids=lambda value: str(value)[:40])
@pytest.mark.parametrize("lengths", ["auto", "row", "operation"])
def test_a_part_that_does_not_belong_refuses_its_operation(
    cells: dict[str, Any], reason: str, lengths: str
) -> None:
    """Deliver no 3400 of 4000 bytes, and what else is in the transaction."""
    before, after = (operation(2, b"whole", SYSLOG_ADDR=address) for address in (90, 110))
    answers = read_queue([before, *long_insert(second=cells), after, end()], NONE, lengths=lengths)
    assert images(answers) == [Raw(None, b"whole")] * 2
    assert any(reason in words for words in reasons(answers)), reasons(answers)
    refused = [answer for answer in answers if isinstance(answer, Refused)]
    assert refused[0].fault
    assert RECORD[:3400] in b"".join(answer.raw or b"" for answer in refused)


@pytest.mark.parametrize(
    "cells", [{"SYSLOG_ADDR": 105}, {"SYSLOG_ADDR": None}, {"SYSLOG_ADDR": 105, "DST_SERVER": "B"}], ids=str
)
@pytest.mark.parametrize("server", ["", "A"])
def test_a_part_without_its_part_0_refuses_its_transaction(cells: dict[str, Any], server: str) -> None:
    """Refuse it all, because the part may be of any operation; deliver the other transaction."""
    rows = [
        operation(2, b"whole", SYSLOG_ADDR=90, DST_SERVER="A"),
        *long_insert(second=cells, DST_SERVER="A"),
        end(SYSLOG_ADDR=120),
        *long_insert(130, TRANSACT_ID=6, DST_SERVER="A"),
        end(TRANSACT_ID=6, SYSLOG_ADDR=140),
    ]
    answers = read_queue(rows, NONE, server=server, lengths="row")
    assert images(answers) == [Raw(None, RECORD)]
    words = "it may continue in a row of its transaction that is of no operation: a part"
    assert [reason.startswith(words) for reason in reasons(answers)][:2] == [True, True]


def test_a_part_that_is_there_twice_may_be_of_another_operation() -> None:
    """Refuse an operation whose last row is full, and deliver one whose last row is not."""
    stray = operation(2, RECORD[3400:], EXTDATA=1, SYSLOG_ADDR=110)
    rows = [long_insert()[0], *long_insert(110), stray, operation(2, b"whole", SYSLOG_ADDR=120), end()]
    answers = read_queue(rows, NONE)
    assert images(answers) == [Raw(None, b"whole")]
    assert reasons(answers) == [
        (
            "it may continue in a row of its transaction that is of no operation: part 1 at SYSLOG_ADDR 110"
            " is not the next one there"
        ),
        "part 1 follows part 1: the operation is incomplete",
    ]


def test_parts_without_addresses_that_are_not_apart_refuse_their_transaction() -> None:
    first, second = long_insert(SYSLOG_ADDR=None)
    assert images(read_queue([first, second, first, second, end()], NONE)) == [Raw(None, RECORD)] * 2
    answers = read_queue([first, first, second, second, end()], NONE)
    assert (images(answers), len(reasons(answers))) == ([], 2)


def test_a_part_after_the_end_of_the_operation_is_no_padding() -> None:
    rows = [
        operation(3, b"", LEN1=2500, LEN2=2500, DATA="00" * 3400, EXTDATA=extdata) for extdata in range(3)
    ]
    assert images(read_queue([*rows[:2], end()], NONE)) == [Raw(bytes(2500), bytes(2500))]
    assert reasons(read_queue([*rows, end()], NONE)) == ["LEN1 2500 and LEN2 2500 end before part 2"]


def test_a_commit_needs_no_number_of_a_part() -> None:
    assert only(read_queue([operation(2, ROW_1), end(EXTDATA=None)])).after["fname"] == "Jack"
    assert read_queue([operation(2, ROW_1), end(10, EXTDATA=None), end()]) == []


def test_further_parts_of_an_unknown_kind_are_of_no_other_operation() -> None:
    unknown = [operation(6, b"x", SYSLOG_ADDR=100, EXTDATA=extdata) for extdata in (0, 1)]
    answers = read_queue([*unknown, operation(2, b"whole", SYSLOG_ADDR=110), end()], NONE)
    assert images(answers) == [Raw(None, b"whole")]
    assert reasons(answers) == ["TYP is 6, which is not documented"] * 2


def test_an_address_of_a_row_that_was_refused_has_no_other_operation() -> None:
    rows = [operation(6, b"x"), operation(2, b"other"), operation(2, b"whole", SYSLOG_ADDR=110), end()]
    assert images(read_queue(rows, NONE)) == [Raw(None, b"whole")]


# --- rows that come twice


def test_a_row_that_comes_again_is_dropped_with_a_notice() -> None:
    row = operation(2, ROW_1)
    notice, change = read_queue([row, row, row, end()])
    assert isinstance(notice, Refused)
    assert (notice.where, notice.fault) == ("q.csv:2", False)
    assert notice.reason == "2 rows of SYSLOG_ADDR 100 came again with the same content: dropped"
    assert isinstance(change, Change)
    assert change.after["fname"] == "Jack"


@pytest.mark.parametrize("order", [(0, 1, 0, 1), (0, 0, 1, 1), (0, 0, 1)])
def test_an_operation_of_two_rows_that_comes_again_is_one(order: tuple[int, ...]) -> None:
    rows = long_insert()
    answers = read_queue([*(rows[at] for at in order), end(), end()], NONE)
    assert images(answers) == [Raw(None, RECORD)]
    assert [answer.fault for answer in answers if isinstance(answer, Refused)] == [False]


@pytest.mark.parametrize(
    "cells",
    [{"ROWID_SRC": 2}, {"TABNUM_SRC": 8}, {"TYP": 1}, {"DATA": ROW_2.hex()}, {"CHANNEL": 9}],
    ids=str,
)
def test_two_rows_of_different_content_at_one_address_are_refused(cells: dict[str, Any]) -> None:
    rows = [operation(2, ROW_1), operation(2, ROW_1, **cells), operation(2, ROW_2, SYSLOG_ADDR=110), end()]
    answers = read_queue(rows)
    assert [change.after["fname"] for change in changes_of(answers)] == ["John"]
    assert reasons(answers) == ["SYSLOG_ADDR 100 has rows of different content with EXTDATA 0"]


def test_rows_at_one_address_without_end_are_refused_in_pieces() -> None:
    rows = [operation(2, RECORD[:3400], ROWID_SRC=number, DATA=RECORD[:3400].hex()) for number in range(700)]
    refused = [answer for answer in read_queue([*rows, end()], NONE) if isinstance(answer, Refused)]
    assert {answer.reason for answer in refused} == {
        "SYSLOG_ADDR 100 has rows of different content with EXTDATA 0"
    }
    sizes = [len(answer.raw or b"") for answer in refused]
    assert (sum(sizes), max(sizes) < 2 << 20, len(sizes) > 1) == (700 * 3400, True, True)


# --- what identifies an operation


def event_ids(changes: list[Change]) -> list[bytes]:
    written = XDS.write(changes, LAYOUT, XdsSettings())
    documents = b"".join(data for data in written if isinstance(data, bytes))
    return re.findall(rb'event-id="([^"]*)"', documents)


def test_rows_of_two_databases_at_one_address_are_two_events() -> None:
    rows = [
        row
        for node in ("NORTH", "SOUTH")
        for row in (operation(2, ROW_1, DBNODE=node), end(DBNODE=node, SYSLOG_ADDR=101))
    ]
    both = changes_of(read_queue(rows))
    assert [change.position for change in both] == ["NORTH/5/100", "SOUTH/5/100"]
    assert event_ids(both) == [b"own.usr:NORTH/5/100", b"own.usr:SOUTH/5/100"]


def test_an_operation_for_two_tables_of_one_server_is_two_events() -> None:
    rows = [operation(2, ROW_1, DST_SERVER="A", DST_TABLE=table) for table in ("USR", "COPY")]
    both = changes_of(read_queue([*rows, end()]))
    assert [change.position for change in both] == ["DEMO/5/100@A/OWN/USR", "DEMO/5/100@A/OWN/COPY"]


names = st.text("A/@%", max_size=3)
rows_of_queues = st.lists(
    st.tuples(names, st.integers(0, 2), st.integers(0, 2), names, names, st.booleans(), st.booleans()),
    max_size=12,
)


@settings(max_examples=drawn(300))
@given(rows_of_queues)
def test_no_two_events_of_a_queue_have_one_id(drawn_rows: list[tuple[Any, ...]]) -> None:
    """Draw databases, transactions, addresses and destinations that meet, with parts and repeats."""
    rows: list[Cells] = []
    for node, transact, address, server, table, is_long, comes_again in sorted(drawn_rows, key=itemgetter(2)):
        cells = {
            "DBNODE": node,
            "TRANSACT_ID": transact,
            "DST_SERVER": server,
            "DST_TABLE": table,
            "SYSLOG_ADDR": address,
        }
        parts = long_insert(**{"address": address, **cells}) if is_long else [operation(2, ROW_1, **cells)]
        rows += parts * (2 if comes_again else 1)
    ends = {(row[NAMES.index("DBNODE")], row[NAMES.index("TRANSACT_ID")]) for row in rows}
    rows += [end(DBNODE=node, TRANSACT_ID=number, SYSLOG_ADDR=9) for node, number in sorted(ends)]
    answers = read_queue(rows, LAYOUT)
    changes = changes_of(answers)
    assert max(Counter((change.table, change.position) for change in changes).values(), default=0) <= 1
    assert read_queue(rows, LAYOUT) == answers
    again = changes_of(read_queue(write_queue(changes, LAYOUT)))
    assert [(a.position or "").partition("@")[0].rpartition("/")[2] for a in again] == [
        (c.position or "").partition("@")[0].rpartition("/")[2] for c in changes
    ]


def test_databases_with_one_address_and_one_transaction_number_are_followed_apart() -> None:
    """Deliver what each database committed once, over three runs with their state."""
    north, south = ([operation(2, row, DBNODE=node)] for node, row in (("NORTH", ROW_1), ("SOUTH", ROW_2)))
    ends = {node: end(DBNODE=node, SYSLOG_ADDR=101) for node in ("NORTH", "SOUTH")}
    state, delivered = START, list[list[Any]]()
    for rows in ([*north, *south, ends["SOUTH"]], [*north, *south, *ends.values()], [*north, *ends.values()]):
        reader = QueueReader(LAYOUT, LinterSettings(), state)
        records = [Row(where, cells) for where, cells in enumerate(rows)]
        answers = list(reader.read(Source("q", "q", NAMES, records)))
        delivered.append([(change.position, change.after["fname"]) for change in changes_of(answers)])
        state = load_state(json.loads(json.dumps(dump_state(reader.mark()()))))
    assert delivered == [[("SOUTH/5/100", "John")], [("NORTH/5/100", "Jack")], []]


def test_a_change_of_another_format_gets_an_address_of_its_own() -> None:
    """Write two changes of one position, as a message of several rows has them, to two addresses."""
    change = only(read_queue([operation(2, ROW_1), end()]))
    two = [change._replace(position="7", extra=()), change._replace(position="7", extra=())]
    assert len(changes_of(read_queue(write_queue(two, LAYOUT)))) == 2


# --- the zone of dates


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("", "2021-09-09T01:50:55.25"),
        ("UTC", "2021-09-09T01:50:55.25Z"),
        ("Europe/Moscow", "2021-09-08T22:50:55.25Z"),
        ("+03:00", "2021-09-08T22:50:55.25Z"),
        ("-09:30", "2021-09-09T11:20:55.25Z"),
    ],
)
def test_a_setting_names_the_zone_of_dates(zone: str, text: str) -> None:
    change = only(read_queue([operation(2, ROW_1), end()], time_zone=zone))
    assert (change.time, change.fact("commit_oper_date")) == (text, text)
    (row, _) = write_queue([change], LAYOUT, time_zone=zone)
    assert row[0] == bytes.fromhex("3b9acaff4000")


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", "+25:00", "3", "\0", "a" * 5000])
def test_a_zone_that_is_none_is_refused(zone: str) -> None:
    with pytest.raises(InvalidValue, match="is not a zone that this machine knows"):
        read_zone(zone)


@given(st.binary(min_size=6, max_size=6), st.sampled_from(("UTC", "+14:00", "-12:00")))
def test_a_date_comes_back_from_its_zone(data: bytes, name: str) -> None:
    zone = read_zone(name)
    assert dump_time(load_time(data, "big", zone), "big", zone) == data


def test_the_hour_that_comes_twice_is_taken_as_the_first() -> None:
    zone = read_zone("Europe/Berlin")
    data = dump_time("2024-10-27T02:30:00", "big")
    assert load_time(data, "big", zone) == "2024-10-27T00:30:00Z"


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("qlik-message", "o.jsonl"),
        ("qlik-table", "o.csv"),
        ("debezium", "o.jsonl"),
        ("gbase", "o.bin"),
        ("log", "o.csv"),
    ],
)
def test_a_target_in_utc_says_that_dates_name_no_zone(tmp_path: Path, target: str, name: str) -> None:
    assert notices(tmp_path, target, name) == [
        "the times of linter name no zone, and are written as UTC: state their zone with time-zone"
    ]
    assert notices(tmp_path, target, name, time_zone="+00:00") == []
    assert notices(tmp_path, "changes", "o.jsonl") == []


def notices(folder: Path, target: str, name: str, **options: Any) -> list[str]:
    """Return what a conversion of a queue reports without being asked."""
    rows = (NAMES, operation(2, ROW_1), end())
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in rows]
    (folder / "q.csv").write_text("\n".join(lines))
    job = Job("linter", target, (f"{folder}/q.csv",), f"{folder}/{name}", tables=LAYOUT, options=options)
    informed: list[str] = []
    convert(job, Report(print, inform=informed.append), CLOCK)
    return informed


def test_a_repeat_in_a_table_of_a_database_is_dropped() -> None:
    """Read the rows of a copied queue in the order of the journal, where a copy holds them twice."""
    engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
    with engine.connect() as connection:
        columns = ", ".join(f"{n} {'integer' if n in ('SYSLOG_ADDR', 'EXTDATA') else 'text'}" for n in NAMES)
        connection.exec_driver_sql(f"create table queue ({columns})")
        marks = ", ".join("?" * len(NAMES))
        both = [*long_insert(), end()] * 2
        connection.exec_driver_sql(f"insert into queue values ({marks})", list(map(tuple, both)))
        reader = QueueReader(NONE, LinterSettings())
        answers = list(reader.read(rows_of(connection, "queue").source))
    engine.dispose()
    assert images(answers) == [Raw(None, RECORD)]
    assert [answer.fault for answer in answers if isinstance(answer, Refused)] == [False]
