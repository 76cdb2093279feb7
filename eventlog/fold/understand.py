"""Rule 0: what a row says, checked against its table; or the reason why it says nothing that holds."""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import cached_property
from typing import NamedTuple

from eventlog import tablekey, values
from eventlog.change import ABSENT, Field, Key, Op, Value
from eventlog.entry import Entry
from eventlog.errors import UnknownColumn, UnknownTable, ValueTooLarge, WrongRow
from eventlog.fold.rules import Rules
from eventlog.tables import Column, Table, Tables
from eventlog.values import Kind

QueryKey = tuple[Value, ...]  # the values of a table's key, in the key's order
Place = tuple[str, int]  # event_time where that orders, else empty; record_id
Loader = Callable[[str | None], Value]


class Step(NamedTuple):
    """A row that takes part; or the row that speaks for several, which it swallowed."""

    place: Place
    entry: Entry
    type: int
    op: Op
    column: str = ""
    fields: tuple[Field, ...] = ()  # what it says; a query-back learns that from the current row
    silence: str = ""  # why it says nothing
    swallowed: tuple[int, ...] = ()


class Attribute(NamedTuple):
    """A column as the rows of one table name it."""

    name: str
    load: Loader
    silence: str  # why its values do not leave: it is of the key, or withheld
    known: bool


class Object:
    """One object of the pick-up, by its table_name and the text of its table_key."""

    __slots__ = ("_query_key", "key", "name", "reader", "table_key")

    def __init__(self, reader: TableReader, table_name: str, table_key: str) -> None:
        values.check_xml(table_key)
        self.reader = reader
        self.name = (table_name, table_key)
        self.table_key = table_key
        self._query_key: QueryKey | None = None
        self.key: Key = reader.table.load_key(table_key) if reader.table else tablekey.read(table_key)

    @property
    def table(self) -> Table:
        """The table of the object; asked for only where a query-back was understood."""
        assert self.reader.table is not None
        return self.reader.table

    def query_key(self) -> QueryKey:
        """The key with which this object's current row is asked for."""
        if self._query_key is None:
            self._query_key = self._read_query_key()
        return self._query_key

    def _read_query_key(self) -> QueryKey:
        table = self.reader.table
        if table is None:
            raise UnknownTable(self.name[0])
        if not self.reader.answerable:
            raise WrongRow(f"table {table} may not be queried back: no current rows are at hand for it")
        names, found = zip(*self.key, strict=True)
        if names == table.key and all([type(value) is int for value in found]):  # noqa: C419
            return found
        return query_key(table, tablekey.read(self.table_key))


class TableReader:
    """How the rows that carry one table_name are understood."""

    def __init__(
        self, table: Table | None, name: str, rules: Rules, *, closed: bool, answerable: bool
    ) -> None:
        self.table = table
        self._closed = closed  # nothing leaves that is none of its columns
        self.answerable = answerable
        self.schema = table.schema if table else None
        self.name = table.name if table else values.check_xml(name)
        limit = table.max_value if table and table.max_value is not None else rules.max_value
        self._limit = limit
        inserts = Op.INSERT if rules.insert_query_back == "add" else Op.UPDATE
        self.query_ops = {5: inserts, 6: Op.UPDATE, 7: inserts, 8: Op.UPDATE}
        self.attributes = _Attributes(self._attribute)

    @cached_property
    def data(self) -> tuple[tuple[Column, Loader], ...]:
        """The columns that a query-back brings, each with what loads its texts."""
        columns = self.table.data if self.table else ()
        return tuple((column, self._loader(column.kind)) for column in columns)

    def _loader(self, kind: Kind) -> Loader:
        """What loads a column's text, up to the limit of its size."""
        load, limit = values.CODECS[kind].load, self._limit
        surely_small = limit // 4  # characters, of which none takes more than four bytes
        as_it_is = kind is Kind.STRING

        def load_limited(text: str | None) -> Value:
            if text is None:
                return None
            if len(text) > surely_small and (size := len(text.encode(errors="replace"))) > limit:
                raise ValueTooLarge(size, limit)
            if as_it_is and text.isprintable():
                return text
            return load(text)

        return load_limited

    def _attribute(self, name: str | None) -> Attribute:
        if name is None:
            raise WrongRow("column_name is null")
        column = self.table.column(name) if self.table else None
        if column is None or self.table is None:
            if self._closed:
                silence = f"{self.name} has publish or withhold, and no column {name!r}"
                return Attribute(name, _load_nothing, silence, known=False)
            return Attribute(values.check_xml(name), self._loader(Kind.STRING), "", known=False)
        if column.name in self.table.key:
            silence = f"column {column.name} is of the key"
            return Attribute(column.name, self._loader(column.kind), silence, known=True)
        if not column.leaves:
            return Attribute(column.name, _load_nothing, f"column {column.name} is withheld", known=True)
        return Attribute(column.name, self._loader(column.kind), "", known=True)


def _load_nothing(text: str | None) -> Value:
    """What may not leave is not even looked at: no reason for a refusal can show it."""
    return None


class _Attributes(dict[str | None, Attribute]):
    """The columns that per-field rows name, each made when it is first named."""

    def __init__(self, make: Callable[[str | None], Attribute]) -> None:
        self._make = make

    def __missing__(self, name: str | None) -> Attribute:
        made = self[name] = self._make(name)
        return made


class Reader:
    """How the rows of a pick-up are understood: one TableReader for each table_name."""

    def __init__(self, tables: Tables, rules: Rules, answerable: Container[Table]) -> None:
        self._tables = tables
        self._rules = rules
        self._answerable = answerable
        self._readers: dict[str, TableReader] = {}

    def object(self, table_name: str, table_key: str) -> Object:
        """The object that a row names; EventlogError says why none of its rows can be understood."""
        reader = self._readers.get(table_name)
        if reader is None:
            reader = self._readers[table_name] = self._reader(table_name)
        return Object(reader, table_name, table_key)

    def _reader(self, name: str) -> TableReader:
        table = self._tables.find(name)
        if table is None and self._rules.unknown_tables == "error":
            raise UnknownTable(name)
        return TableReader(
            table,
            name,
            self._rules,
            closed=self._tables.shuts(name) if table is None else table.closed,
            answerable=table is not None and table in self._answerable,
        )


def query_key(table: Table, pairs: tablekey.Pairs) -> QueryKey:
    """The values of exactly the table's key, in its order, each of its column's type."""
    given = {}
    for name, text in pairs:
        column = table.column(name)
        given[column.name if column else name] = text
    if len(given) != len(pairs) or given.keys() != set(table.key) or not pairs:
        raise WrongRow(
            f"the key names {', '.join(name for name, _ in pairs)}, "
            f"but the key of {table} is {', '.join(table.key) or 'not known'}"
        )
    return tuple(_query_value(column.kind, given[column.name]) for column in table.key_columns)


def _query_value(kind: Kind, text: str) -> Value:
    value = values.load(kind, text)
    if kind is Kind.INT:
        return int(value) if isinstance(value, str) else value
    if kind in values.TIMES:
        return values.read_moment(kind, text).iso
    return value


_INSERT, _UPDATE, _DELETE = (
    Op.INSERT,
    Op.UPDATE,
    Op.DELETE,
)  # looking one up costs a call
_new = tuple.__new__  # a third of the cost of a named tuple's constructor


def _insert_field(of: Object, entry: Entry, place: Place) -> Step:
    name, load, silence, _ = of.reader.attributes[entry.column_name]
    fields = (_new(Field, (name, ABSENT, load(entry.new_value))),)
    return _new(Step, (place, entry, 1, _INSERT, name, fields, silence, ()))


def _update_field(of: Object, entry: Entry, place: Place) -> Step:
    name, load, silence, _ = of.reader.attributes[entry.column_name]
    before, after = load(entry.old_value), load(entry.new_value)
    if before == after:
        silence = silence or "old and new value are equal, or both null"
    fields = (_new(Field, (name, before, after)),)
    return _new(Step, (place, entry, 2, _UPDATE, name, fields, silence, ()))


def _replace_field(of: Object, entry: Entry, place: Place) -> Step:
    name, load, silence, _ = of.reader.attributes[entry.column_name]
    fields = (_new(Field, (name, ABSENT, load(entry.new_value))),)
    return _new(Step, (place, entry, 3, _UPDATE, name, fields, silence, ()))


def _delete_row(of: Object, entry: Entry, place: Place) -> Step:
    return _new(Step, (place, entry, 4, _DELETE, "", (), "", ()))


def _query_row(of: Object, entry: Entry, place: Place) -> Step:
    of.query_key()
    number = entry.event_type
    return _new(Step, (place, entry, number, of.reader.query_ops[number], "", (), "", ()))


def _query_field(of: Object, entry: Entry, place: Place) -> Step:
    of.query_key()
    name, _, silence, known = of.reader.attributes[entry.column_name]
    if not known:
        raise UnknownColumn(of.reader.table, entry.column_name)
    return Step(place, entry, entry.event_type, of.reader.query_ops[entry.event_type], name, (), silence)


# What a row says, by its event type; EventlogError says why it cannot be understood.
STEPS: dict[int, Callable[[Object, Entry, Place], Step]] = {
    1: _insert_field,
    2: _update_field,
    3: _replace_field,
    4: _delete_row,
    5: _query_row,
    6: _query_row,
    7: _query_field,
    8: _query_field,
}
