"""The values of a batch's rows: the fact of each row, and the texts that cannot be copied."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.columnar.batch import Batch
from eventlog.columnar.templates import Fact, Part, Templates
from eventlog.columnar.texts import Cells, Treated, escaped
from eventlog.columnar.vectors import Flags, Ints, flags, number, places
from eventlog.xds.skeleton import Treatment


class RowValues(NamedTuple):
    """The content of each row, as a number of its part."""

    codes: Ints  # of each row: an index of `parts`
    parts: list[Part]
    treated: list[Treated]
    doubtful: Flags  # of each object


def said(batch: Batch, known: Templates, old_base: int, new_base: int) -> RowValues:
    """Return the content of the rows; the texts of their sides are numbered from these bases on."""
    updates = batch.kinds == 2
    values = batch.kinds <= 3
    rows = np.arange(len(batch.ids))
    sides = (
        (Cells(batch.old, rows + old_base, batch.objects), updates),
        (Cells(batch.new, rows + new_base, batch.objects), values),
    )
    treated = [found for cells, spoken in sides for found in _treated(batch, known, cells, spoken)]
    old, new = (flags(pc.is_valid(side)) for side in (batch.old, batch.new))
    same = flags(pc.equal(batch.old, batch.new)) & updates
    same |= _alike(batch, known, old & new & updates & ~same)
    facts = (batch.kinds << 3) | ((old & updates) << 2) | ((new & values) << 1) | same
    codes, first = number(batch.pairs << 7 | facts)
    parts = [
        known.part(batch.named[pair], Fact(fact >> 3, bool(fact & 4), bool(fact & 2), bool(fact & 1)))
        for pair, fact in zip(batch.pairs[first].tolist(), facts[first].tolist(), strict=True)
    ]
    doubtful = np.zeros(len(batch.keys), np.bool_)
    doubtful[batch.objects[np.array([part.doubtful for part in parts])[codes]]] = True
    for found in treated:
        doubtful[found.doubtful] = True
    return RowValues(codes, parts, treated, doubtful)


def _treated(batch: Batch, known: Templates, cells: Cells, spoken: Flags) -> list[Treated]:
    """Return the texts of one side; texts that a row does not contain are not looked at."""
    found = [escaped(cells if spoken.all() else cells.some(np.flatnonzero(spoken)), known.limit)]
    columns = [known.column(*named) for named in batch.named]
    if any(columns):
        for column, at in zip(columns, places(batch.pairs, len(columns)), strict=True):
            if column is not None:
                found.append(column.treat(cells.some(at[spoken[at]])))
    return found


def _alike(batch: Batch, known: Templates, differ: Flags) -> Flags:
    """Return the rows whose sides differ as texts, and mean the same."""
    found = np.zeros(len(differ), np.bool_)
    columns = [known.column(*named) for named in batch.named]
    if not any(columns):
        return found
    for column, rows in zip(columns, places(batch.pairs, len(columns)), strict=True):
        if column is None or column.treatment is Treatment.INT:
            continue
        at = rows[differ[rows]]
        sides = (side.take(pa.array(at)).to_pylist() for side in (batch.old, batch.new))
        found[at] = [column.same(old, new) for old, new in zip(*sides, strict=True)]
    return found
