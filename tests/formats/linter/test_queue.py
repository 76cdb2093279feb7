"""Rows to operations to transactions: the vectors of the specification, and each fault."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from eventlog.core.change import ABSENT, Change, Field, Op, Raw
from eventlog.core.errors import Misuse, Refused
from eventlog.core.tables import Tables
from eventlog.files.stores import SpoolFile
from eventlog.formats.linter.columns import DISPATCH
from eventlog.formats.linter.times import dump_time, load_time
from eventlog.transactions.open_transactions import TooMuchOpen, TooMuchStored
from eventlog.xds.format import FORMAT as XDS
from eventlog.xds.xds_settings import XdsSettings
from tests.formats.linter.helpers import (
    COMMIT,
    LAYOUT,
    NAMES,
    ROLLBACK,
    ROW_1,
    ROW_2,
    end,
    only,
    operation,
    queue_row,
    read_queue,
    reasons,
    write_queue,
)

pytestmark = pytest.mark.quick

NONE = Tables()


def test_an_insert_is_decoded_by_its_layout() -> None:
    change = only(read_queue([operation(2, ROW_1), end()]))
    assert change == Change(
        Op.INSERT,
        "own",
        "usr",
        (("idu", 1),),
        (Field("idu", ABSENT, 1), Field("fname", ABSENT, "Jack")),
        position="DEMO/5/100",
        transaction="DEMO/5",
        time="2021-09-09T01:50:55.25",
        user="3",
        extra=(
            ("tabnum_src", 7),
            ("rowid_src", 1),
            ("dst_owner", "OWN"),
            ("dst_table", "USR"),
            ("commit_syslog_addr", 200),
            ("commit_oper_date", "2021-09-09T01:50:55.25"),
        ),
    )


@pytest.mark.parametrize("number", [Decimal, float])
def test_numbers_may_stand_in_columns_of_another_type(number: Callable[[str], Any]) -> None:
    """A queue that was copied to another database, or to a file with nulls among its integers."""

    def copied(row: tuple[Any, ...]) -> tuple[Any, ...]:
        found = zip(DISPATCH, row, strict=True)
        return tuple(number(cell) if c.type == "int" and cell is not None else cell for c, cell in found)

    rows = [operation(2, ROW_1), end()]
    assert read_queue(map(copied, rows)) == read_queue(rows)


@pytest.mark.parametrize("number", ["1.5", "NaN", "sNaN", "1E+999999", "-Infinity"])
def test_what_is_no_integer_costs_its_row(number: str) -> None:
    at = NAMES.index("TRANSACT_ID")
    row = [*operation(2, ROW_1)]
    row[at] = Decimal(number)
    assert reasons(read_queue([tuple(row)])) == [f"TRANSACT_ID: {repr(row[at])!r} is not an integer"]


def test_an_update_has_both_sides_and_a_delete_the_old() -> None:
    update, delete = read_queue([operation(3, ROW_1, ROW_2), operation(1, ROW_2, SYSLOG_ADDR=110), end()])
    assert isinstance(update, Change)
    assert update.fields == (Field("idu", 1, 1), Field("fname", "Jack", "John"))
    assert isinstance(delete, Change)
    assert (delete.op, delete.fields) == (
        Op.DELETE,
        (Field("idu", 1, ABSENT), Field("fname", "John", ABSENT)),
    )


def test_without_a_layout_the_images_stay_raw() -> None:
    change = only(read_queue([operation(3, b"a" * 12, b"b" * 14), end()], NONE))
    assert (change.schema, change.table, change.key, change.fields) == ("OWN", "USR", (), ())
    assert change.raw == Raw(b"a" * 12, b"b" * 14)
    assert change.fact("decoded") is False


@pytest.mark.parametrize("image", [ROW_1[:-1], ROW_1 + b" "])
def test_an_image_that_the_layout_does_not_fit_stays_raw(image: bytes) -> None:
    change = only(read_queue([operation(2, image), end()]))
    assert change.raw == Raw(None, image)
    assert change.fields == ()


def long_update(*lengths: tuple[int, int]) -> list[tuple[Any, ...]]:
    data = b"x" * 2500 + b"y" * 2500
    if lengths[0] == (1700, 1700):
        parts = [data[:1700] + data[2500:4200], data[1700:2500] + data[4200:]]
    else:
        parts = [data[:3400], data[3400:]]
    return [
        operation(3, b"", EXTDATA=at, LEN1=len1, LEN2=len2, DATA=part.hex())
        for at, (part, (len1, len2)) in enumerate(zip(parts, lengths, strict=True))
    ]


@pytest.mark.parametrize("setting", ["auto", "operation"])
@pytest.mark.parametrize("second", [(2500, 2500), (0, 0)])
def test_lengths_of_the_operation_cut_across_the_parts(setting: str, second: tuple[int, int]) -> None:
    change = only(read_queue([*long_update((2500, 2500), second), end()], NONE, lengths=setting))
    assert change.raw == Raw(b"x" * 2500, b"y" * 2500)


@pytest.mark.parametrize("setting", ["auto", "row"])
def test_lengths_of_the_rows_add_up(setting: str) -> None:
    change = only(read_queue([*long_update((1700, 1700), (800, 800)), end()], NONE, lengths=setting))
    assert change.raw == Raw(b"x" * 2500, b"y" * 2500)


@pytest.mark.parametrize("size", [1, 1699, 1700, 1701, 3000])
def test_parts_are_joined_by_the_sizes_that_their_lengths_prove(size: int) -> None:
    """Let both images have lengths of the rows, which fill the first row of DATA to its end or less."""
    old, new = b"x" * (1700 + size), b"y" * (1700 + size)
    rest = [(old[at : at + 1700], new[at : at + 1700]) for at in range(1700, 1700 + size, 1700)]
    parts = [(old[:1700], new[:1700]), *rest]
    rows = [
        operation(3, b"", EXTDATA=at, LEN1=len(a), LEN2=len(b), DATA=(a + b).hex())
        for at, (a, b) in enumerate(parts)
    ]
    assert only(read_queue([*rows, end()], NONE)).raw == Raw(old, new)


@pytest.mark.parametrize("ending", [COMMIT, ROLLBACK])
@pytest.mark.parametrize("address", [150, 250])
def test_an_end_comes_after_the_ends_of_before(ending: int, address: int) -> None:
    rows = [queue_at(5, 100), queue_at(6, 120), queue_at(5, 200, COMMIT), queue_at(6, address, ending)]
    if address < 200:
        with pytest.raises(Misuse, match=f"SYSLOG_ADDR {address} comes after 200"):
            read_queue(rows)
    else:
        assert len(read_queue(rows)) == (2 if ending == COMMIT else 1)


@pytest.mark.parametrize("ending", [COMMIT, ROLLBACK])
def test_many_transactions_need_the_room_of_those_that_are_open(ending: int) -> None:
    rows = []
    for number in range(20):
        rows += [operation(2, b"x" * 3000, TRANSACT_ID=number + part) for part in (0, 100)]
        rows += [end(ending, TRANSACT_ID=number), end(ending, TRANSACT_ID=number + 100)]
    answers = read_queue(rows, NONE, max_open=20_000)
    assert (reasons(answers), len(answers)) == ([], 40 if ending == COMMIT else 0)


@pytest.mark.parametrize(
    ("lengths", "sizes", "expected"),
    [
        ("row", (2500, 2500), [(2500, 900), (0, 1600)]),
        ("row", (5000, 100), [(3400, 0), (1600, 100)]),
        ("operation", (2500, 2500), [(2500, 2500), (2500, 2500)]),
    ],
)
def test_a_long_operation_is_written_with_lengths(
    lengths: str, sizes: tuple[int, int], expected: list[tuple[int, int]]
) -> None:
    change = only(read_queue([*long_update((2500, 2500), (2500, 2500)), end()], NONE))
    change = change._replace(raw=Raw(b"x" * sizes[0], b"y" * sizes[1]))
    rows = [dict(zip(NAMES, row, strict=True)) for row in write_queue([change], NONE, lengths=lengths)]
    assert [(row["LEN1"], row["LEN2"]) for row in rows if row["TYP"] == 3] == expected


@pytest.mark.parametrize("word", [0x0203, 0x0302, -32765, 0x7F01, -1])
def test_the_word_of_a_blob_is_written_as_it_was_read(word: int) -> None:
    change = only(read_queue([operation(7, b"owner", BLOBATR=word), end()]))
    (row, _) = [dict(zip(NAMES, row, strict=True)) for row in write_queue([change], LAYOUT)]
    assert row["BLOBATR"] == word


def test_a_committed_transaction_may_have_nothing_for_this_server() -> None:
    """Deliver its commit all the same, and what another transaction has."""
    rows = [
        operation(2, ROW_1, TRANSACT_ID=5, DST_SERVER="A"),
        end(TRANSACT_ID=5, SYSLOG_ADDR=110),
        operation(2, ROW_2, TRANSACT_ID=6, DST_SERVER="B", SYSLOG_ADDR=120),
        end(TRANSACT_ID=6, SYSLOG_ADDR=130),
    ]
    for server, names in (("A", ["Jack"]), ("B", ["John"]), ("C", []), ("", ["Jack", "John"])):
        answers = read_queue(rows, server=server)
        assert [change.after["fname"] for change in answers if isinstance(change, Change)] == names
        assert reasons(answers) == []


def test_a_queue_without_a_column_is_none() -> None:
    (refused,) = read_queue([operation(2, ROW_1), end()], columns=(*NAMES[:-1], "CONTENT"))
    assert isinstance(refused, Refused)
    assert refused.where == "q.csv"
    assert refused.reason.startswith("there is no column DATA: is this a queue of LINTER?")


def test_faults_of_rows_that_are_read_again_cost_themselves() -> None:
    """Refuse a row before the position, one of its transaction, and one that may continue another."""
    rows = [
        operation(2, ROW_1, SYSLOG_ADDR=100),
        operation(2, ROW_2, SYSLOG_ADDR=110, LEN1="x"),
        operation(2, ROW_2, SYSLOG_ADDR=120),
        end(SYSLOG_ADDR=130, LEN1=4),
        end(SYSLOG_ADDR=140),
    ]
    answers = read_queue(rows)
    names = [change.after.get("fname") for change in answers if isinstance(change, Change)]
    assert (names, len(reasons(answers))) == (["Jack", "John"], 2)


@pytest.mark.parametrize(("typ", "word"), [(7, "create"), (8, "insert"), (9, "clear"), (4, "delete")])
@pytest.mark.parametrize(
    ("word_of_attribute", "attribute", "kind"), [(0x0203, 3, 2), (-32765, 3, 0x80), (0x8003, 3, 0x80)]
)
def test_blob_operations_name_attribute_and_type(
    typ: int, word: str, word_of_attribute: int, attribute: int, kind: int
) -> None:
    change = only(read_queue([operation(typ, b"owner", BLOBATR=word_of_attribute), end()]))
    assert (change.op, change.raw) == (Op.UPDATE, Raw(b"owner", None))
    assert [change.fact(name) for name in ("blob", "attribute", "blob-type", "decoded")] == [
        word,
        attribute,
        kind,
        False,
    ]


@pytest.mark.parametrize("typ", [4, 7, 8, 9])
def test_blob_operations_carry_the_key_of_the_record_that_owns_the_blob(typ: int) -> None:
    change = only(read_queue([operation(typ, ROW_1, b"portion", BLOBATR=0x0203), end()]))
    assert (change.key, change.fields, change.raw) == ((("idu", 1),), (), Raw(ROW_1, b"portion"))
    assert change.fact("decoded") is False
    assert only(read_queue(write_queue([change], LAYOUT))).key == change.key
    assert only(read_queue([operation(typ, ROW_1), end()], NONE)).key == ()


def test_nothing_of_a_rolled_back_transaction_comes_out() -> None:
    rows = [operation(2, ROW_1), operation(2, ROW_2, TRANSACT_ID=6), end(ROLLBACK), end(TRANSACT_ID=6)]
    assert only(read_queue(rows)).after["fname"] == "John"


def test_a_rollback_with_lengths_is_reported_and_rolls_back() -> None:
    answers = read_queue([operation(2, ROW_1), end(ROLLBACK, LEN1=3), end()])
    assert reasons(answers) == ["TYP 10 ends a transaction, but LEN1 is 3 and LEN2 0"]
    assert len(answers) == 1


def test_an_unfinished_transaction_is_said_and_is_no_failure() -> None:
    (refused,) = read_queue([operation(2, ROW_1)])
    assert refused.fault is False  # type: ignore[union-attr]
    assert reasons([refused]) == ["transaction DEMO/5 is unfinished: 1 operations are left out"]


def test_transactions_interleave_and_come_in_commit_order() -> None:
    rows = [operation(2, ROW_1), operation(2, ROW_2, DBNODE="OTHER"), end(DBNODE="OTHER"), end()]
    assert [c.transaction for c in read_queue(rows) if isinstance(c, Change)] == ["OTHER/5", "DEMO/5"]


@pytest.mark.parametrize(
    "addresses",
    [
        [(5, 300), (5, 500, COMMIT), (5, 100), (6, 700), (6, 800, COMMIT)],
        [(5, 300), (5, 100), (5, 500, COMMIT)],
        [(5, 100), (6, 200), (5, 500, COMMIT), (6, 400, COMMIT)],
        [(5, 100), (5, 500, ROLLBACK), (5, 300)],
    ],
)
def test_a_row_that_goes_back_in_the_journal_is_refused(addresses: list[tuple[int, ...]]) -> None:
    rows = [queue_at(*address) for address in addresses]
    with pytest.raises(Misuse, match=r"q\.csv:\d: SYSLOG_ADDR .* comes after .*: sort the rows by "):
        read_queue(rows)


def test_an_order_of_the_journal_is_taken_whatever_is_between() -> None:
    """Read transactions one by one, other databases, another round of the journal, rows without address."""
    later = "3b9acbff4000"
    rows = [
        *(queue_at(5, 100), queue_at(5, 500, COMMIT)),
        *(queue_at(6, 200), queue_at(6, 200, EXTDATA=1), queue_at(6, 600, COMMIT)),
        *(queue_at(7, 50, DBNODE="OTHER"), queue_at(7, 60, COMMIT, DBNODE="OTHER")),
        *(queue_at(8, None), queue_at(8, 800), queue_at(8, 4, OPER_DATE=later)),
        queue_at(8, 5, COMMIT, OPER_DATE=later),
    ]
    assert len(read_queue(rows, lengths="row")) == 6


def queue_at(transaction: int, address: int | None, typ: int = 2, **cells: Any) -> tuple[Any, ...]:
    """Return a row of a transaction at an address of the journal."""
    place = {"TRANSACT_ID": transaction, "SYSLOG_ADDR": address, **cells}
    return operation(typ, ROW_1, **place) if typ == 2 else end(typ, **place)


def test_legacy_typ_5_is_an_error_unless_it_is_said_what_it_means() -> None:
    rows = [operation(2, ROW_1), end(5)]
    assert "legacy-typ5" in reasons(read_queue(rows))[0]
    assert only(read_queue(rows, legacy_typ5="commit")).op is Op.INSERT
    assert read_queue(rows, legacy_typ5="rollback") == []


def test_parts_of_operations_for_several_servers_may_interleave() -> None:
    one, two = long_update((2500, 2500), (2500, 2500))
    server = NAMES.index("DST_SERVER")
    rows = [
        tuple(s if at == server else cell for at, cell in enumerate(row))
        for row in (one, two)
        for s in ("A", "B")
    ]
    both = read_queue([*rows, end()], NONE)
    assert [change.fact("dst_server") for change in both if isinstance(change, Change)] == ["A", "B"]
    assert only(read_queue([*rows, end()], NONE, server="B")).fact("dst_server") == "B"


def test_an_operation_for_several_servers_is_two_events_of_two_names() -> None:
    rows = [operation(2, ROW_1, DST_SERVER=server) for server in ("A", "B")]
    both = [answer for answer in read_queue([*rows, end()]) if isinstance(answer, Change)]
    assert [change.position for change in both] == ["DEMO/5/100@A", "DEMO/5/100@B"]
    documents = b"".join(data for data in XDS.write(both, LAYOUT, XdsSettings()) if isinstance(data, bytes))
    assert re.findall(rb'event-id="([^"]*)"', documents) == [b"own.usr:DEMO/5/100@A", b"own.usr:DEMO/5/100@B"]
    assert only(read_queue([*rows, end()], server="B")).position == "DEMO/5/100"
    apart = [rows[0], operation(2, ROW_2, DST_SERVER="B", SYSLOG_ADDR=101), end()]
    assert [change.position for change in read_queue(apart) if isinstance(change, Change)] == [
        "DEMO/5/100",
        "DEMO/5/101",
    ]


@pytest.mark.parametrize(("typ", "word"), [(1, "DELETE"), (2, "INSERT")])
def test_an_insert_or_delete_with_a_second_part_contradicts_itself(typ: int, word: str) -> None:
    rows = [operation(typ, ROW_1, ROW_2), operation(3, ROW_1, ROW_2, SYSLOG_ADDR=101), end()]
    refused, update = read_queue(rows)
    assert reasons([refused]) == [f"TYP is {typ}, {word}, which has one part, but LEN2 is 12"]
    assert isinstance(update, Change)
    kept = read_queue(rows, keep_contradictions=True)[0]
    assert isinstance(kept, Change)
    assert (kept.op.name, kept.key, kept.fields, kept.raw) == (word, (), (), Raw(ROW_1, ROW_2))
    assert kept.fact("decoded") is False
    (out,) = XDS.write([kept], LAYOUT, XdsSettings())
    assert isinstance(out, Refused)  # no object is made of it


NO_FIRST = "EXTDATA is 1, but no part 0 of this operation was seen"
FAULTS = [
    ({"LEN1": 99}, "LEN1 99 and LEN2 0 are more than the 17 bytes of DATA"),
    ({"LEN1": -1}, "LEN1: -1 is not between 0 and 2147483647"),
    ({"TYP": 6}, "TYP is 6, which is not documented"),
    ({"TYP": None}, "TYP is null"),
    ({"TYP": "two"}, "TYP: 'two' is not an integer"),
    ({"CHANNEL": "٣"}, "CHANNEL: '٣' is not an integer"),
    ({"TYP": "1_0"}, "TYP: '1_0' is not an integer"),
    ({"OPER_DATE": "0011"}, "OPER_DATE: '2 bytes' is not 6 bytes, as hex"),
    ({"DATA": "0"}, "DATA: '0' is not at most 3400 bytes, as hex"),
    ({"DATA": "00" * 3401}, "DATA: '3401 bytes' is not at most 3400 bytes"),
    ({"TRANSACT_ID": 1 << 70}, "TRANSACT_ID: 1180591620717411303424 is not between"),
]


@pytest.mark.parametrize(("cells", "reason"), FAULTS, ids=lambda value: str(value)[:30])
def test_a_fault_costs_its_row_and_says_why(cells: dict[str, Any], reason: str) -> None:
    answers = read_queue([operation(2, ROW_1, **cells), operation(2, ROW_2, SYSLOG_ADDR=110), end()])
    assert reason in reasons(answers)[0]
    assert [answer.after["fname"] for answer in answers if isinstance(answer, Change)] == ["John"]


def test_a_gap_in_the_parts_leaves_the_operation_out() -> None:
    one, two = long_update((2500, 2500), (2500, 2500))
    third = tuple("2" if name == "EXTDATA" else cell for name, cell in zip(NAMES, two, strict=True))
    assert reasons(read_queue([one, third, end()], NONE)) == [
        "part 2 follows part 0: the operation is incomplete"
    ]


def test_a_part_that_comes_twice_leaves_the_operation_out() -> None:
    one, two = long_update((2500, 2500), (2500, 2500))
    assert reasons(read_queue([one, two, two, end()], NONE)) == [
        "part 1 follows part 1: the operation is incomplete"
    ]


def among(*parts: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return the parts of an operation between two other operations of its transaction."""
    return [operation(2, ROW_1, SYSLOG_ADDR=90), *parts, operation(2, ROW_2, SYSLOG_ADDR=110), end()]


def with_cell(row: tuple[Any, ...], column: str, cell: Any) -> tuple[Any, ...]:
    return tuple(cell if name == column else value for name, value in zip(NAMES, row, strict=True))


PARTS = long_update((1700, 1700), (800, 800))  # either is an operation, if the other is not there


def test_a_part_before_the_first_refuses_the_whole_operation_in_its_place() -> None:
    first, refused, last = read_queue(among(*reversed(PARTS)), NONE)
    assert isinstance(first, Change)
    assert isinstance(refused, Refused)
    assert (refused.where, refused.reason) == ("q.csv:3", NO_FIRST)
    assert refused.raw == b"".join(bytes.fromhex(str(part[-1])) for part in reversed(PARTS))
    assert isinstance(last, Change)


@pytest.mark.parametrize(
    ("column", "cell", "reason"),
    [
        ("DATA", "zz", "DATA: 'zz' is not at most 3400 bytes, as hex"),
        ("LEN1", "-1", "LEN1: -1 is not between 0 and"),
        ("EXTDATA", "x", "EXTDATA: 'x' is not an integer"),
        ("EXTDATA", None, "EXTDATA is null"),
        ("CHANNEL", "x", "CHANNEL: 'x' is not an integer"),
    ],
)
@pytest.mark.parametrize("at", [0, 1])
def test_a_part_that_cannot_be_read_refuses_the_whole_operation_in_its_place(
    at: int, column: str, cell: str, reason: str
) -> None:
    parts = [*PARTS]
    parts[at] = with_cell(parts[at], column, cell)
    first, refused, last = read_queue(among(*parts), NONE)
    assert isinstance(first, Change)
    assert reason in reasons([refused])[0]
    assert isinstance(last, Change)


@pytest.mark.parametrize("column", ["SYSLOG_ADDR", "DST_OWNER", "OPER_DATE"])
def test_a_part_of_an_unknown_operation_refuses_its_transaction(column: str) -> None:
    """Deliver none of its operations, because any of them may continue in a row that cannot be read."""
    other = [operation(2, ROW_1, TRANSACT_ID=6, SYSLOG_ADDR=190), end(TRANSACT_ID=6)]
    cell = 5 if column == "DST_OWNER" else "x"
    row, *refused, change = read_queue([*among(PARTS[0], with_cell(PARTS[1], column, cell)), *other], NONE)
    assert reasons([row])[0].startswith(f"{column}: ")
    words = "it may continue in a row of its transaction that cannot be read"
    assert reasons(refused) == [f"{words}: q.csv:4: {reasons([row])[0]}"] * 3
    assert isinstance(change, Change)
    assert change.transaction == "DEMO/6"


def test_parts_of_a_transaction_that_is_rolled_back_are_no_fault() -> None:
    assert read_queue([*reversed(PARTS), end(ROLLBACK)], NONE) == []


def test_lengths_that_disagree_are_no_operation() -> None:
    answers = read_queue([*long_update((2500, 2500), (2500, 2499)), end()], NONE)
    assert "LEN1 2500 and LEN2 2499 of part 1 are not those of the operation" in reasons(answers)[0]


def test_a_commit_with_a_second_part_only_is_reported() -> None:
    assert "ends a transaction" in reasons(read_queue([end(LEN2=3)]))[0]


def test_the_receiving_queue_has_a_date_of_sending_and_lacks_columns() -> None:
    columns = (
        "OPER_DATE",
        "repl_date",
        "EXTDATA",
        "RESERVE",
        "DBNODE",
        "TRANSACT_ID",
        "TYP",
        "LEN1",
        "LEN2",
        "DATA",
        "TABNUM_SRC",
    )
    row = ("000000018000", "000000020000", 0, None, "DEMO", 5, 2, 12, 0, ROW_1, 7)
    ending = ("000000018000", None, 0, None, "DEMO", 5, 4, 0, 0, None, None)
    change = only(read_queue([row, ending], columns=columns, time_order="big"))
    assert (change.time, change.fact("repl_date")) == ("1990-01-01T00:00:01.5", "1990-01-01T00:00:02")
    assert (change.position, change.user, change.after["fname"]) == (None, None, "Jack")


def test_a_source_that_is_no_queue_is_refused_once() -> None:
    assert reasons(read_queue([("x",)], columns=("a",))) == [
        "there is no column TRANSACT_ID, TYP, LEN1, LEN2, DATA: is this a queue of LINTER?"
    ]


@pytest.mark.parametrize(
    ("hex", "text"),
    [
        ("000000000000", "1990-01-01T00:00:00"),
        ("000000018000", "1990-01-01T00:00:01.5"),
        ("3b9aca004000", "2021-09-09T01:46:40.25"),
        ("ffffffffffff", "2126-02-07T06:28:15.9999847"),
    ],
)
def test_a_date_is_seconds_since_1990(hex: str, text: str) -> None:
    assert load_time(bytes.fromhex(hex), "big") == text
    assert dump_time(text, "big").hex() == hex


def test_every_fraction_of_a_second_comes_back() -> None:
    for parts in range(1 << 16):
        data = b"\x3b\x9a\xca\x00" + parts.to_bytes(2, "big")
        assert dump_time(load_time(data, "big"), "big") == data


def dated(*dates: str) -> list[tuple[Any, ...]]:
    return [*(operation(2, ROW_1, OPER_DATE=date) for date in dates), end(OPER_DATE=dates[0])]


@pytest.mark.parametrize(
    ("date", "big", "little"),
    [
        ("010000010000", "1990-07-14T04:20:17", "1990-07-14T04:20:17"),
        ("3b9acaff0000", "2021-09-09T01:50:55", "2125-12-28T18:23:55"),
        ("ffca9a3b0000", "2125-12-28T18:23:55", "2021-09-09T01:50:55"),  # of a clock that is ahead
    ],
)
def test_dates_are_big_endian_whatever_the_clock_shows(date: str, big: str, little: str) -> None:
    """Read dates as the vendor states them; a date in the future proves nothing, and no date is refused."""
    assert only(read_queue(dated(date))).time == big
    assert only(read_queue(dated(date), time_order="little")).time == little


def test_what_memory_does_not_hold_of_open_transactions_comes_from_disk() -> None:
    rows = [operation(2, ROW_1, SYSLOG_ADDR=number, TRANSACT_ID=number % 3) for number in range(30)]
    rows += [end(TRANSACT_ID=number) for number in range(3)]
    whole = read_queue(rows)
    assert read_queue(rows, max_open=30_000, spool=SpoolFile) == whole
    assert len(whole) == 30
    with pytest.raises(TooMuchOpen, match="30000 bytes of memory"):
        read_queue(rows, max_open=30_000)
    with pytest.raises(TooMuchStored, match="open-bytes"):
        read_queue(rows, max_open=30_000, open_bytes=100, spool=SpoolFile)


def test_an_operation_is_whole_though_its_parts_come_from_disk_and_among_others() -> None:
    numbers = range(4)
    rows = [
        operation(2, bytes([n]) * 3000, DST_SERVER=f"S{n}", EXTDATA=extdata)
        for extdata in (0, 1)
        for n in numbers
    ]
    answers = read_queue([*rows, end()], NONE, lengths="row", max_open=15_000, spool=SpoolFile)
    assert [change.raw for change in answers if isinstance(change, Change)] == [
        Raw(None, bytes([n]) * 6000) for n in numbers
    ]


def test_a_transaction_that_ended_takes_no_room() -> None:
    rows = [
        row
        for number in range(5)
        for row in (operation(2, b"x" * 3000, TRANSACT_ID=number), end(TRANSACT_ID=number))
    ]
    assert reasons(read_queue(rows, NONE, max_open=10_000)) == []


def test_rows_of_wrong_width_are_reported() -> None:
    assert "only 3 cells" in reasons(read_queue([queue_row(TYP=COMMIT)[:3]]))[0]


@pytest.mark.parametrize("cell", [b"5", True, 5.5, [5]])
def test_only_integers_and_their_texts_are_integers(cell: object) -> None:
    rows = [list(operation(2, ROW_1)), list(end())]
    rows[1][NAMES.index("TRANSACT_ID")] = cell
    assert "TRANSACT_ID" in reasons(read_queue(map(tuple, rows)))[0]


@pytest.mark.parametrize("text", [" 2 ", "+2", "2", "0" * 23 + "2"])
def test_integers_are_read_with_signs_blanks_and_zeros(text: str) -> None:
    rows = [operation(2, ROW_1, TABNUM_SRC=7, TRANSACT_ID=text), end(TRANSACT_ID="2")]
    assert only(read_queue(rows)).transaction == "DEMO/2"


@pytest.mark.parametrize("text", ["0" * 24 + "2", "9" * 5000, "2 2", "", "+-2"])
def test_texts_of_other_forms_are_no_integers(text: str) -> None:
    (reason, *_) = reasons(read_queue([operation(2, ROW_1, TRANSACT_ID=text), end()]))
    assert re.fullmatch("TRANSACT_ID: '.*' is not an integer", reason)


@pytest.mark.parametrize(
    ("typ", "lengths", "reason"),
    [
        (1, (0, 0), "TYP is 1, DELETE, but LEN1 is 0: it has no old record"),
        (2, (0, 0), "TYP is 2, INSERT, but LEN1 is 0: it has no new record"),
        (3, (len(ROW_1), 0), "TYP is 3, UPDATE, but LEN2 is 0: it has no new record"),
        (3, (0, len(ROW_1)), "TYP is 3, UPDATE, but LEN1 is 0: it has no old record"),
    ],
)
def test_an_operation_without_its_image_is_refused(typ: int, lengths: tuple[int, int], reason: str) -> None:
    row = operation(typ, ROW_1, LEN1=lengths[0], LEN2=lengths[1])
    assert reasons(read_queue([row, end()])) == [reason]
    (raw,) = read_queue([row, end()], keep_contradictions=True)
    assert isinstance(raw, Change)
