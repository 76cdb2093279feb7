"""A long life of nothing but updates (types 2 and 3, perhaps deleted at its end), filled in from its file.

Such a life is one run: one change, cut into parts of so many values. So a part is what stands in front, what
each of its rows adds and what stands behind, and nobody looks at a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.columnar import filling, objects, values
from eventlog.columnar.batch import Batch, gathered
from eventlog.columnar.filling import Atoms
from eventlog.columnar.known import OPS, Fact, Known, Part, Slot
from eventlog.columnar.texts import taken
from eventlog.columnar.values import Said
from eventlog.columnar.vectors import Flags, Ints, content, flags
from eventlog.core.change import Op
from eventlog.xds.documents import HEAD, TAIL
from eventlog_spark.fold.carried import log_rows
from eventlog_spark.fold.cutting import LongLife
from eventlog_spark.input.kinds import CURRENT

_UPDATES = frozenset((CURRENT, 2, 3, 4))
DOCUMENT = HEAD, f"{TAIL}\n"  # what stands around the one event of a document
_JOINT = Part(((Slot.NEW, 0),))  # what stands between two parts


class Told(NamedTuple):
    """What the first walk tells of a life."""

    ids: Ints  # of the rows that have something to say
    silent: int
    deleted: int | None  # the record_id of the delete that ends it


class Frame(NamedTuple):
    """What stands around an event-id, and around the body behind it."""

    before_id: str
    before_body: str
    after_body: str


class _Rows(NamedTuple):
    """The rows of one batch of the file."""

    batch: Batch
    said: Said
    speaks: Flags


class LongUpdates:
    """The updates of one long life."""

    def __init__(self, known: Known, life: LongLife, most: int) -> None:
        self._known = known
        self._life = life
        self._most = most
        self._values = 0  # removed or added so far
        self.name: tuple[str, str] | None = None  # of the object, as all rows have it

    def told(self) -> Told | None:
        """What the life says; None if it must go row by row."""
        if not self._life.kinds <= _UPDATES:
            return None
        ids, silent, deleted = [], 0, None
        for rows in self._rows():
            if rows is None or self._known.much:
                return None
            update = rows.batch.kinds != 4
            ids.append(rows.batch.ids[rows.speaks])
            silent += int(np.count_nonzero(update & ~rows.speaks))
            if not update[-1]:
                deleted = int(rows.batch.ids[-1])
        return Told(np.concatenate(ids), silent, deleted)

    @property
    def table(self) -> str:
        """The name of the class."""
        assert self.name is not None
        of = self._known.spelled(self.name[0]).object
        assert of is not None
        return of.reader.name

    def frame(self, op: Op) -> Frame:
        """What stands around the documents of this operation."""
        assert self.name is not None
        found = self._known.frame(self.name[0], OPS.index(op))
        assert found is not None
        before_id, before_key, before_body, after_body = (self._known.constants[at] for at in found)
        return Frame(before_id, before_key + self.name[1] + before_body, after_body)

    def lines(self, names: Iterator[str]) -> Iterator[memoryview]:
        """The documents of the parts, each under the next of these names."""
        frame, behind = self.frame(Op.UPDATE), ""
        for rows in self._rows():
            assert rows is not None
            split = self._split(rows)
            joints = []
            for _ in range(int(np.count_nonzero(split.begins))):
                joints.append(f"{behind}{frame.before_id}{next(names)}{frame.before_body}")
                behind = frame.after_body
            yield self._filled(rows, split, joints)
        yield memoryview(behind.encode())

    def _rows(self) -> Iterator[_Rows | None]:
        """The rows of the file; None where one is in doubt, or names the object in another way."""
        for found in self._life.batches():
            rows = log_rows(found.filter(pc.not_equal(found.column("kind"), CURRENT)))
            if not len(rows):
                continue
            batch = gathered(rows)
            name = batch.tables[batch.table_of[0]], batch.keys[0].as_py()
            self.name = self.name or name
            said = values.said(batch, self._known, 0, len(rows))
            doubt = said.doubtful | objects.doubtful(batch, self._known)
            if len(batch.keys) > 1 or name != self.name or doubt.any():
                yield None
            else:
                silent = np.array([part.silence != "" for part in said.parts])[said.codes]
                yield _Rows(batch, said, ~silent & (batch.kinds != 4))

    def _split(self, rows: _Rows) -> _Split:
        """What the rows add in order, the values of a row that two parts share apart."""
        batch = rows.batch
        at = np.flatnonzero(rows.speaks)
        removed = (batch.kinds == 3) | flags(pc.is_valid(batch.old))
        count = (removed.astype(np.int64) + flags(pc.is_valid(batch.new)))[at]
        starts = self._values + np.cumsum(count) - count
        across = (count > 1) & (starts % self._most == self._most - 1)
        place = np.repeat(np.arange(len(at)), 1 + across)
        second = np.zeros(len(place), np.bool_)
        second[1:] = place[1:] == place[:-1]
        parts = (starts[place] + second) // self._most
        begins = np.diff(parts, prepend=(self._values - 1) // self._most) > 0
        self._values += int(count.sum())
        return _Split(at[place], across[place] & ~second, second, begins)

    def _filled(self, rows: _Rows, split: _Split, joints: list[str]) -> memoryview:
        """The texts of what the rows add, the joints before what begins a part."""
        batch, count = rows.batch, len(rows.batch.ids)
        parts, codes = [*rows.said.parts], rows.said.codes[split.rows]
        for half, which in ((split.first, _removing), (split.second, _adding)):
            for at in np.flatnonzero(half).tolist():
                row = int(split.rows[at])
                named = batch.named[int(batch.pairs[row])]
                codes[at] = len(parts)
                parts.append(self._known.part(named, which(int(batch.kinds[row]), batch.old[row].is_valid)))
        joint = np.flatnonzero(split.begins)
        atoms = Atoms(
            [*parts, _JOINT],
            np.insert(codes, joint, len(parts)),
            np.insert(split.rows, joint, 0),
            np.insert(split.rows + count, joint, np.arange(len(joint)) + 2 * count),
            np.empty(0, np.int64),
        )
        pool = [batch.old, batch.new, pa.array(joints, pa.string())]
        first_constant = sum(map(len, pool))
        wanted, _ = filling.bodies(atoms, first_constant)
        pool.append(pa.array(self._known.constants, pa.string()))
        return content(taken(pool, wanted, rows.said.treated))


class _Split(NamedTuple):
    """What the rows of a batch add, the values of some rows apart."""

    rows: Ints
    first: Flags  # whether it is only what goes of the row, and what comes is of the next part
    second: Flags  # whether it is only what comes
    begins: Flags  # whether a part begins with it


def _removing(kind: int, old: bool) -> Fact:
    """What of a row says what goes."""
    return Fact(kind, old and kind == 2, False, False)


def _adding(kind: int, old: bool) -> Fact:
    """What of a row says what comes."""
    return Fact(2, False, True, False)
