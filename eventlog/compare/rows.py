"""The rows of one side as Arrow holds them: the object's key, the row's place, the texts of its columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core import tablekey
from eventlog.core.errors import EventlogError
from eventlog.core.portions import portions
from eventlog.core.tables import Table
from eventlog.fold.by_column.vectors import flags

_ROWS = 16_384  # of a batch
_LETTERS = 32 << 20  # of a batch, because Arrow's texts end at two GiB
_SPECIAL = r"""[,;'+"=\\<>]"""

RowTexts = tuple[str | None, ...]


class NullKey(EventlogError):
    """{0}: {1} is null, and belongs to the key of {2}"""


class TwoRows(EventlogError):
    """{0} and {1} have the same key, {2}: the state is not clear"""


def schema(table: Table) -> pa.Schema:
    """Return the columns of the batches of a table."""
    texts = [(f"c{number}", pa.string()) for number in range(len(table.data))]
    return pa.schema([("key", pa.string()), ("place", pa.string()), *texts])


def batch(
    table: Table, places: pa.Array, keys: Sequence[pa.Array], texts: Sequence[pa.Array]
) -> pa.RecordBatch:
    """Return rows whose key has these texts, in the order of the key; raise NullKey if one is null."""
    for name, key_texts in zip(table.key, keys, strict=True):
        if key_texts.null_count:
            at = flags(key_texts.is_null()).argmax()
            raise NullKey(places[int(at)].as_py(), name, table)
    return pa.record_batch([_table_keys(table, keys), places, *texts], schema=schema(table))


def in_batches(table: Table, rows: Iterable[tuple[str, RowTexts, RowTexts]]) -> Iterator[pa.RecordBatch]:
    """Yield batches of rows that come one by one: the place of each, the texts of its key, and of its
    columns.
    """
    width = len(table.key)
    cells = ((place, *key, *texts) for place, key, texts in rows)
    for batch_rows in portions(cells, _ROWS, _letters, _LETTERS):
        places, *columns = (pa.array(column, pa.string()) for column in zip(*batch_rows, strict=True))
        yield batch(table, places, columns[:width], columns[width:])


def _letters(cells: RowTexts) -> int:
    return sum(len(text) for text in cells if text is not None)


def _table_keys(table: Table, keys: Sequence[pa.Array]) -> pa.Array:
    """Return the table_key of each row, each value quoted where it must be."""
    parts: list[pa.Array | str] = []
    for number, (name, texts) in enumerate(zip(table.key, keys, strict=True)):
        tablekey.write([(name, "")])  # whose error explains what no key can name
        parts += [f"+{name}=" if number else f"{name}=", _quoted(texts)]
    return pc.binary_join_element_wise(*parts, "")


def _quoted(texts: pa.Array) -> pa.Array:
    odd = pc.match_substring_regex(texts, _SPECIAL)
    if not pc.any(odd).as_py():
        return texts
    quoted = [tablekey.quote(text) for text in texts.filter(odd).to_pylist()]
    return pc.replace_with_mask(texts, odd, pa.array(quoted, pa.string()))


def merge_rows(table: Table, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return one row for each key: where columns have many values they hold them as a JSON list; TwoRows
    where nothing explains a second row.
    """
    multivalued = {number for number, column in enumerate(table.data) if column.multivalued}
    if not multivalued:
        _demand_one(rows)
        return rows
    rows_by_key: dict[str, list[object]] = {}
    for key, place, *texts in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        row = rows_by_key.get(key)
        if row is None:
            row = rows_by_key[key] = [
                key,
                place,
                *({} if n in multivalued else text for n, text in enumerate(texts)),
            ]
        for number, text in enumerate(texts, 2):
            cell_values = row[number]
            if isinstance(cell_values, dict):
                cell_values |= {} if text is None else {text: None}
            elif cell_values != text:
                _, first_place, *_ = row
                raise TwoRows(first_place, place, key)
    listed = [[_listed(cell) for cell in row] for row in rows_by_key.values()]
    columns = zip(*listed, strict=True) if listed else [[]] * len(rows.columns)
    return pa.record_batch([pa.array(column, pa.string()) for column in columns], schema=rows.schema)


def _listed(cell: object) -> object:
    """Return the text of a cell; of many values a list of them, in the order of their bytes."""
    if not isinstance(cell, dict):
        return cell
    return json.dumps(sorted(cell, key=str.encode), ensure_ascii=False) if cell else None


def _demand_one(rows: pa.RecordBatch) -> None:
    keys = rows.column("key")
    if pc.count_distinct(keys).as_py() == len(keys):
        return
    first_places: dict[str, int] = {}
    for at, key in enumerate(keys.to_pylist()):
        if key in first_places:
            places = rows.column("place")
            raise TwoRows(places[first_places[key]].as_py(), places[at].as_py(), key)
        first_places[key] = at
