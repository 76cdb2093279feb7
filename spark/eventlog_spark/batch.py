"""One batch of whole objects on its way to documents: its objects, lives and their shapes, as vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog_spark.cells import unpack_all
from eventlog_spark.keys import PLAIN_KEY
from eventlog_spark.kinds import CURRENT
from eventlog_spark.names import object_begins, unpack
from eventlog_spark.shapes import Shapes
from eventlog_spark.templates import Template, Treatment
from eventlog_spark.texts import Cells, Texts, escape
from eventlog_spark.vectors import Flags, Ints, codes, digest, flags, number

_LONGEST = 64  # rows of a life that is filled in; longer ones are rarely alike
_MOST_CELLS = 40  # of a current row
FACTS = 256  # what a row's shape says beside its table and column


class Log(NamedTuple):
    """The log rows of a batch, by column, and the objects and lives that they make."""

    ids: Ints
    kinds: Ints
    pairs: Ints
    old: pa.Array
    new: pa.Array
    objects: Ints  # of each row
    keys: pa.Array  # of each object
    tables: Ints  # of each object: the pair of its first row
    starts: Ints  # of each life
    lengths: Ints
    owners: Ints  # the object of each life


class Ready(NamedTuple):
    """The texts of a batch, and the shapes that gather them."""

    texts: Texts
    pool: list[pa.Array]
    bases: Ints  # where each array of the pool begins
    groups: list[tuple[Template | None, Ints]]  # the lives of each shape
    current_begins: Ints  # of each object


class Batch:
    """One batch on its way to documents."""

    def __init__(self, shapes: Shapes, batch: pa.RecordBatch) -> None:
        self.shapes = shapes
        self.rows = batch
        keys = batch.column("table_key")
        first = object_begins(batch)
        self.of_row = np.cumsum(first) - 1
        self.objects = int(self.of_row[-1]) + 1
        self.doubtful = np.zeros(self.objects, np.bool_)
        spelled = flags(pc.is_valid(batch.column("logged")))
        self.doubtful[self.of_row[spelled]] = True
        kinds = batch.column("kind").to_numpy()
        is_log = kinds != CURRENT
        self.has_current = not is_log.all()
        rows = batch.filter(pa.array(is_log)) if self.has_current else batch
        self.log = self._split(rows, self.of_row[is_log], keys.take(pa.array(np.flatnonzero(first))))

    def _split(self, rows: pa.RecordBatch, objects: Ints, keys: pa.Array) -> Log:
        kinds = rows.column("kind").to_numpy().astype(np.int64)
        pairs = self._pairs(rows)
        begins = np.ones(len(kinds), np.bool_)
        begins[1:] = (objects[1:] != objects[:-1]) | (kinds[:-1] == 4)
        starts = np.flatnonzero(begins)
        lengths = np.diff(starts, append=len(kinds))
        tables = np.zeros(self.objects, np.int64)
        tables[objects] = pairs
        return Log(
            rows.column("record_id").to_numpy(),
            kinds,
            pairs,
            rows.column("old_value"),
            rows.column("new_value"),
            objects,
            keys,
            tables,
            starts,
            lengths,
            objects[starts],
        )

    def _pairs(self, rows: pa.RecordBatch) -> Ints:
        local, names = codes(rows.column("name"))
        found: Ints = np.array([self.shapes.pair(unpack(name)) for name in names], np.int64)[local]
        return found

    def ready(self) -> Ready:
        """Everything that documents are put together from."""
        log = self.log
        current = Current(self)
        ids = pc.cast(pa.array(log.ids), pa.string())
        pool: list[pa.Array] = [log.keys, log.old, log.new, ids, current.cells]
        bases = np.cumsum([0, *map(len, pool)])
        texts = Texts(int(bases[-1]), self.doubtful)
        facts = self.facts(texts, bases)
        self.check_keys()
        current.treat(texts, int(bases[4]))
        self.doubtful[log.owners[log.lengths > _LONGEST]] = True
        return Ready(texts, pool, bases, list(self._group(facts, current)), current.begins)

    # -- what the rows of a batch say -------------------------------------------------------------

    def facts(self, texts: Texts, bases: Ints) -> Ints:
        """What the shape of each row says beside its table and column."""
        log = self.log
        old, new = (flags(pc.is_valid(side)) for side in (log.old, log.new))
        same = flags(pc.equal(log.old, log.new)) & (log.kinds == 2)
        self._texts(texts, Cells(log.old, np.arange(len(old)) + bases[1], log.objects), log.kinds == 2)
        self._texts(texts, Cells(log.new, np.arange(len(new)) + bases[2], log.objects), log.kinds <= 3)
        self._compare(same, old & new & (log.kinds == 2) & ~same)
        facts: Ints = (log.kinds << 4) | old | (new.astype(np.int64) << 1) | (same.astype(np.int64) << 2)
        return facts

    def _texts(self, texts: Texts, cells: Cells, said: Flags) -> None:
        """Treat the texts of one side; what a row does not say is not looked at."""
        spoken = cells if said.all() else None
        escape(spoken or cells.some(np.flatnonzero(said)), texts)
        long = flags(pc.greater(pc.binary_length(cells.array), self.shapes.limit)) & said
        texts.doubt(cells.objects[long])
        for pair in np.flatnonzero(np.bincount(self.log.pairs)).tolist():
            column = self.shapes.column(pair)
            if column is not None:
                at = np.flatnonzero((self.log.pairs == pair) & said)
                if len(at):
                    column.treat(cells.some(at), texts)

    def _compare(self, same: Flags, differ: Flags) -> None:
        """Texts that differ may mean the same, where they are more than text."""
        for pair in np.flatnonzero(np.bincount(self.log.pairs[differ])).tolist():
            column = self.shapes.column(pair)
            if column is None or column.treatment is Treatment.INT:
                continue
            at = np.flatnonzero(differ & (self.log.pairs == pair))
            sides = (side.take(pa.array(at)).to_pylist() for side in (self.log.old, self.log.new))
            same[at] = [column.same(old, new) for old, new in zip(*sides, strict=True)]

    def check_keys(self) -> None:
        """Doubt objects whose key is not surely right: that of its table, for query-backs with its values."""
        log = self.log
        self.doubtful |= ~flags(pc.match_substring_regex(log.keys, PLAIN_KEY))
        asking = np.zeros(self.objects, np.bool_)
        asking[log.objects[log.kinds > 4]] = True
        names = {pair: self.shapes.named[pair].table for pair in np.unique(log.tables).tolist()}
        for name in set(names.values()):
            of_table = np.isin(log.tables, [pair for pair, table in names.items() if table == name])
            self._check(np.flatnonzero(of_table & asking), self.shapes.key_form(name))
            self._check(np.flatnonzero(of_table & ~asking), self.shapes.named_form(name))

    def _check(self, objects: Ints, form: str | None) -> None:
        """Doubt those of these objects whose key has another form; all where no form can tell."""
        right = np.zeros(len(objects), np.bool_)
        if form is not None and len(objects):
            right = flags(pc.match_substring_regex(self.log.keys.take(pa.array(objects)), form))
        self.doubtful[objects[~right]] = True

    def _group(self, facts: Ints, current: Current) -> Iterator[tuple[Template | None, Ints]]:
        """The lives of each shape; None for those that go the plain way."""
        log = self.log
        rows = log.pairs * FACTS + facts
        asks = np.maximum.reduceat(log.kinds, log.starts) > 4
        ended = log.kinds[log.starts + log.lengths - 1] == 4
        answers = np.where(asks & ~ended, current.shapes[log.owners], 0)
        likely = digest(rows, log.starts, log.lengths) ^ (answers * 0x5851F42D4C957F2D) ^ (log.lengths << 40)
        shape, first = number(likely)
        self._verify(rows, answers, shape, first)
        order = np.argsort(shape, kind="stable")
        for lives in np.split(order, np.cumsum(np.bincount(shape))[:-1]):
            life = lives[0]
            row, length = log.starts[life], log.lengths[life]
            if length > _LONGEST:
                yield None, lives
                continue
            span = slice(row, row + length)
            key = rows[span].tobytes() + answers[life].tobytes()
            nulls = current.nulls(int(log.owners[life])) if answers[life] else None
            yield self.shapes.template(key, len(lives) == 1, log.pairs[span], facts[span], nulls), lives

    def _verify(self, rows: Ints, answers: Ints, shape: Ints, first: Ints) -> None:
        """Doubt lives whose digest is that of another shape."""
        log = self.log
        like = first[shape]
        wrong = (log.lengths != log.lengths[like]) | (answers != answers[like])
        place = np.arange(len(rows)) - np.repeat(log.starts, log.lengths)
        there = np.minimum(np.repeat(log.starts[like], log.lengths) + place, len(rows) - 1)
        wrong |= np.add.reduceat((rows != rows[there]).astype(np.int64), log.starts) > 0
        self.doubtful[log.owners[wrong]] = True


class Current:
    """The current rows of a batch: one for each object that has one."""

    def __init__(self, batch: Batch) -> None:
        self._of = batch
        objects = batch.objects
        self.shapes = np.zeros(
            objects, np.int64
        )  # 0: there is none; else one more than the cells' nulls, packed
        self.begins = np.zeros(objects, np.int64)  # the place of the first cell
        self._lengths = np.zeros(objects, np.int64)
        self.cells: pa.Array = pa.array([], pa.string())
        if batch.has_current:
            self._gather(batch)

    def _gather(self, batch: Batch) -> None:
        at = np.flatnonzero(batch.rows.column("kind").to_numpy() == CURRENT)
        owners = batch.of_row[at]
        sizes, texts = (batch.rows.column(name).take(pa.array(at)) for name in ("old_value", "new_value"))
        self.cells, lengths = unpack_all(sizes, texts)
        begins = np.cumsum(lengths) - lengths
        many = np.bincount(owners, minlength=batch.objects) > 1
        batch.doubtful |= many
        batch.doubtful[owners[lengths > _MOST_CELLS]] = True
        self.begins[owners], self._lengths[owners] = begins, lengths
        self._owners = np.repeat(owners, lengths)
        place = np.arange(len(self.cells)) - np.repeat(begins, lengths)
        self._place = place
        there = flags(pc.is_valid(self.cells)).astype(np.int64) << np.minimum(place, _MOST_CELLS)
        packed = np.zeros(batch.objects, np.int64)
        np.add.at(packed, self._owners, there)
        self.shapes[owners] = packed[owners] + 1

    def nulls(self, owner: int) -> list[bool]:
        """Which cells of an object's current row there are."""
        begin = int(self.begins[owner])
        found: list[bool] = flags(pc.is_valid(self.cells[begin : begin + int(self._lengths[owner])])).tolist()
        return found

    def treat(self, texts: Texts, base: int) -> None:
        """The cells as documents hold them."""
        if not len(self.cells):
            return
        cells = Cells(self.cells, np.arange(len(self.cells)) + base, self._owners)
        escape(cells, texts)
        shapes = self._of.shapes
        texts.doubt(self._owners[flags(pc.greater(pc.binary_length(self.cells), shapes.limit))])
        pairs = self._of.log.tables[self._owners]
        for name in {shapes.named[pair].table for pair in np.unique(pairs).tolist()}:
            table = shapes.table(name)
            of_table = [pair for pair in np.unique(pairs).tolist() if shapes.named[pair].table == name]
            for number_, column in enumerate(table.data if table else ()):
                treated = shapes.treated(column)
                if treated is not None:
                    at = np.flatnonzero((self._place == number_) & np.isin(pairs, of_table))
                    treated.treat(cells.some(at), texts)
