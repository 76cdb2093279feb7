"""Rows become events: consecutive rows of one operation, and the rows that each event settles."""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.columnar.batch import Batch
from eventlog.columnar.precedence import Precedence
from eventlog.columnar.templates import OPS
from eventlog.columnar.vectors import Flags, Ints, begins, offsets
from eventlog.core.change import Op

_INSERT, _UPDATE = OPS.index(Op.INSERT), OPS.index(Op.UPDATE)
_HASHED = 50_000  # ids written as text at a time


class Runs(NamedTuple):
    """The rows with content, gathered to events."""

    rows: Ints  # the rows with content, by life and position
    of_row: Ints  # the run of each
    first: Ints  # of each run: its first, as an index of `rows`
    lengths: Ints
    places: Ints  # in whose place it leaves: a row
    ops: Ints
    owners: Ints  # the object of each
    widths: Ints  # of each row: how many columns it contains
    parts: Ints  # of each: 1, or the part of a run that was cut; those of one follow one another
    of_parts: Ints  # of how many

    @property
    def wholes(self) -> Ints:
        """Return of each part the number of its run."""
        found: Ints = np.cumsum(self.parts == 1) - 1
        return found


def gathered(batch: Batch, left: Precedence, speaks: Flags, ops: Ints, widths: Ints) -> Runs:
    """Return the runs of the rows with content; the vectors are of all rows that nothing superseded."""
    rows, ops = left.rows[speaks], ops[speaks]
    starts = begins(batch.lives[rows], ops)
    first = np.flatnonzero(starts)
    lengths = np.diff(first, append=len(rows))
    once = np.ones(len(first), np.int64)
    return Runs(
        rows,
        np.cumsum(starts) - 1,
        first,
        lengths,
        left.first[speaks][first],
        ops[first],
        batch.objects[rows[first]],
        widths[speaks],
        once,
        once,
    )


class RunParts(NamedTuple):
    """The positions at which runs are cut after so many values."""

    of_row: Ints  # the part of its run, from 0, in which each row begins
    severed: Flags  # whether the row has values in the next one too, or none in any


def parts(runs: Runs, values: Ints, most: int) -> RunParts:
    """Return the parts of runs whose rows remove and add so many values each."""
    behind = np.cumsum(values)
    behind -= (behind - values)[runs.first][runs.of_row]
    of_row = (behind - values) // most
    return RunParts(of_row, (values == 0) | ((behind - 1) // most > of_row))


def severed(batch: Batch, runs: Runs, most: int) -> Flags:
    """Return the runs that cannot be cut between rows: other than updates, read back, or cut within a row."""
    kinds, values = batch.kinds[runs.rows], batch.changes[runs.rows]
    found = (runs.ops != _UPDATE)[runs.of_row] | (kinds > 3) | parts(runs, values, most).severed
    return np.bincount(runs.of_row, found, len(runs.first)) > 0


def cut(batch: Batch, runs: Runs, most: int) -> Runs:
    """Return the runs, those of more values than that in parts."""
    if not (runs.lengths * 2 > most).any():
        return runs
    part = parts(runs, batch.changes[runs.rows], most).of_row
    starts = begins(runs.of_row, part)
    first = np.flatnonzero(starts)
    run = runs.of_row[first]
    return runs._replace(
        of_row=np.cumsum(starts) - 1,
        first=first,
        lengths=np.diff(first, append=len(runs.rows)),
        places=runs.places[run],
        ops=runs.ops[run],
        owners=runs.owners[run],
        parts=part[first] + 1,
        of_parts=np.bincount(run, minlength=len(runs.first))[run],
    )


def repeated(runs: Runs, columns: Ints) -> Ints:
    """Return the runs of inserts that name a column twice, whose values are those of one attribute."""
    several = (runs.ops == _INSERT) & (runs.lengths > 1)
    if not several.any():
        return np.empty(0, np.int64)
    at = np.flatnonzero(several[runs.of_row])
    width = int(columns.max()) + 1
    named = np.sort(runs.of_row[at] * width + columns[runs.rows[at]])
    twice: Ints = named[1:][named[1:] == named[:-1]] // width
    return twice


class Settled(NamedTuple):
    """The rows that each whole run settles, those that are superseded included, ascending by record_id."""

    rows: Ints
    begins: Ints  # where those of each run begin
    sizes: Ints


def settled(batch: Batch, runs: Runs, left: Precedence) -> Settled:
    """Return the rows of each run, and those that they superseded."""
    run_of = np.full(len(batch.ids), -1)
    whole = runs.wholes
    run_of[runs.rows] = whole[runs.of_row]
    run_of[left.swallowed] = run_of[left.by]
    rows = np.flatnonzero(run_of >= 0)
    run = run_of[rows]
    ids = batch.ids[rows]
    if (run[1:] < run[:-1]).any() or (ids[1:] < ids[:-1])[run[1:] == run[:-1]].any():
        order = np.lexsort((ids, run))
        rows, run = rows[order], run[order]
    sizes = np.bincount(run, minlength=int(whole[-1]) + 1 if len(whole) else 0)
    return Settled(rows, np.cumsum(sizes) - sizes, sizes)


def name(ids: Ints) -> str:
    """Return the event-id of one event that settles these rows, however many, without the log's name."""
    if len(ids) == 1:
        return str(ids[0])
    digest = sha256()
    for start in range(0, len(ids), _HASHED):
        text = ",".join(map(str, ids[start : start + _HASHED].tolist()))
        digest.update(f"{',' if start else ''}{text}".encode())
    return f"{ids[0]}-{ids[-1]}:{digest.hexdigest()[:8]}"


def names(ids: pa.Array, found: Settled, runs: Runs) -> pa.Array:
    """Return the event-id of each event, without the log's name; of the later parts of a run with their
    number.
    """
    whole = _names(ids, found)
    if len(whole) == len(runs.parts):
        return whole
    own = whole.take(pa.array(runs.wholes))
    later = pc.binary_join_element_wise(own, pa.array(runs.parts).cast(pa.string()), ".")
    return pc.if_else(pa.array(runs.parts > 1), later, own)


def _names(ids: pa.Array, found: Settled) -> pa.Array:
    """Return the event-id of each whole run: of one row its number, of several a digest too."""
    firsts = found.rows[found.begins]
    lasts = found.rows[found.begins + found.sizes - 1]
    own = ids.take(pa.array(firsts))
    many = np.flatnonzero(found.sizes > 1)
    if not len(many):
        return own
    joined = pc.binary_join_element_wise(ids.take(pa.array(found.rows)), "", ",")
    at = offsets(joined)
    data = joined.buffers()[2].to_pybytes()
    begin, end = at[found.begins[many]].tolist(), (at[(found.begins + found.sizes)[many]] - 1).tolist()
    digests = b"".join([sha256(data[a:b]).digest()[:4] for a, b in zip(begin, end, strict=True)])
    ends = pa.py_buffer(np.arange(0, 8 * len(many) + 1, 8, dtype=np.int32))
    hexadecimal = pa.Array.from_buffers(
        pa.string(), len(many), [None, ends, pa.py_buffer(digests.hex().encode())]
    )
    firsts, lasts = (ids.take(pa.array(some[many])) for some in (firsts, lasts))
    whole = pc.binary_join_element_wise(firsts, "-", lasts, ":", hexadecimal, "")
    if len(many) == len(own):
        return whole
    return pc.replace_with_mask(own, pa.array(found.sizes > 1), whole)
