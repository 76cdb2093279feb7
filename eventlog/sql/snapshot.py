"""One consistent view of the log and of the tables: rows are queried back as of the moment of the pick-up."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from sqlalchemy import TextClause
from sqlalchemy.engine import Connection

from eventlog.entry import COLUMNS, Cell
from eventlog.sql.queries import Queries, unbound
from eventlog.sql.stretch import LOWEST, NO_STRETCH, Lane, Stretch, between, grow
from eventlog.sql.templates import fill

Cells = Sequence[Cell]  # the ten cells of a row, as entry.read_entry takes them


@dataclass(frozen=True, slots=True)
class Choice:
    """Which pending rows a cycle wants."""

    limit: int = 10_000
    driver_user: str | None = None  # whose rows are left out, as loopback
    future: bool = False  # in order of event_time, rows later than now left out
    most_bytes: int = 256 << 20  # of keys and values in one cycle, and as much again of further rows


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
    def key(self) -> Sequence[KeyColumn]: ...

    @property
    def expressions(self) -> Sequence[str]: ...  # of alias t: the text of each column that may leave


class Current(NamedTuple):
    """One row as it is now, and which of the keys found it."""

    place: int
    texts: tuple[str | None, ...]


class Snapshot:
    """Reads the log; nothing that happens meanwhile shows."""

    def __init__(self, connection: Connection, queries: Queries) -> None:
        self._connection = connection
        self._queries = queries

    def now(self) -> str:
        """The database's clock, in UTC."""
        return str(self._queries.run(self._connection, "now").scalar())

    def pick_up(self, choice: Choice, stretch: Stretch = NO_STRETCH) -> list[Cells]:
        """The pending rows that may go now, up to the limit, then the further rows of their objects among
        as many again (specification 4.5). Waiting objects, loopback and future rows do not count. What a
        stretch covers is not read: its rows may not go."""
        picked = self._pending("pick_up", choice, stretch)
        if len(picked) == choice.limit:
            picked += self._further(choice, picked, stretch)
        return picked

    def fit(self, choice: Choice, stretch: Stretch = NO_STRETCH) -> Choice:
        """The same choice with no more rows than its bytes allow, but for one."""

        def add_up(lane: Lane, most: int) -> list[Any]:
            return self._lane("pending_bytes", replace(choice, limit=most), lane)

        if sum(int(row[0]) for row in _each_lane(add_up, stretch, choice.limit)) <= choice.most_bytes:
            return choice
        sizes = [int(row[1]) for row in self._pending("pending_sizes", choice, stretch)]
        return replace(choice, limit=max(1, _fitting(sizes, choice.most_bytes)))

    def share(self) -> str:
        """The name by which other sessions see what this one sees, where the dialect can do that."""
        return str(self._queries.run(self._connection, "share_snapshot").scalar())

    def every_pending(
        self, choice: Choice, after: int | None = None, upto: int | None = None
    ) -> Iterator[Cells]:
        """All pending rows that may go now, by record_id, `limit` of them with each statement."""
        while chunk := self._lane("pick_up", choice, between(after, upto)):
            yield from chunk
            after = chunk[-1][0]

    def every_pending_id(self, choice: Choice) -> Iterator[int]:
        """Their record_ids, likewise."""
        after = None
        while chunk := self._lane("pending_ids", choice, between(after)):
            yield from (number for (number,) in chunk)
            after = chunk[-1][0]

    def bounds(self, choice: Choice, size: int) -> Iterator[int]:
        """Every so-many-th of them, for those who share them out."""
        after, one = None, replace(choice, limit=1)
        while found := self._lane("pending_ids", one, between(after), skip=size - 1):
            ((after,),) = found
            yield after

    def grow(self, stretch: Stretch, upto: int, enough: int) -> Stretch | None:
        """The stretch made longer, up to a row; None where fewer pending rows than `enough` follow."""
        return grow(self._connection, self._queries, stretch, upto, enough)

    def _further(self, choice: Choice, picked: Sequence[Any], stretch: Stretch) -> Iterator[Any]:
        objects = {_object(cells) for cells in picked}
        # behind the last row in the one order; in the other there is no single place to go on from
        where = {"skip": choice.limit} if choice.future else {"after": picked[-1][0]}
        found = self._pending("further", choice, stretch, **where)
        ids = self._fitting([number for number, *named in found if tuple(named) in objects], choice)
        rows = {cells[0]: cells for cells in self.rows(ids)}
        return (rows[number] for number in ids)

    def _pending(
        self, name: str, choice: Choice, stretch: Stretch = NO_STRETCH, after: int = LOWEST, skip: int = 0
    ) -> list[Any]:
        def read(lane: Lane, most: int) -> list[Any]:
            return self._lane(name, replace(choice, limit=most), lane, skip)

        return _in_lanes(read, stretch, after, choice.limit)

    def _lane(self, name: str, choice: Choice, lane: Lane, skip: int = 0) -> list[Any]:
        clause, values = pending_statement(self._queries, name, choice, lane, skip)
        return list(self._connection.execute(clause, values).all())  # row by row takes twice the time

    def _fitting(self, ids: list[int], choice: Choice) -> list[int]:
        """The first of these rows, as many as the bytes allow."""
        chunks = self._queries.chunks(ids)
        found = (self._queries.run(self._connection, "sizes_by_id", ids=chunk) for chunk in chunks)
        sizes = {row[0]: int(row[1]) for rows in found for row in rows}
        return ids[: _fitting([sizes[number] for number in ids], choice.most_bytes)]

    def attempt(self) -> AbstractContextManager[object]:
        """A block whose failing statement costs only itself, not the snapshot."""
        return self._connection.begin_nested()

    def rows(self, ids: Iterable[int]) -> Iterator[Cells]:
        """Rows by their ids, whatever their status."""
        for chunk in self._queries.chunks(ids):
            yield from self._queries.run(self._connection, "rows_by_id", ids=chunk)

    def rows_of_object(self, table_name: str, table_key: str) -> list[Cells]:
        """Every row of one object, handled ones too."""
        found = self._queries.run(
            self._connection, "rows_of_object", table_name=table_name, table_key=table_key
        )
        return list(found)

    def loopback(self, driver_user: str, limit: int, stretch: Stretch = NO_STRETCH) -> list[int]:
        """The pending rows of the driver's own user, without those that a stretch covers."""
        return self._ids(limit, "loopback", stretch, driver_user=driver_user)

    def latest_notice(self) -> int | None:
        """The notice that somebody left last."""
        found = self._queries.run(self._connection, "latest_notice").scalar()
        return None if found is None else int(found)

    def timeless(self, limit: int) -> list[int]:
        """The pending rows without event_time, which a pick-up by time never sees."""
        return self._ids(limit, "timeless")

    def _ids(self, limit: int, condition: str, stretch: Stretch = NO_STRETCH, **values: Any) -> list[int]:
        def read(lane: Lane, most: int) -> list[Any]:
            holes = {
                "conditions": self._queries.pieces("pending", *lane.conditions, condition),
                "order": self._queries.piece("by_record_id"),
            }
            given = values | lane.values | {"rows": most}
            return list(self._queries.run(self._connection, "ids", holes, **given))

        return [row[0] for row in _in_lanes(read, stretch, LOWEST, limit)]

    def current_rows(self, table: Readable, keys: Sequence[Sequence[str]]) -> Iterator[Current]:
        """The rows of the keys as they are in this snapshot, a statement for each chunk of keys.

        The values of a key stand in key order, and who calls has made sure that they are of the
        column's type: one bad value would fail the whole statement.
        """
        holes = _current_holes(table)
        size = self._queries.log.dialect.chunk
        for start in range(0, len(keys), size):
            wanted = [
                {"n": start + n} | {f"k{i}": value for i, value in enumerate(key)}
                for n, key in enumerate(keys[start : start + size])
            ]
            found = self._queries.run(self._connection, "current", holes, keys=json.dumps(wanted))
            for place, *texts in found:
                yield Current(place, tuple(texts))


def _in_lanes(read: Callable[[Lane, int], list[Any]], stretch: Stretch, after: int, limit: int) -> list[Any]:
    """The first rows that a stretch does not cover, behind a row: in its gaps, then behind its end."""
    found = [row for lane in stretch.gaps(after) for row in read(lane, limit)]
    found.sort(key=itemgetter(0))
    del found[limit:]
    return found + read(stretch.rest(after), limit - len(found)) if len(found) < limit else found


def _each_lane(read: Callable[[Lane, int], list[Any]], stretch: Stretch, most: int) -> Iterator[Any]:
    for lane in (*stretch.gaps(LOWEST), stretch.rest(LOWEST)):
        yield from read(lane, most)


def _fitting(sizes: Sequence[int], most: int) -> int:
    """How many of the first come to no more than that."""
    return bisect_right(list(accumulate(sizes)), most)


def pending_statement(
    queries: Queries, name: str, choice: Choice, lane: Lane | None = None, skip: int = 0
) -> tuple[TextClause, dict[str, Any]]:
    """A statement on pending rows that may go, and its values."""
    among, given = lane or Lane((), {})
    conditions = ["pending", *among]
    values: dict[str, Any] = given | {"rows": choice.limit, "skip": skip}
    if choice.driver_user is not None:
        conditions.append("not_loopback")
        values["driver_user"] = choice.driver_user
    if choice.future:
        conditions.append("not_future")
    conditions.append("not_held")  # the dearest: MariaDB asks in this order
    holes = {
        "conditions": queries.pieces(*conditions),
        "order": queries.piece("by_event_time" if choice.future else "by_record_id"),
        "use_index": "" if choice.future else queries.log.dialect.index_hint(queries.name("log_pending")),
    }
    return queries.clause(name, **holes), values


_TABLE_NAME, _TABLE_KEY = COLUMNS.index("table_name"), COLUMNS.index("table_key")


def _object(cells: Cells) -> tuple[object, object]:
    return cells[_TABLE_NAME], cells[_TABLE_KEY]


def _current_holes(table: Readable) -> dict[str, str]:
    typed = [(f"k{i}", column) for i, column in enumerate(table.key)]
    matches = (fill(column.matches, {"c": column.name, "k": f"k.{name}"}) for name, column in typed)
    return {
        "source": unbound(table.source),
        "columns": "".join(f",\n  {unbound(expression)}" for expression in table.expressions),
        "typed_keys": "".join(f", {name} {column.type}" for name, column in typed),
        "typed_paths": "".join(f", {name} {column.type} path '$.{name}'" for name, column in typed),
        "matches": " and ".join(unbound(match) for match in matches),
    }
