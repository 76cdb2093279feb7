"""A builder of changes from committed records, with names from the tables file.

The facts of a change hold what is needed to write its records again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import repeat
from typing import Any, Final, NamedTuple

from eventlog.core.change import ABSENT, Change, Facts, Field, Key, Op, Raw, Value
from eventlog.core.errors import Refused
from eventlog.core.tables import Table, Tables
from eventlog.formats.gbase.halves import Ambiguous, Update
from eventlog.formats.gbase.records import Number, Truncate, moment
from eventlog.formats.gbase.schema import RowLayout, Schema
from eventlog.formats.gbase.stream import RowRecord
from eventlog.formats.gbase.transactions import Committed

# a NamedTuple of a sequence, at half the cost of its constructor
_new: Callable[..., Field] = tuple.__new__
_field: Iterable[type[Field]] = repeat(Field)
_change: Callable[[tuple[Any, ...]], Change] = partial(tuple.__new__, Change)
_INSERT: Final = int(Number.INSERT)
_absent: Iterable[Any] = repeat(ABSENT)


class StreamTable(NamedTuple):
    """A table of the stream as changes name it."""

    schema: Schema | None
    owner: str | None
    name: str
    columns: tuple[str, ...]
    key: tuple[tuple[str, int], ...]  # each key column and the position of its value
    facts: Facts
    layout: RowLayout | None


Tail = tuple[str, str | None, str, bool, Facts, None]  # the last fields of Change


class TransactionSpan(NamedTuple):
    """The facts that all changes of one transaction share."""

    transaction: str
    time: str | None
    user: str
    facts: Facts
    tails: dict[int, tuple[StreamTable, Tail]]  # by table

    def tail(self, table: int, stream_table: StreamTable) -> Tail:
        """Return the last fields of the changes of a table."""
        cached = self.tails.get(table)
        if cached is not None and cached[0] is stream_table:
            return cached[1]
        tail = (self.transaction, self.time, self.user, False, stream_table.facts + self.facts, None)
        self.tails[table] = stream_table, tail
        return tail


class ChangeBuilder:
    """Makes changes of the operations of a transaction."""

    def __init__(self, tables: Tables, where: Callable[[], str] = str) -> None:
        self._tables = tables
        self._where = where
        self._named_tables: dict[int, StreamTable] = {}

    def changes(self, committed: Committed) -> Iterator[Change | Refused]:
        """Yield the changes of a transaction, in its order."""
        begin, commit, operations, _ = committed
        transaction = f"{begin.transaction}@{begin.sequence}"
        facts: Facts = (("begin", moment(begin.time)), ("commit", commit.sequence))
        span = TransactionSpan(transaction, moment(commit.time), str(begin.user), facts, {})
        for operation in operations:
            if type(operation) is RowRecord:
                yield self._row_change(operation, span)
            elif isinstance(operation, Update):
                yield self._update(operation, span)
            elif isinstance(operation, Ambiguous):
                yield self._report(operation, transaction)
            else:
                assert isinstance(operation, Truncate)
                yield self._truncate(operation, span)

    def key_of(self, row: RowRecord) -> object:
        """Return the values of a row's key; None where the key is not known or not read."""
        if row.schema is None or row.image is not None:
            return None
        stream_table = self.table_of(row.table, row.schema)
        return tuple([row.values[at] for _, at in stream_table.key]) or None

    def _report(self, ambiguous: Ambiguous, transaction: str) -> Refused:
        name = self._named_tables[ambiguous.table].name
        return Refused(
            self._where(),
            f"transaction {transaction}: several UPDBEF of table {name} precede their UPDAFT, and no "
            "key pairs them. They become updates with one side; state the table's number and key in the "
            "tables file",
        )

    def _row_change(self, row: RowRecord, span: TransactionSpan) -> Change:
        number, sequence, _, table, flags, schema, values, image, _ = row
        if image is not None or flags or schema is None:
            if number == _INSERT:
                return self._odd_change(Op.INSERT, None, row, span)
            return self._odd_change(Op.DELETE, row, None, span)
        stream_table = self.table_of(table, schema)
        if number == _INSERT:
            op = Op.INSERT
            fields = tuple(map(_new, _field, zip(stream_table.columns, _absent, values)))  # noqa: B905
        else:
            op = Op.DELETE
            fields = tuple(map(_new, _field, zip(stream_table.columns, values, _absent)))  # noqa: B905
        key = tuple([(column, values[at]) for column, at in stream_table.key]) if stream_table.key else ()
        tail = span.tail(table, stream_table)
        return _change((op, stream_table.owner, stream_table.name, key, fields, str(sequence), *tail))

    def _update(self, update: Update, span: TransactionSpan) -> Change:
        before, after = update
        if before is None or after is None or _unlike(before, after):
            return self._odd_change(Op.UPDATE, before, after, span)
        stream_table = self.table_of(after.table, after.schema)
        sides = zip(stream_table.columns, before.values, after.values, strict=True)
        fields = tuple(map(_new, _field, sides))
        key = tuple([(column, after.values[at]) for column, at in stream_table.key])
        tail = span.tail(after.table, stream_table)
        return _change(
            (Op.UPDATE, stream_table.owner, stream_table.name, key, fields, str(after.sequence), *tail)
        )

    def _odd_change(
        self, op: Op, before: RowRecord | None, after: RowRecord | None, span: TransactionSpan
    ) -> Change:
        """Return a change with a side that is raw, or whose sides were captured under two schemas."""
        row = after or before
        assert row is not None
        stream_table = self.table_of(row.table, row.schema)
        old_values, new_values = _values(before), _values(after)
        columns = dict.fromkeys((*old_values, *new_values))
        fields = tuple(Field(c, old_values.get(c, ABSENT), new_values.get(c, ABSENT)) for c in columns)
        key = self._odd_key(stream_table, new_values or old_values)
        tail = span.tail(row.table, stream_table)
        change = Change(op, stream_table.owner, stream_table.name, key, fields, str(row.sequence), *tail)
        extra = change.extra + _facts(before, after) + _raw_facts(before, after)
        return change._replace(extra=extra, raw=_raw(before, after))

    def _odd_key(self, stream_table: StreamTable, values: dict[str, Value]) -> Key:
        if not all(column in values for column, _ in stream_table.key):
            return ()
        return tuple((column, values[column]) for column, _ in stream_table.key)

    def _truncate(self, record: Truncate, span: TransactionSpan) -> Change:
        stream_table = self._named_tables.get(record.table) or self.table_of(record.table, None)
        tail = span.tail(record.table, stream_table)
        position = str(record.sequence)
        return Change(Op.TRUNCATE, stream_table.owner, stream_table.name, (), (), position, *tail)

    def table_of(self, number: int, schema: Schema | None) -> StreamTable:
        """Return a table as changes name it, whose rows are read with this schema from now on."""
        stream_table = self._named_tables.get(number)
        if (
            stream_table is None
            or stream_table.schema is not schema
            or (schema is not None and stream_table.layout is not schema.layout)
        ):
            stream_table = _stream_table(self._tables.numbered(number), number, schema)
            self._named_tables[number] = stream_table
        return stream_table


def _stream_table(table: Table | None, number: int, schema: Schema | None) -> StreamTable:
    facts: Facts = (("number", number),)
    columns = () if schema is None else schema.names
    layout = None if schema is None else schema.layout
    if schema is not None:
        facts += (("columns", schema.text), *schema.layout.facts())
    if table is None:
        return StreamTable(schema, None, f"table_{number}", columns, (), facts, layout)
    return StreamTable(schema, table.schema, table.name, columns, _key(table, schema), facts, layout)


def _key(table: Table, schema: Schema | None) -> tuple[tuple[str, int], ...]:
    """Return the positions of the key columns; none if one of them is not captured."""
    names = () if schema is None else schema.names
    places: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        column = table.column(name)
        places.setdefault(name if column is None else column.name, []).append(at)
    key_places = [places.get(name, []) for name in table.key]
    return tuple((names[at[0]], at[0]) for at in key_places) if all(len(at) == 1 for at in key_places) else ()


def _unlike(before: RowRecord, after: RowRecord) -> bool:
    """Return whether the two records of an update differ in more than their values, or are not decoded."""
    return (
        before.schema is None
        or before.schema is not after.schema
        or before.image is not None
        or after.image is not None
        or before.sequence != after.sequence
        or bool(before.flags or after.flags)
    )


def _values(row: RowRecord | None) -> dict[str, Value]:
    if row is None or row.schema is None or row.image is not None:
        return {}
    return dict(zip(row.schema.names, row.values, strict=True))


def _facts(before: RowRecord | None, after: RowRecord | None) -> Facts:
    """Return the facts that a reader would not expect: reserved flags, a separate sequence of the old row."""
    facts: Facts = ()
    for side, row in (("before", before), ("after", after)):
        if row is not None and row.flags:
            facts += ((f"flags-{side}", row.flags),)
    if before is not None and after is not None and before.sequence != after.sequence:
        facts += (("sequence-before", before.sequence),)
    return facts


def _raw(before: RowRecord | None, after: RowRecord | None) -> Raw | None:
    images = [None if row is None or row.image is None else row.image.payload for row in (before, after)]
    return None if images == [None, None] else Raw(*images)


def _raw_facts(before: RowRecord | None, after: RowRecord | None) -> Facts:
    facts: Facts = ()
    for side, row in (("before", before), ("after", after)):
        if row is not None and row.image is not None:
            facts += ((f"sizes-{side}", row.image.sizes.hex()),)
    return facts and (("decoded", False), *facts)
