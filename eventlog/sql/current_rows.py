"""The current rows of tables, read by the keys that rows of the log name."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from sqlalchemy import TextClause
from sqlalchemy.engine import Connection

from eventlog.core.errors import EventlogError
from eventlog.sql.common.dialect import Call
from eventlog.sql.common.templates import fill
from eventlog.sql.queries import Queries, unbound
from eventlog.sql.relation import Place
from eventlog.sql.tables_read import reading

if TYPE_CHECKING:
    import pyarrow as pa

    from eventlog.sql.columns import Ints
    from eventlog.sql.common.dialect import Dialect


NO_BOUND = 1 << 62
_FETCHED = 100  # rows at once; any of them may be long
FEW = 100  # keys that are looked for one by one, however small the table is
_COUNTED = 1_000  # keys of a statement whose rows are counted as they come, for all of them must be taken


class TooMuch(EventlogError):
    """the current rows come to {0} bytes or more"""


class KeyColumn(NamedTuple):
    """A column of a table's key as a statement needs it."""

    name: str  # quoted, of alias t
    type: str  # that the list of keys has in the statement
    matches: str = "{c} = {k}"  # whether the column is the key's value


class Readable(Protocol):
    """A table or view whose current rows can be read; the catalogue makes them."""

    @property
    def source(self) -> str: ...  # schema and name, quoted

    @property
    def places(self) -> Sequence[Place]: ...  # the tables that are read

    @property
    def view(self) -> bool: ...

    @property
    def key(self) -> Sequence[KeyColumn]: ...

    @property
    def expressions(self) -> Sequence[str]: ...  # of alias t: the text of each column that may leave

    @property
    def functions(self) -> str: ...  # of the query's own, with which it begins

    @property
    def elsewhere(self) -> Elsewhere | None: ...  # what reads it, where it is in no database of a log


class Elsewhere(Protocol):
    """Reads tables of a database in which no log is."""

    def current_rows(self, table: Any, keys: Sequence[Sequence[str]]) -> Generator[Current, None, None]: ...


class TableKeys(NamedTuple):
    """The keys of a table whose current rows are read, by column."""

    table: Readable
    keys: Sequence[Sequence[str]]


class Current(NamedTuple):
    """One row as it is now, and which of the keys found it."""

    place: int
    texts: tuple[str | None, ...]


def current_rows(
    connection: Connection,
    queries: Queries,
    table: Readable,
    keys: Sequence[Sequence[str]],
    bound: int = NO_BOUND,
    before: Sequence[Call] = (),
) -> Iterator[Current]:
    """Return the rows of the keys as they are now, with a statement for each chunk of keys.

    Raise TooMuch as soon as they have so many bytes. The values of a key are in key order, and the caller has
    checked that they are of the column's type, because one bad value would fail the whole statement.
    """
    if table.elsewhere is not None:
        return _counted(table.elsewhere.current_rows(table, keys), bound)
    if queries.log.dialect.statements.measures_rows:
        return _measured(connection, queries, table, keys, bound, before)
    queries.run_calls(connection, before)
    return _counted(_streamed(connection, queries, table, keys), bound)


def current_columns(
    connection: Connection, queries: Queries, lookups: Sequence[TableKeys], bound: int = NO_BOUND
) -> tuple[Ints, list[pa.Array]]:
    """Return the current rows by column: of each row its key's number, and the texts of each column.

    The keys are numbered across `lookups`. The tables are in one database, and have as many columns each.
    """
    import numpy as np

    from eventlog.sql.columns import as_texts, concatenate, read_columns

    width = len(lookups[0].table.expressions)
    if lookups[0].table.elsewhere is not None or not queries.log.dialect.statements.measures_rows:
        rows = list(_counted(_of_each(connection, queries, lookups), bound))
        cells = zip(*(texts for _, texts in rows), strict=True) if rows else [()] * width
        return np.array([place for place, _ in rows], np.int64), [as_texts(column) for column in cells]
    clause = queries.clause("current_measured", **_measuring_holes(queries, width), rows="{rows}")
    texts = [f"c{number}" for number in range(width)]
    numbers, room, results = ("n", "bytes"), bound, []
    for united, values in _united(queries, lookups):
        values["most"] = room
        names = (*numbers, *texts)
        part = read_columns(
            connection, queries, clause, values, names, numbers=numbers, texts=texts, united=united
        )
        room = _room_left(bound, room, int(part.numbers["bytes"].sum()))
        results.append(part)
    columns = concatenate(results, numbers, texts)
    return columns.numbers["n"], [columns.texts[name] for name in texts]


def _of_each(
    connection: Connection, queries: Queries, lookups: Sequence[TableKeys]
) -> Generator[Current, None, None]:
    first = 0
    for table, columns in lookups:
        keys = list(zip(*columns, strict=True))
        reader = table.elsewhere
        rows = reader.current_rows(table, keys) if reader else _streamed(connection, queries, table, keys)
        with closing(rows):
            for place, texts in rows:
                yield Current(first + place, texts)
        first += len(keys)


def _united(
    queries: Queries, lookups: Sequence[TableKeys]
) -> Iterator[tuple[list[TextClause], dict[str, object]]]:
    """Yield the queries of each statement and the values of their keys; tables share a statement."""
    first, queries_of_chunk, values = 0, list[TextClause](), dict[str, object]()
    for table, keys in lookups:
        number = str(id(table))
        query = queries.of_table(table, partial(_rows_of_keys, queries, table, number))
        for start, bound_keys in _bound_keys(keys, queries.log.dialect, number):
            if f"keys{number}" in values:  # the next chunk of the table
                yield queries_of_chunk, values
                queries_of_chunk, values = [], {}
            queries_of_chunk.append(query)
            values |= {**bound_keys, f"first{number}": first + start}
        first += len(keys[0]) if keys else 0
    if queries_of_chunk:
        yield queries_of_chunk, values


def _measured(
    connection: Connection,
    queries: Queries,
    table: Readable,
    keys: Sequence[Sequence[str]],
    bound: int,
    before: Sequence[Call],
) -> Iterator[Current]:
    if len(keys) <= FEW:
        call = call_of_few(queries, table, keys, bound)
        yield from measured(queries.run_calls(connection, [*before, call])[-1], bound, bound)
        return
    holes, room = _measuring_holes(queries, len(table.expressions)), bound
    holes["rows"] = _rows_of_keys(queries, table)
    for start, bound_keys in _bound_keys(tuple(zip(*keys, strict=True)), queries.log.dialect):
        values: dict[str, object] = {"most": room, "first": start, **bound_keys}
        call = queries.call("current_measured", holes, **values)
        rows, before = queries.run_calls(connection, [*before, call])[-1], ()
        yield from measured(rows, bound, room)
        room -= sum(size for _, size, *_ in rows)


def call_of_few(queries: Queries, table: Readable, keys: Sequence[Sequence[str]], bound: int) -> Call:
    """Return the statement that reads and measures the rows of a few keys; `measured` reads its answer."""
    holes = _measuring_holes(queries, len(table.expressions))
    holes["rows"] = _rows_of_keys(queries, table, few=True)
    values: dict[str, object] = {"most": bound, "first": 0, "many": len(keys)}
    for _, bound_keys in _bound_keys(tuple(zip(*keys, strict=True)), queries.log.dialect):
        values |= bound_keys
    return queries.call("current_measured", holes, **values)


def measured(rows: Iterable[Sequence[Any]], bound: int, room: int) -> Iterator[Current]:
    """Yield rows that were measured; TooMuch if they come to more bytes than there is room for."""
    for place, size, *texts in rows:
        room = _room_left(bound, room, size)
        yield Current(place, tuple(texts))


def _room_left(bound: int, room: int, size: int) -> int:
    if size >= room:
        raise TooMuch(bound)
    return room - size


def _streamed(
    connection: Connection, queries: Queries, table: Readable, keys: Sequence[Sequence[str]]
) -> Generator[Current, None, None]:
    """Yield the rows of another database, which it sends as they are taken."""
    clause = queries.clause("current", **_current_holes(table))
    streamed = clause.execution_options(stream_results=True, yield_per=_FETCHED)
    for start, bound_keys in _bound_keys(tuple(zip(*keys, strict=True)), queries.log.dialect):
        with reading(queries.log.dialect, table.places), connection.execute(streamed, bound_keys) as rows:
            for place, *texts in rows:
                yield Current(start + place, tuple(texts))


def byte_count(texts: Iterable[str | None]) -> int:
    """Return how many bytes texts have in UTF-8."""
    filled = (text for text in texts if text)
    return sum(len(text if text.isascii() else text.encode("utf-8", "surrogatepass")) for text in filled)


def _counted(rows: Generator[Current, None, None], bound: int) -> Iterator[Current]:
    """Yield the rows, until their texts come to so many bytes."""
    room = bound
    with closing(rows):  # so that no statement stays open that is not read to its end
        for row in rows:
            room = _room_left(bound, room, byte_count(row.texts))
            yield row


def _bound_keys(
    columns: Sequence[Sequence[str]], dialect: Dialect, number: str = ""
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the values of keys for the statement, by column: some keys at a time, and the position of the
    first.
    """
    size = (
        dialect.statements.chunk
        if dialect.statements.measures_rows
        else min(dialect.statements.chunk, _COUNTED)
    )
    for start in range(0, len(columns[0]) if columns else 0, size):
        chunk = [column[start : start + size] for column in columns]
        key_list: object = {f"k{i}": values for i, values in enumerate(chunk)}
        if not dialect.statements.keys_by_column:
            key_list = [
                {"n": n} | {f"k{i}": value for i, value in enumerate(key)}
                for n, key in enumerate(zip(*chunk, strict=True))
            ]
        yield start, {f"keys{number}": json.dumps(key_list, ensure_ascii=False)}


def _current_holes(table: Readable) -> dict[str, str]:
    return {
        **_typed(table.key),
        "functions": unbound(table.functions),
        "source": unbound(table.source),
        "columns": "".join(f",\n  {unbound(expression)}" for expression in table.expressions),
        "matches": " and ".join(_matching(table.key)),
    }


def _measuring_holes(queries: Queries, width: int) -> dict[str, str]:
    texts = [f"c{number}" for number in range(width)]
    sizes = (queries.filled("text_bytes", column=name) for name in texts)
    return {"names": "".join(f", {text}" for text in texts), "bytes": " + ".join(["0", *sizes])}


def _rows_of_keys(queries: Queries, table: Readable, number: str = "", *, few: bool = False) -> str:
    names = {f"k{i}": column.type for i, column in enumerate(table.key)}
    arrays = (queries.filled("key_array", column=name, number=number) for name in names)
    return queries.filled(
        "rows_of_keys",
        **_current_holes(table),
        number=number,
        key_arrays=", ".join(arrays),
        key_names=", ".join(names),
        few_keys="\n  " + queries.filled("few_keys") if few else "",
        cast_keys="".join(f", cast(g.{name} as {kind}) as {name}" for name, kind in names.items()),
    )


def _typed(columns: Sequence[KeyColumn]) -> dict[str, str]:
    """Return how a statement declares its values, k0, k1 and so on."""
    return {
        "typed_keys": "".join(f", k{i} {column.type}" for i, column in enumerate(columns)),
        "typed_paths": "".join(f", k{i} {column.type} path '$.k{i}'" for i, column in enumerate(columns)),
    }


def _matching(columns: Sequence[KeyColumn]) -> list[str]:
    return [
        unbound(fill(column.matches, {"c": column.name, "k": f"k.k{i}"})) for i, column in enumerate(columns)
    ]
