"""The pending rows of one cycle: which may go, and how many of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy.engine import Connection

from eventlog.core.entry import Cell, record_id_of
from eventlog.core.identity import ObjectName, object_of
from eventlog.core.tables import Tables
from eventlog.sql.common.dialect import Call, Storage
from eventlog.sql.queries import Queries

if TYPE_CHECKING:
    from eventlog.sql.columns import PickedColumns, ResultColumns

BY_COLUMN_FROM = 300  # rows, from which on columns pay (measured: 200 with query-backs, 350 without)
LogCells = Sequence[Cell]  # the ten cells of a row, as entry.read_entry takes them
NO_TABLES = Tables()
LOWEST, HIGHEST = -(2**63), 2**63 - 1  # record_ids


@dataclass(frozen=True, slots=True)
class PickUpFilter:
    """The pending rows that a cycle wants."""

    limit: int = 10_000
    driver_user: str | None = None  # whose rows are left out, as loopback
    future: bool = False  # in order of event_time, rows later than now left out
    above: int = LOWEST  # rows up to this one are left out
    most_bytes: int = 3 << 20  # of keys and values in one cycle
    inserts: frozenset[int] = frozenset((1,))  # event types whose rows make one event of an insert
    tables: Tables = NO_TABLES  # by which objects are named
    halted: frozenset[str] = frozenset()  # table_names without case, whose rows are left for now
    by_column: bool = False  # rows come by column, where they can

    def object_of(self, table_name: object, table_key: object) -> ObjectName:
        """Return the object that a row is about."""
        return object_of(self.tables, str(table_name), str(table_key))


class PickUp(NamedTuple):
    """The pending rows of one cycle."""

    cells: list[LogCells]
    full: bool = False  # there may be more rows that may go
    columns: PickedColumns | None = None  # the rows, where they came by column
    loopback: Sequence[int] = ()  # the rows of our own user, if they were asked for

    @property
    def ids(self) -> list[int]:
        """The record_ids of the rows that may go."""
        if self.columns is not None:
            ids: list[int] = self.columns.ids.tolist()
            return ids
        return list(map(record_id_of, self.cells))


class FirstLook(NamedTuple):
    """A first look at the pending rows: the rows themselves, if they are few and small together."""

    choice: PickUpFilter
    few_rows: list[LogCells]  # none if there are none, too
    own_rows: list[int]  # the pending rows of our own user


class Pending:
    """Reads the pending rows that may go, of a log that does not change meanwhile."""

    def __init__(self, connection: Connection, queries: Queries) -> None:
        self._connection = connection
        self._queries = queries

    def comes_by_column(self, choice: PickUpFilter) -> bool:
        """Return whether rows may come by column, and can: with integer ids, in the one order."""
        stored = self._queries.log.stored
        plain = all(stored[name].storage is Storage.INTEGER for name in ("record_id", "event_type"))
        return plain and choice.by_column and not choice.future

    def fit(self, choice: PickUpFilter) -> PickUpFilter | None:
        """Return the choice with no more rows than its bytes allow, but at least one; few rows come one by
        one. None if there are no rows.
        """
        octets, row_count = map(int, self.pending("pending_bytes", choice)[0])
        if not row_count:
            return None
        if row_count < BY_COLUMN_FROM:
            choice = replace(choice, by_column=False)
        if octets <= choice.most_bytes:
            return choice
        sizes = [int(size) for _, size in self.pending("pending_sizes", choice)]
        return replace(choice, limit=max(1, bisect_right(list(accumulate(sizes)), choice.most_bytes)))

    def every_pending(
        self, choice: PickUpFilter, after: int | None = None, upto: int | None = None
    ) -> Iterator[LogCells]:
        """Yield all pending rows that may go now, by record_id, `limit` of them with each statement."""
        while chunk := self.pending("pick_up", choice, LOWEST if after is None else after, 0, upto):
            yield from chunk
            after = chunk[-1][0]

    def rows(self, ids: Iterable[int]) -> Iterator[LogCells]:
        """Return rows by their ids, whatever their status."""
        for chunk in self._queries.chunks(ids):
            yield from self._queries.run(self._connection, "rows_by_id", ids=chunk)

    def columns(
        self,
        name: str,
        choice: PickUpFilter,
        names: Sequence[str],
        numbers: Sequence[str],
        texts: Sequence[str],
        *,
        after: int = LOWEST,
    ) -> ResultColumns:
        """Return the first rows after one, by column; `names` are those of the statement's columns."""
        from eventlog.sql.columns import read_columns

        clause, values = pending_statement(self._queries, name, choice, after)
        return read_columns(
            self._connection, self._queries, clause, values, names, numbers=numbers, texts=texts
        )

    def columns_by_id(
        self, ids: Sequence[int], names: Sequence[str], numbers: Sequence[str], texts: Sequence[str]
    ) -> list[ResultColumns]:
        """Yield rows by their ids, by column, some at a time; `names` are the statement's columns."""
        from eventlog.sql.columns import read_columns

        clause = self._queries.clause("columns_by_id")
        return [
            read_columns(
                self._connection,
                self._queries,
                clause,
                {"ids": chunk},
                names,
                numbers=numbers,
                texts=texts,
            )
            for chunk in self._queries.chunks(ids)
        ]

    def pending(
        self,
        name: str,
        choice: PickUpFilter,
        after: int = LOWEST,
        skip: int = 0,
        upto: int | None = None,
    ) -> list[Any]:
        """Return the first rows after one, up to another."""
        call = pending_statement(self._queries, name, choice, after, upto, skip)
        rows: list[Any] = self._queries.run_calls(self._connection, [call])[0]
        return rows

    def sizes(self, ids: Sequence[int]) -> list[int]:
        """Return the bytes of keys and values of each of these rows; 0 of one that is gone."""
        chunks = self._queries.chunks(ids)
        answers = (self._queries.run(self._connection, "sizes_by_id", ids=chunk).all() for chunk in chunks)
        sizes = {int(number): int(size) for rows in answers for number, size in rows}
        return [sizes.get(number, 0) for number in ids]


def first_look(queries: Queries, choice: PickUpFilter) -> list[Call]:
    """Return what looks at the pending rows first; `looked` reads the answers."""
    few = replace(choice, limit=min(choice.limit, BY_COLUMN_FROM))
    few_clause, values = pending_statement(queries, "pick_few", few)
    values = {**values, "few": BY_COLUMN_FROM, "most_bytes": choice.most_bytes}
    calls = [Call(few_clause, values)]
    if choice.driver_user is None:
        return calls
    loopback = ids_statement(queries, choice.limit, "loopback", choice.above, driver_user=choice.driver_user)
    return [*calls, loopback]


def looked(choice: PickUpFilter, answers: Sequence[Any]) -> FirstLook:
    """Return what the answers to a first look show."""
    few_rows, *own_rows = answers
    return FirstLook(choice, few_rows, [number for rows in own_rows for (number,) in rows])


def ids_statement(queries: Queries, limit: int, condition: str, above: int = LOWEST, **values: Any) -> Call:
    """Return a statement for the first pending rows above a record_id, under a condition."""
    conditions = [condition]
    if above > LOWEST:
        conditions.insert(0, "after_row")
        values["after"] = above
    holes = {
        "rows": queries.relation(),
        "conditions": queries.pieces("pending", *conditions),
        "order": queries.piece("by_record_id"),
    }
    return queries.call("ids", holes, **values, most=limit)


def pending_statement(
    queries: Queries,
    name: str,
    choice: PickUpFilter,
    after: int = LOWEST,
    upto: int | None = None,
    skip: int = 0,
) -> Call:
    """Return a statement on pending rows that may go, and its values."""
    conditions = ["pending"]
    values: dict[str, Any] = {"most": choice.limit, "skip": skip}
    if (after := max(after, choice.above)) > LOWEST:
        conditions.append("after_row")
        values["after"] = after
    if upto is not None:
        conditions.append("up_to_row")
        values["upto"] = upto
    if choice.driver_user is not None:
        conditions.append("not_loopback")
        values["driver_user"] = choice.driver_user
    if choice.future:
        conditions.append("not_future")
    conditions.append("not_held")  # the dearest: MariaDB asks in this order
    holes = {
        "conditions": f"{queries.pieces(*conditions)}{_not_halted(queries, values, choice.halted)}",
        "order": queries.piece("by_event_time" if choice.future else "by_record_id"),
        "rows": queries.relation(in_order=not choice.future),
    }
    return queries.call(name, holes, **values)


def _not_halted(queries: Queries, values: dict[str, Any], halted: frozenset[str]) -> str:
    """Return the condition that leaves out the rows of halted tables, whose names it adds to the values."""
    if not halted:
        return ""
    names = {f"halted_{number}": name for number, name in enumerate(sorted(halted))}
    values |= names
    column, marks = queries.name("table_name"), ", ".join(f":{name}" for name in names)
    return f"\n    and ({column} is null or lower({column}) not in ({marks}))"
