"""The texts of events: their pieces, put into the order of leaving and taken from one pool at once.

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

from eventlog.columnar.batch import Batch
from eventlog.columnar.content import Content
from eventlog.columnar.fold import Folded, Runs, SettledRows
from eventlog.columnar.learn import OPS, Origin, Part, Templates
from eventlog.columnar.vectors import Ints, flags, number_distinct, offsets, places, spread


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
    old_values: Ints  # the number of the text in place of each
    new_values: Ints
    sizes: Ints  # how many atoms each row has


class Written(NamedTuple):
    """The pieces of all events, as numbers of texts."""

    pool: list[pa.Array]
    pieces: Ints
    sizes: Ints  # how many pieces each event has
    ids: pa.Array  # the event-id of each run, without the log's name


def write(
    batch: Batch, templates: Templates, content: Content, folded: Folded, plain_texts: Sequence[str]
) -> Written:
    """Return the pieces of the folded events, followed by the events that are plain texts."""
    runs = folded.runs
    atoms = _atoms(batch, templates, content, runs)
    ids = _event_ids(pc.cast(pa.array(batch.ids), pa.string()), folded.settled, runs)
    arrays = [*content.pool.arrays, ids, pa.array(plain_texts, pa.string())]
    first_id = sum(map(len, content.pool.arrays))
    first_constant = sum(map(len, arrays))
    frames = _frames(batch, templates, runs) + first_constant
    pieces, sizes = _pieces(atoms, runs, frames, first_id, first_constant)
    plain_numbers = np.arange(len(plain_texts)) + first_id + len(ids)
    return Written(
        [*arrays, pa.array(templates.constants, pa.string())],
        np.concatenate([pieces, plain_numbers]),
        np.concatenate([sizes, np.ones(len(plain_texts), np.int64)]),
        ids,
    )


def _frames(batch: Batch, templates: Templates, runs: Runs) -> Ints:
    """Return the four constants around the body of each event."""
    tables = batch.table_of[runs.owners]
    codes, first = number_distinct(tables * len(OPS) + runs.ops)
    named = zip(tables[first].tolist(), runs.ops[first].tolist(), strict=True)
    frames = (templates.frame(batch.tables[table], op) for table, op in named)
    constants = [frame for frame in frames if frame is not None]
    return np.array(constants, np.int64).reshape(-1, 4)[codes]


def _atoms(batch: Batch, templates: Templates, content: Content, runs: Runs) -> Atoms:
    """Return what each row of the runs adds."""
    answers, pool = content.answers, content.pool
    sizes = runs.widths
    source, place = spread(sizes)
    rows = runs.rows[source]
    parts = list(content.parts)
    part = content.codes[rows]
    old_values, new_values = pool.first_old + rows, pool.first_new + rows
    asking = np.flatnonzero(batch.kinds[rows] > 4)
    if not len(asking):
        return Atoms(parts, part, old_values, new_values, sizes)
    objects = batch.objects[rows[asking]]
    tables, ops = batch.table_of[objects], runs.ops[runs.of_row[source[asking]]]
    columns = place[asking]
    by_field = np.flatnonzero(batch.kinds[rows[asking]] > 6)
    codes = content.codes[rows[asking[by_field]]]
    cases, first = number_distinct(codes)  # a code is of one table
    fields = zip(tables[by_field[first]].tolist(), codes[first].tolist(), strict=True)
    positions = [
        templates.position(batch.tables[table], content.parts[code].column) for table, code in fields
    ]
    columns[by_field] = np.array(positions, np.int64)[cases]
    group_of = np.zeros(len(batch.tables), np.int64)
    for at, group in enumerate(answers.groups, 1):
        group_of[group.tables] = at
    of_group = places(group_of[tables], len(answers.groups) + 1)[1:]
    for group, first_cell, in_group in zip(answers.groups, pool.first_cells, of_group, strict=True):
        for at, cells in enumerate(group.columns):
            atoms = in_group[columns[in_group] == at]
            row = answers.rows[objects[atoms]]
            valid = flags(cells.is_valid())[row]
            cases, first = number_distinct((tables[atoms] * len(OPS) + ops[atoms]) * 2 + valid)
            part[asking[atoms]] = len(parts) + cases
            examples = zip(
                *(numbers[first].tolist() for numbers in (tables[atoms], ops[atoms], valid)), strict=True
            )
            parts += [
                templates.cell(batch.tables[table], at, op, is_valid) for table, op, is_valid in examples
            ]
            new_values[asking[atoms]] = first_cell + at * len(group.owners) + row
    return Atoms(parts, part, old_values, new_values, sizes)


def _pieces(atoms: Atoms, runs: Runs, frames: Ints, first_id: int, first_constant: int) -> tuple[Ints, Ints]:
    """Return the numbers of the pieces of each run's event, in order, and how many each has."""
    body, sizes = _bodies(atoms, first_constant)
    of_atom = np.repeat(runs.of_row, atoms.sizes)
    totals = len(Slot) + np.bincount(of_atom, sizes, len(runs.first)).astype(np.int64)
    starts = np.cumsum(totals) - totals
    pieces = np.empty(int(totals.sum()), np.int64)
    pieces[starts + Slot.BEFORE_ID] = frames[:, 0]
    pieces[starts + Slot.ID] = first_id + np.arange(len(starts))
    pieces[starts + Slot.BEFORE_KEY] = frames[:, 1]
    pieces[starts + Slot.KEY] = runs.owners
    pieces[starts + Slot.BEFORE_BODY] = frames[:, 2]
    pieces[starts + totals - 1] = frames[:, 3]
    # a body comes after those of all atoms before, and after the slots of its own event and of those before
    before = np.repeat(of_atom, sizes) * len(Slot) + Slot.AFTER_BODY
    pieces[np.arange(len(body)) + before] = body
    return pieces, totals


def _bodies(atoms: Atoms, first_constant: int) -> tuple[Ints, Ints]:
    """Return the numbers of the pieces of each atom, in order, and how many each has."""
    count = np.array([len(part.pieces) for part in atoms.parts], np.int64)
    constants = np.array([at for part in atoms.parts for _, at in part.pieces], np.int64) + first_constant
    sizes = count[atoms.part]
    starts = np.cumsum(sizes) - sizes
    first = (np.cumsum(count) - count)[atoms.part]
    pieces = constants[np.repeat(first - starts, sizes) + np.arange(int(sizes.sum()))]
    for origin, numbers in ((Origin.OLD_VALUE, atoms.old_values), (Origin.NEW_VALUE, atoms.new_values)):
        place = np.array([part.place(origin) for part in atoms.parts], np.int64)[atoms.part]
        filled = place >= 0
        pieces[(starts + place)[filled]] = numbers[filled]
    return pieces, sizes


def _event_ids(ids: pa.Array, settled: SettledRows, runs: Runs) -> pa.Array:
    """Return the event-id of each run, without the log's name; the later parts of an event are numbered."""
    of_event = _ids_of_rows(ids, settled)
    if len(of_event) == len(runs.parts):
        return of_event
    of_run = of_event.take(pa.array(runs.events))
    numbered = pc.binary_join_element_wise(of_run, pa.array(runs.parts).cast(pa.string()), ".")
    return pc.if_else(pa.array(runs.parts > 1), numbered, of_run)


def _ids_of_rows(ids: pa.Array, settled: SettledRows) -> pa.Array:
    """Return the id of each event: of one row its number, of several a digest too."""
    firsts = settled.rows[settled.begins]
    lasts = settled.rows[settled.begins + settled.sizes - 1]
    first_ids = ids.take(pa.array(firsts))
    several = np.flatnonzero(settled.sizes > 1)
    if not len(several):
        return first_ids
    joined = pc.binary_join_element_wise(ids.take(pa.array(settled.rows)), "", ",")
    at = offsets(joined)
    data = joined.buffers()[2].to_pybytes()
    starts = at[settled.begins[several]].tolist()
    ends = (at[(settled.begins + settled.sizes)[several]] - 1).tolist()
    digests = b"".join([sha256(data[a:b]).digest()[:4] for a, b in zip(starts, ends, strict=True)])
    edges = pa.py_buffer(np.arange(0, 8 * len(several) + 1, 8, dtype=np.int32))
    hexadecimal = pa.Array.from_buffers(
        pa.string(), len(several), [None, edges, pa.py_buffer(digests.hex().encode())]
    )
    first, last = (ids.take(pa.array(rows[several])) for rows in (firsts, lasts))
    of_several = pc.binary_join_element_wise(first, "-", last, ":", hexadecimal, "")
    if len(several) == len(first_ids):
        return of_several
    return pc.replace_with_mask(first_ids, pa.array(settled.sizes > 1), of_several)
