"""The content of a batch: what each row adds to its event, the texts it brings, and the objects in doubt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.fold.by_column.batch import Batch
from eventlog.fold.by_column.current import Answers, replace_cells
from eventlog.fold.by_column.key_patterns import key_values
from eventlog.fold.by_column.learn import Fact, Part, Templates, doubtful_names
from eventlog.fold.by_column.texts import NO_REPLACEMENTS, CellTexts, Replacements, escape
from eventlog.fold.by_column.vectors import Flags, Ints, flags, match_keys, number_distinct, places
from eventlog.xds.skeleton import Treatment

_MAX_BYTES = 256 << 20  # of texts that are put together at once; markup makes them six times as long at most


class Pool(NamedTuple):
    """The texts that a batch brings, and where those of each kind begin among them."""

    arrays: list[pa.Array]
    first_old: int
    first_new: int
    first_cells: list[int]  # of each group of tables that were read together
    number_of: Ints | None = None  # of each text: that of the text in its place; None if all are their own

    def places_of(self, numbers: Ints) -> Ints:
        """Return the numbers of the texts that events hold in place of these."""
        return numbers if self.number_of is None else self.number_of[numbers]

    def with_replacements(self, replacements: Sequence[Replacements]) -> Pool:
        """Return the pool with the texts in place of others at its end."""
        replacements = [texts for texts in replacements if len(texts.numbers)]
        if not replacements:
            return self
        count = sum(map(len, self.arrays))
        replaced, number_of = np.concatenate([texts.numbers for texts in replacements]), np.arange(count)
        number_of[replaced] = count + np.arange(len(replaced))
        arrays = [*self.arrays, *(texts.texts for texts in replacements)]
        return self._replace(arrays=arrays, number_of=number_of)


class RowContent(NamedTuple):
    """The content of the rows of a batch by themselves."""

    codes: Ints  # of each row: an index of `parts`
    parts: list[Part]
    replacements: list[Replacements]
    doubtful: Flags  # of each object


class Content(NamedTuple):
    """The content of a batch, current rows included."""

    codes: Ints  # of each row: an index of `parts`
    parts: list[Part]
    answers: Answers
    pool: Pool
    doubtful: Flags  # of each object

    @property
    def columns(self) -> Ints:
        """Return the number of each row's column; a column has one number, however rows spell it."""
        numbers: dict[str, int] = {}
        by_part = [numbers.setdefault(part.column, len(numbers)) for part in self.parts]
        return np.array(by_part, np.int32)[self.codes]

    @property
    def unread(self) -> Flags:
        """Return whether each row is of a column that a query-back of its row does not read."""
        return np.array([part.unread for part in self.parts])[self.codes]


def read_rows(batch: Batch, templates: Templates) -> RowContent:
    """Return the content of the rows, as far as it does not depend on current rows."""
    doubtful = doubtful_names(batch, templates)
    updates, has_values = batch.kinds == 2, batch.kinds <= 3
    rows, first_old = np.arange(len(batch.ids)), len(batch.keys)
    old_cells = CellTexts(batch.old_values, rows + first_old, batch.objects)
    new_cells = CellTexts(batch.new_values, rows + first_old + len(rows), batch.objects)
    replacements = [
        *_replace(batch, templates, old_cells, updates),
        *_replace(batch, templates, new_cells, has_values),
        *_replace_keys(batch, templates),
    ]
    codes, parts = _parts(batch, templates, updates, has_values)
    doubtful[batch.objects[np.array([part.doubtful for part in parts])[codes]]] = True
    for texts in replacements:
        doubtful[texts.doubtful] = True
    return RowContent(codes, parts, replacements, doubtful)


def with_current_rows(batch: Batch, templates: Templates, content: RowContent, answers: Answers) -> Content:
    """Return the content of the rows together with that of the current rows."""
    pool = _pool(batch, answers)
    cells = replace_cells(batch, templates, answers, pool.first_cells)
    doubtful = content.doubtful | answers.doubtful
    for texts in cells:
        doubtful[texts.doubtful] = True
    if sum(texts.nbytes for texts in pool.arrays) > _MAX_BYTES:
        doubtful[:] = True  # in one piece it may be more than Arrow's texts can hold
    pool = pool.with_replacements([*content.replacements, *cells])
    return Content(content.codes, content.parts, answers, pool, doubtful)


def _pool(batch: Batch, answers: Answers) -> Pool:
    arrays = [batch.keys, batch.old_values, batch.new_values]
    first_old = len(batch.keys)
    count = first_old + 2 * len(batch.ids)
    first_cells = []
    for group in answers.groups:
        first_cells.append(count)
        arrays += group.columns
        count += len(group.numbers) * len(group.columns)
    return Pool(arrays, first_old, first_old + len(batch.ids), first_cells)


def _parts(batch: Batch, templates: Templates, updates: Flags, has_values: Flags) -> tuple[Ints, list[Part]]:
    """Return the parts of rows, and which of them each row adds."""
    has_old, has_new = (flags(pc.is_valid(side)) for side in (batch.old_values, batch.new_values))
    is_same = flags(pc.equal(batch.old_values, batch.new_values)) & updates
    is_same |= _equal_values(batch, templates, has_old & has_new & updates & ~is_same)
    has_both = (has_old & updates) * np.int8(4) | (has_new & has_values) * np.int8(2)
    facts = batch.kinds << 3 | has_both | is_same
    codes, first = number_distinct(batch.pairs.astype(np.int64) << 7 | facts)
    parts = [
        templates.part(batch.named[pair], Fact(fact >> 3, bool(fact & 4), bool(fact & 2), bool(fact & 1)))
        for pair, fact in zip(batch.pairs[first].tolist(), facts[first].tolist(), strict=True)
    ]
    return codes, parts


def _replace(batch: Batch, templates: Templates, cells: CellTexts, in_event: Flags) -> list[Replacements]:
    """Return the texts of one side that events hold otherwise; those outside events are not looked at."""
    texts = cells if in_event.all() else cells.take(np.flatnonzero(in_event))
    replacements = [escape(texts, templates.limit, templates.form)]
    columns = [templates.column(*named) for named in batch.named]
    if any(columns):
        for column, at in zip(columns, places(batch.pairs, len(columns)), strict=True):
            if column is not None:
                replacements.append(column.replace(cells.take(at[in_event[at]])))
    return replacements


def _replace_keys(batch: Batch, templates: Templates) -> Iterator[Replacements]:
    """Yield the keys of each table as events hold them, if that is not as they are."""
    for name, at in zip(batch.tables, places(batch.table_of, len(batch.tables)), strict=True):
        named = templates.named(name)
        constants = templates.key_constants(named)
        if constants is None:
            continue
        keys, kinds = batch.keys.take(pa.array(at)), np.zeros(len(at), np.int64)
        certain = match_keys(keys, kinds, [named.lookup_pattern if constants else None])
        if certain.any():
            values = key_values(named.key, keys.filter(pa.array(certain)))
            pieces = [piece for pair in zip(constants, values, strict=False) for piece in pair]
            texts = pc.binary_join_element_wise(*pieces, constants[-1], "")
            yield Replacements(at[certain], texts, at[~certain])
        else:
            yield NO_REPLACEMENTS._replace(doubtful=at)


def _equal_values(batch: Batch, templates: Templates, differ: Flags) -> Flags:
    """Return the rows whose sides differ as texts, and mean the same."""
    are_equal = np.zeros(len(differ), np.bool_)
    columns = [templates.column(*named) for named in batch.named]
    if not any(columns):
        return are_equal
    for column, rows in zip(columns, places(batch.pairs, len(columns)), strict=True):
        if column is None or column.treatment is Treatment.INT:
            continue
        at = rows[differ[rows]]
        sides = (side.take(pa.array(at)).to_pylist() for side in (batch.old_values, batch.new_values))
        are_equal[at] = list(map(column.are_equal, *sides))
    return are_equal
