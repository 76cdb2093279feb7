"""Change tables: every rule of the manual's page, and what bad rows cost."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pytest

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Row, SheetRow, Source
from eventlog.formats.qlik import headers
from eventlog.formats.qlik.mask import WrongMaskOrder
from tests.formats.qlik.helpers import (
    HEADERS,
    as_sources,
    change,
    ct,
    read_messages,
    read_rows,
    reason,
    row,
    seq,
    source,
    write_messages,
    write_rows,
)

pytestmark = pytest.mark.quick

TABLES = tablesfile.read(
    """
    [tables.usr]
    schema = "app"
    key = ["id"]
    columns = { id = "integer", name = "varchar(9)", age = "integer" }
    """
)
COLUMNS = ct("id", "name", "age")
ALL, ID, NAME, AGE = "8003", "80", "0001", "0002"  # byte 0 first; seven headers, so `id` is bit 7


def only(*rows: Any, columns: Any = COLUMNS, **settings: Any) -> Change:
    (answer,) = read_rows(source(columns, *rows), tables=TABLES, **settings)
    return change(answer)


def test_insert_sets_the_bits_of_all_inserted_columns() -> None:
    assert only(row(1, "I", ALL, "1", None, "7")).fields == (
        Field("id", ABSENT, 1),
        Field("name", ABSENT, None),
        Field("age", ABSENT, 7),
    )
    written = write_rows([only(row(1, "I", ALL, "1", None, "7"))], TABLES)
    assert [r.cells[2].hex().upper() for r in written if isinstance(r, SheetRow)] == [ALL]


def test_a_clear_bit_of_an_insert_says_not_supplied() -> None:
    assert only(row(1, "I", "8002", "1", None, None)).fields == (
        Field("id", ABSENT, 1),
        Field("age", ABSENT, None),
    )


def test_delete_sets_only_the_bits_of_the_primary_key() -> None:
    gone = only(row(1, "D", ID, "1", "x", None))
    assert gone.fields == (Field("id", 1), Field("name", "x"), Field("age", None))
    (written,) = write_rows([gone], TABLES)
    assert isinstance(written, SheetRow)
    assert written.cells[2].hex() == ID


def test_a_delete_of_which_only_the_key_was_captured_has_no_nulls() -> None:
    assert only(row(1, "D", ID, "1", None, None)).fields == (Field("id", 1, ABSENT),)
    assert only(row(1, "D", ID, "1", None, "7")).before == {"id": 1, "name": None, "age": 7}


def test_the_mask_of_a_delete_names_the_key_where_nothing_else_does() -> None:
    (found,) = read_rows(source(COLUMNS, row(1, "D", "8001", "1", "x", None)))
    assert change(found).key == (("id", "1"), ("name", "x"))


FIVE = ("change_seq", "change_oper", "change_mask", "operation", "transaction_id")


def test_the_mask_of_a_delete_has_its_key_if_a_row_without_one_lays_out_the_table() -> None:
    """The manual's example has five header columns, so `id` is bit 5 and `name` bit 6."""
    facts = "AB" * 16, "1", "x", None
    rows = [(seq(1), "I", "E0", "INSERT", *facts), (seq(2), "D", "60", "DELETE", *facts)]
    read = read_rows(source(ct("id", "name", "age", headers=FIVE), *rows))
    assert [change(item).key for item in read] == [(), (("id", "1"), ("name", "x"))]
    written = write_rows(map(change, read), header_columns=FIVE)
    assert [item.cells[2].hex().upper() for item in written if isinstance(item, SheetRow)] == ["E0", "60"]
    assert read_rows(*as_sources(written)) == read
    messages = write_messages(map(change, read), metadata=False)
    assert [message["message"]["headers"]["changeMask"] for message in messages] == ["07", "03"]
    assert [change(item).key for item in read_messages(messages)] == [change(item).key for item in read]


def test_before_image_has_no_bits_and_shares_the_sequence_of_its_update() -> None:
    moved = only(row(2, "B", "", "1", "x", "7"), row(2, "U", NAME, "1", "y", "7"))
    assert moved.fields == (Field("id", 1, 1), Field("name", "x", "y"), Field("age", 7, 7))
    image, update = (r.cells for r in write_rows([moved], TABLES) if isinstance(r, SheetRow))
    assert (image[0], image[1], image[2]) == (seq(2), "B", b"")
    assert (update[0], update[1], update[2].hex()) == (seq(2), "U", NAME)


@pytest.mark.parametrize("mask", ["", "00", "000000", None])
def test_the_mask_of_a_before_image_may_be_empty_or_all_zero(mask: str | None) -> None:
    assert only(row(2, "B", mask, "1", "x", "7"), row(2, "U", NAME, "1", "y", "7")).op is Op.UPDATE


def test_update_sets_the_bits_of_the_columns_that_changed() -> None:
    changed = Change(
        Op.UPDATE,
        "app",
        "usr",
        (("id", 1),),
        (Field("id", 1, 1), Field("name", None, "y"), Field("age", 7, None)),
        seq(1),
    )
    _, update = (r.cells for r in write_rows([changed], TABLES) if isinstance(r, SheetRow))
    assert update[2].hex() == "0003"


def test_a_set_bit_makes_a_null_a_value() -> None:
    assert only(row(1, "U", AGE, "1", "x", None)).after["age"] is None


def test_a_clear_bit_and_a_null_say_not_captured_without_a_before_image() -> None:
    assert only(row(1, "U", NAME, "1", "y", None)).fields == (Field("id", 1, 1), Field("name", ABSENT, "y"))


def test_a_clear_bit_and_nulls_in_both_rows_say_not_captured() -> None:
    """An unchanged LOB is null in both rows."""
    both = only(row(1, "B", "", "1", "x", None), row(1, "U", NAME, "1", "y", None))
    assert both.fields == (Field("id", 1, 1), Field("name", "x", "y"))


def test_a_null_of_a_key_is_a_value_under_a_clear_bit() -> None:
    both = only(row(1, "B", "", None, "x", "7"), row(1, "U", NAME, None, "y", "7"))
    assert both.key == (("id", None),)


def test_a_clear_bit_and_a_null_say_not_captured_after_where_the_before_image_has_a_value() -> None:
    both = only(row(1, "B", "", "1", "x", "7"), row(1, "U", NAME, "1", "y", None))
    assert both.fields[2] == Field("age", 7, ABSENT)


def test_an_update_that_moves_the_key() -> None:
    moved = only(row(1, "B", "", "1", "x", "7"), row(1, "U", ID, "2", "x", "7"))
    assert (moved.key, moved.key_before) == ((("id", 2),), (("id", 1),))


def test_five_header_columns_occupy_bits_0_to_4() -> None:
    headers = ("change_seq", "change_oper", "change_mask", "operation", "transaction_id")
    columns = ct("id", "name", "age", headers=headers)
    cells = (seq(1), "I", "60", "INSERT", "AB" * 16, "1", "x", None)  # bits 5 and 6
    found = only(cells, columns=columns)
    assert found.fields == (Field("id", ABSENT, 1), Field("name", ABSENT, "x"))
    (written,) = write_rows([found], TABLES, header_columns=headers)
    assert isinstance(written, SheetRow)
    assert written.cells == (seq(1), "I", b"\x60", "INSERT", "AB" * 16, 1, "x", None)


@pytest.mark.parametrize("name", ["BEFOREIMAGE", "BEFORE-IMAGE", "before-image"])
def test_the_spellings_of_before_image(name: str) -> None:
    image = row(1, "B", "", "1", "x", "7", operation=name)
    assert only(image, row(1, "U", NAME, "1", "y", "7")).before["name"] == "x"


def test_the_names_of_operations_are_written() -> None:
    moved = only(row(1, "B", "", "1", "x", "7"), row(1, "U", NAME, "1", "y", "7"))
    changes = [
        moved,
        moved._replace(op=Op.INSERT),
        moved._replace(op=Op.DELETE),
        Change(Op.TRUNCATE, "app", "usr", position=seq(9)),
    ]
    written = [(r.cells[1], r.cells[4]) for r in write_rows(changes, TABLES) if isinstance(r, SheetRow)]
    assert written == [
        ("B", "BEFOREIMAGE"),
        ("U", "UPDATE"),
        ("I", "INSERT"),
        ("D", "DELETE"),
        ("T", "TRUNCATE"),
    ]


@pytest.mark.parametrize("letter", ["T", "D", None, ""])
def test_a_truncate_row_is_reported_by_its_operation_whatever_its_letter(letter: str | None) -> None:
    gone = only((seq(1), letter, None, None, "TRUNCATE", None, None, None, None, None))
    assert (gone.op, gone.fields, gone.position) == (Op.TRUNCATE, (), seq(1))


def test_a_row_of_a_full_load_has_no_sequence() -> None:
    assert only(row(1, "I", ALL, "1", "x", "7", seq="")).op is Op.SNAPSHOT
    loaded = Change(Op.SNAPSHOT, "app", "usr", (("id", 1),), (Field("id", ABSENT, 1),))
    (written,) = write_rows([loaded], TABLES)
    assert isinstance(written, SheetRow)
    assert written.cells[:2] == ("", "I")


@pytest.mark.parametrize("time", ["1970-01-01 00:00:00", "1970-01-01", dt.datetime(1970, 1, 1)])
def test_the_time_of_1970_is_unknown(time: object) -> None:
    assert only(row(1, "I", ALL, "1", "x", "7", timestamp=time)).time is None


def test_the_header_fields_of_a_change() -> None:
    cells = row(
        1, "I", ALL, "1", "x", "7", stream="9;8", transaction="0" * 32, timestamp="2024-03-18 10:47:26.660000"
    )
    found = only(cells)
    assert (found.position, found.transaction, found.time) == (seq(1), "0" * 32, "2024-03-18T10:47:26.66Z")
    assert found.fact("stream_position") == "9;8"
    (written,) = write_rows([found], TABLES)
    assert isinstance(written, SheetRow)
    assert written.cells[:7] == (
        seq(1),
        "I",
        bytes.fromhex(ALL),
        "9;8",
        "INSERT",
        "0" * 32,
        "2024-03-18 10:47:26.66",
    )


def test_a_position_of_another_system_becomes_the_stream_position() -> None:
    foreign = Change(Op.INSERT, "app", "usr", (("id", 1),), position="4711", time="2024-01-01T12:00:00Z")
    (written,) = write_rows([foreign], TABLES)
    assert isinstance(written, SheetRow)
    assert (written.cells[0], written.cells[3]) == (seq(1), "4711")


def test_a_partition_name_is_read_and_written_again() -> None:
    name = "20240101T120000_20240101T123000"
    loaded = only(row(1, "I", ALL, "1", "x", "7"))._replace(extra=(("partition_name", name),))
    written = write_rows([loaded], TABLES, header_columns=headers.NAMES)
    assert [r.cells[7] for r in written if isinstance(r, SheetRow)] == [name]
    again = read_rows(*as_sources(written), tables=TABLES)
    assert [change(c).fact("partition_name") for c in again] == [name]


@pytest.mark.parametrize(("header_columns", "passes"), [(None, True), (tuple(headers.NAMES[:7]), False)])
def test_a_partition_name_passes_unless_header_columns_are_named(
    header_columns: tuple[str, ...] | None, passes: bool
) -> None:
    name = "20240101T120000_20240101T123000"
    cells = row(1, "I", "0001", "1")
    columns = (*ct(), "header__partition_name", "id")
    (loaded,) = read_rows(source(columns, (*cells[:7], name, *cells[7:])))
    chosen: dict[str, Any] = {} if header_columns is None else {"header_columns": header_columns}
    (written,) = as_sources(write_rows([change(loaded)], **chosen))
    assert ("header__partition_name" in written.columns) == passes
    (again,) = read_rows(written)
    assert change(again).extra == (change(loaded).extra if passes else change(loaded).extra[:1])
    assert change(again).fields == change(loaded).fields


def test_a_partition_name_that_appears_later_is_refused() -> None:
    first = only(row(1, "I", ALL, "1", "x", "7"))
    later = only(row(2, "I", ALL, "2", "y", "8"))._replace(extra=(("partition_name", "20240101T120000"),))
    written, refused, third = write_rows([first, later, first._replace(position=seq(3))], TABLES)
    assert isinstance(written, SheetRow)
    assert isinstance(refused, Refused)
    assert refused.where == f"usr:{seq(2)}"
    assert refused.reason == (
        "the first change of this table had no partition_name, so its change table has no column for one:"
        " name all header-columns, with partition_name among them"
    )
    assert isinstance(third, SheetRow)
    named = write_rows([first, later], TABLES, header_columns=headers.NAMES)
    assert [r.cells[7] for r in named if isinstance(r, SheetRow)] == [None, "20240101T120000"]


def test_the_header_prefix_is_configurable() -> None:
    columns = ct("id", "name", "age", prefix="h_")
    found = only(row(1, "I", ALL, "1", "x", "7"), columns=columns, header_prefix="h_")
    (written,) = write_rows([found], TABLES, header_prefix="h_")
    assert isinstance(written, SheetRow)
    assert [c.name for c in written.sheet.columns] == list(columns)


def test_headers_are_found_without_case() -> None:
    assert only(row(1, "I", ALL, "1", "x", "7"), columns=tuple(c.upper() for c in COLUMNS)).after["id"] == 1


@pytest.mark.parametrize(
    ("columns", "why"),
    [(("id", "name"), "is the header prefix 'header__'?"), ((), "has no columns: it is empty")],
)
def test_a_table_without_headers_is_refused_as_a_whole(columns: tuple[str, ...], why: str) -> None:
    (fault,) = read_rows(source(columns, ("1", "x")))
    assert why in reason(fault)


def test_unknown_header_columns_are_misuse() -> None:
    with pytest.raises(Misuse, match="no header column 'seq'"):
        write_rows([Change(Op.TRUNCATE, None, "t")], header_columns=("seq",))


@pytest.mark.parametrize("stem", ["usr__ct", "USR__CT", "app.usr__ct", "usr"])
def test_the_table_is_named_by_the_file(stem: str) -> None:
    (found,) = read_rows(source(COLUMNS, row(1, "I", ALL, "1", "x", "7"), stem=stem), tables=TABLES)
    assert change(found)[1:3] == ("app", "usr")


def test_a_schema_that_no_tables_file_knows_stands_in_the_name() -> None:
    loaded = Change(Op.INSERT, "s", "t", (("id", 1),), (Field("id", ABSENT, 1),), seq(1))
    (written,) = write_rows([loaded])
    assert isinstance(written, SheetRow)
    assert written.sheet.name == "s.t__ct"
    (found,) = read_rows(*as_sources([written]))
    assert change(found)[1:3] == ("s", "t")


def test_the_table_setting_names_it_else() -> None:
    (found,) = read_rows(
        source(COLUMNS, row(1, "I", ALL, "1", "x", "7"), stem="-"), tables=TABLES, table="usr"
    )
    assert change(found).table == "usr"


def test_until_reads_to_a_point_and_never_between_an_update_and_its_image() -> None:
    rows = [
        row(1, "I", ALL, "1", "x", "7"),
        row(2, "B", "", "1", "x", "7"),
        row(2, "U", NAME, "1", "y", "7"),
        row(3, "B", "", "1", "y", "7"),
        row(3, "U", NAME, "1", "z", "7"),
    ]
    found = read_rows(source(COLUMNS, *rows), tables=TABLES, until=seq(2))
    assert [(change(c).position, change(c).before.get("name")) for c in found] == [
        (seq(1), None),
        (seq(2), "x"),
    ]


def test_what_the_manual_calls_a_left_outer_join() -> None:
    """Join each change without before images with the B row of its change_seq, if there is one."""
    rows = [
        row(2, "U", NAME, "1", "y", "7"),
        row(3, "B", "", "1", "y", "7"),
        row(3, "U", NAME, "1", "z", "7"),
    ]
    found = [change(c) for c in read_rows(source(COLUMNS, *rows), tables=TABLES)]
    assert [c.fields[1] for c in found] == [Field("name", ABSENT, "y"), Field("name", "y", "z")]


def test_rows_without_a_change_seq_pair_in_their_order() -> None:
    name = "80"  # six headers, so `name` is bit 7
    rows = [
        row(1, "B", "", "1", "x", "7"),
        row(1, "B", "", "1", "y", "7"),
        row(1, "U", name, "1", "y", "7"),
        row(1, "U", name, "1", "z", "7"),
    ]
    columns = ct("id", "name", "age", headers=HEADERS[1:])
    found = [change(c) for c in read_rows(source(columns, *(r[1:] for r in rows)), tables=TABLES)]
    assert [c.fields[1] for c in found] == [Field("name", "x", "y"), Field("name", "y", "z")]


def test_an_image_directly_behind_its_update_is_found_too() -> None:
    assert only(row(2, "U", NAME, "1", "y", "7"), row(2, "B", "", "1", "x", "7")).before["name"] == "x"


def test_parts_of_a_table_are_read_as_one() -> None:
    parts = [
        source(COLUMNS, row(1, "B", "", "1", "x", "7")),
        source(COLUMNS, row(1, "U", NAME, "1", "y", "7")),
    ]
    (found,) = read_rows(*parts, tables=TABLES)
    assert change(found).before["name"] == "x"


BIG = [row(1, "I", "0380", "1", "x", "7"), row(2, "B", "", "1", "x", "7"), row(2, "U", "0100", "1", "y", "7")]
LITTLE = [row(1, "I", ALL, "1", "x", "7"), row(2, "B", "", "1", "x", "7"), row(2, "U", NAME, "1", "y", "7")]


@pytest.mark.parametrize("rows", [BIG, LITTLE])
@pytest.mark.parametrize("order", [None, "auto"])
def test_a_mask_proves_its_byte_order(rows: list[Any], order: str | None) -> None:
    settings = {} if order is None else {"mask_order": order}
    found = read_rows(source(COLUMNS, *rows), tables=TABLES, **settings)
    assert [len(change(c).fields) for c in found] == [3, 3]
    assert change(found[1]).fields == (Field("id", 1, 1), Field("name", "x", "y"), Field("age", 7, 7))


UNSURE = ct(*(f"c{i}" for i in range(17)))  # masks that are possible in both orders


@pytest.mark.parametrize(("order", "changed"), [("big", "c8"), ("little", "c0")])
def test_a_mask_that_both_orders_allow_needs_the_setting_or_a_before_image(order: str, changed: str) -> None:
    data = [str(i) for i in range(17)]
    unclear = row(2, "U", "8000", *data)
    with pytest.raises(WrongMaskOrder, match=r"usr__ct.csv:2: mask 8000 .* one: set mask-order to big or l"):
        read_rows(source(UNSURE, unclear))
    (stated,) = read_rows(source(UNSURE, unclear), mask_order=order)
    image = row(2, "B", "", *("old" if f"c{i}" == changed else value for i, value in enumerate(data)))
    (proven,) = read_rows(source(UNSURE, image, unclear))
    for found in (stated, proven):
        fields = change(found).fields
        assert [f.column for f in fields if f.before != f.after] == [changed]


def test_a_mask_that_proves_no_order_is_refused_with_what_the_others_proved() -> None:
    """Count rows of all sources: by the bits of their masks, and by their B rows."""
    data = [str(i) for i in range(17)]
    big, little, unclear = (
        row(number, "U", mask, *data) for number, mask in ((1, "010000"), (2, "800001"), (3, "8000"))
    )
    image = row(3, "B", "", *(value if i != 8 else "old" for i, value in enumerate(data)))
    same, known = row(1, "D", "8000", *data), tablesfile.read('[tables.usr]\nkey = ["c0"]\n')
    cases = [
        ([big], "1 before it proves big, none little: set mask-order to big"),
        ([big, same, image, unclear, big], "3 before it prove big, none little: set mask-order to big"),
        ([little, little], "none before it prove big, 2 little: set mask-order to little"),
        ([big, little, big], "2 before it prove big, 1 little: set mask-order to big or little"),
    ]
    for rows, words in cases:
        with pytest.raises(WrongMaskOrder, match=rf"mask 8000 .* no B row proves one; {words}$"):
            read_rows(source(UNSURE, *rows), source(UNSURE, unclear), tables=known)


def test_a_mask_that_means_the_same_in_both_orders_needs_no_setting() -> None:
    data = [str(i) for i in range(17)]
    known = tablesfile.read('[tables.usr]\nkey = ["c0"]\n')
    rows = row(1, "D", "8000", *data), row(2, "U", "808080", *data)
    found = read_rows(source(UNSURE, *rows), tables=known)
    assert [change(item).op for item in found] == [Op.DELETE, Op.UPDATE]


@pytest.mark.parametrize(("order", "rows"), [("little", BIG), ("big", LITTLE)])
def test_a_mask_that_contradicts_the_setting_ends_the_reading(order: str, rows: list[Any]) -> None:
    reason = f"usr__ct.csv:2: mask {rows[0][2]} is possible in .* alone, but mask-order is {order}"
    with pytest.raises(WrongMaskOrder, match=reason):
        read_rows(source(COLUMNS, *rows), tables=TABLES, mask_order=order)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (row(1, "I", ALL, "1", "x", "7", seq="2024"), "change_seq '2024' is not 35 digits"),
        (row(1, "I", ALL, "1", "x", "7", seq="2024130112000000" + "0" * 19), "month 13 is not 01 to 12"),
        (row(1, "U", ALL, "1", "x", "7", seq=None), "change_seq '' is not 35 digits"),
        (row(1, "I", "800", "1", "x", "7"), "mask '800' is not an even number of hexadecimal digits"),
        (row(1, "I", "FFFF", "1", "x", "7"), "bit 15 lies past the last column, 9"),
        (row(1, "I", "01", "1", "x", "7"), "bit 0 is of a header column"),
        (row(1, "B", "", "1", "x", "7"), "without its U row"),
        (row(1, "X", "", "1", "x", "7"), "change_oper 'X' is none of I, U, D, B"),
        (
            row(1, "I", "", "1", "x", "7", operation="DELETE"),
            "change_oper 'I' contradicts operation 'DELETE'",
        ),
        (row(1, "I", "", "1", "x", "7", operation="MERGE"), "operation 'MERGE' is none of"),
        (row(1, "I", ALL, "one", "x", "7"), "column id: 'one' is not an integer"),
        (row(1, "I", ALL, "1", "x", "7", timestamp="soon"), "'soon' is not a timestamp"),
        (row(1, "I", [], "1", "x", "7"), "change_mask holds no text"),
        (row(1, "I", ALL, "1", "x", "7", operation=[]), "change_mask holds no text"),
        (row(1, "I", 5, "1", "x", "7"), "a mask is bytes or hexadecimal text, not int"),
        (row(1, "I", ALL, [], "x", "7"), "column id: a value of type list"),
        (row(1, "I", ALL, "1", "x", "7", timestamp=[1]), "'[1]' is not a timestamp"),
        (row(1, "I", ALL, "1", "x"), "9 cells, but the header line names 10 columns"),
    ],
)
def test_a_bad_row_costs_itself_alone(cells: Any, words: str) -> None:
    good = row(8, "I", ALL, "1", "x", "7")
    found = read_rows(source(COLUMNS, good, cells, good), tables=TABLES)
    faults = [reason(c) for c in found if isinstance(c, Refused)]
    assert len(found) == 3
    assert [f.startswith("usr__ct.csv:3: ") for f in faults] == [True]
    assert words in faults[0]


def test_what_the_container_refused_passes_through() -> None:
    fault = Refused("usr__ct.csv:2", "bad UTF-8")
    assert (
        read_rows(
            Source("usr__ct.csv", "usr__ct", COLUMNS, [fault, Row(3, row(1, "I", ALL, "1", "x", "7"))])
        )[0]
        == fault
    )


def test_typed_cells_of_parquet_and_databases() -> None:
    known = tablesfile.read(
        '[tables.t]\ncolumns = { d = "date", m = "timestamp(3)", c = "time", n = "numeric(6,2)",'
        ' b = "varbinary(9)", f = "real" }\n'
    )
    cells = row(
        1, "I", None, dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 1, 2, 3, 400_000), dt.time(1, 2, 3),
        decimal.Decimal("1.50"), b"\x01", 0.10000000149011612,
        timestamp=dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC),
    )  # fmt: skip
    (found,) = read_rows(source(ct(*"dmcnbf"), cells, stem="t__ct"), tables=known)
    assert list(change(found).after.values()) == [
        "2024-02-29",
        "2024-02-29T01:02:03.400",
        "01:02:03",
        "1.50",
        b"\x01",
        0.1,
    ]
    assert change(found).time == "2024-01-01T12:00:00Z"


def test_a_column_that_the_table_lacks_is_refused_with_the_remedy() -> None:
    first = Change(Op.INSERT, None, "t", (), (Field("a", ABSENT, 1),), seq(1))
    second = first._replace(fields=(Field("b", ABSENT, 1),), position=seq(2))
    found = write_rows([first, second])
    assert isinstance(found[1], Refused)
    assert "t has no column 'b': name it in the tables file" in found[1].reason


def test_more_columns_than_a_mask_holds() -> None:
    fields = tuple(Field(f"c{i}", ABSENT, i) for i in range(1018))
    (fault,) = write_rows([Change(Op.INSERT, None, "t", (), fields, seq(1))])
    assert isinstance(fault, Refused)
    assert "a mask holds 1024" in fault.reason


def test_values_of_several_parts_are_refused() -> None:
    (fault,) = write_rows(
        [Change(Op.INSERT, "app", "usr", (("id", 1),), (Field("name", ABSENT, ("a", "b")),), seq(1))], TABLES
    )
    assert isinstance(fault, Refused)
    assert "column name: a value of several parts" in fault.reason


@pytest.mark.parametrize(
    ("reported", "time"),
    [
        ("2024-01-01 12:00:00 UTC", "2024-01-01T12:00:00Z"),
        ("2024-01-01 12:00:00.250 +0200", "2024-01-01T10:00:00.25Z"),
        ("2024-01-01 12:00:00 -05:30", "2024-01-01T17:30:00Z"),
        ("2024-01-01 12:00:00 +02", "2024-01-01T10:00:00Z"),
        ("2024-01-01T12:00:00Z", "2024-01-01T12:00:00Z"),
        ("1970-01-01 00:00:00 UTC", None),
    ],
)
def test_a_timestamp_may_have_a_zone_as_warehouses_write_it(reported: str, time: str | None) -> None:
    assert only(row(1, "I", ALL, "1", "x", "7", timestamp=reported)).time == time


@pytest.mark.parametrize("prefix", ["", "0x", "0X", "\\x"])
def test_masks_are_hex_as_databases_write_it(prefix: str) -> None:
    assert only(row(1, "I", prefix + ALL, "1", "x", "7")).op is Op.INSERT
