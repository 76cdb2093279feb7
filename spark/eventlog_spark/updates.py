"""A long life of nothing but updates (types 2 and 3, perhaps deleted at its end), filled in from its file.

Such a life is one run: one change, cut into parts of so many values. What a row adds to its part depends
on its shape alone, so a part is a head, the bodies of its rows and an end, and nobody looks at a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventlog_spark.batch import FACTS, Batch
from eventlog_spark.filling import lines_of
from eventlog_spark.kinds import CURRENT
from eventlog_spark.lives import LongLife
from eventlog_spark.shapes import Shapes
from eventlog_spark.templates import Body
from eventlog_spark.texts import Texts
from eventlog_spark.vectors import Flags, Ints, number

_UPDATES = frozenset((CURRENT, 2, 3, 4))


class Frame(NamedTuple):
    """What stands around the bodies of a part's rows."""

    head: str
    tail: str


class Said(NamedTuple):
    """What the first walk tells of a life."""

    ids: Ints  # of the rows that have something to say
    silent: int
    deleted: int | None  # the record_id of the delete that ends it


class Rows(NamedTuple):
    """The updates of one batch of the file."""

    batch: Batch
    texts: Texts
    bases: Ints
    pool: list[pa.Array]
    bodies: list[Body]
    kind: Ints  # the body of each row


class LongUpdates:
    """The updates of one long life."""

    def __init__(self, shapes: Shapes, life: LongLife, most: int) -> None:
        self._shapes = shapes
        self._life = life
        self._most = most
        self._pieces = 0  # values removed or added so far

    def said(self) -> Said | None:
        """What the life says; None if it must go the plain way."""
        if not self._life.kinds <= _UPDATES:
            return None
        ids, silent, deleted = [], 0, None
        for batch in self._batches():
            rows = self._rows(batch)
            if rows is None or self._shapes.many:
                return None
            speaks = np.array([body.values > 0 for body in rows.bodies], np.bool_)[rows.kind]
            update = batch.log.kinds != 4
            ids.append(batch.log.ids[speaks & update])
            silent += int(np.count_nonzero(update & ~speaks))
            if not update[-1]:
                deleted = int(batch.log.ids[-1])
        return Said(np.concatenate(ids), silent, deleted)

    def lines(self, frame: Iterator[Frame]) -> Iterator[memoryview]:
        """The documents of the parts, a frame for each."""
        tail = ""
        for batch in self._batches():
            rows = self._rows(batch)
            assert rows is not None
            joints: list[str] = []
            split = self._split(rows)
            for _ in range(int(np.count_nonzero(split.begins))):
                head, behind = next(frame)
                joints.append(tail + head)
                tail = behind
            yield _fill(rows, split, self._shapes.constants, joints)
        yield memoryview(tail.encode())

    def _batches(self) -> Iterator[Batch]:
        for rows in self._life.batches():
            batch = Batch(self._shapes, rows)
            if len(batch.log.ids):
                yield batch

    def _rows(self, batch: Batch) -> Rows | None:
        """The rows of a batch with the bodies of their shapes; None where one is in doubt."""
        log = batch.log
        pool: list[pa.Array] = [log.old, log.new]
        bases = np.array([0, 0, len(log.old), len(log.old) * 2], np.int64)
        texts = Texts(int(bases[-1]), batch.doubtful)
        facts = batch.facts(texts, bases)
        batch.check_keys()
        kind, first = number(log.pairs * FACTS + facts)
        bodies = [self._shapes.body(int(log.pairs[at]), int(facts[at])) for at in first.tolist()]
        if batch.doubtful.any() or any(body is None for body in bodies):
            return None
        return Rows(batch, texts, bases, pool, [body for body in bodies if body is not None], kind)

    def _split(self, rows: Rows) -> Split:
        """The bodies in order, those of a row that two parts share as two."""
        values = np.array([body.values for body in rows.bodies], np.int64)[rows.kind]
        values[rows.batch.log.kinds == 4] = 0
        at = np.flatnonzero(values)
        kind, values = rows.kind[at], values[at]
        starts = self._pieces + np.cumsum(values) - values
        across = (values > 1) & (starts % self._most == self._most - 1)
        times = 1 + across
        place = np.repeat(np.arange(len(at)), times)
        second = np.zeros(len(place), np.bool_)
        second[1:] = place[1:] == place[:-1]
        parts = (starts[place] + second) // self._most
        before = (self._pieces - 1) // self._most
        begins = np.diff(parts, prepend=before) > 0
        self._pieces += int(values.sum())
        half = np.where(across[place], 1 + second, 0)
        return Split(at[place], kind[place] * 3 + half, begins)


class Split(NamedTuple):
    """The bodies of a batch."""

    rows: Ints  # the row of each
    forms: Ints  # three times its kind; and 1 for the first half of it, 2 for the second
    begins: Flags  # whether a part begins with it


def _fill(rows: Rows, split: Split, constants: list[str], joints: list[str]) -> memoryview:
    """The texts of the bodies, with the joints before those that begin a part."""
    forms = [form for body in rows.bodies for form in body.forms]
    sizes = np.array([len(form.at) for form in forms], np.int64)[split.forms] + split.begins
    begins = np.cumsum(sizes) - sizes
    wanted = np.zeros(int(sizes.sum()), np.int64)
    constant_base = int(rows.bases[-1]) + len(rows.texts.more)
    wanted[begins[split.begins]] = np.arange(len(joints)) + constant_base + len(constants)
    bases = np.array([constant_base, 0, rows.bases[1], rows.bases[2]], np.int64)
    for n in np.unique(split.forms).tolist():
        at = np.flatnonzero(split.forms == n)
        form = forms[n]
        moving = np.where(form.segments == 0, 0, split.rows[at][:, None])
        places = (begins + split.begins)[at][:, None] + np.arange(len(form.at))
        wanted[places] = bases[form.segments] + form.at + moving
    extra = [pa.array(some, pa.string()) for some in (rows.texts.more, constants, joints)]
    pool = pa.concat_arrays([*rows.pool, *extra])
    return lines_of(pool.take(pa.array(rows.texts.redirected(wanted, len(pool)))))
