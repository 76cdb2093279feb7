"""The content of a row, checked against its table, or why it cannot be understood (rule 0 of the fold)."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import cached_property
from typing import NamedTuple

from eventlog.core import tablekey, values
from eventlog.core.change import ABSENT, Field, Key, Op, Value
from eventlog.core.entry import Entry
from eventlog.core.errors import UnknownColumn, UnknownTable, ValueTooLarge, WrongRow
from eventlog.core.identity import Identified, identify, wrong_key
from eventlog.core.tablekey import Pairs
from eventlog.core.tables import LOST, Column, Table, Tables, plain_name
from eventlog.core.values import Kind
from eventlog.fold.rules import Rules

QueryKey = tuple[Value, ...]  # the values of a table's key, in the key's order
Place = tuple[str, int]  # event_time where that orders, else empty; record_id
Loader = Callable[[str | None], Value]
UnknownName = tuple[str, str]  # a table and a column that it lacks


def why_unknown(name: UnknownName) -> str:
    """Return what happens to rows of a column that its table lacks, and what to do."""
    return (
        f"rows name column {name[1]!r}, which table {name[0]} lacks. Its values are sent as strings, and not"
        " at all by types 7 and 8 or with whole rows. Add or describe the column, correct the program that"
        " writes the rows, or set unknown-columns = refuse"
    )


class Step(NamedTuple):
    """A row that takes part, or a query-back row with the rows that it superseded."""

    place: Place
    entry: Entry
    type: int
    op: Op
    column: str = ""
    fields: tuple[Field, ...] = ()  # its content; that of a query-back comes from the current row
    silence: str = ""  # why it has no content
    superseded: tuple[int, ...] = ()
    unread: bool = False  # it is of a column that a query-back of its row does not read


class Attribute(NamedTuple):
    """A column as the rows of one table name it."""

    name: str
    load: Loader
    silence: str  # why its values do not leave: it is of the key, or withheld
    exists: bool
    unread: bool = False  # a query-back of the row does not contain its values, which may leave


class NamedObject:
    """One object of the pick-up, by one of its names."""

    __slots__ = ("_pairs", "_query_key", "child", "key", "name", "reader", "table_key")

    def __init__(self, reader: TableReader, identified: Identified, table_key: str, written: Pairs) -> None:
        values.check_xml(table_key)
        self.reader = reader
        self.name = identified.name
        self.child = identified.child
        self.table_key = table_key  # that its association repeats
        self._pairs = identified.pairs
        self._query_key: QueryKey | None = None
        self.key: Key = reader.table.load_pairs(written) if reader.table else written

    @property
    def table(self) -> Table:
        """The table of the object; asked for only where a query-back was understood."""
        assert self.reader.table is not None
        return self.reader.table

    def query_key(self) -> QueryKey:
        """Return the key with which this object's current row is asked for."""
        if self._query_key is None:
            self._query_key = self._read_query_key()
        return self._query_key

    def _read_query_key(self) -> QueryKey:
        table = self.reader.table
        if table is None:
            raise UnknownTable(self.name[0])
        if not self.reader.answerable:
            raise WrongRow(f"table {table} may not be queried back: no current rows are at hand for it")
        names, key_values = zip(*self.key, strict=True)
        if names == table.key and all(map(_is_in_range, table.key_columns, key_values)):
            return key_values
        return query_key(table, self._pairs)


class TableReader:
    """A reader of the rows with one spelling of a table_name, and of an unknown table with one key."""

    def __init__(
        self,
        table: Table | None,
        name: str,
        rules: Rules,
        unknown: set[UnknownName],
        *,
        key: Sequence[str],
        closed: bool,
        answerable: bool,
        lower: bool,
    ) -> None:
        self.table = table
        self._key = key
        self._unknown = unknown
        self.refuses = rules.unknown_columns == "refuse"  # rows of columns that the table lacks
        self.lower = lower  # its rows write plain names, which its catalogue keeps in capitals
        self._closed = closed  # its publish or withhold decides: only known columns leave
        self.answerable = answerable  # its current rows can be read
        self.schema = self.written_name(table.schema) if table and table.schema else None
        self.name = self.written_name(table.name) if table else values.check_xml(name)
        limit = table.max_value if table and table.max_value is not None else rules.max_value
        self._limit = limit
        all_key = table is not None and not table.beside_key
        is_insert = all_key or rules.whole_rows or rules.insert_query_back == "add"
        inserts = Op.INSERT if is_insert else Op.UPDATE
        self.query_ops = {5: inserts, 6: Op.UPDATE, 7: inserts, 8: Op.UPDATE}
        self.attributes = _Attributes(self._attribute)

    def written_name(self, name: str) -> str:
        """Return an identifier as documents have it."""
        return plain_name(name) if self.lower else name

    @cached_property
    def data(self) -> tuple[tuple[Column, Loader], ...]:
        """The columns that a query-back brings, each with what loads its texts."""
        columns = self.table.data if self.table else ()
        return tuple((column, self._loader(column)) for column in columns)

    def _loader(self, column: Column | None) -> Loader:
        """Return the loader of a column's text, up to its size limit; an unknown column is a string."""
        kind = Kind.STRING if column is None else column.kind
        ranged = column is not None and column.bounds is not None
        load, limit = column.load if column and ranged else values.CODECS[kind].load, self._limit
        surely_small = limit // 4  # characters; none takes more than four bytes
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
            return self._undescribed(name)
        if column.name in self.table.key:
            silence = f"column {column.name} is of the key"
            return Attribute(column.name, self._loader(column), silence, exists=True)
        if not column.leaves:
            return Attribute(column.name, _load_nothing, f"column {column.name} is withheld", exists=True)
        return Attribute(column.name, self._loader(column), "", exists=True, unread=column.unread != "")

    def _undescribed(self, name: str) -> Attribute:
        if self._closed:
            silence = f"{self.name} has publish or withhold, and no column {name!r}"
            return Attribute(name, _load_nothing, silence, exists=False)
        if self.table is not None:
            self._note_unknown(name)
        elif name in self._key:
            return Attribute(name, self._loader(None), f"column {name} is of the key", exists=False)
        return Attribute(values.check_xml(name), self._loader(None), "", exists=False, unread=True)

    def _note_unknown(self, name: str) -> None:
        """Note a column that the table lacks; raise UnknownColumn if its rows are refused."""
        if self.refuses:
            raise UnknownColumn(self.table, name)
        self._unknown.add((str(self.table), name))


def _load_nothing(text: str | None) -> Value:
    """Return null for any text: a value that is withheld is not read, so no error can show it."""
    return None


class _Attributes(dict[str | None, Attribute]):
    """The columns that per-field rows name, each made when it is first named."""

    def __init__(self, make: Callable[[str | None], Attribute]) -> None:
        self._make = make

    def __missing__(self, name: str | None) -> Attribute:
        attribute = self[name] = self._make(name)
        return attribute


class Interpreter:
    """A reader of the rows of a pick-up: one TableReader for each table and spelling of its name."""

    def __init__(self, tables: Tables, rules: Rules, answerable: Container[Table]) -> None:
        self._tables = tables
        self._rules = rules
        self._answerable = answerable
        self._readers: dict[tuple[str, bool, Sequence[str]], TableReader] = {}
        self._as_logged = rules.association == "as-logged"
        self.unknown: set[UnknownName] = set()  # columns that rows named and their tables lack

    def object(self, table_name: str, table_key: str) -> NamedObject:
        """Return the object that a row names; raise EventlogError if none of its rows can be understood."""
        identified = identify(self._tables, table_name, table_key)
        lower = not self._as_logged and self._tables.writes_plain(table_name)
        key = tuple([column for column, _ in identified.pairs]) if identified.table is None else ()
        reader_key = identified.name[0], lower, key
        reader = self._readers.get(reader_key) or self._reader(identified, *reader_key)
        if self._as_logged or identified.table is None:
            plain = identified.child == "" and table_key == identified.name[1]
            return NamedObject(
                reader, identified, table_key, identified.pairs if plain else tablekey.read(table_key)
            )
        if not lower:
            return NamedObject(reader, identified, identified.name[1], identified.pairs)
        pairs = tuple((plain_name(name), text) for name, text in identified.pairs)
        return NamedObject(reader, identified, tablekey.write(pairs), pairs)

    def _reader(self, identified: Identified, name: str, lower: bool, key: Sequence[str]) -> TableReader:
        table = identified.table
        if table is None and self._rules.unknown_tables == "error":
            raise UnknownTable(name)
        reader = self._readers[name, lower, key] = TableReader(
            table,
            name,
            self._rules,
            self.unknown,
            key=key,
            closed=self._tables.shuts(name) if table is None else table.closed,
            answerable=table is not None and table in self._answerable,
            lower=lower,
        )
        return reader


def query_key(table: Table, pairs: Pairs) -> QueryKey:
    """Return the values of exactly the table's key, in its order, each of its column's type."""
    ordered = table.key_pairs(pairs)
    if not ordered:
        raise wrong_key(table, pairs)
    texts = (text for _, text in ordered)
    return tuple(_query_value(column, text) for column, text in zip(table.key_columns, texts, strict=True))


def _is_in_range(column: Column, value: Value) -> bool:
    """Return whether a key's value is an integer that its column can hold."""
    if type(value) is not int:
        return False
    low, high = column.bounds or (value, value)
    return low <= value <= high


def _query_value(column: Column, text: str) -> Value:
    """Return the one form of all texts by which a key finds the same row."""
    value = column.load(text)
    if column.kind in values.TIMES:
        return values.read_key_moment(column.kind, text)
    return value if column.number is None else values.read_number(column.number, text)


ReadStep = Callable[[NamedObject, Entry, Place], Step]
_INSERT, _UPDATE, _DELETE = Op.INSERT, Op.UPDATE, Op.DELETE  # a lookup in the enum costs a call
_new = tuple.__new__  # a third of the cost of a named tuple's constructor


def _insert_field(of: NamedObject, entry: Entry, place: Place) -> Step:
    name, load, silence, _, unread = of.reader.attributes[entry.column_name]
    fields = (_new(Field, (name, ABSENT, load(entry.new_value))),)
    return _new(Step, (place, entry, 1, _INSERT, name, fields, silence, (), unread))


def _update_field(of: NamedObject, entry: Entry, place: Place) -> Step:
    name, load, silence, _, unread = of.reader.attributes[entry.column_name]
    before, after = load(entry.old_value), load(entry.new_value)
    if before == after:
        silence = silence or "old and new value are equal, or both null"
    fields = (_new(Field, (name, before, after)),)
    return _new(Step, (place, entry, 2, _UPDATE, name, fields, silence, (), unread))


def _replace_field(of: NamedObject, entry: Entry, place: Place) -> Step:
    name, load, silence, _, unread = of.reader.attributes[entry.column_name]
    fields = (_new(Field, (name, ABSENT, load(entry.new_value))),)
    return _new(Step, (place, entry, 3, _UPDATE, name, fields, silence, (), unread))


def _delete_row(of: NamedObject, entry: Entry, place: Place) -> Step:
    return _new(Step, (place, entry, 4, _DELETE, "", (), "", (), False))


def _query_row(of: NamedObject, entry: Entry, place: Place) -> Step:
    of.query_key()
    number = entry.event_type
    return _new(Step, (place, entry, number, of.reader.query_ops[number], "", (), "", (), False))


def _query_field(of: NamedObject, entry: Entry, place: Place) -> Step:
    of.query_key()
    name, _, silence, exists, _ = of.reader.attributes[entry.column_name]
    if not exists:
        return _query_nothing(of, entry, place, name, silence or f"table {of.table} has no column {name!r}")
    if unread := of.table.columns[name].unread:
        raise WrongRow(f"column {name} {unread}: no query-back has its value")
    return Step(place, entry, entry.event_type, of.reader.query_ops[entry.event_type], name, (), silence)


def _query_nothing(of: NamedObject, entry: Entry, place: Place, name: str, silence: str) -> Step:
    """Return a step without content, which supersedes the rows with values of its column all the same."""
    if of.reader.refuses:
        raise UnknownColumn(of.reader.table, entry.column_name)
    number = entry.event_type
    return Step(place, entry, number, of.reader.query_ops[number], name, (), silence)


def _whole_row(of: NamedObject, entry: Entry, place: Place) -> Step:
    """Return the step of any row as that of a query-back; its column must be one that a query-back reads."""
    of.query_key()
    if entry.column_name and of.reader.attributes[entry.column_name].exists:
        column = of.table.column(entry.column_name)
        if column is not None and column.leaves and column.unread not in ("", LOST):
            raise WrongRow(f"column {column.name} {column.unread}: no query-back has its value")
    return Step(place, entry, 5, of.reader.query_ops[5])


# The content of a row, by its event type; an EventlogError is why it cannot be understood.
STEPS: dict[int, ReadStep] = {
    1: _insert_field,
    2: _update_field,
    3: _replace_field,
    4: _delete_row,
    5: _query_row,
    6: _query_row,
    7: _query_field,
    8: _query_field,
}
WHOLE_ROW_STEPS: dict[int, ReadStep] = {
    number: _delete_row if number == 4 else _whole_row for number in STEPS
}


def steps_of(rules: Rules) -> dict[int, ReadStep]:
    """Return the content of rows by their event types, as the rules have it."""
    return WHOLE_ROW_STEPS if rules.whole_rows else STEPS
