"""Failed rows that were overtaken by later events of their objects, also by events whose rows are gone.

What overtook a failed row is in the log. Once it left, a mark is kept with the failed row. Nothing is kept of
rows that overtook none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from sqlalchemy import bindparam
from sqlalchemy.engine import Connection

from eventlog.core.entry import Cell, read_integer
from eventlog.core.identity import ObjectName, object_hash
from eventlog.sql.log.ranges import Ids, integers
from eventlog.sql.queries import Queries, unbound

OBJECTS = 500  # that one statement looks for
NO_OBJECT = "-"  # instead of the hash of an object, where a row names none
_DELETE = 4
_FIELDS = (1, 2, 3, 7, 8)
_WHOLE = (4, 5, 6)  # the types that concern every column


class OvertakingRow(NamedTuple):
    """A row, as far as it shows which others it overtakes."""

    record_id: int
    event_type: Cell
    object: ObjectName
    column_name: str | None


class Published:
    """The rows that were published: the last of each object, and of each of its columns."""

    def __init__(self, rows: Iterable[OvertakingRow]) -> None:
        self.last: dict[ObjectName, int] = {}
        self._whole: dict[ObjectName, int] = {}
        self._columns: dict[tuple[ObjectName, str], int] = {}
        for row in rows:
            self.last[row.object] = max(row.record_id, self.last.get(row.object, 0))
            if row.event_type in _WHOLE:
                self._whole[row.object] = max(row.record_id, self._whole.get(row.object, 0))
            if row.column_name is not None:
                place = row.object, row.column_name
                self._columns[place] = max(row.record_id, self._columns.get(place, 0))

    def overtook(self, row: OvertakingRow) -> bool:
        """Return whether one of them is after that row and undone by it.

        For a per-field row that is one of its column or of the whole object; for a delete, any one of the
        object.
        """
        if row.event_type == _DELETE:
            return self.last.get(row.object, 0) > row.record_id
        if row.event_type not in _FIELDS:
            return False
        column = 0 if row.column_name is None else self._columns.get((row.object, row.column_name), 0)
        return max(column, self._whole.get(row.object, 0)) > row.record_id


class OvertakenRows:
    """The known facts about overtaken failed rows, in a transaction that reads or deletes rows."""

    def __init__(self, connection: Connection, queries: Queries) -> None:
        self._connection = connection
        self._queries = queries

    def overtaken(self, ids: Iterable[int]) -> set[int]:
        """Return the per-field rows among these whose column was published from a later row, and the deletes
        whose object was.
        """
        overtaken_ids: set[int] = set()
        for chunk in self._queries.chunks(ids):
            overtaken_ids |= self._behind(chunk, "was_published")
            # after the log: what leaves it meanwhile leaves its marks first
            overtaken_ids.update(int(row[0]) for row in self._run("marked_overtaken", ids=chunk))
        return overtaken_ids

    def undone_by(self, ids: Iterable[int], others: Iterable[int]) -> set[int]:
        """Return the per-field rows and deletes among these that later ones of some other rows would undo."""
        published = Published(row for chunk in self._queries.chunks(others) for row in self._rows(chunk))
        if not published.last:
            return set()
        rows = (row for chunk in self._queries.chunks(ids) for row in self._rows(chunk))
        return {row.record_id for row in rows if published.overtook(row)}

    def to_be_overtaken(self, ids: Iterable[int]) -> set[int]:
        """Return the per-field rows and deletes among these that later rows of the log, which are not done,
        would undo.
        """
        return set().union(*(self._behind(chunk, "still_new") for chunk in self._queries.chunks(ids)))

    def _behind(self, chunk: str, condition: str) -> set[int]:
        """Return the rows of a chunk that are undone by later rows of the log, of those that a condition
        finds.
        """
        holes = {"conditions": self._queries.pieces(condition)}
        first = min(json.loads(chunk))
        last = self._queries.run(self._connection, "last_of_objects", holes, ids=chunk, first=first)
        published = Published(_overtaking_rows(last))
        return {row.record_id for row in self._rows(chunk) if published.overtook(row)}

    def leave(self, ids: Ids, *conditions: str) -> None:
        """Mark the failed rows that these overtook, which were published and are to be deleted."""
        if (first := self._first()) is not None:
            chunks = self._queries.chunks(row for row in integers(ids) if row > first)
            self._mark(self._rows(chunk, *conditions) for chunk in chunks)

    def _first(self) -> int | None:
        """Return the first failed row that may get a mark, None where there is none."""
        record_id = self._run("first_failed", most=1).scalar()
        return None if record_id is None else int(record_id)

    def _mark(self, leaving: Iterable[Iterable[OvertakingRow]]) -> None:
        self._name_objects()
        overtaken: list[int] = []
        for rows in leaving:
            published = Published(rows)
            overtaken += (row.record_id for row in self._failed(published.last) if published.overtook(row))
        self._queries.run_by_ids(self._connection, "mark_overtaken", overtaken)

    def objects(self, ids: Iterable[int]) -> dict[int, str]:
        """Return the hash of the object that each of these rows names."""
        hashes = dict.fromkeys(ids, NO_OBJECT)
        for chunk in self._queries.chunks(hashes):
            for row in self._rows(chunk):
                hashes[row.record_id] = object_hash(*row.object)
        return hashes

    def _name_objects(self) -> None:
        """Note the objects of failed rows that an older version kept."""
        most = self._queries.log.dialect.chunk
        while unnamed := [int(row[0]) for row in self._run("unnamed_failures", most=most)]:
            hashes = self.objects(unnamed).items()
            named = [{"record_id": row, "object_hash": row_hash} for row, row_hash in hashes]
            self._queries.run_all(self._connection, "name_failure", named)

    def _failed(self, objects: Iterable[ObjectName]) -> Iterator[OvertakingRow]:
        """Yield the failed rows of objects that are not marked yet.

        If there are fewer of them than objects, it reads all, else only those of the objects.
        """
        hashes = [object_hash(*name) for name in objects]
        failures = self._run("unmarked_failures", most=len(hashes) + 1).all()
        if len(failures) <= len(hashes):
            asked = set(hashes)
            for chunk in self._queries.chunks(int(row) for row, row_hash in failures if row_hash in asked):
                yield from self._rows(chunk)
            return
        of_objects = self._queries.clause("failed_of").bindparams(bindparam("objects", expanding=True))
        for start in range(0, len(hashes), OBJECTS):
            values = {"objects": hashes[start : start + OBJECTS]}
            yield from _overtaking_rows(self._connection.execute(of_objects, values))

    def _rows(self, chunk: str, *conditions: str) -> Iterator[OvertakingRow]:
        return _overtaking_rows(self._read(self._queries.pieces("of_ids", *conditions), ids=chunk))

    def _pages(self, condition: str, after: int) -> Iterator[Iterator[OvertakingRow]]:
        """Yield the published rows after one that a condition finds, a page at a time."""
        conditions = f"{self._queries.pieces('after_row', 'was_published')} and ({unbound(condition)}\n)"
        while rows := self._read(conditions, after=after).all():
            yield _overtaking_rows(rows)
            after = int(rows[-1][0])

    def _read(self, conditions: str, **values: Any) -> Any:
        most = self._queries.log.dialect.chunk
        holes = {"conditions": conditions}
        return self._queries.run(self._connection, "overtaking_rows", holes, most=most, **values)

    def _run(self, name: str, **values: Any) -> Any:
        return self._queries.run(self._connection, name, **values)


def _overtaking_rows(rows: Iterable[Any]) -> Iterator[OvertakingRow]:
    """Yield rows as they are read, without those that name no object."""
    for record_id, kind, table, key, column in rows:
        if table is not None and key is not None:
            yield OvertakingRow(int(record_id), read_integer(kind), (str(table), str(key)), column)
