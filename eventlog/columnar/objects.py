"""Objects whose name is certain as it is spelled; the identity of the others is in doubt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.columnar.batch import Batch
from eventlog.columnar.templates import Spelled, Templates
from eventlog.columnar.vectors import Flags, Ints, codes, flags, places
from eventlog.core.errors import EventlogError
from eventlog.core.identity import identify, object_of
from eventlog.core.tables import Table


def canonical(known: Templates, tables: pa.Array, keys: pa.Array) -> pa.Array:
    """Return one text for each object, whatever rows call it: the name of its table, a zero character, its
    key.
    """
    own, names = codes(tables)
    spelled = [known.spelled(str(name)) for name in names]
    named = zip(names, (one.table for one in spelled), strict=True)
    catalogued = [str(name) if table is None else known.tables.name_of(table) for name, table in named]
    texts = pc.binary_join_element_wise(pa.array(catalogued, pa.string()).take(pa.array(own)), keys, "\0")
    plain = (
        one.sure if one.table and one.object and one.key == tuple(one.table.key) else None for one in spelled
    )
    odd = ~matched(keys, own, list(plain))
    some = np.flatnonzero(odd)
    if not len(some):
        return texts
    pairs = zip(own[some].tolist(), keys.take(pa.array(some)).to_pylist(), strict=True)
    read = ["\0".join(object_of(known.tables, str(names[at]), str(key))) for at, key in pairs]
    return pc.replace_with_mask(texts, pa.array(odd), pa.array(read, pa.string()))


def matched(keys: pa.Array, kinds: Ints, patterns: Sequence[str | None]) -> Flags:
    """Return whether each key matches the pattern of its kind, a number; each pattern is used once."""
    found = np.zeros(len(keys), np.bool_)
    if not len(keys):
        return found
    distinct = {pattern: number for number, pattern in enumerate(dict.fromkeys(patterns))}
    number_of = np.array([distinct[pattern] for pattern in patterns], np.int64)
    for pattern, at in zip(distinct, places(number_of[kinds], len(distinct)), strict=True):
        if pattern is not None and len(at):
            some = keys if len(at) == len(keys) else keys.take(pa.array(at))
            found[at] = flags(pc.match_substring_regex(some, pattern))
    return found


def doubtful(batch: Batch, known: Templates) -> Flags:
    """Return the objects in doubt: rows may spell one object in several ways, and only one of them
    is sure.
    """
    sure: dict[Table, tuple[int, Spelled]] = {}
    for number, name in enumerate(batch.tables):
        spelled = known.spelled(name)
        if spelled.object is not None and spelled.table is not None:
            sure.setdefault(spelled.table, (number, spelled))
    patterns: list[str | None] = [None] * len(batch.tables)
    for number, spelled in sure.values():
        patterns[number] = spelled.sure
    doubt = ~matched(batch.keys, batch.table_of, patterns)
    doubt |= _named_otherwise(batch, known, np.flatnonzero(doubt).tolist(), sure)
    return doubt


def _named_otherwise(
    batch: Batch, known: Templates, objects: Iterable[int], sure: dict[Table, tuple[int, Spelled]]
) -> Flags:
    """Return the objects that those in doubt may be under another name."""
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
    of_table = places(batch.table_of, len(batch.tables)) if wanted else []
    for number, keys in wanted.items():
        some = batch.keys.take(pa.array(of_table[number]))
        alike[of_table[number]] = flags(pc.is_in(some, pa.array(sorted(keys))))
    return alike
