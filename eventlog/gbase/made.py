"""Changes made of committed records: names from the tables file, facts that a round trip needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import repeat
from typing import Any, Final, NamedTuple

from eventlog.change import ABSENT, Change, Facts, Field, Key, Op, Raw, Value
from eventlog.gbase.records import Number, Truncate, moment
from eventlog.gbase.schema import Schema
from eventlog.gbase.stream import Row
from eventlog.gbase.transactions import Committed, Update
from eventlog.tables import Table, Tables


# a NamedTuple of a sequence, at half the cost of its constructor
_field: Callable[[tuple[Any, ...]], Field] = partial(tuple.__new__, Field)
_change: Callable[[tuple[Any, ...]], Change] = partial(tuple.__new__, Change)
_absent: Final = repeat(ABSENT)


class Named(NamedTuple):
    """A table of the stream as changes name it."""

    schema: Schema | None
    owner: str | None
    name: str
    key: tuple[tuple[str, int], ...]  # each key column and where its value stands
    facts: Facts


class Span(NamedTuple):
    """What all changes of one transaction share."""

    transaction: str
    time: str | None
    user: str
    facts: Facts


class Maker:
    """Makes changes of what a transaction did."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._known: dict[int, Named] = {}

    def changes(self, committed: Committed) -> Iterator[Change]:
        """The changes of a transaction, in its order."""
        begin, commit, operations = committed
        transaction = f"{begin.transaction}@{begin.sequence}"
        facts: Facts = (("begin", moment(begin.time)), ("commit", commit.sequence))
        span = Span(transaction, moment(commit.time), str(begin.user), facts)
        for operation in operations:
            if isinstance(operation, Truncate):
                yield self._truncate(operation, span)
            elif isinstance(operation, Update):
                yield self._change(Op.UPDATE, operation.before, operation.after, span)
            elif operation.number == Number.INSERT:
                yield self._change(Op.INSERT, None, operation, span)
            else:
                yield self._change(Op.DELETE, operation, None, span)

    def _change(self, op: Op, before: Row | None, after: Row | None, span: Span) -> Change:
        row = after or before
        assert row is not None
        schema, values = row.schema, row.values
        if schema is None or _unlike(before, after):
            return self._odd_change(op, before, after, span)
        named = self._named(row.table, schema)
        olds = _absent if before is None else before.values
        news = _absent if after is None else after.values
        fields = tuple(map(_field, zip(schema.names, olds, news, strict=False)))
        key = tuple([(column, values[at]) for column, at in named.key])
        extra = named.facts + span.facts + _facts(before, after)
        position, (transaction, time, user, _) = str(row.sequence), span
        return _change(
            (op, named.owner, named.name, key, fields, position, transaction, time, user, False, extra, None)
        )

    def _odd_change(self, op: Op, before: Row | None, after: Row | None, span: Span) -> Change:
        """A change with a side that is raw, or whose sides were captured under two schemas."""
        row = after or before
        assert row is not None
        named = self._named(row.table, row.schema)
        olds, news = _values(before), _values(after)
        columns = dict.fromkeys((*olds, *news))
        return Change(
            op,
            named.owner,
            named.name,
            self._odd_key(named, news or olds),
            tuple(Field(column, olds.get(column, ABSENT), news.get(column, ABSENT)) for column in columns),
            str(row.sequence),
            span.transaction,
            span.time,
            span.user,
            extra=named.facts + span.facts + _facts(before, after) + _raw_facts(before, after),
            raw=_raw(before, after),
        )

    def _odd_key(self, named: Named, values: dict[str, Value]) -> Key:
        if not all(column in values for column, _ in named.key):
            return ()
        return tuple((column, values[column]) for column, _ in named.key)

    def _truncate(self, record: Truncate, span: Span) -> Change:
        known = self._known.get(record.table)
        named = known or self._named(record.table, None)
        extra = named.facts + span.facts
        position = str(record.sequence)
        return Change(
            Op.TRUNCATE,
            named.owner,
            named.name,
            (),
            (),
            position,
            span.transaction,
            span.time,
            span.user,
            extra=extra,
        )

    def _named(self, number: int, schema: Schema | None) -> Named:
        named = self._known.get(number)
        if named is None or named.schema is not schema:
            named = self._known[number] = _name(self._tables.numbered(number), number, schema)
        return named


def _name(table: Table | None, number: int, schema: Schema | None) -> Named:
    facts: Facts = (("number", number),)
    if schema is not None:
        facts += (("columns", schema.text),)
    if table is None:
        return Named(schema, None, f"table_{number}", (), facts)
    return Named(schema, table.schema, table.name, _key(table, schema), facts)


def _key(table: Table, schema: Schema | None) -> tuple[tuple[str, int], ...]:
    """Where the key columns stand; none where one of them is not captured."""
    names = () if schema is None else schema.names
    places: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        column = table.column(name)
        places.setdefault(name if column is None else column.name, []).append(at)
    found = [places.get(name, []) for name in table.key]
    return tuple((names[at[0]], at[0]) for at in found) if all(len(at) == 1 for at in found) else ()


def _unlike(before: Row | None, after: Row | None) -> bool:
    if before is None or after is None:
        row = after or before
        return row is None or row.image is not None
    return before.schema is not after.schema or before.image is not None or after.image is not None


def _values(row: Row | None) -> dict[str, Value]:
    if row is None or row.schema is None or row.image is not None:
        return {}
    return dict(zip(row.schema.names, row.values, strict=True))


def _facts(before: Row | None, after: Row | None) -> Facts:
    """What differs from what a reader would expect: reserved flags, a sequence of its own before."""
    facts: Facts = ()
    for side, row in (("before", before), ("after", after)):
        if row is not None and row.flags:
            facts += ((f"flags-{side}", row.flags),)
    if before is not None and after is not None and before.sequence != after.sequence:
        facts += (("sequence-before", before.sequence),)
    return facts


def _raw(before: Row | None, after: Row | None) -> Raw | None:
    images = [None if row is None or row.image is None else row.image.payload for row in (before, after)]
    return None if images == [None, None] else Raw(*images)


def _raw_facts(before: Row | None, after: Row | None) -> Facts:
    facts: Facts = ()
    for side, row in (("before", before), ("after", after)):
        if row is not None and row.image is not None:
            facts += ((f"sizes-{side}", row.image.sizes.hex()),)
    return facts and (("decoded", False), *facts)
