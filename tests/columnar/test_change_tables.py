"""Change tables by column have the changes and refusals of the row-wise reader, in the same order."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import eventlog
from bench import qlik as bench
from eventlog.core import tablesfile
from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.tables import Tables
from eventlog.log_files.by_column import row_batches
from tests.qlik.strategies import TYPES, Case, cases
from tests.tiers import drawn

pytestmark = pytest.mark.quick

_NUMBERS = itertools.count()
Answers = list[Change | Refused]
AS_IS = {"order": "as-is"}


def row_wise(names: Sequence[Path], tables: Tables, **given: Any) -> Answers:
    answers: Answers = []
    for change in eventlog.read(names, "qlik-table", tables=tables, refused=answers.append, **given):
        answers.append(change)
    return answers


def by_column(names: Sequence[Path], tables: Tables, **given: Any) -> tuple[Answers, int]:
    """Return all answers with the changes of each batch one by one, and how many changes were in batches."""
    answers: Answers = []
    batched = 0
    for item in eventlog.batches(names, "qlik-table", tables=tables, refused=answers.append, **given):
        if isinstance(item, eventlog.ChangeBatch):
            item.rows.validate(full=True)
            answers += item.changes()
            batched += item.rows.num_rows
        else:
            answers.append(item)
    return answers, batched


def alike(answers: Answers) -> list[str]:
    """Return the answers so that 1, 1.0 and true differ."""
    return list(map(repr, answers))


@pytest.mark.parametrize("container", ["csv", "parquet"])
def test_all_changes_of_the_benchmark_are_in_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, container: str
) -> None:
    monkeypatch.setattr(row_batches, "_PIECE", 20_000)
    path = tmp_path / f"usr__ct.{container}"
    eventlog.write(bench.changes(300), path, "qlik-table", tables=bench.KNOWN)
    found, batched = by_column([path], bench.KNOWN, order="as-is")
    assert alike(found) == alike(row_wise([path], bench.KNOWN))
    assert (found, 0) == by_column([path], bench.KNOWN)
    assert batched == len(found) == 300


@settings(max_examples=drawn(150))
@given(
    st.lists(cases(tabular=True), min_size=1, max_size=2),
    st.sampled_from(("csv", "parquet")),
    st.booleans(),
    st.sampled_from(("little", "big")),
    st.sampled_from((100, 400, 1 << 20)),
)
def test_changes_of_every_type_are_the_same(
    tmp_path: Path, made: list[Case], container: str, images: bool, order: str, piece: int
) -> None:
    folder = tmp_path / str(next(_NUMBERS))
    paths = [folder / str(number) / f"usr__ct.{container}" for number in range(len(made))]
    for path, case in zip(paths, made, strict=True):
        path.parent.mkdir(parents=True)
        written: dict[str, Any] = {"before_images": images, "mask_order": order, "now": "2024-01-01"}
        eventlog.write(case.changes, path, "qlik-table", tables=case.tables, refused=id, **written)
    paths = [path for path in paths if path.exists()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_batches, "_PIECE", piece)
        known = made[0].tables
        assert alike(by_column(paths, known, **AS_IS)[0]) == alike(row_wise(paths, known, **AS_IS))


HEADERS = ("change_seq", "change_oper", "change_mask", "transaction_id", "timestamp")
COLUMNS = ",".join(f"header__{name}" for name in HEADERS)
USR = tablesfile.read(
    '[tables.usr]\nkey = ["a"]\n'
    'columns = { a = "integer", b = "varchar(9)", c = "numeric(9)", d = "date", e = "double precision" }\n'
)
SEQ = "2024031810472600000000000000000000"
SEQS = (*(f"{SEQ}{n}" for n in range(3)), "2024139910472600000000000000000000", "")
MASKS = ("E0", "E003", "0001", "0100", "2001", "0120", "8002", "FF", "", "00", "x", "4AA=")
CELLS = st.tuples(
    *(st.sampled_from(SEQS), st.sampled_from("IUUUBBBDDT"), st.sampled_from(MASKS)),
    *(st.sampled_from(("T1", "")), st.sampled_from(("2024-03-18 10:47:26", "", "1970-01-01", "soon"))),
    *(st.sampled_from(("1", "2", "-1", "", "x")), st.sampled_from(("Jack", "", '""', "1"))),
    *(st.sampled_from(("7", "07", "-0", "")), st.sampled_from(("2024-02-29", "2023-02-29", ""))),
    st.sampled_from(("1.5", "1e400", "-0.0", "NaN", "1e3", "")),
)
PLAIN = st.builds(
    lambda seq, cells, old: [("U", seq, cells), *([("B", seq, old)] if old else [])][::-1],
    st.sampled_from(SEQS[:3]),
    st.tuples(st.sampled_from(("1", "2")), st.sampled_from(("Jack", ""))),
    st.none() | st.tuples(st.sampled_from(("1", "2")), st.sampled_from(("Jim", ""))),
)


def plain_lines(pairs: list[list[tuple[str, str, tuple[str, str]]]], mask: str) -> list[str]:
    return [
        f"{seq},{letter},{mask},T1,2024-03-18 10:47:26,{a},{b},7,,1.5"
        for rows in pairs
        for letter, seq, (a, b) in rows
    ]


def write_lines(folder: Path, lines: Sequence[str]) -> Path:
    path = folder / str(next(_NUMBERS)) / "usr__ct.csv"
    path.parent.mkdir()
    path.write_text("\n".join([f"{COLUMNS},a,b,c,d,e", *lines]) + "\n")
    return path


@settings(max_examples=drawn(400))
@given(
    st.lists(st.one_of(PLAIN.map(lambda rows: rows), CELLS), max_size=14),
    st.sampled_from(MASKS[:8]),
    st.sampled_from((60, 100, 250, 1 << 20)),
    st.sampled_from(("auto", "little", "big")),
)
@example([[("B", SEQS[0], ("1", "Jim"))], [("U", SEQS[0], ("1", ""))]], "E0", 1 << 20, "auto")
@example([[("U", SEQS[0], ("1", ""))], [("B", SEQS[0], ("1", "Jim"))]], "E0", 100, "auto")
def test_any_rows_are_read_alike(tmp_path: Path, rows: list[Any], mask: str, piece: int, order: str) -> None:
    lines = [
        line
        for row in rows
        for line in (plain_lines([row], mask) if isinstance(row, list) else [",".join(row)])
    ]
    paths = [write_lines(tmp_path, lines[:9]), write_lines(tmp_path, lines[9:])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_batches, "_PIECE", piece)
        reported = by_column(paths, USR, mask_order=order, **AS_IS)[0]
        assert alike(reported) == alike(row_wise(paths, USR, mask_order=order, **AS_IS))


@settings(max_examples=drawn(200))
@given(st.lists(PLAIN, max_size=12), st.sampled_from(MASKS[:8]), st.sampled_from((60, 100, 250, 1 << 20)))
def test_pairs_across_pieces_are_read_alike(
    tmp_path: Path, pairs: list[list[tuple[str, str, tuple[str, str]]]], mask: str, piece: int
) -> None:
    path = write_lines(tmp_path, plain_lines(pairs, mask))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_batches, "_PIECE", piece)
        assert alike(by_column([path], USR, **AS_IS)[0]) == alike(row_wise([path], USR, **AS_IS))


@pytest.mark.parametrize("piece", [100, 1 << 20])
@pytest.mark.parametrize(
    "rows",
    [
        ["0I,0001,1,Jack", "1I,0100,2,Jim"],
        ["0U,0001,1,Jack", "1I,E0,2,Jim", "2I,0100,2,Jim", "2T,,,"],
        ["0B,40,,Jack", "0U,40,,Jim"],
        ["0B,40,1,Jack", "1U,40,1,Jim"],
        ["0U,40,1,Jim", "0B,40,1,Jack"],
        ["0B,40,1,Jack", "1I,E0,2,Jim", "0U,40,1,Jane"],
        ["0I,E0,1,Jack", "1I,E0,2,Jim", "1D,20,2,", "2D,,2,Jim", "2D,20,2,Jim"],
    ],
)
def test_rows_that_concern_each_other_are_read_alike(tmp_path: Path, rows: list[str], piece: int) -> None:
    lines = []
    for row in rows:
        head, mask, a, b = row.split(",")
        lines.append(f"{SEQS[int(head[0])]},{head[1]},{mask},T1,2024-03-18 10:47:26,{a},{b},7,,1.5")
    path = write_lines(tmp_path, lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_batches, "_PIECE", piece)
        assert alike(by_column([path], USR, **AS_IS)[0]) == alike(row_wise([path], USR, **AS_IS))


@pytest.mark.parametrize("changed", [(0, 9), (1, 8)])
def test_masks_that_may_be_of_both_orders_are_decided_by_pairs(
    tmp_path: Path, changed: tuple[int, int]
) -> None:
    """Read a mask whose bits are of data columns in both orders."""
    old = ["x"] * 13
    new = ["y" if place in changed else "x" for place in range(13)]
    names = ",".join(f"c{place}" for place in range(13))
    path = tmp_path / "usr__ct.csv"
    rows = [f"{SEQS[0]},{letter},0810,{','.join(cells)}" for letter, cells in (("B", old), ("U", new))]
    path.write_text("\n".join([f"header__change_seq,header__change_oper,header__change_mask,{names}", *rows]))
    found = by_column([path], Tables(), **AS_IS)[0]
    assert alike(found) == alike(row_wise([path], Tables(), **AS_IS))


@pytest.mark.parametrize("name", sorted(TYPES))
def test_what_is_no_value_of_a_type_is_refused_alike(tmp_path: Path, name: str) -> None:
    cells: tuple[str, ...] = (
        "",
        "0",
        "1",
        "-1",
        "+1",
        "007",
        "1.50",
        "1e2",
        "true",
        "T",
        "2024-02-30",
        "2024-02-29",
    )
    cells += ("2024-02-29 24:00:00", "2024-02-29T23:59:59.1Z", "23:59:59.5", "24:00:00", "0A", "0a0", "NaN")
    cells += (str(2**31), str(2**63), str(2**64), "1" * 40, "-0", "é", "0001-01-01", "1.0e-5")
    tables = tablesfile.read(f'[tables.usr]\ncolumns = {{ a = "integer", x = "{TYPES[name][0]}" }}\n')
    for cell in cells:
        path = tmp_path / str(next(_NUMBERS)) / "usr__ct.csv"
        path.parent.mkdir()
        path.write_text(f"header__change_seq,header__change_oper,a,x\n{SEQS[0]},I,1,{cell}\n")
        reported = by_column([path], tables, **AS_IS)[0]
        assert alike(reported) == alike(row_wise([path], tables, **AS_IS)), cell


@pytest.mark.parametrize(
    ("declared", "cells"),
    [
        ("smallint", [1, -1, None, 2**15 - 1]),
        ("smallint", [1, 2**15]),
        ("bigint", [2**63 - 1, -(2**63)]),
        ("double precision", [1.5, -0.0, None]),
        ("double precision", [1.5, float("nan")]),
        ("double precision", [float("-inf"), float("inf")]),
        ("boolean", [True, False, None]),
        ("boolean", [0, 1]),
        ("boolean", [0, 2]),
        ("integer", [1.0, 2.5]),
    ],
)
def test_numbers_of_parquet_are_read_alike(tmp_path: Path, declared: str, cells: list[Any]) -> None:
    tables = tablesfile.read(f'[tables.usr]\ncolumns = {{ x = "{declared}" }}\n')
    headers = {"header__change_seq": [f"{SEQ}{n}" for n in range(len(cells))]}
    headers["header__change_oper"] = ["I"] * len(cells)
    pq.write_table(pa.table({**headers, "x": cells}), tmp_path / "usr__ct.parquet")
    found = by_column([tmp_path / "usr__ct.parquet"], tables, **AS_IS)[0]
    assert alike(found) == alike(row_wise([tmp_path / "usr__ct.parquet"], tables, **AS_IS))
