"""The result of a statement by column: packed by the server where it can, else gathered from its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlalchemy import CursorResult, TextClause, text
from sqlalchemy.engine import Connection

from eventlog.core.errors import EventlogError
from eventlog.sql.queries import Queries

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
_NONE: Ints = np.array([], np.int64)
ROWS = "{rows}"  # the place of the united queries in a statement
UNION = "\nunion all\n"
TEXTS = ("table_name", "table_key", "column_name", "old_value", "new_value")  # of a picked row


class OddBytes(EventlogError):
    """texts of the result are not in UTF-8, and do not come by column"""


class ResultColumns:
    """The columns of a result: numbers as vectors, with 0 for null, and texts as Arrow arrays."""

    def __init__(self, numbers: Mapping[str, Ints], texts: Mapping[str, pa.Array]) -> None:
        self.numbers = numbers
        self.texts = texts

    @property
    def size(self) -> int:
        """Return how many rows it has."""
        return max(map(len, self.numbers.values()), default=0)


class PickedColumns(NamedTuple):
    """The picked rows by column, ascending by record_id; an event_type that is null is 0."""

    ids: Ints
    kinds: Ints
    timely: Flags  # whether each surely has a time that a document can name
    texts: dict[str, pa.Array]  # by the names of TEXTS

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return len(self.ids)

    def subset(self, flags: Flags) -> PickedColumns:
        """Return the chosen rows."""
        texts = {name: column.filter(pa.array(flags)) for name, column in self.texts.items()}
        return PickedColumns(self.ids[flags], self.kinds[flags], self.timely[flags], texts)

    def with_more(self, other_rows: PickedColumns) -> PickedColumns:
        """Return these rows and, after them, others."""
        texts = {
            name: pa.concat_arrays([column, other_rows.texts[name]]) for name, column in self.texts.items()
        }
        return PickedColumns(
            np.concatenate([self.ids, other_rows.ids]),
            np.concatenate([self.kinds, other_rows.kinds]),
            np.concatenate([self.timely, other_rows.timely]),
            texts,
        )


def concatenate(
    results: Sequence[ResultColumns], numbers: Sequence[str], texts: Sequence[str]
) -> ResultColumns:
    """Return these columns of several results, joined."""
    if len(results) == 1:
        return results[0]
    return ResultColumns(
        {name: np.concatenate([_NONE, *(result.numbers[name] for result in results)]) for name in numbers},
        {
            name: pa.concat_arrays([pa.array([], pa.string()), *(result.texts[name] for result in results)])
            for name in texts
        },
    )


def read_columns(
    connection: Connection,
    queries: Queries,
    clause: TextClause,
    values: Mapping[str, Any],
    names: Sequence[str],
    *,
    numbers: Sequence[str],
    texts: Sequence[str],
    united: Sequence[TextClause] = (),
) -> ResultColumns:
    """Return these columns of a statement's result, whose columns have these names.

    The {rows} of the statement are those of all queries in `united`. Raise OddBytes if Arrow cannot hold the
    texts.
    """
    by_driver = bool(united) and not connection.dialect.positional
    run: Callable[..., CursorResult[Any]] = connection.exec_driver_sql if by_driver else connection.execute
    try:
        if queries.log.dialect.statements.packs_columns:
            packing = _packing(queries, clause, names, numbers, texts)
            statement = _united(connection, queries, packing, united)
            packed = _unpacked(run(statement, dict(values)).one(), numbers, texts)
            if packed is not None:
                return packed
        statement = _united(connection, queries, clause, united)
        return _gathered(run(statement, dict(values)).all(), names, numbers, texts)
    except UnicodeEncodeError as fault:
        raise OddBytes from fault


def _united(
    connection: Connection, queries: Queries, clause: TextClause, united: Sequence[TextClause]
) -> TextClause | str:
    """Return the statement with the rows of these queries, if there are some.

    Their texts are joined as the driver takes them, because SQLAlchemy would parse each text anew.
    """
    if not united:
        return clause
    if connection.dialect.positional:
        return text(clause.text.replace(ROWS, UNION.join(query.text for query in united)))
    rows = UNION.join(queries.driver_text(connection, query) for query in united)
    return queries.driver_text(connection, clause).replace(ROWS, rows)


def _gathered(
    rows: Sequence[Sequence[Any]], names: Sequence[str], numbers: Sequence[str], texts: Sequence[str]
) -> ResultColumns:
    columns = dict(zip(names, zip(*rows, strict=True) if rows else [()] * len(names), strict=True))
    return ResultColumns(
        {name: np.array([int(cell or 0) for cell in columns[name]], np.int64) for name in numbers},
        {name: as_texts(columns[name]) for name in texts},
    )


def as_texts(cells: Sequence[str | None]) -> pa.Array:
    """Return texts as Arrow holds them; raise OddBytes if it cannot."""
    try:
        return pa.array(cells, pa.string())
    except UnicodeEncodeError as fault:
        raise OddBytes from fault


def _packing(
    queries: Queries, clause: TextClause, names: Sequence[str], numbers: Sequence[str], texts: Sequence[str]
) -> TextClause:
    """Return the statement by which the server puts these columns of a result together in one row."""
    of_numbers = [queries.filled("packed_number", column=name) for name in numbers]
    of_texts = [queries.filled("packed_text", column=name) for name in texts]
    return queries.clause(
        "packed",
        aggregates=",\n  ".join([*of_numbers, *of_texts]),
        statement=clause.text,
        names=", ".join(names),
    )


def _unpacked(row: Sequence[Any], numbers: Sequence[str], texts: Sequence[str]) -> ResultColumns | None:
    """Return the columns of that row; None if its texts are not in UTF-8."""
    packed = row[len(numbers) :]
    lengths, data = packed[::2], [(text or "").encode() for text in packed[1::2]]
    sizes = [np.frombuffer(size or b"", ">i4").astype(np.int64) for size in lengths]
    if any(int(np.maximum(size, 0).sum()) != len(text) for size, text in zip(sizes, data, strict=True)):
        return None
    return ResultColumns(
        {name: np.frombuffer(row[at] or b"", ">i8").astype(np.int64) for at, name in enumerate(numbers)},
        dict(zip(texts, map(_texts, sizes, data), strict=True)),
    )


def _texts(sizes: Ints, data: bytes) -> pa.Array:
    """Return the consecutive texts of these sizes; -1 is null."""
    present = sizes >= 0
    ends = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(np.maximum(sizes, 0), out=ends[1:])
    mask = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little").tobytes())
    return pa.Array.from_buffers(pa.string(), len(sizes), [mask, pa.py_buffer(ends), pa.py_buffer(data)])
