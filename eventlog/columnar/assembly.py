"""The pieces of all events of a batch, put into the order of leaving and taken at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.columnar.batch import Batch
from eventlog.columnar.current import Answers
from eventlog.columnar.runs import Runs, Settled, names
from eventlog.columnar.templates import OPS, FrameConstants, Part, Slot, Templates
from eventlog.columnar.values import RowValues
from eventlog.columnar.vectors import Ints, flags, number, places, spread

AROUND = 6  # pieces of an event outside its body: four constants, the id and the key


class Bases(NamedTuple):
    """The positions at which event-ids and constants begin in the whole pool."""

    names: int
    constants: int


class Atoms(NamedTuple):
    """The parts that rows of runs add: one for a row, and one for each column that a query-back reads."""

    parts: list[Part]
    part: Ints  # of each atom
    old: Ints  # the numbers of what is in its slots
    new: Ints
    sizes: Ints  # how many atoms each row has


class Pool(NamedTuple):
    """The texts that a batch brings, and where those of each kind begin among them."""

    arrays: list[pa.Array]
    old: int
    new: int
    cells: list[int]  # of each group of tables that were read together


class Assembled(NamedTuple):
    """The pieces of all events in order, and how many each event has."""

    pool: list[pa.Array]
    wanted: Ints
    sizes: Ints
    names: pa.Array  # the event-id of each run, without the log's name


def pool(batch: Batch, answers: Answers) -> Pool:
    """Return the keys, the two sides of rows and the cells of current rows."""
    arrays = [batch.keys, batch.old, batch.new]
    old = len(batch.keys)
    at = old + 2 * len(batch.ids)
    cells = []
    for group in answers.groups:
        cells.append(at)
        arrays += group.columns
        at += len(group.owners) * len(group.columns)
    return Pool(arrays, old, old + len(batch.ids), cells)


def assemble(
    batch: Batch,
    known: Templates,
    said: RowValues,
    answers: Answers,
    runs: Runs,
    sets: Settled,
    texts: Pool,
    plain: Sequence[str],
) -> Assembled:
    """Return the pieces of the events of these runs, followed by those that are plain texts."""
    found = atoms(batch, known, said, answers, runs, texts)
    tables = batch.table_of[runs.owners]
    codes, first = number(tables * len(OPS) + runs.ops)
    named = zip(tables[first].tolist(), runs.ops[first].tolist(), strict=True)
    frames = [known.frame(batch.tables[table], op) for table, op in named]
    ids = names(pc.cast(pa.array(batch.ids), pa.string()), sets, runs)
    arrays = [*texts.arrays, ids, pa.array(plain, pa.string())]
    bases = Bases(sum(map(len, texts.arrays)), sum(map(len, arrays)))
    wanted, sizes = pieces(found, runs, [frame for frame in frames if frame], codes, bases)
    lines = np.arange(len(plain)) + bases.names + len(ids)
    return Assembled(
        [*arrays, pa.array(known.constants, pa.string())],
        np.concatenate([wanted, lines]),
        np.concatenate([sizes, np.ones(len(plain), np.int64)]),
        ids,
    )


def atoms(
    batch: Batch, known: Templates, said: RowValues, answers: Answers, runs: Runs, texts: Pool
) -> Atoms:
    """Return what each row of the runs adds."""
    sizes = runs.widths
    source, place = spread(sizes)
    rows = runs.rows[source]
    parts = list(said.parts)
    part, old, new = said.codes[rows], texts.old + rows, texts.new + rows
    asked = np.flatnonzero(batch.kinds[rows] > 4)
    if not len(asked):
        return Atoms(parts, part, old, new, sizes)
    objects = batch.objects[rows[asked]]
    tables, ops = batch.table_of[objects], runs.ops[runs.of_row[source[asked]]]
    columns = place[asked]
    by_field = np.flatnonzero(batch.kinds[rows[asked]] > 6)
    codes = said.codes[rows[asked[by_field]]]
    cases, first = number(codes)  # a code is of one table
    fields = zip(tables[by_field[first]].tolist(), codes[first].tolist(), strict=True)
    positions = [known.position(batch.tables[table], said.parts[code].column) for table, code in fields]
    columns[by_field] = np.array(positions, np.int64)[cases]
    group_of = np.zeros(len(batch.tables), np.int64)
    for at, group in enumerate(answers.groups, 1):
        group_of[group.tables] = at
    of_group = places(group_of[tables], len(answers.groups) + 1)[1:]
    for group, base, mine in zip(answers.groups, texts.cells, of_group, strict=True):
        for at, cells in enumerate(group.columns):
            some = mine[columns[mine] == at]
            row = answers.rows[objects[some]]
            there = flags(cells.is_valid())[row]
            cases, first = number((tables[some] * len(OPS) + ops[some]) * 2 + there)
            part[asked[some]] = len(parts) + cases
            shown = zip(*(side[first].tolist() for side in (tables[some], ops[some], there)), strict=True)
            parts += [known.cell(batch.tables[table], at, op, valid) for table, op, valid in shown]
            new[asked[some]] = base + at * len(group.owners) + row
    return Atoms(parts, part, old, new, sizes)


def pieces(
    atoms: Atoms, runs: Runs, frames: Sequence[FrameConstants], frame: Ints, bases: Bases
) -> tuple[Ints, Ints]:
    """Return the numbers of the pieces of each run's event, in order, and how many each has."""
    body, sizes = bodies(atoms, bases.constants)
    of_atom = np.repeat(runs.of_row, atoms.sizes)
    totals = AROUND + np.bincount(of_atom, sizes, len(runs.first)).astype(np.int64)
    begins = np.cumsum(totals) - totals
    wanted = np.empty(int(totals.sum()), np.int64)
    around = np.array(frames, np.int64).reshape(-1, 4)[frame] + bases.constants
    wanted[begins] = around[:, 0]
    wanted[begins + 1] = bases.names + np.arange(len(begins))
    wanted[begins + 2] = around[:, 1]
    wanted[begins + 3] = runs.owners
    wanted[begins + 4] = around[:, 2]
    wanted[begins + totals - 1] = around[:, 3]
    # the bodies: all pieces before an atom, and the pieces around the bodies so far
    wanted[np.arange(len(body)) + np.repeat(of_atom, sizes) * AROUND + AROUND - 1] = body
    return wanted, totals


def bodies(atoms: Atoms, first_constant: int) -> tuple[Ints, Ints]:
    """Return the numbers of the pieces of each atom, in order, and how many each has."""
    count = np.array([len(part.pieces) for part in atoms.parts], np.int64)
    constants = np.array([at for part in atoms.parts for _, at in part.pieces], np.int64) + first_constant
    sizes = count[atoms.part]
    begins = np.cumsum(sizes) - sizes
    first = (np.cumsum(count) - count)[atoms.part]
    wanted = constants[np.repeat(first - begins, sizes) + np.arange(int(sizes.sum()))]
    for slot, numbers in ((Slot.OLD, atoms.old), (Slot.NEW, atoms.new)):
        place = np.array([part.place(slot) for part in atoms.parts], np.int64)[atoms.part]
        filled = place >= 0
        wanted[(begins + place)[filled]] = numbers[filled]
    return wanted, sizes
