"""What of a table differs from what its receiver is known to have, read in one snapshot.

Where the database can make digests it compares by itself, and only what differs comes over the wire. Else,
and where objects have attributes of many values, all rows come, and digests are made here.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from sqlalchemy import text
from sqlalchemy.engine import Connection

from eventlog.compare import MEMORY
from eventlog.compare.digest import WITHOUT_NAMES, Texts, digest, digest_of, key_hash_of
from eventlog.compare.join import join_sides
from eventlog.compare.rows import NullKey, in_batches, merge_rows, schema
from eventlog.compare.tables import read_table
from eventlog.core import tablekey
from eventlog.core.identity import hash_of_key
from eventlog.core.tables import Table
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.log.object_states import unseal
from eventlog.sql.log.receiver_state import read_receiver_state
from eventlog.sql.queries import Queries, each_row_looked_up, each_side_once, unbound
from eventlog.sql.readable import ReadableTable

_FETCHED = 1_000  # rows at a time
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
    renewed: bool = False  # the state has the digest of these values as an earlier version made it


class ChangedPart(NamedTuple):
    """The only rows of a table that can differ from what is known."""

    conditions: Sequence[str]  # each of these rows satisfies one of them
    rows: int  # of the whole table


class Remote(Protocol):
    """Reads a table that is in another database than the state."""

    def rows(self, table: ReadableTable) -> Iterator[pa.RecordBatch]:
        """Yield all its rows."""


def poll(
    connection: Connection,
    queries: Queries,
    name: str,
    source: ReadableTable,
    objects: int,
    memory: int = MEMORY,
    remote: Remote | None = None,
    part: ChangedPart | None = None,
) -> Iterator[PolledChange]:
    """Return the objects of a table that differ, without those whose event is on its way.

    `name` is the table's in the state, where so many objects of it are. `remote` reads its rows if it is in
    another database than the state. `version` is the column that decides whether a row is looked at. With a
    `part` only its rows are compared, which the database must be able to do.
    """
    for change in _differing(connection, queries, name, source, objects, memory, remote, part):
        if change.texts is None or not change.is_known:
            yield change
            continue
        without_names = digest(source.table.data, change.texts, WITHOUT_NAMES).hex()
        if not (change.failed and without_names == change.next_digest):  # an event that failed is not resent
            yield change._replace(renewed=without_names == change.known_digest)


def every_object(connection: Connection, queries: Queries, name: str) -> Iterator[PolledChange]:
    """Return every object of a table that is gone, without those whose event is on its way."""
    states = read_receiver_state(connection, queries, name)
    for key, key_hash, known_digest, _, failed, next_digest, first in states:
        if first is None or (failed and next_digest is not None):
            yield PolledChange(key, str(key_hash), None, None, True, known_digest, None, bool(failed))


def _differing(
    connection: Connection,
    queries: Queries,
    name: str,
    source: ReadableTable,
    objects: int,
    memory: int,
    remote: Remote | None,
    part: ChangedPart | None,
) -> Iterator[PolledChange]:
    dialect = queries.log.dialect
    if remote is not None or why_here(dialect, source.table) is not None:
        batches = read_table(connection, source.table, source) if remote is None else remote.rows(source)
        yield from _poll_here(connection, queries, name, source.table, batches, memory)
        return
    new_count = 0
    way = each_row_looked_up if part else each_side_once
    with way(connection, dialect):
        for condition in part.conditions if part else ("",):
            for difference in _changed(connection, queries, name, source, condition):
                new_count += not difference.is_known
                yield difference
    rows = part.rows if part else connection.execute(text(_filled(queries, "compare_count", source))).scalar()
    if int(rows or 0) - new_count != objects:
        with each_side_once(connection, dialect):
            yield from _deleted_objects(connection, queries, name, source)


def why_here(dialect: Dialect, table: Table) -> str | None:
    """Return why the digests of a table cannot be made in the database; None if they can."""
    if not dialect.digest:
        return f"{dialect.title} makes no such digests without a right of its own"
    if table.view:
        return "the keys of a view are perhaps not unique"
    if any(column.multivalued for column in table.data):
        return "its objects have attributes of many values"
    return None


def _changed(
    connection: Connection, queries: Queries, name: str, source: ReadableTable, condition: str
) -> Iterator[PolledChange]:
    columns, dialect = source.table.data, queries.log.dialect
    row_digest = digest_of(dialect, ((column, f"h.c{number}") for number, column in enumerate(columns)))
    statement = _filled(
        queries,
        "compare_changed",
        source,
        digest=row_digest,
        texts="".join(f", n.c{number}" for number in range(len(columns))),
        within=f" where {condition}" if condition else "",
        is_whole="false" if condition else "true",
    )
    with closing(_streamed(connection, statement, name)) as rows:
        for key, key_hash, new_digest, known_hash, known_digest, values, failed, next_digest, *texts in rows:
            if key is None:
                raise NullKey(str(source.table), " or ".join(source.table.key), source.table)
            is_known, values = known_hash is not None, unseal(name, key, known_digest, values)
            yield PolledChange(
                key,
                key_hash,
                new_digest,
                tuple(texts),
                is_known,
                known_digest,
                values,
                bool(failed),
                next_digest,
            )


def _deleted_objects(
    connection: Connection, queries: Queries, name: str, source: ReadableTable
) -> Iterator[PolledChange]:
    for key, key_hash, known_digest, values in _streamed(connection, gone_statement(queries, source), name):
        yield PolledChange(
            key, key_hash, None, None, True, known_digest, unseal(name, key, known_digest, values), False
        )


def gone_statement(queries: Queries, source: ReadableTable) -> str:
    """Return the query for known objects, bound as object_table, that the table lacks."""
    return _filled(queries, "compare_gone", source)


def _streamed(connection: Connection, statement: str, name: str) -> Generator[Sequence[Any], None, None]:
    streamed = text(statement).execution_options(stream_results=True, yield_per=_FETCHED)
    with connection.execute(streamed, {"object_table": name}) as rows:
        yield from rows


def _filled(queries: Queries, name: str, source: ReadableTable, **holes: str) -> str:
    """Return a statement over a table's rows."""
    dialect = queries.log.dialect
    key = dialect.expressions.key(((c.name, c) for c in source.table.key_columns), "t", dialect.quote)
    texts = "".join(f", {text} as c{number}" for number, text in enumerate(source.expressions))
    pieces = {
        "known": queries.name("known"),
        "source": source.source,
        "key_text": key,
        "key_hash": key_hash_of(dialect, f"{dialect.hashed_key}.key_text"),
        "expressions": texts,
        "unmerged": dialect.unmerged,
    }
    return queries.filled(name, **{hole: unbound(sql) for hole, sql in (pieces | holes).items()})


def _poll_here(
    connection: Connection,
    queries: Queries,
    name: str,
    table: Table,
    rows: Iterable[pa.RecordBatch],
    memory: int,
) -> Iterator[PolledChange]:
    """Yield all rows and the whole state meet here."""

    def judge(state_rows: pa.RecordBatch, table_rows: pa.RecordBatch) -> Iterator[PolledChange]:
        state = {key: cells for key, *cells in zip(*(c.to_pylist() for c in state_rows.columns), strict=True)}
        for key, _, *cells in zip(
            *(c.to_pylist() for c in merge_rows(table, table_rows).columns), strict=True
        ):
            texts = tuple(
                _texts(cell, column.multivalued) for cell, column in zip(cells, table.data, strict=True)
            )
            difference = _judged(name, key, digest(table.data, texts).hex(), texts, state.pop(key, None))
            if difference is not None:
                yield difference
        for key, (key_hash, known_digest, values, failed, next_digest, first) in state.items():
            if first is None or (failed == "1" and next_digest is not None):
                values = unseal(name, key, known_digest, values)
                yield PolledChange(key, str(key_hash), None, None, True, known_digest, values, failed == "1")

    yield from join_sides(
        _STATE_FORM, _batches(connection, queries, name), schema(table), rows, judge, memory
    )


def reread_object(
    table: Table, difference: PolledChange, current: Iterable[Sequence[str | None]]
) -> PolledChange | None:
    """Return a difference by the current rows of its object, None where there is none any more, or another
    kind of one, which the next poll finds.
    """
    rows = [tuple(row) for row in current]
    if difference.texts is None:
        return None if rows else difference
    if not rows:
        return None
    values = tuple(text for _, text in tablekey.read(difference.key))
    (batch,) = in_batches(table, ((str(table), values, row) for row in rows))
    _, _, *cells = (column[0].as_py() for column in merge_rows(table, batch).columns)
    texts = tuple(_texts(cell, column.multivalued) for cell, column in zip(cells, table.data, strict=True))
    current_digest = digest(table.data, texts).hex()
    same = current_digest == (difference.next_digest if difference.failed else difference.known_digest)
    return None if same else difference._replace(texts=texts, digest=current_digest)


def _texts(cell: str | None, multivalued: bool) -> str | tuple[str, ...] | None:
    return tuple(json.loads(cell)) if multivalued and cell is not None else cell


def _judged(
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
    state_rows: list[list[str | None]] = []
    for state in read_receiver_state(connection, queries, name):
        state_rows.append([None if cell is None else str(cell) for cell in state])
        if len(state_rows) >= _FETCHED:
            yield _packed(state_rows)
            state_rows = []
    if state_rows:
        yield _packed(state_rows)


def _packed(rows: Sequence[Sequence[str | None]]) -> pa.RecordBatch:
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    return pa.record_batch(columns, schema=_STATE_FORM)
