"""What of a table differs from what its receiver is known to have, read in one snapshot.

Where the database can make digests it compares by itself, and only what differs comes over the wire. Else,
and where objects have attributes of many values, all rows come, and digests are made here.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import pyarrow as pa
from sqlalchemy import text
from sqlalchemy.engine import Connection

from eventlog.compare import MEMORY
from eventlog.compare.digest import Texts, digest, digest_of, key_hash_of
from eventlog.compare.join import join_sides
from eventlog.compare.rows import NullKey, in_batches, merge_rows, schema
from eventlog.compare.table_snapshot import read_table
from eventlog.core import tablekey
from eventlog.core.identity import hash_of_key
from eventlog.core.portions import portions
from eventlog.core.tables import Column, Table
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.log.object_states import unseal
from eventlog.sql.log.receiver_state import read_receiver_state
from eventlog.sql.queries import Queries, each_row_looked_up, each_side_once, unbound
from eventlog.sql.readable import ReadableTable

_FETCHED = 1_000  # rows at a time
# What is known of an object. If an event of it is not settled, `first` is the first row of the event, and
# `next` the digest to which it leads. Such an event is on its way unless it `failed`.
_STATE_FORM = pa.schema(
    [(name, pa.string()) for name in ("key", "hash", "digest", "values", "failed", "next", "first")]
)


class PolledChange(NamedTuple):
    """An object whose values are not those that are known, or that is gone."""

    key: str
    key_hash: str
    digest: str | None  # None: it is gone
    texts: Texts | None
    is_known: bool  # something is known of it
    known_digest: str | None  # None: the receiver has nothing
    known_values: str | None
    failed: bool
    next_digest: str | None = None  # the digest to which its event leads, where that is known here


class PolledTable(NamedTuple):
    """A table and its state in the snapshot of a connection."""

    connection: Connection
    queries: Queries
    name: str  # in the state
    source: ReadableTable
    objects: int  # how many the state should have of the table


class ChangedPart(NamedTuple):
    """The only rows of a table that can differ from what is known."""

    conditions: Sequence[str]  # each of these rows satisfies one of them
    rows: int  # of the whole table


def every_object(connection: Connection, queries: Queries, name: str) -> Iterator[PolledChange]:
    """Return all objects of a dropped table as gone, without those whose event is on its way."""
    states = read_receiver_state(connection, queries, name)
    for key, key_hash, known_digest, _, failed, next_digest, first in states:
        if first is None or (failed and next_digest is not None):
            yield PolledChange(key, str(key_hash), None, None, True, known_digest, None, bool(failed))


def poll(
    table: PolledTable,
    memory: int = MEMORY,
    remote_rows: Iterable[pa.RecordBatch] | None = None,
    part: ChangedPart | None = None,
) -> Iterator[PolledChange]:
    """Yield the objects of a table that are not as they are known, without those whose event is on its way.

    `remote_rows` are all rows of a table in another database than the state. With a `part` only its rows are
    compared, which the database must be able to do.
    """
    connection, source, dialect = table.connection, table.source, table.queries.log.dialect
    if remote_rows is not None or why_here(dialect, source.table) is not None:
        rows = read_table(connection, source.table, source) if remote_rows is None else remote_rows
        yield from _poll_here(table, rows, memory)
        return
    new_count = 0
    way = each_row_looked_up if part else each_side_once
    with way(connection, dialect):
        for condition in part.conditions if part else ("",):
            for difference in _changed(table, condition):
                new_count += not difference.is_known
                yield difference
    count = text(_filled(table.queries, "compare_count", source))
    row_count = part.rows if part else connection.execute(count).scalar()
    if int(row_count or 0) - new_count != table.objects:
        with each_side_once(connection, dialect):
            yield from _deleted_objects(table)


def why_here(dialect: Dialect, table: Table) -> str | None:
    """Return why the digests of a table cannot be made in the database; None if they can."""
    if not dialect.values.digest:
        return f"{dialect.title} makes no such digests without a right of its own"
    if table.view:
        return "the keys of a view are perhaps not unique"
    if any(column.multivalued for column in table.data):
        return "its objects have attributes of many values"
    return None


def _changed(table: PolledTable, condition: str) -> Iterator[PolledChange]:
    source, name, dialect = table.source, table.name, table.queries.log.dialect
    columns = source.table.data
    row_digest = digest_of(dialect, ((column, f"h.c{number}") for number, column in enumerate(columns)))
    statement = _filled(
        table.queries,
        "compare_changed",
        source,
        digest=row_digest,
        texts="".join(f", h.c{number}" for number in range(len(columns))),
        within=f" where {condition}" if condition else "",
        is_whole="false" if condition else "true",
    )
    with closing(_streamed(table, statement)) as rows:
        for key, key_hash, new_digest, known_hash, known_digest, values, failed, next_digest, *texts in rows:
            if key is None:
                raise NullKey(str(source.table), " or ".join(source.table.key), source.table)
            is_known, values = known_hash is not None, unseal(name, key, known_digest, values)
            state = is_known, known_digest, values, bool(failed), next_digest
            yield PolledChange(key, key_hash, new_digest, tuple(texts), *state)


def _deleted_objects(table: PolledTable) -> Iterator[PolledChange]:
    statement = gone_statement(table.queries, table.source)
    for key, key_hash, known_digest, values in _streamed(table, statement):
        values = unseal(table.name, key, known_digest, values)
        yield PolledChange(key, key_hash, None, None, True, known_digest, values, False)


def gone_statement(queries: Queries, source: ReadableTable) -> str:
    """Return the query for known objects, bound as object_table, that the table lacks."""
    return _filled(queries, "compare_gone", source)


def _streamed(table: PolledTable, statement: str) -> Generator[Sequence[Any], None, None]:
    streamed = text(statement).execution_options(stream_results=True, yield_per=_FETCHED)
    with table.connection.execute(streamed, {"object_table": table.name}) as rows:
        yield from rows


def _filled(queries: Queries, name: str, source: ReadableTable, **holes: str) -> str:
    """Return a statement over a table's rows."""
    dialect = queries.log.dialect
    key = dialect.values.expressions.key(((c.name, c) for c in source.table.key_columns), "t", dialect.quote)
    texts = "".join(f", {text} as c{number}" for number, text in enumerate(source.expressions))
    pieces = {
        "known": queries.name("known"),
        "source": source.source,
        "key_text": key,
        "key_hash": key_hash_of(dialect, "h.key_text"),
        "expressions": texts,
        "unmerged": dialect.statements.unmerged,
    }
    return queries.filled(name, **{hole: unbound(sql) for hole, sql in (pieces | holes).items()})


def _poll_here(polled: PolledTable, rows: Iterable[pa.RecordBatch], memory: int) -> Iterator[PolledChange]:
    """Compare all rows with the whole state, in this process."""
    name, table = polled.name, polled.source.table

    def judge(state_rows: pa.RecordBatch, table_rows: pa.RecordBatch) -> Iterator[PolledChange]:
        state = {key: cells for key, *cells in zip(*(c.to_pylist() for c in state_rows.columns), strict=True)}
        for key, texts in _texts_by_key(table, table_rows):
            change = _judge(name, key, digest(table.data, texts).hex(), texts, state.pop(key, None))
            if change is not None:
                yield change
        for key, (key_hash, known_digest, values, failed, next_digest, first) in state.items():
            if first is None or (failed == "1" and next_digest is not None):
                values = unseal(name, key, known_digest, values)
                yield PolledChange(key, str(key_hash), None, None, True, known_digest, values, failed == "1")

    states = _batches(polled.connection, polled.queries, name)
    yield from join_sides(_STATE_FORM, states, schema(table), rows, judge, memory)


def _texts_by_key(table: Table, rows: pa.RecordBatch) -> Iterator[tuple[str, Texts]]:
    """Yield the key and the texts of each object."""
    columns = [column.to_pylist() for column in merge_rows(table, rows).columns]
    for key, _, *cells in zip(*columns, strict=True):
        yield key, tuple(map(_texts, cells, table.data))


def _texts(cell: str | None, column: Column) -> str | tuple[str, ...] | None:
    return tuple(json.loads(cell)) if column.multivalued and cell is not None else cell


def reread_object(
    table: Table, change: PolledChange, current: Iterable[Sequence[str | None]]
) -> PolledChange | None:
    """Return a change by the current rows of its object; None where there is none any more, or one of another
    kind, which the next poll finds.
    """
    rows = [tuple(row) for row in current]
    if change.texts is None:
        return None if rows else change
    if not rows:
        return None
    values = tuple(text for _, text in tablekey.read(change.key))
    (batch,) = in_batches(table, ((str(table), values, row) for row in rows))
    ((_, texts),) = _texts_by_key(table, batch)
    current_digest = digest(table.data, texts).hex()
    same = current_digest == (change.next_digest if change.failed else change.known_digest)
    return None if same else change._replace(texts=texts, digest=current_digest)


def _judge(
    name: str, key: str, current_digest: str, texts: Texts, state: Sequence[str | None] | None
) -> PolledChange | None:
    """Return what the state of an object means for it; None if there is no difference."""
    if state is None:
        return PolledChange(key, hash_of_key(key), current_digest, texts, False, None, None, False)
    key_hash, known_digest, values, failed, next_digest, first = state
    same = known_digest == current_digest if first is None else failed != "1" or next_digest == current_digest
    if same:
        return None
    values = unseal(name, key, known_digest, values)
    return PolledChange(
        key, str(key_hash), current_digest, texts, True, known_digest, values, failed == "1", next_digest
    )


def _batches(connection: Connection, queries: Queries, name: str) -> Iterator[pa.RecordBatch]:
    """Yield the state of a table, some objects at a time."""
    for states in portions(read_receiver_state(connection, queries, name), _FETCHED):
        columns = zip(*states, strict=True)
        texts = ([None if cell is None else str(cell) for cell in column] for column in columns)
        yield pa.record_batch([pa.array(column, pa.string()) for column in texts], schema=_STATE_FORM)
