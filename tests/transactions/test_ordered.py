"""Change tables and messages of a whole task come out as one sequence, wherever their records are."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from eventlog.core.change import ABSENT
from eventlog.core.errors import Misuse, Refused
from eventlog.core.tables import Tables
from eventlog.formats.qlik.change_tables import TableSettings
from eventlog.formats.qlik.sequenced_rows import RowSequencer
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.ordered import ordered
from eventlog.transfer.report import Report
from tests.formats.qlik.helpers import source
from tests.kit.databases import Database
from tests.kit.support import CLOCK
from tests.transactions import exports

pytestmark = pytest.mark.quick

ROWS = exports.export()


class Read:
    """The result of a conversion to `changes`."""

    def __init__(self, output: Path, inputs: list[str], **job: Any) -> None:
        self.reported_records: list[Refused] = []
        rejects = BytesIO()
        report = Report(self.reported_records.append, rejects)
        convert(Job("qlik-table", "changes", tuple(inputs), str(output), **job), report, CLOCK)
        self.changes = [json.loads(line) for line in output.read_text().splitlines()]
        self.refused = report.refused
        self.rejected_text = rejects.getvalue().decode()


@pytest.fixture(scope="module")
def whole_export(tmp_path_factory: pytest.TempPathFactory) -> Read:
    """The export read from one file."""
    folder = tmp_path_factory.mktemp("export")
    (folder / "item__ct.csv").write_text(exports.csv(ROWS))
    return Read(folder / "out.jsonl", [str(folder / "item__ct.csv")])


def test_the_export_is_like_the_real_one() -> None:
    behind = [
        ROWS.index(row._replace(letter="B", mask="", data=image.data)) - i
        for i, row in enumerate(ROWS)
        if row.letter == "U"
        for image in [next(other for other in ROWS if other.letter == "B" and other.seq == row.seq)]
    ]
    assert len(ROWS) == 1000
    assert exports.descents(ROWS) == 513
    assert len(behind) == 390
    assert sorted(behind)[len(behind) // 2] == 215


def test_an_unsorted_export_gives_its_pairs_and_reports_the_rest(whole_export: Read) -> None:
    updates = [c for c in whole_export.changes if c["op"] == "update"]
    assert len([c for c in updates if all("before" in field for field in c["fields"])]) == 390
    assert [c["op"] for c in whole_export.changes].count("insert") == 122
    assert whole_export.refused == 98
    assert len(whole_export.rejected_text.splitlines()) == 98, "each row is kept as it came"
    reported = [r for r in whole_export.reported_records if "without their U row" in r.reason]
    assert [(r.where, r.reason.split(",")[0]) for r in reported] == [
        ("item", reported[0].reason.split(",")[0])
    ]
    assert reported[0].reason.startswith("98 B rows without their U row, at ")
    assert "item__ct.csv:" in reported[0].reason
    assert len(ROWS) == 2 * 390 + 122 + 98


def test_the_changes_are_one_ordered_sequence(whole_export: Read) -> None:
    positions = [c["position"] for c in whole_export.changes]
    assert positions == sorted(set(positions))


@pytest.mark.parametrize("cut", ["files", "shuffled", "parquet"])
def test_however_the_export_is_cut_the_sequence_is_the_same(
    tmp_path: Path, whole_export: Read, cut: str
) -> None:
    again = CUTS[cut](tmp_path)
    assert again.changes == whole_export.changes
    assert again.refused == len(again.rejected_text.splitlines()) == 98


def _as_files(folder: Path, rows: list[exports.Line] = ROWS) -> Read:
    names = []
    for number, start in enumerate(range(0, len(rows), 170)):
        path = folder / str(number) / "item__ct.csv"
        path.parent.mkdir()
        path.write_text(exports.csv(rows[start : start + 170]))
        names.append(str(path))
    return Read(folder / "out.jsonl", names)


def _shuffled(folder: Path) -> Read:
    rows = ROWS.copy()
    random.Random(5).shuffle(rows)
    return _as_files(folder, rows)


def _as_parquet(folder: Path) -> Read:
    cells = [row.cells for row in ROWS]
    columns = {name: [row[i] for row in cells] for i, name in enumerate(exports.COLUMNS)}
    pq.write_table(pa.table(columns), folder / "item__ct.parquet")
    return Read(folder / "out.jsonl", [str(folder / "item__ct.parquet")])


def test_from_a_database_the_sequence_is_the_same(
    tmp_path: Path, whole_export: Read, database: Database
) -> None:
    engine = database.engine()
    table = sa.Table("item__ct", sa.MetaData(), *(sa.Column(name, sa.Text) for name in exports.COLUMNS))
    with engine.begin() as connection:
        table.create(connection)
        connection.execute(table.insert(), [dict(zip(exports.COLUMNS, r.cells, strict=True)) for r in ROWS])
    engine.dispose()
    again = Read(tmp_path / "out.jsonl", ["item"], url=database.address)
    assert again.changes == whole_export.changes
    assert again.refused == len(again.rejected_text.splitlines()) == 98


CUTS = {"files": _as_files, "shuffled": _shuffled, "parquet": _as_parquet}


# --- single rules, on tables that a person can read

HEADING = ("change_seq", "change_oper", "change_mask", "transaction_id")


def table(name: str, *rows: str, columns: str = "id v") -> Any:
    """Return a change table with these columns; each row as `7 U 20 1 b`, where - is null."""
    cells = []
    for row in rows:
        number, letter, mask, *data = (None if cell == "-" else cell for cell in row.split())
        cells.append((number and exports.seq(int(number)), letter, mask, "AB", *data))
    return source((*(f"header__{h}" for h in HEADING), *columns.split()), *cells, stem=f"{name}__ct")


def layout(columns: str, *rows: str) -> Any:
    """Return a part of the change table usr with these columns."""
    return table("usr", *rows, columns=columns)


def read_texts(*sources: Any, memory: int = 1 << 20, since: str = "", **settings: Any) -> list[str]:
    """Return changes as `update usr 1 a>b`, and reports; a place alone in brackets if others report it."""
    texts = []
    for item in ordered(RowSequencer(Tables(), TableSettings(**settings), since), sources, memory):
        if isinstance(item, Refused):
            texts.append(f"({item.where})" if item.grouped else item.reason)
        else:
            change = item.change
            sides = [tuple(s for s in field[1:] if s is not ABSENT) for field in change.fields]
            values = (str(side[0]) if len(set(side)) == 1 else ">".join(map(str, side)) for side in sides)
            texts.append(f"{change.op} {change.table} {' '.join(values)}")
    return texts


ONE_TASK = ": a run reads the tables of one task, because each task has its own sequence"


def test_a_delete_and_an_insert_come_in_their_order() -> None:
    assert read_texts(table("usr", "7 D 10 1 a", "1 I 30 1 a")) == ["insert usr 1 a", "delete usr 1 a"]


def test_tables_of_a_task_are_one_sequence() -> None:
    one, other = table("usr", "1 I 30 1 a", "4 I 30 2 b"), table("grp", "3 I 30 7 x", "2 I 30 8 y")
    assert read_texts(one, other) == ["insert usr 1 a", "insert grp 8 y", "insert grp 7 x", "insert usr 2 b"]


def test_a_before_image_joins_its_update_in_another_part_of_the_table() -> None:
    parts = table("usr", "2 U 20 1 b"), table("usr", "2 B - 1 a", "1 I 30 1 a")
    assert read_texts(*parts) == ["insert usr 1 a", "update usr 1 a>b"]


def test_the_same_sequence_in_two_tables_joins_nothing() -> None:
    found = read_texts(table("usr", "2 U 20 1 b"), table("grp", "2 B - 1 a"))
    assert found == ["update usr 1 b", "(grp__ct.csv:2)", "1 B rows without their U row, at grp__ct.csv:2"]


def test_a_before_image_of_another_layout_joins_by_the_names_of_its_columns() -> None:
    """The B row was exported after x was added before v, or before w was; in other letters too."""
    update = layout("id v w", "2 U 60 1 b d")
    assert read_texts(update, layout("ID x V w", "2 B - 1 - a c")) == ["update usr 1 a>b c>d"]
    assert read_texts(update, layout("id v", "2 B - 1 a")) == ["update usr 1 a>b d"], (
        "w was not captured before"
    )


def test_a_row_that_was_exported_again_with_a_further_column_is_a_repeat() -> None:
    found = read_texts(layout("id v", "2 I 30 1 a"), layout("id x v", "2 I 30 1 - a"))
    assert found[1:] == ["insert usr 1 a", "1 repeated records are left out, at usr__ct.csv:2"]
    found = read_texts(layout("id v", "2 I 30 1 a"), layout("id x v", "2 I 30 1 z a"))
    words = f"is there with different values as I rows{ONE_TASK}"
    assert [one.partition("usr ")[2] for one in found] == [words] * 2


def test_a_repeated_row_is_dropped_and_counted() -> None:
    found = read_texts(table("usr", "2 U 20 1 b", "2 B - 1 a", "2 U 20 1 b"), table("usr", "2 B - 1 a"))
    assert found == [
        "(usr__ct.csv:4)",
        "(usr__ct.csv:2)",
        "update usr 1 a>b",
        "2 repeated records are left out, at usr__ct.csv:4, usr__ct.csv:2",
    ]


@pytest.mark.parametrize(("order", "padded"), [("little", "2000"), ("big", "0020"), ("auto", "2000")])
def test_a_mask_that_kept_its_zero_bytes_is_no_other_mask(order: str, padded: str) -> None:
    """Treat a mask of zeros like an empty one, also in a B row."""
    rows = table("usr", "2 U 20 1 b", "2 B - 1 a", f"2 U {padded} 1 b", "2 B 0000 1 a")
    found = read_texts(rows, mask_order=order)
    assert found[2:] == [
        "update usr 1 a>b",
        "2 repeated records are left out, at usr__ct.csv:4, usr__ct.csv:5",
    ]


def test_masks_of_a_repeat_mean_columns_and_not_places() -> None:
    found = read_texts(layout("id v", "2 U 20 1 b"), layout("id x v", "2 U 40 1 - b"))
    assert found[1:] == ["update usr 1 b", "1 repeated records are left out, at usr__ct.csv:2"]
    found = read_texts(layout("id v", "2 U 20 1 b"), layout("id x v", "2 U 60 1 - b"))
    words = f"is there with different values as U rows{ONE_TASK}"
    assert [one.partition("usr ")[2] for one in found] == [words] * 2


def test_rows_that_contradict_each_other_are_all_refused() -> None:
    found = read_texts(table("usr", "2 U 20 1 b", "2 U 20 1 c", "3 I 30 2 d"))
    reason = f"change_seq {exports.seq(2)} of usr is there with different values as U rows{ONE_TASK}"
    assert found == [reason, reason, "insert usr 2 d"]


def test_rows_that_are_no_one_change_are_all_refused() -> None:
    found = read_texts(table("usr", "2 I 30 1 b", "2 U 20 1 b"))
    reason = f"change_seq {exports.seq(2)} of usr is there as rows I, U, which are no one change{ONE_TASK}"
    assert found == [reason, reason]


def test_a_delete_and_an_insert_of_another_key_are_one_change() -> None:
    assert read_texts(table("usr", "2 I 30 9 a", "2 D 10 1 a")) == ["delete usr 1 a", "insert usr 9 a"]


def test_a_before_image_that_contradicts_its_update_is_reported() -> None:
    found = read_texts(table("usr", "2 U 20 1 b", "2 B - 7 a"))
    assert found == [
        f"B row of change_seq {exports.seq(2)}: id is another in the U row, but not in its mask",
        "update usr 1 b",
    ]


def test_rows_without_a_sequence_keep_their_place() -> None:
    reload = table("usr", "5 I 30 1 a", "- I 30 2 b", "- I 30 3 c", "3 I 30 4 d", "7 I 30 6 f")
    found = read_texts(reload, table("grp", "6 I 30 5 e"))
    assert found == [
        "insert usr 4 d",
        "insert usr 1 a",
        "snapshot usr 2 b",
        "snapshot usr 3 c",
        "insert grp 5 e",
        "insert usr 6 f",
    ]


def test_since_excludes_and_until_includes() -> None:
    rows = table("usr", *(f"{n} I 30 {n} a" for n in (3, 1, 4, 2)))
    found = read_texts(rows, since=exports.seq(1), until=exports.seq(3))
    assert found == ["insert usr 2 a", "insert usr 3 a"]


def test_rows_beyond_what_memory_holds_are_sorted_on_disk() -> None:
    rows = [f"{n * 7919 % 1000} I 30 {n} a" for n in range(1000)]
    assert read_texts(table("usr", *rows), memory=20_000) == read_texts(table("usr", *rows))


def test_order_as_is_keeps_the_order_of_the_source(tmp_path: Path) -> None:
    path = tmp_path / "usr__ct.csv"
    path.write_text(exports.csv(ROWS[:50]))
    read = Read(tmp_path / "out.jsonl", [str(path)], options={"order": "as-is", "mask_order": "big"})
    positions = [c["position"] for c in read.changes]
    assert positions != sorted(positions)


def test_order_as_is_is_misuse_beside_transactions(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text("")
    job = Job("qlik-message", "changes", (str(tmp_path / "m.jsonl"),), str(tmp_path / "out.jsonl"))
    wrong = replace(job, options={"order": "as-is", "whole_transactions": True})
    with pytest.raises(Misuse, match="needs --order sequence"):
        convert(wrong, Report(lambda refused: None), CLOCK)
