"""The texts of events: their pieces, taken from one pool at once.

Each event is the text of these slots, one after the other; a pool holds all texts, and each has a number.

slot          text                                            number
BEFORE_ID     a constant of the frame, up to the event-id     of a constant
ID            the event-id, without the log's name            of the event
BEFORE_KEY    a constant of the frame, up to the key          of a constant
KEY           the object's key                                of the object
BEFORE_BODY   a constant of the frame, up to the body         of a constant
(the body)    the pieces of its rows and cells, any number    of constants, sides of rows, cells
AFTER_BODY    a constant of the frame                         of a constant
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.fold.by_column.batch import Batch
from eventlog.fold.by_column.content import Content
from eventlog.fold.by_column.fold import RowsOfEvents, Runs
from eventlog.fold.by_column.learn import Origin, Part, Templates
from eventlog.fold.by_column.vectors import (
    Ints,
    PieceNumbers,
    RowNumbers,
    flags,
    number_distinct,
    offsets,
    places,
    spread,
)
from eventlog.fold.event_table import OPERATIONS


class Slot(enum.IntEnum):
    """The slots of an event around its body; the last is counted from the end of the body."""

    BEFORE_ID = 0
    ID = 1
    BEFORE_KEY = 2
    KEY = 3
    BEFORE_BODY = 4
    AFTER_BODY = 5


class Atoms(NamedTuple):
    """The parts that rows of runs add: one for a row, and one for each column that a query-back reads."""

    parts: list[Part]
    part: Ints  # of each atom
    old_values: PieceNumbers  # the text in place of each
    new_values: PieceNumbers
    sizes: Ints  # how many atoms each row has


def write(batch: Batch, templates: Templates, content: Content, runs: Runs, ids: pa.Array) -> pa.Array:
    """Return the texts of these runs' events, which have these event-ids without the log's name."""
    atoms, keys = _atoms(batch, templates, content, runs), content.pool.places_of(runs.owners)
    first_id = sum(map(len, content.pool.arrays))
    first_constant = first_id + len(ids)
    frames = _frames(batch, templates, runs) + first_constant
    pieces, sizes = _pieces(atoms, runs, keys, frames, first_id, first_constant)
    texts = _take_texts([*content.pool.arrays, ids, pa.array(templates.constants, pa.string())], pieces)
    edges = offsets(texts)[np.concatenate([[0], np.cumsum(sizes)])]
    buffers = [None, pa.py_buffer(edges.astype(np.int32)), texts.buffers()[2]]
    return pa.Array.from_buffers(pa.string(), len(sizes), buffers)


def _frames(batch: Batch, templates: Templates, runs: Runs) -> Ints:
    """Return the four constants around the body of each event."""
    tables = batch.table_of[runs.owners]
    codes, first = number_distinct(tables * len(OPERATIONS) + runs.ops)
    named = zip(tables[first].tolist(), runs.ops[first].tolist(), strict=True)
    frames = (templates.frame(batch.tables[table], op) for table, op in named)
    constants = [frame for frame in frames if frame is not None]
    return np.array(constants, np.int64).reshape(-1, 4)[codes]


def _atoms(batch: Batch, templates: Templates, content: Content, runs: Runs) -> Atoms:
    """Return what each row of the runs adds: a row with values one atom, a query-back one for each column."""
    pool = content.pool
    source, place = spread(runs.widths)
    rows: RowNumbers = runs.rows[source]
    parts, part = list(content.parts), content.codes[rows]
    old_values, new_values = (pool.places_of(first + rows) for first in (pool.first_old, pool.first_new))
    atoms = Atoms(parts, part, old_values, new_values, runs.widths)
    asking = np.flatnonzero(batch.kinds[rows] > 4)
    if len(asking):
        objects = batch.objects[rows[asking]]
        ops = runs.ops[runs.run_of_row[source[asking]]]
        columns = _columns_read(batch, templates, content, rows[asking], place[asking])
        _fill_cells(batch, templates, content, atoms, _Cells(asking, objects, ops, columns))
    return atoms


class _Cells(NamedTuple):
    """The cells of current rows that atoms bring."""

    atoms: Ints
    objects: Ints
    ops: Ints  # of the event
    columns: Ints  # positions in table.data

    def take(self, at: Ints) -> _Cells:
        return _Cells(*(column[at] for column in self))


def _columns_read(
    batch: Batch, templates: Templates, content: Content, rows: RowNumbers, places: Ints
) -> Ints:
    """Return the column that each atom of these query-backs brings: by its place, or as its row names it."""
    columns = places.copy()
    by_field = np.flatnonzero(batch.kinds[rows] > 6)
    codes = content.codes[rows[by_field]]
    cases, first = number_distinct(codes)  # a code is of one table
    tables = batch.table_of[batch.objects[rows[by_field[first]]]]
    positions = [
        templates.position(batch.tables[table], content.parts[code].column)
        for table, code in zip(tables.tolist(), codes[first].tolist(), strict=True)
    ]
    columns[by_field] = np.array(positions, np.int64)[cases]
    return columns


def _fill_cells(batch: Batch, templates: Templates, content: Content, atoms: Atoms, cells: _Cells) -> None:
    """Set the part and the new value of atoms that bring cells, by groups of tables and by column.

    A part is learned once for each case: a table, an operation, and whether the cell is null.
    """
    answers = content.answers
    group_of = np.zeros(len(batch.tables), np.int64)
    for at, group in enumerate(answers.groups, 1):
        group_of[batch.table_of[group.numbers]] = at
    tables = batch.table_of[cells.objects]
    of_group = places(group_of[tables], len(answers.groups) + 1)[1:]
    for group, first_cell, in_group in zip(answers.groups, content.pool.first_cells, of_group, strict=True):
        for at, texts in enumerate(group.columns):
            of_column = cells.take(in_group[cells.columns[in_group] == at])
            row = answers.rows[of_column.objects]
            valid, tables = flags(texts.is_valid())[row], batch.table_of[of_column.objects]
            cases, first = number_distinct((tables * len(OPERATIONS) + of_column.ops) * 2 + valid)
            examples = (numbers[first].tolist() for numbers in (tables, of_column.ops, valid))
            atoms.part[of_column.atoms] = len(atoms.parts) + cases
            atoms.parts.extend(
                templates.cell(batch.tables[table], at, op, is_valid)
                for table, op, is_valid in zip(*examples, strict=True)
            )
            numbers = first_cell + at * len(group.numbers) + row
            atoms.new_values[of_column.atoms] = content.pool.places_of(numbers)


def _pieces(
    atoms: Atoms, runs: Runs, keys: PieceNumbers, frames: Ints, first_id: int, first_constant: int
) -> tuple[PieceNumbers, Ints]:
    """Return the numbers of the pieces of each run's event, in order, and how many each has."""
    body, sizes = _bodies(atoms, first_constant)
    of_atom = np.repeat(runs.run_of_row, atoms.sizes)
    totals = len(Slot) + np.bincount(of_atom, sizes, len(runs.starts)).astype(np.int64)
    starts = np.cumsum(totals) - totals
    pieces = np.empty(int(totals.sum()), np.int32)
    pieces[starts + Slot.BEFORE_ID] = frames[:, 0]
    pieces[starts + Slot.ID] = first_id + np.arange(len(starts))
    pieces[starts + Slot.BEFORE_KEY] = frames[:, 1]
    pieces[starts + Slot.KEY] = keys
    pieces[starts + Slot.BEFORE_BODY] = frames[:, 2]
    pieces[starts + totals - 1] = frames[:, 3]
    # a body comes after those of all atoms before, and after the slots of its own event and of those before
    before = np.repeat(of_atom, sizes) * len(Slot) + Slot.AFTER_BODY
    pieces[np.arange(len(body)) + before] = body
    return pieces, totals


def _bodies(atoms: Atoms, first_constant: int) -> tuple[Ints, Ints]:
    """Return the numbers of the pieces of each atom, in order, and how many each has."""
    count = np.array([len(part.pieces) for part in atoms.parts], np.int64)
    constants = np.array([at for part in atoms.parts for _, at in part.pieces], np.int32) + first_constant
    sizes = count[atoms.part]
    starts = np.cumsum(sizes) - sizes
    first = (np.cumsum(count) - count)[atoms.part]
    pieces = constants[np.repeat(first - starts, sizes) + np.arange(int(sizes.sum()))]
    for origin, numbers in ((Origin.OLD_VALUE, atoms.old_values), (Origin.NEW_VALUE, atoms.new_values)):
        place = np.array([part.place(origin) for part in atoms.parts], np.int64)[atoms.part]
        filled = place >= 0
        pieces[(starts + place)[filled]] = numbers[filled]
    return pieces, sizes


def event_ids(record_ids: Ints, event_rows: RowsOfEvents, runs: Runs) -> pa.Array:
    """Return the event-id of each run, without the log's name; the later parts of an event are numbered."""
    of_event = _ids_of_rows(pa.array(record_ids[event_rows.rows]).cast(pa.string()), event_rows)
    if len(of_event) == len(runs.part_numbers):
        return of_event
    of_run = of_event.take(pa.array(runs.event_of_run))
    numbered = pc.binary_join_element_wise(of_run, pa.array(runs.part_numbers).cast(pa.string()), ".")
    return pc.if_else(pa.array(runs.part_numbers > 1), numbered, of_run)


def _ids_of_rows(ids: pa.Array, event_rows: RowsOfEvents) -> pa.Array:
    """Return the id of each event: of one row its number, of several a digest too; of rows by event."""
    several = np.flatnonzero(event_rows.sizes > 1)
    if not len(several):
        return ids
    first_ids = ids.take(pa.array(event_rows.begins))
    joined = pc.binary_join_element_wise(ids, "", ",")
    at, data = offsets(joined), joined.buffers()[2].to_pybytes()
    starts = at[event_rows.begins[several]].tolist()
    ends = (at[(event_rows.begins + event_rows.sizes)[several]] - 1).tolist()
    digests = b"".join([sha256(data[a:b]).digest()[:4] for a, b in zip(starts, ends, strict=True)])
    edges = pa.py_buffer(np.arange(0, 8 * len(several) + 1, 8, dtype=np.int32))
    hexadecimal = pa.Array.from_buffers(
        pa.string(), len(several), [None, edges, pa.py_buffer(digests.hex().encode())]
    )
    begins, sizes = event_rows.begins[several], event_rows.sizes[several]
    first, last = (ids.take(pa.array(at)) for at in (begins, begins + sizes - 1))
    of_several = pc.binary_join_element_wise(first, "-", last, ":", hexadecimal, "")
    if len(several) == len(first_ids):
        return of_several
    return pc.replace_with_mask(first_ids, pa.array(event_rows.sizes > 1), of_several)


def _take_texts(pool: Sequence[pa.Array], numbers: Ints) -> pa.Array:
    """Return the texts of these numbers in a pool of arrays."""
    if sum(map(len, pool)) > 2 * len(numbers):
        pool, numbers = _narrow(pool, numbers)
    return pa.concat_arrays(pool).take(pa.array(numbers))


def _narrow(pool: Sequence[pa.Array], numbers: Ints) -> tuple[list[pa.Array], Ints]:
    """Return the range of each array that has all texts of these numbers, and their numbers among those."""
    ranges, narrowed = [pool[0][:0]], np.empty_like(numbers)
    first = count = 0
    for texts in pool:
        at = np.flatnonzero((numbers >= first) & (numbers < first + len(texts)))
        if len(at):
            begin, end = int(numbers[at].min()), int(numbers[at].max()) + 1
            ranges.append(texts[begin - first : end - first])
            narrowed[at] = numbers[at] - begin + count
            count += end - begin
        first += len(texts)
    return ranges, narrowed
