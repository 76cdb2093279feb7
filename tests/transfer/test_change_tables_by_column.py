"""Change tables read by column equal those read row by row: lines, refusals, warnings and counts."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.core import tablesfile
from eventlog.core.errors import Refused
from eventlog.core.formats import Shape
from eventlog.core.tables import Tables
from eventlog.files.inputs import source_in
from eventlog.transfer.change_files import as_is, sorted_slabs
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.report import Report
from eventlog.transfer.ways import Way, way_of
from tests.kit.tiers import drawn
from tests.transfer.both_ways import CLOCK, run
from tests.transfer.random_change_tables import BAD, HEADERS, TABLES, TEXTS, Task, cell_of

pytestmark = pytest.mark.quick

LAST = f"99991231235959{'9' * 21}"  # an end that asks for rows and leaves none out
BLANK = "\n" * (64 << 10)  # lines that are no rows, and make a file large
HEADER = "header__change_seq,header__change_oper,header__change_mask,place,no,title\n"
ROW = "20240318104726000000000000000000001,I,38,here,1,x\n"
LARGE = HEADER + ROW + BLANK
FEW = 25  # changes of a file that `convert` reads row by row


def job_of(folder: Path, names: tuple[str, ...], target: str = "changes", **options: Any) -> Job:
    output = str(folder / "out")
    return Job(
        "qlik-table",
        target,
        names,
        output,
        None,
        None if target == "xds" else "jsonl",
        TABLES,
        options=options,
    )


def written(folder: Path, *names: str, text: str = LARGE) -> tuple[str, ...]:
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return tuple(str(folder / name) for name in names)


def write_tables(folder: Path, random: Random, rate: float, order: str, changes: int) -> tuple[str, ...]:
    names = []
    for file in Task(random, rate, changes).files(in_sequence=order == "sequence"):
        path = folder / file.name
        path.parent.mkdir(exist_ok=True)
        path.write_text(file.text, "utf-8")
        names.append(str(path))
    return tuple(names)


def check_alike(
    folder: Path, seed: int, rate: float, order: str, target: str, at_once: int, memory: int
) -> None:
    job = job_of(folder, write_tables(folder, Random(seed), rate, order, FEW), target, order=order)
    assert run(job, at_once, memory) == run(job)


@settings(max_examples=drawn(100))
@given(
    st.integers(0, 1 << 32),
    st.sampled_from((0, 0.02, 0.1)),
    st.sampled_from(("sequence", "as-is")),
    st.sampled_from(("changes", "xds")),
    st.sampled_from((1, 2, 7, 16_384)),
    st.sampled_from((1, 3_000, 1 << 26)),
)
def test_both_ways_write_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    rate: float,
    order: str,
    target: str,
    at_once: int,
    memory: int,
) -> None:
    check_alike(tmp_path_factory.mktemp("tables"), seed, rate, order, target, at_once, memory)


@pytest.mark.parametrize("order", ["sequence", "as-is"])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.family
def test_these_tables_become_the_same_changes(tmp_path: Path, seed: int, order: str) -> None:
    compare_ways(tmp_path, seed, order, "changes")


@pytest.mark.parametrize("order", ["sequence", "as-is"])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.family
def test_these_tables_become_the_same_documents(tmp_path: Path, seed: int, order: str) -> None:
    compare_ways(tmp_path, seed, order, "xds")


@pytest.mark.parametrize("seed", range(4))
def test_rows_that_are_too_large_to_wait_become_the_same_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(as_is, "_BYTES", (300, 1_000)[seed % 2])  # of some rows, of none, of all
    check_alike(tmp_path, seed, (0.02, 0.1)[seed % 2], "as-is", "changes", 3, 1 << 26)


@pytest.mark.parametrize("seed", range(3))
def test_runs_that_are_merged_two_by_two_become_the_same_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(sorted_slabs, "_BLOCKS", 1)
    check_alike(tmp_path, seed, (0, 0.02, 0.1)[seed], "sequence", "changes", 2, 1)


def compare_ways(tmp_path: Path, seed: int, order: str, target: str) -> None:
    """Compare tables that are the same in each run, which the planted faults are looked for in."""
    rate, at_once, memory = (0, 0.02, 0.1)[seed % 3], (16_384, 3)[seed % 2], (1 << 26, 1)[seed % 2]
    check_alike(tmp_path, seed, rate, order, target, at_once, memory)


# --- what random tables rarely have

AT = "2024031810472600000000000000000000{}"  # a change_seq by its last digit
OF_USR = ",".join(next(table for table in TABLES if table.name == "usr").columns)
USR = f"{','.join(f'header__{name}' for name in HEADERS)},{OF_USR}\n"
FACTS = HEADER.replace("_mask,", "_mask,header__stream_position,header__partition_name,")


def usr(seq: int, letter: str, mask: str, *cells: str) -> str:
    return f"{AT.format(seq)},{letter},{mask},,,,,{','.join(cells)}{',' * (14 - len(cells))}\n"


def org(seq: object, letter: str, *cells: str, mask: str = "38") -> str:
    return f"{AT.format(seq) if isinstance(seq, int) else seq},{letter},{mask},{','.join(cells)}\n"


CASES: dict[str, tuple[dict[str, str], str]] = {
    "facts": (
        {
            "org__ct.csv": FACTS
            + org(1, "I", "s", "p", "x", "1", "a", mask="E0")
            + org(2, "I", "", "p", "x", "1", "a", mask="E0")
        },
        '"extra":{"stream_position":"s","partition_name":"p"}',
    ),
    "rows of a full load among others": (
        {
            "org__ct.csv": HEADER
            + org(5, "I", "x", "1", "a")
            + org("", "I", "y", "1", "a")
            + org(1, "I", "z", "1", "a")
        },
        '"op":"snapshot"',
    ),
    "one change_seq in two tables": (
        {
            "a/usr__ct.csv": USR + usr(1, "D", "80", "1"),
            "org__ct.csv": HEADER + org(1, "I", "x", "1", "a"),
            "b/usr__ct.csv": USR + usr(1, "I", "80", "2") + usr(2, "I", "80", "3"),
        },
        '"event_part":2',
    ),
    "a B row in a part with other columns": (
        {
            "a/org__ct.csv": HEADER.replace(",title", "")
            + org(1, "B", "x", "1", mask="")
            + org(2, "I", "y", "2"),
            "b/org__ct.csv": HEADER + org(1, "U", "x", "1", "b", mask="20"),
        },
        '"after":"b"',
    ),
    "refused after a U row that is refused": (
        {
            "org__ct.csv": HEADER
            + org(1, "U", "x", "no number", "b")
            + org("x", "I", "y", "2", "b")
            + org(2, "I", "z", "3", "c")
        },
        '"op":"insert"',
    ),
    "a key that moves": (
        {
            "org__ct.csv": HEADER
            + org(1, "D", "x", "1", "a")
            + org(1, "I", "x", "2", "a")
            + org(2, "I", "z", "3", "c")
        },
        '"event_part":2',
    ),
    "an event that shares its change_seq over one that is refused": (
        {
            "org__ct.csv": HEADER
            + org(1, "D", "x", "1", "a")
            + org(2, "I", "x", "bad", "a")
            + org(1, "I", "z", "3", "c")
        },
        '"op":"insert"',
    ),
    "a U row far from its B row": (
        {
            "org__ct.csv": HEADER
            + org(1, "B", "x", "1", "a", mask="")
            + org(2, "I", "x", "2", "a")
            + org(1, "U", "x", "1", "c", mask="20")
        },
        '"before":"a","after":"c"',
    ),
    "a key that an update moves": (
        {
            "org__ct.csv": HEADER
            + org(1, "B", "x", "1", "a", mask="")
            + org(1, "U", "x", "2", "b", mask="30")
            + org(2, "I", "z", "3", "c")
        },
        '"before":1,"after":2',
    ),
    "a U row that contradicts its mask": (
        {"org__ct.csv": HEADER + org(1, "B", "x", "1", "a", mask="") + org(1, "U", "x", "1", "b", mask="08")},
        '"op":"update"',
    ),
    "lines with a cell too many": (
        {
            "org__ct.csv": HEADER
            + org(1, "I", "x", "1", "a")
            + org(2, "B", "x", "1", "a", mask="")
            + org(2, "I", "x", "1", "a,b")
            + org(2, "U", "x", "1", "c", mask="20")
            + org(3, "D", "x", "1", "c,d")
            + org(3, "D", "x", "1", "c")
            + org("", "I", "y", "2", "a,b")
        },
        '"before":"a","after":"c"',
    ),
    "lines that are no rows": (
        {
            "org__ct.csv": HEADER
            + '"open,x\n'
            + org(1, "U", "x", "1", "a")
            + 'a"b,1\n'
            + org(2, "I", "y", "2", "b")
        },
        "insert",
    ),
}


@pytest.mark.parametrize("order", ["sequence", "as-is"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.family
def test_what_belongs_together_becomes_the_same_changes(tmp_path: Path, case: str, order: str) -> None:
    compare_case(tmp_path, case, order, "changes")


@pytest.mark.parametrize("order", ["sequence", "as-is"])
@pytest.mark.parametrize("case", CASES)
def test_what_belongs_together_becomes_the_same_documents(tmp_path: Path, case: str, order: str) -> None:
    compare_case(tmp_path, case, order, "xds")


def compare_case(tmp_path: Path, case: str, order: str, target: str) -> None:
    files, expected = CASES[case]
    names = tuple(name for path, text in files.items() for name in written(tmp_path, path, text=text))
    job = job_of(tmp_path, names, target, order=order)
    by_row = run(job)
    if order == "sequence" or len(files) == 1:
        assert expected in by_row.lines.decode() or target == "xds"
        assert run(job, 1, 1) == run(job, 2) == run(job, 1000) == by_row


def test_each_odd_value_becomes_the_same_change(tmp_path: Path) -> None:
    compare_odd_values(tmp_path, "changes")


def test_each_odd_value_becomes_the_same_document(tmp_path: Path) -> None:
    compare_odd_values(tmp_path, "xds")


def compare_odd_values(tmp_path: Path, target: str) -> None:
    columns = OF_USR.split(",")
    rows = [
        f"{AT[:-6]}{number:05},I,80FF1F,,,,,"
        + ",".join(cell_of(value) if column == name else "1" if column == "idu" else "" for column in columns)
        for number, (name, value) in enumerate((n, v) for n, values in BAD.items() for v in (*values, *TEXTS))
    ]
    job = job_of(tmp_path, written(tmp_path, "usr__ct.csv", text=USR + "\n".join(rows)), target)
    by_column = run(job, 7)
    assert by_column == run(job)
    assert by_column.lines.count(b"\n") >= 50


@pytest.mark.parametrize("order", ["sequence", "as-is"])
def test_a_table_with_long_names_is_written_alike_in_small_parts(tmp_path: Path, order: str) -> None:
    names = ["no", *(f"{letter * 90_000}{at}" for letter in "ab" for at in range(4))]
    columns = ", ".join(f'{name} = "text"' for name in names)
    tables = tablesfile.read(f'[tables.wide]\nkey = ["no"]\ncolumns = {{ {columns} }}\n')
    rows = "".join(org(at, "I", str(at), *"12345678", mask="F80F") for at in range(1, 9))
    header = HEADER.replace("place,no,title", ",".join(names))
    files = written(tmp_path, "wide__ct.csv", text=header + rows)
    job = replace(job_of(tmp_path, files, order=order), tables=tables)
    assert run(job, 16_384) == run(replace(job, options={**job.options, "until": LAST}))


@pytest.mark.parametrize("at_once", [1, 2, 1000])
def test_an_unproven_mask_is_reported_with_what_those_before_it_prove(tmp_path: Path, at_once: int) -> None:
    text = USR + usr(1, "I", "80FF1F", "1") + usr(2, "I", "80FF1F", "2") + usr(3, "U", "0080", "3")
    job = job_of(tmp_path, written(tmp_path, "usr__ct.csv", text=text))
    assert "none before it prove big, 2 little: set mask-order to little" in run(job).error
    assert run(job, at_once) == run(job)


# --- Parquet


@settings(max_examples=drawn(40))
@given(
    st.integers(0, 1 << 32),
    st.sampled_from((0, 0.02, 0.1)),
    st.sampled_from(("sequence", "as-is")),
    st.sampled_from(("changes", "xds")),
    st.sampled_from((1, 7, 16_384)),
)
def test_parquet_is_written_alike(
    tmp_path_factory: pytest.TempPathFactory, seed: int, rate: float, order: str, target: str, at_once: int
) -> None:
    random, folder = Random(seed), tmp_path_factory.mktemp("tables")
    names = [as_parquet(Path(name), random) for name in write_tables(folder, random, rate, order, FEW)]
    job = job_of(folder, tuple(names), target, order=order)
    by_row = run(replace(job, options={**job.options, "until": LAST}))
    assert run(job, at_once, random.choice((1, 1 << 26))) == by_row


@pytest.mark.parametrize("seed", range(4))
def test_these_tables_in_parquet_are_written_alike(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    names = [as_parquet(Path(name), random) for name in write_tables(tmp_path, random, 0.02, "sequence", FEW)]
    job = job_of(tmp_path, tuple(names), ("changes", "xds")[seed % 2])
    assert way_of(job, reads_on=False) is Way.CHANGES
    assert run(job, 7) == run(replace(job, options={"until": LAST}))


def as_parquet(path: Path, random: Random) -> str:
    """Write rows of CSV as Parquet, some columns typed where all cells allow it."""
    source = source_in(io.BytesIO(path.read_bytes()), str(path), Shape.ROWS, "csv")
    rows = [row.cells for row in source.records if not isinstance(row, Refused)]
    columns = list(zip(*rows, strict=True)) or [()] * len(source.columns)
    typed = [_typed(name, column, random) for name, column in zip(source.columns, columns, strict=True)]
    written = str(path.with_suffix(".parquet"))
    pq.write_table(
        pa.table(dict(zip(source.columns, typed, strict=True))),
        written,
        row_group_size=random.choice((3, 1000)),
    )
    return written


_PARQUET = {
    "header__change_mask": (pa.binary(),),
    "header__timestamp": (pa.timestamp("us"), pa.timestamp("ns")),
    "idu": (pa.int64(), pa.int32(), pa.uint16(), pa.decimal128(12, 1)),
    "no": (pa.int8(), pa.large_string(), pa.float64()),
    "born": (pa.date32(), pa.timestamp("s")),
    "seen": (pa.timestamp("us"), pa.timestamp("ns")),
    "salary": (pa.decimal128(10, 2), pa.float64()),
    "level": (pa.int64(), pa.float32()),
    "active": (pa.bool_(),),
    "score": (pa.float64(), pa.float32()),
    "total": (pa.int64(), pa.decimal128(20, 0)),
    "name": (pa.dictionary(pa.int32(), pa.string()),),
}


def _typed(name: str, cells: Sequence[str | None], random: Random) -> pa.Array:
    texts = pa.array(cells, pa.string())
    try:
        if name == "header__change_mask" and random.random() < 0.5:
            return pa.array([None if cell is None else bytes.fromhex(cell) for cell in cells], pa.binary())
        kind = random.choice((pa.string(), *_PARQUET.get(name, ())))
        return texts.dictionary_encode() if pa.types.is_dictionary(kind) else texts.cast(kind)
    except (pa.ArrowException, ValueError):
        return texts


# --- which way a job goes

KEYLESS = tablesfile.read(
    '[tables.org]\ncolumns = { place = "varchar(20)", no = "integer", title = "text" }\n'
)
LISTS = tablesfile.read(
    '[tables.org]\nkey = ["no"]\npublish = ["title"]\n'
    'columns = { place = "varchar(20)", no = "integer", title = "text" }\n'
)


def test_a_large_change_table_goes_by_column_and_ends_alike(tmp_path: Path) -> None:
    job = job_of(tmp_path, written(tmp_path, "org__ct.csv"))
    assert way_of(job, reads_on=False) is Way.CHANGES
    assert way_of(job, reads_on=True) is Way.BY_ROW
    report = Report(lambda refused: None)
    convert(job, report, CLOCK)
    small = job_of(tmp_path, written(tmp_path, "org__ct.csv", text=HEADER + ROW))
    by_column = Path(job.output).read_bytes()
    assert by_column == run(small).lines
    assert report.changes == 1


@pytest.mark.parametrize(
    ("options", "target"),
    [
        ({"since": "2" * 35}, "changes"),
        ({"until": "20240318104726000000000000000000001"}, "changes"),
        ({"batch_size": 2}, "xds"),
        ({"pretty": True}, "xds"),
        ({"csv_delimiter": ";"}, "changes"),
        ({}, "qlik-message"),
    ],
)
def test_a_job_that_asks_for_rows_goes_row_by_row(
    tmp_path: Path, options: dict[str, Any], target: str
) -> None:
    job = job_of(tmp_path, written(tmp_path, "org__ct.csv"), target, **options)
    assert way_of(job, reads_on=False) is Way.BY_ROW


@pytest.mark.parametrize(
    ("names", "text", "tables"),
    [
        (["org__ct.csv"], HEADER + ROW, TABLES),  # few rows
        (["org__ct.csv.gz"], HEADER + ROW + BLANK, TABLES),
        (["org__ct.csv"], HEADER.replace("header__change_seq", "seq") + ROW + BLANK, TABLES),
        (["org__ct.csv"], HEADER.replace("place,no", "PLACE,place") + ROW + BLANK, TABLES),
        (["org__ct.csv"], HEADER.replace("place", "\ue001") + ROW + BLANK, TABLES),
        (["org__ct.csv"], BLANK + BLANK, TABLES),
        (["org__ct.csv"], HEADER + ROW + BLANK, KEYLESS),
        (["org__ct.csv"], HEADER + ROW + BLANK, LISTS),
        (["org__ct.csv", "none.csv"], HEADER + ROW + BLANK, TABLES),
    ],
)
def test_files_that_are_not_certain_go_row_by_row(
    tmp_path: Path, names: list[str], text: str, tables: Tables
) -> None:
    files = written(tmp_path, *names, text=text)
    (tmp_path / "none.csv").unlink(missing_ok=True)
    job = Job("qlik-table", "changes", files, str(tmp_path / "out"), None, "jsonl", tables)
    assert way_of(job, reads_on=False) is Way.BY_ROW


def test_two_parts_of_a_table_go_by_column_in_sequence_alone(tmp_path: Path) -> None:
    files = written(tmp_path, "a/org__ct.csv", "b/org__ct.csv")
    ways = {
        order: way_of(job_of(tmp_path, files, order=order), reads_on=False) for order in ("sequence", "as-is")
    }
    assert ways == {"sequence": Way.CHANGES, "as-is": Way.BY_ROW}


def test_a_state_asks_for_rows(tmp_path: Path) -> None:
    files = written(tmp_path, "org__ct.csv")
    job = Job("qlik-table", "changes", files, str(tmp_path / "out"), None, "messages", TABLES)
    assert way_of(job, reads_on=False) is Way.BY_ROW
