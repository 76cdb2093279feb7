"""Rows of change tables that somebody else sorts become what `convert` makes of their files."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, Refused
from eventlog.files.inputs import open_input
from eventlog.formats.neutral import dumps
from eventlog.formats.qlik.sequenced_rows import RowSequencer
from eventlog.transfer.change_files.odd_lines import OddLines
from eventlog.transfer.change_files.sorted_batches import (
    SortedRows,
    TableSources,
    WithoutSequence,
    bounds_of,
    heading_of,
    ranges_of_rows,
    refusal,
    some_times,
    step_of,
    whole_groups,
)
from eventlog.transfer.change_files.writing import form_of
from eventlog.transfer.job import Job
from eventlog.transfer.log_files.by_column import row_batches
from eventlog.transfer.report import Report, before_writing
from tests.kit.tiers import drawn
from tests.transfer.both_ways import run
from tests.transfer.test_change_tables_by_column import job_of, write_tables

pytestmark = pytest.mark.quick
_ORDER = ("kind", "seq", "table", "source", "number")
CHANGES = 25


class Sorted(NamedTuple):
    """The rows of files in their order, and what reads them."""

    reader: SortedRows
    batches: list[pa.RecordBatch]


class Lines(NamedTuple):
    """The lines of all changes, and how often each record is refused."""

    text: bytes
    refused: Counter[tuple[str, str]]


def sorted_rows(job: Job, sizes: list[int]) -> Sorted:
    """Return the rows of the files of a job, in batches of these sizes again and again."""
    sequencer, limits = RowSequencer(job.tables, job.source.of_format), job.source.limits
    sources, slabs = TableSources(sequencer), []
    for file in job.source.files:
        with open_input(file.name) as opened:
            columns, rows = row_batches.read(opened, file.name, file.container, limits)
            heading = heading_of(open_input(file.name), file.name, file.container, columns)
            slabs.append((sources.add(file.name, heading), list(rows)))
    schema = sources.schema
    batches = []
    for numbers, of_file in slabs:
        assert not isinstance(numbers, Refused)
        for slab in of_file:
            if isinstance(slab, Refused):
                batches.append(refusal(slab, schema))
            else:
                batches += numbers.batches(slab, schema)
    together = pa.Table.from_batches(batches, schema)
    kinds = pc.multiply(together.column("kind"), -1)  # what was refused comes first
    by_place = together.set_column(0, "kind", kinds).sort_by([(name, "ascending") for name in _ORDER])
    by_place = by_place.combine_chunks()
    edges, at = [0], itertools.cycle(sizes)
    while edges[-1] < by_place.num_rows:
        edges.append(min(edges[-1] + next(at), by_place.num_rows))
    ordered = [by_place.slice(begin, end - begin) for begin, end in itertools.pairwise(edges)]
    parts = [part for few in ordered for part in few.to_batches()]
    return Sorted(SortedRows(sequencer, sources.layouts, in_files=True), parts)


class Draining(OddLines):
    """A writer that takes what was refused before it writes, as that of Spark does."""

    refused: list[Refused]
    heard: list[Refused]

    def write(self, changes: Iterable[Change | Refused]) -> Iterator[bytes]:
        self.heard += self.refused
        self.refused.clear()
        return super().write(changes)


def by_column(job: Job, sizes: list[int]) -> Lines:
    """Return what sorted rows become by column."""
    reader, batches = sorted_rows(job, sizes)
    heard: list[Refused] = []
    report, refused = Report(heard.append), list[Refused]()
    prepare = before_writing(job.source.format, job.tables, report, job.target.format)
    writer = Draining(job.target, prepare, report)
    writer.refused, writer.heard = refused, heard
    assert reader.are_certain(batches[0].schema)
    lines = reader.lines(whole_groups(batches), lambda table: form_of(job.target, table), writer, refused)
    return Lines(b"".join(lines), _counted(heard))


def by_row(job: Job, sizes: list[int]) -> Lines:
    """Return what sorted rows become one by one."""
    reader, batches = sorted_rows(job, sizes)
    changes, refused = list[bytes](), list[Refused]()
    for item in reader.sequencer.join(_good(reader(batches), refused)):
        if isinstance(item, Refused):
            refused.append(item)
        else:
            changes.append(f"{dumps(item.change)}\n".encode())
    return Lines(b"".join(changes), _counted(refused))


def _good(items: Iterable[Any], refused: list[Refused]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, Refused):
            refused.append(item)
        else:
            yield item


def _counted(refused: list[Refused]) -> Counter[tuple[str, str]]:
    return Counter((each.where, each.reason) for each in refused if each.fault and not each.grouped)


def converted(job: Job) -> Lines | str:
    """Return what `convert` makes of the files row by row, or its error."""
    outcome = run(job)
    reported = [
        each
        for each in outcome.reported
        if isinstance(each, Refused) and "without their U row" not in each.reason
    ]
    return outcome.error or Lines(outcome.lines, _counted(reported))


@pytest.mark.slow("each example is read in two ways")
@settings(max_examples=drawn(30))
@given(
    st.integers(0, 1 << 32),
    st.sampled_from((0, 0.02, 0.1)),
    st.sampled_from(("changes", "xds")),
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
)
def test_sorted_rows_become_what_convert_makes(
    tmp_path_factory: pytest.TempPathFactory, seed: int, rate: float, target: str, sizes: list[int]
) -> None:
    """Cut batches anywhere, also in the middle of a change_seq; several tables, and refused cells."""
    check_alike(tmp_path_factory.mktemp("tables"), seed, rate, target, sizes)


@pytest.mark.parametrize("sizes", [[1], [2, 3], [1_000]])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.family
def test_these_rows_become_what_convert_makes(tmp_path: Path, seed: int, sizes: list[int]) -> None:
    check_alike(tmp_path, seed, (0, 0.1)[seed % 2], ("changes", "xds")[seed // 2], sizes)


def check_alike(folder: Path, seed: int, rate: float, target: str, sizes: list[int]) -> None:
    names = write_tables(folder, Random(seed), rate, "sequence", CHANGES)
    job = job_of(folder, names, target, order="sequence")
    expected = converted(job)
    for way in (by_column, by_row) if target == "changes" else (by_column,):
        try:
            assert way(job, sizes) == expected
        except WithoutSequence:
            assert any(re.search('^,|^"",', Path(name).read_text("utf-8"), re.MULTILINE) for name in names)
        except EventlogError as fault:
            if str(fault) != expected:
                raise


def test_the_last_group_is_carried_over(tmp_path: Path) -> None:
    """Let each batch end with a group, however many batches the group lies in."""
    seqs = [1, 1, 1, 1, 2, 3, 3]
    places = {"without_sequence": [False] * 7, "table": [0] * 7, "number": [*range(7)]}
    rows = {"seq": [f"{seq:035}" for seq in seqs], **places}
    whole = pa.RecordBatch.from_pydict(rows)
    for size in range(1, 8):
        parts = [whole.slice(at, size) for at in range(0, 7, size)]
        given_back = [batch.column("seq").to_pylist() for batch in whole_groups(parts)]
        assert [*itertools.chain(*given_back)] == rows["seq"]
        assert all(one[-1] != other[0] for one, other in itertools.pairwise(given_back))


def test_ranges_begin_between_hundredths_of_a_second() -> None:
    """Give rows of one time one range, in the order of times; and none to what memory cannot hold."""
    seqs = [f"{20240318104726000 // 10 + number // 7:016}{number:019}" for number in range(5_000)]
    batch = pa.RecordBatch.from_pydict({"seq": ["", *seqs]})
    bounds = bounds_of([some_times([batch])], 4, 1_000)
    assert bounds is not None
    ranges = ranges_of_rows(bounds, batch).tolist()
    assert ranges == sorted(ranges)
    assert {*ranges} == {0, 1, 2, 3}
    by_time = {(seq[:16], number) for seq, number in zip(seqs, ranges[1:], strict=True)}
    assert len(by_time) == len({time for time, _ in by_time})
    same = pa.RecordBatch.from_pydict({"seq": [seqs[0]] * 600})
    assert bounds_of([some_times([same])], 4, 1 << 30) is None
    assert bounds_of([], 4, 1 << 30) is not None


@pytest.mark.parametrize("size", [1 << 20, 1 << 30, 1 << 40, 1 << 50])
def test_few_times_are_looked_at_of_many_rows(size: int) -> None:
    """Show where ranges begin by a million times, where rows have 64 bytes, however many rows there are."""
    rows = size // 64
    assert min(rows // 256, 1 << 19) <= rows // step_of(size) <= 1 << 20
    same = pa.RecordBatch.from_pydict({"seq": ["1"] * 600})
    assert len(some_times([same], 100)) == 6
