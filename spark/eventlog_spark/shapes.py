"""The fast way: lives grouped by the shape of their rows, and filled in shape by shape in Arrow.

One batch holds whole objects. Its texts, keys and ids make one pool; each document is a list of
numbers into it, and one `take` writes them all. What is not certain to be right goes the plain way.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.errors import EventlogError
from eventlog.fold import ObjectName
from eventlog.neutral import refuse
from eventlog.tables import Table
from eventlog.xds.documents import document
from eventlog.xds.write import EventWriter
from eventlog_spark import plain
from eventlog_spark.keys import PLAIN_KEY, key_form
from eventlog_spark.kinds import CURRENT, FATES, UNREADABLE
from eventlog_spark.task import Attempt, Task
from eventlog_spark.templates import Compiler, RowShape, Segment, Template, Treatment, treatment
from eventlog_spark.texts import Cells, ColumnTexts, Texts, escape
from eventlog_spark.vectors import Flags, Ints, changes, codes, digest, flags, number, offsets

_LONGEST = 64  # rows of a life that is filled in; longer ones are rarely alike
_MOST_SHAPES = 20_000
_MOST_CELLS = 40  # of a current row
_FACTS = 256  # what a row's shape says beside its table and column


class Pair(NamedTuple):
    """A table and a column as rows name them."""

    table: str
    column: str | None


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


class Shapes:
    """Writes the documents of batches that hold whole objects."""

    def __init__(self, task: Task, attempt: Attempt) -> None:
        self._task = task
        self._attempt = attempt
        self._forget()

    def _forget(self) -> None:
        self._compiler = Compiler(self._task)
        self.writer = EventWriter(self._task.tables, self._task.target_settings)
        self._templates: dict[bytes, Template | None] = {}
        self._seen: set[bytes] = set()
        self._pairs: dict[Pair, int] = {}
        self._named: list[Pair] = []
        self._columns: dict[int, ColumnTexts | None] = {}
        self._key_forms: dict[str, str | None] = {}

    def write(self, batch: pa.RecordBatch) -> None:
        """The documents of these rows, object by object."""
        if (
            len(self._templates) > _MOST_SHAPES
            or len(self._seen) > _MOST_SHAPES * 10
            or len(self._named) > _MOST_SHAPES
        ):
            self._forget()
        batch = self._taking_part(batch)
        if batch.num_rows:
            _Batch(self, batch).write()

    def _taking_part(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that stand in lives, and current rows; the others are counted."""
        kinds = batch.column("kind").to_numpy()
        summary = self._attempt.summary
        summary.rows += int(np.count_nonzero(kinds != CURRENT))
        away = (kinds < CURRENT) | (kinds > 8)
        if not away.any():
            return batch
        for kind, count in zip(*np.unique(kinds[away], return_counts=True), strict=True):
            if kind == UNREADABLE:
                summary.unreadable += int(count)
            else:
                summary.fates[FATES[int(kind)].value] += int(count)
        return batch.filter(pa.array(~away))

    def pair(self, table: str, column: str | None) -> int:
        """The number of a table and a column."""
        pair = Pair(table, column)
        found = self._pairs.get(pair)
        if found is None:
            found = self._pairs[pair] = len(self._named)
            self._named.append(pair)
        return found

    def table(self, name: str) -> Table | None:
        """The table of that name, None for one that is not known or may be any of several."""
        try:
            return self._task.tables.find(name)
        except EventlogError:
            return None

    def column(self, pair: int) -> ColumnTexts | None:
        """The treatment of a column's texts; None for plain text."""
        if pair not in self._columns:
            table = self.table(self._named[pair].table)
            name = self._named[pair].column
            column = None if table is None or name is None else table.column(name)
            self._columns[pair] = self.treated(column)
        return self._columns[pair]

    def treated(self, column: Any) -> ColumnTexts | None:
        if column is None or treatment(column) is Treatment.TEXT:
            return None
        return ColumnTexts(column, self._task.tables, self._task.target_settings.time_syntax)

    def key_form(self, name: str) -> str | None:
        """The pattern of keys that surely name a row; None where no pattern can tell."""
        if name not in self._key_forms:
            table = self.table(name)
            self._key_forms[name] = None if table is None else key_form(table)
        return self._key_forms[name]

    @property
    def limit(self) -> int:
        """A size that no table finds too large."""
        limits = [t.max_value for t in self._task.tables if t.max_value is not None]
        return min([self._task.rules.max_value, *limits])

    def template(
        self, shape: bytes, alone: bool, pairs: Ints, facts: Ints, current: list[bool] | None
    ) -> Template | None:
        """The template of a shape that several lives have; None for one that goes the plain way."""
        found = self._templates.get(shape)
        if found is not None or shape in self._templates:
            return found
        if alone and shape not in self._seen:
            self._seen.add(shape)
            return None
        rows = [
            RowShape(fact >> 4, self._named[pair].column, bool(fact & 1), bool(fact & 2), bool(fact & 4))
            for pair, fact in zip(pairs.tolist(), facts.tolist(), strict=True)
        ]
        try:
            made = self._compiler.compile(self._named[int(pairs[0])].table, rows, current)
        except EventlogError:
            made = None
        self._templates[shape] = made
        return made

    @property
    def constants(self) -> list[str]:
        return self._compiler.constants

    def plain(self, batch: pa.RecordBatch) -> tuple[dict[ObjectName, str], int]:
        """The documents of whole objects, the plain way, and how many these are."""
        texts: dict[ObjectName, list[str]] = {}
        for event in plain.fold(self._task, self._attempt, plain.log_rows([batch])):
            self._attempt.summary.events[f"{event.change.table} {self._task.operation(event.change)}"] += 1
            try:
                text = self.writer.write(event.change, event.event_id)
            except EventlogError as fault:
                self._attempt.refuse(refuse(event.change, fault), event.settles)
                continue
            if text:
                texts.setdefault(event.object, []).append(document([text]) + "\n")
        return {name: "".join(lines) for name, lines in texts.items()}, sum(map(len, texts.values()))

    def put(self, lines: memoryview, documents: int, templates: Iterator[tuple[Template, int]]) -> None:
        """Finished lines, and what the templates count."""
        if documents:
            self._attempt.parts.write_lines(lines, documents)
        for template, times in templates:
            for counted, of in (
                (self._attempt.summary.fates, template.fates),
                (self._attempt.summary.events, template.events),
            ):
                for name, count in of.items():
                    counted[name] += count * times


class _Batch:
    """One batch on its way to documents."""

    def __init__(self, shapes: Shapes, batch: pa.RecordBatch) -> None:
        self._shapes = shapes
        self._batch = batch
        names = batch.column("table_name")
        keys = batch.column("table_key")
        first = changes(keys) | changes(names)
        self._of_row = np.cumsum(first) - 1
        self._objects = int(self._of_row[-1]) + 1
        self._doubtful = np.zeros(self._objects, np.bool_)
        kinds = batch.column("kind").to_numpy()
        is_log = kinds != CURRENT
        self._has_current = not is_log.all()
        rows = batch.filter(pa.array(is_log)) if self._has_current else batch
        self.log = self._split(rows, self._of_row[is_log], keys.take(pa.array(np.flatnonzero(first))))

    def _split(self, rows: pa.RecordBatch, objects: Ints, keys: pa.Array) -> Log:
        kinds = rows.column("kind").to_numpy().astype(np.int64)
        pairs = self._pairs(rows)
        begins = np.ones(len(kinds), np.bool_)
        begins[1:] = (objects[1:] != objects[:-1]) | (kinds[:-1] == 4)
        starts = np.flatnonzero(begins)
        lengths = np.diff(starts, append=len(kinds))
        tables = np.zeros(self._objects, np.int64)
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
        tables, table_names = codes(rows.column("table_name"))
        columns, column_names = codes(rows.column("column_name"))
        local, first = number(tables * len(column_names) + columns)
        known = [
            self._shapes.pair(table_names[tables[at]] or "", column_names[columns[at]])
            for at in first.tolist()
        ]
        found: Ints = np.array(known, np.int64)[local]
        return found

    def write(self) -> None:
        """The documents of all objects, in their order."""
        log = self.log
        if not len(log.ids):
            return
        current = _Current(self)
        ids = pc.cast(pa.array(log.ids), pa.string())
        pool: list[pa.Array] = [log.keys, log.old, log.new, ids, current.cells]
        bases = np.cumsum([0, *map(len, pool)])
        texts = Texts(int(bases[-1]), self._doubtful)
        facts = self._facts(texts, bases)
        self._check_keys()
        current.treat(texts, int(bases[4]))
        self._doubtful[log.owners[log.lengths > _LONGEST]] = True
        groups = self._group(facts, current)
        Filling(self, texts, pool, bases, groups, current.begins).write()

    # -- what the rows of a batch say -------------------------------------------------------------

    def _facts(self, texts: Texts, bases: Ints) -> Ints:
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
        long = flags(pc.greater(pc.binary_length(cells.array), self._shapes.limit)) & said
        texts.doubt(cells.objects[long])
        for pair in np.unique(self.log.pairs).tolist():
            column = self._shapes.column(pair)
            if column is not None:
                at = np.flatnonzero((self.log.pairs == pair) & said)
                if len(at):
                    column.treat(cells.some(at), texts)

    def _compare(self, same: Flags, differ: Flags) -> None:
        """Texts that differ may mean the same, where they are more than text."""
        for pair in np.unique(self.log.pairs[differ]).tolist():
            column = self._shapes.column(pair)
            if column is None or column.treatment is Treatment.INT:
                continue
            at = np.flatnonzero(differ & (self.log.pairs == pair))
            sides = (side.take(pa.array(at)).to_pylist() for side in (self.log.old, self.log.new))
            same[at] = [column.same(old, new) for old, new in zip(*sides, strict=True)]

    def _check_keys(self) -> None:
        """Doubt objects whose key is not surely right, for query-backs by their table's form."""
        log = self.log
        self._doubtful |= ~flags(pc.match_substring_regex(log.keys, PLAIN_KEY))
        asking = np.zeros(self._objects, np.bool_)
        asking[log.objects[log.kinds > 4]] = True
        if not asking.any():
            return
        names = {pair: self._shapes._named[pair].table for pair in np.unique(log.tables[asking]).tolist()}
        for name in set(names.values()):
            pairs = [pair for pair, table in names.items() if table == name]
            at = np.flatnonzero(asking & np.isin(log.tables, pairs))
            form = self._shapes.key_form(name)
            right = np.zeros(len(at), np.bool_)
            if form is not None:
                right = flags(pc.match_substring_regex(log.keys.take(pa.array(at)), form))
            self._doubtful[at[~right]] = True

    def _group(self, facts: Ints, current: _Current) -> Iterator[tuple[Template | None, Ints]]:
        """The lives of each shape; None for those that go the plain way."""
        log = self.log
        rows = log.pairs * _FACTS + facts
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
            yield self._shapes.template(key, len(lives) == 1, log.pairs[span], facts[span], nulls), lives

    def _verify(self, rows: Ints, answers: Ints, shape: Ints, first: Ints) -> None:
        """Doubt lives whose digest is that of another shape."""
        log = self.log
        like = first[shape]
        wrong = (log.lengths != log.lengths[like]) | (answers != answers[like])
        place = np.arange(len(rows)) - np.repeat(log.starts, log.lengths)
        there = np.minimum(np.repeat(log.starts[like], log.lengths) + place, len(rows) - 1)
        wrong |= np.add.reduceat((rows != rows[there]).astype(np.int64), log.starts) > 0
        self._doubtful[log.owners[wrong]] = True


class _Current:
    """The current rows of a batch: one for each object that has one."""

    def __init__(self, batch: _Batch) -> None:
        self._of = batch
        objects = batch._objects
        self.shapes = np.zeros(
            objects, np.int64
        )  # 0: there is none; else one more than the cells' nulls, packed
        self.begins = np.zeros(objects, np.int64)  # the place of the first cell
        self._lengths = np.zeros(objects, np.int64)
        self.cells: pa.Array = pa.array([], pa.string())
        if batch._has_current:
            self._gather(batch)

    def _gather(self, batch: _Batch) -> None:
        at = np.flatnonzero(batch._batch.column("kind").to_numpy() == CURRENT)
        owners = batch._of_row[at]
        lists = batch._batch.column("current").take(pa.array(at))
        self.cells = lists.flatten()
        lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
        begins = np.cumsum(lengths) - lengths
        many = np.bincount(owners, minlength=batch._objects) > 1
        batch._doubtful |= many
        batch._doubtful[owners[lengths > _MOST_CELLS]] = True
        self.begins[owners], self._lengths[owners] = begins, lengths
        self._owners = np.repeat(owners, lengths)
        place = np.arange(len(self.cells)) - np.repeat(begins, lengths)
        self._place = place
        there = flags(pc.is_valid(self.cells)).astype(np.int64) << np.minimum(place, _MOST_CELLS)
        packed = np.zeros(batch._objects, np.int64)
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
        shapes = self._of._shapes
        texts.doubt(self._owners[flags(pc.greater(pc.binary_length(self.cells), shapes.limit))])
        pairs = self._of.log.tables[self._owners]
        for name in {shapes._named[pair].table for pair in np.unique(pairs).tolist()}:
            table = shapes.table(name)
            of_table = [pair for pair in np.unique(pairs).tolist() if shapes._named[pair].table == name]
            for number_, column in enumerate(table.data if table else ()):
                treated = shapes.treated(column)
                if treated is not None:
                    at = np.flatnonzero((self._place == number_) & np.isin(pairs, of_table))
                    treated.treat(cells.some(at), texts)


class Filling:
    """The pieces of all documents of a batch, put into one order and written at once."""

    def __init__(
        self,
        batch: _Batch,
        texts: Texts,
        pool: list[pa.Array],
        bases: Ints,
        groups: Iterator[tuple[Template | None, Ints]],
        current_begins: Ints,
    ) -> None:
        self._batch = batch
        self._texts = texts
        self._pool = pool
        self._bases = bases
        log = batch.log
        groups_ = list(groups)
        for template, lives in groups_:
            if template is None:
                batch._doubtful[log.owners[lives]] = True
        sure = ~batch._doubtful[log.owners]
        self._groups = [
            (template, kept)
            for template, lives in groups_
            if template is not None and len(kept := lives[sure[lives]])
        ]
        self._current_begins = current_begins

    def write(self) -> None:
        """The documents, in the order of their lives."""
        log, shapes = self._batch.log, self._batch._shapes
        constants = shapes.constants
        plain_texts, plain_objects, documents = self._plain()
        digests, digest_starts = self._digests()
        base = int(self._bases[-1])
        more = self._texts.more
        segment_bases = np.array(
            [base + len(more), *self._bases[:5], base + len(more) + len(constants)], np.int64
        )
        plain_base = base + len(more) + len(constants) + len(digests)
        counts = np.zeros(len(log.starts), np.int64)
        for template, lives in self._groups:
            counts[lives] = len(template.at)
        first_lives = np.searchsorted(log.owners, plain_objects)
        counts[first_lives] = 1
        begins = np.cumsum(counts) - counts
        wanted = np.zeros(int(counts.sum()), np.int64)
        wanted[begins[first_lives]] = np.arange(len(plain_objects)) + plain_base
        for (template, lives), starts in zip(self._groups, digest_starts, strict=True):
            self._fill(template, lives, starts, wanted, begins, segment_bases)
        extra = [pa.array(texts, pa.string()) for texts in (more, constants, digests, plain_texts)]
        pool = pa.concat_arrays([*self._pool, *extra])
        documents += sum(len(lives) * template.documents for template, lives in self._groups)
        filled = pool.take(pa.array(self._texts.redirected(wanted, len(pool))))
        lines = memoryview(b"")
        if len(filled):
            at = offsets(filled)
            lines = memoryview(filled.buffers()[2])[int(at[0]) : int(at[-1])]
        shapes.put(lines, documents, ((template, len(lives)) for template, lives in self._groups))

    def _fill(
        self,
        template: Template,
        lives: Ints,
        digest_starts: Ints,
        wanted: Ints,
        begins: Ints,
        segment_bases: Ints,
    ) -> None:
        """The numbers of the pieces of all lives of one shape."""
        if not len(template.at):
            return
        log = self._batch.log
        owners, rows = log.owners[lives], log.starts[lives]
        none = np.zeros(len(lives), np.int64)
        current = self._current_begins[owners]
        moving = np.stack([none, owners, rows, rows, rows, current, np.arange(len(lives))])
        at = segment_bases[template.segments] + template.at
        is_digest = template.segments == Segment.DIGEST
        if is_digest.any():
            at[is_digest] = segment_bases[Segment.DIGEST] + digest_starts[template.at[is_digest]]
        numbers = (moving[template.segments] + at[:, None]).T
        wanted[begins[lives][:, None] + np.arange(len(template.at))] = numbers

    def _plain(self) -> tuple[list[str], Ints, int]:
        """The texts of the objects that go the plain way, which objects these are, and how many documents."""
        batch = self._batch
        doubtful = np.flatnonzero(batch._doubtful)
        if not len(doubtful):
            return [], np.empty(0, np.int64), 0
        found, documents = batch._shapes.plain(batch._batch.filter(pa.array(batch._doubtful[batch._of_row])))
        log, named = batch.log, batch._shapes._named
        names = [
            (named[pair].table, key)
            for pair, key in zip(
                log.tables[doubtful].tolist(), log.keys.take(pa.array(doubtful)).to_pylist(), strict=True
            )
        ]
        with_text = [n for n, name in enumerate(names) if name in found]
        return [found[names[n]] for n in with_text], doubtful[np.array(with_text, np.int64)], documents

    def _digests(self) -> tuple[list[str], list[Ints]]:
        """The digests of events of several rows, and where those of each group begin."""
        joined = pc.binary_join_element_wise(self._pool[3], "", ",")
        at = offsets(joined).astype(np.int64)
        data = memoryview(joined.buffers()[2]) if len(joined) else memoryview(b"")
        made: list[str] = []
        starts = []
        for template, lives in self._groups:
            rows = self._batch.log.starts[lives]
            begins = []
            for settled in template.digests:
                begins.append(len(made))
                made += _digests(data, at, rows, settled)
            starts.append(np.array(begins, np.int64))
        return made, starts


def _digests(data: memoryview, at: Ints, rows: Ints, settled: tuple[int, ...]) -> Iterator[str]:
    """The digest of these rows of each life."""
    if settled[-1] - settled[0] + 1 == len(settled):
        begins, ends = at[rows + settled[0]], at[rows + settled[-1] + 1] - 1
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            yield sha256(data[begin:end]).hexdigest()[:8]
        return
    for row in rows.tolist():
        ids = b"".join(data[at[row + n] : at[row + n + 1]] for n in settled)
        yield sha256(ids[:-1]).hexdigest()[:8]
