"""Objects whose name is surely right as it stands; the others are in doubt, and so is whom they may be."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.columnar.batch import Batch
from eventlog.columnar.known import Known, Spelled
from eventlog.columnar.vectors import Flags, codes, flags
from eventlog.core.errors import EventlogError
from eventlog.core.identity import identify, object_of
from eventlog.core.tables import Table


def canonical(known: Known, tables: pa.Array, keys: pa.Array) -> pa.Array:
    """One text for each object, whatever rows call it: the name of its table, a zero character, its key."""
    own, names = codes(tables)
    spelled = [known.spelled(str(name)) for name in names]
    named = zip(names, (one.table for one in spelled), strict=True)
    catalogued = [str(name) if table is None else known.tables.name_of(table) for name, table in named]
    told = pc.binary_join_element_wise(pa.array(catalogued, pa.string()).take(pa.array(own)), keys, "\0")
    odd = np.ones(len(own), np.bool_)
    for number, one in enumerate(spelled):
        if one.table is not None and one.object is not None and one.key == tuple(one.table.key):
            odd &= ~((own == number) & flags(pc.match_substring_regex(keys, one.sure)))
    some = np.flatnonzero(odd)
    if not len(some):
        return told
    pairs = zip(own[some].tolist(), keys.take(pa.array(some)).to_pylist(), strict=True)
    read = ["\0".join(object_of(known.tables, str(names[at]), str(key))) for at, key in pairs]
    return pc.replace_with_mask(told, pa.array(odd), pa.array(read, pa.string()))


def doubtful(batch: Batch, known: Known) -> Flags:
    """The objects in doubt: rows may spell one object in several ways, and only one of them is sure."""
    doubt = np.ones(len(batch.keys), np.bool_)
    sure: dict[Table, tuple[int, Spelled]] = {}
    for number, name in enumerate(batch.tables):
        spelled = known.spelled(name)
        if spelled.object is None or spelled.table is None or spelled.table in sure:
            continue
        sure[spelled.table] = number, spelled
        of_table = np.flatnonzero(batch.table_of == number)
        keys = batch.keys.take(pa.array(of_table))
        doubt[of_table[flags(pc.match_substring_regex(keys, spelled.sure))]] = False
    doubt |= _named_otherwise(batch, known, np.flatnonzero(doubt).tolist(), sure)
    return doubt


def _named_otherwise(
    batch: Batch, known: Known, objects: Iterable[int], sure: dict[Table, tuple[int, Spelled]]
) -> Flags:
    """The objects that those in doubt may be under another name."""
    wanted: dict[int, set[str]] = {}
    for at in objects:
        try:
            found = identify(known.tables, batch.tables[batch.table_of[at]], batch.keys[at].as_py())
        except EventlogError:
            continue
        if found.table in sure:
            number, spelled = sure[found.table]
            texts = (value for _, value in found.pairs)
            pairs = zip(spelled.key, texts, strict=True)
            wanted.setdefault(number, set()).add("+".join(f"{name}={text}" for name, text in pairs))
    alike = np.zeros(len(batch.keys), np.bool_)
    for number, keys in wanted.items():
        alike |= (batch.table_of == number) & flags(pc.is_in(batch.keys, pa.array(sorted(keys))))
    return alike
