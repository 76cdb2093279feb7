"""What is known of the tables: columns, types, keys, references; from a TOML file or a catalogue."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from eventlog.core import tablekey, values
from eventlog.core.change import Scalar, Value
from eventlog.core.errors import AmbiguousName, EventlogError, InvalidTables, InvalidValue, UnknownTable
from eventlog.core.meta_identifiers import read_name
from eventlog.core.values import Kind, Precision

V = TypeVar("V")

LOST = "is no column of its table any more"  # of a column that a receiver may have values of
_KEEPS_CAPITALS = frozenset(("oracle",))  # what is written without quotes, in lower case or not


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its SQL type as the catalogue writes it, and what its text means."""

    name: str
    type: str
    kind: Kind
    published: str  # the attribute's name in documents
    multivalued: bool = False
    reference: str | None = None  # the table that a foreign key points to, if that is published
    referred: str | None = None  # the column there that it names; None for the key
    leaves: bool = True  # whether its values may leave at all
    aliases: tuple[str, ...] = ()  # other names by which rows and lists may call it
    bounds: tuple[int, int] | None = None  # of integers, the least and the greatest
    number: Precision | None = None  # how its values are compared, where they are other numbers
    effective: str | None = None  # of a view's column: what all forms of its name have in common
    of_child: tuple[str, str, str] | None = None  # schema and name of the child that has it, its name there
    unread: str = ""  # why no query-back reads it, if none does

    def load(self, text: str) -> Scalar:
        """Return the value of a text of the column; raise InvalidValue if it is not of the column's type."""
        value = values.load(self.kind, text)
        if self.bounds is not None and type(value) is int and not self.bounds[0] <= value <= self.bounds[1]:
            raise InvalidValue(
                text[:60], f"within the range of {self.type}, {self.bounds[0]} to {self.bounds[1]}"
            )
        return value

    def answers_to(self, name: str) -> bool:
        """Return whether that is one of the column's names, ignoring case."""
        folded = name.lower()
        return (
            folded == self.name.lower()
            or folded in map(str.lower, self.aliases)
            or (self.effective is not None and read_name(folded).name == self.effective.lower())
        )


@dataclass(frozen=True)
class Table:
    """A table, view or file of rows with one key."""

    schema: str | None
    name: str
    columns: Mapping[str, Column]
    key: tuple[str, ...] = ()
    number: int | None = None
    max_value: int | None = None
    view: bool = False
    linter: Mapping[str, object] = field(default_factory=dict)
    logged_as: str | None = None  # where that is not its bare name, which another table has
    halted: str = ""  # why nothing of it may leave for now, empty where it may
    closed: bool = False  # it has publish or withhold: nothing leaves that is none of its columns

    def __str__(self) -> str:
        return self.name if self.schema is None else f"{self.schema}.{self.name}"

    def __hash__(self) -> int:
        return hash((self.schema, self.name))

    def column(self, name: str) -> Column | None:
        """Return the column of that name.

        An exact match comes first, then the only one that differs in case, then another of its names. A
        child's column has one without its child.
        """
        return (
            self.columns.get(name)
            or _only(self.columns, self._folded, name)
            or _only(self.columns, self._aliases, name)
            or (_only(self.columns, self._effective, read_name(name).name) if self._effective else None)
            or _only(self.columns, self._of_children, name)
        )

    @property
    def log_name(self) -> str:
        """Return the name of the table in rows of a log."""
        return self.logged_as or self.name

    @cached_property
    def _folded(self) -> dict[str, list[str]]:
        return _fold((name, name) for name in self.columns)

    @cached_property
    def _aliases(self) -> dict[str, list[str]]:
        return _fold((alias, column.name) for column in self.columns.values() for alias in column.aliases)

    @cached_property
    def _of_children(self) -> dict[str, list[str]]:
        """Return the columns of children by their names without the child."""
        multivalued = (c.name for c in self.columns.values() if c.multivalued and not self.view)
        return _fold((name.rpartition(".")[2], name) for name in multivalued if name.rpartition(".")[0])

    @cached_property
    def _effective(self) -> dict[str, list[str]]:
        return _fold((c.effective, c.name) for c in self.columns.values() if c.effective is not None)

    @cached_property
    def data(self) -> tuple[Column, ...]:
        """Return the columns outside the key that a query-back reads and that may leave, in order."""
        readable = (c for c in self.columns.values() if c.leaves and not c.unread)
        return tuple(c for c in readable if c.name not in self.key)

    @cached_property
    def beside_key(self) -> tuple[Column, ...]:
        """Return the columns outside the key, whether they may leave or not."""
        return tuple(c for c in self.columns.values() if c.unread != LOST and c.name not in self.key)

    @property
    def withholds_all(self) -> bool:
        """Return whether the table has columns outside the key and none of them may leave."""
        return bool(self.beside_key) and not self.data

    @cached_property
    def lost_columns(self) -> tuple[Column, ...]:
        """Return the columns that the table lost and whose values a receiver may have."""
        return tuple(c for c in self.columns.values() if c.unread == LOST and c.leaves)

    @cached_property
    def key_columns(self) -> tuple[Column, ...]:
        return tuple(self.columns[name] for name in self.key)

    @cached_property
    def published(self) -> dict[str, Column]:
        """The columns by the names of their attributes in documents."""
        return {c.published: c for c in self.columns.values()}

    def load_key(self, text: str) -> tuple[tuple[str, Value], ...]:
        """Return the key of a table_key: each value typed where that would write the same text again."""
        return self.load_pairs(tablekey.read(text))

    def load_pairs(self, pairs: tablekey.Pairs) -> tuple[tuple[str, Value], ...]:
        """Return the key of pairs, each value typed where that would write the same text again."""
        return tuple([self._load_key_value(name, value) for name, value in pairs])

    def key_pairs(self, pairs: tuple[tuple[str, V], ...]) -> tuple[tuple[str, V], ...] | None:
        """Return columns and values in the order and spelling of the key; None if they are not exactly the
        key's.
        """
        if tuple([name for name, _ in pairs]) == self.key:
            return pairs
        named = {self._key_name(name): value for name, value in pairs}
        if len(named) != len(pairs) or named.keys() != set(self.key):
            return None
        return tuple((name, named[name]) for name in self.key)

    def in_one_order(self, pairs: tuple[tuple[str, V], ...]) -> tuple[tuple[str, V], ...]:
        """Return columns and values of a table without a known key, in one order and spelling."""
        named = [(self._key_name(name), value) for name, value in pairs]
        return tuple(sorted(named, key=lambda pair: (pair[0], str(pair[1]))))

    def _key_name(self, name: str) -> str:
        if (column := self.column(name)) is not None:
            return column.name
        matches = [] if self.columns else [key for key in self.key if key.lower() == name.lower()]
        return matches[0] if len(matches) == 1 else name

    def _load_key_value(self, name: str, text: str) -> tuple[str, Value]:
        column = self.column(name)
        if column is None:
            return name, text
        try:
            value = values.load(column.kind, text)
            same = values.dump(column.kind, value) == text
        except EventlogError:
            same = False
        return name, value if same else text

    def dump_key(self, key: Iterable[tuple[str, Value]]) -> str:
        """Return the table_key of a key."""
        return tablekey.write((name, self.dump(name, value)) for name, value in key)

    def dump(self, name: str, value: Value) -> str:
        """Return the text of one value of a column, as a log holds it."""
        if value is None or isinstance(value, tuple):
            raise InvalidTables(f"{self}: the value of key column {name} is {value!r}")
        column = self.column(name)
        return values.plain_text(value) if column is None else values.dump(column.kind, value)


class Tables:
    """The tables that are known, found by name: exactly, else uniquely without case."""

    def __init__(
        self,
        tables: Iterable[Table] = (),
        dialect: str | None = None,
        *,
        shut: Iterable[str] = (),
        warnings: Iterable[str] = (),
    ) -> None:
        self.dialect = dialect
        self.warnings = tuple(warnings)  # warnings about the lists of these tables
        self._named: dict[str, list[Table]] = {}
        self._all = tuple(tables)
        for table in self._all:
            for name in dict.fromkeys((table.log_name, str(table))):
                self._named.setdefault(name, []).append(table)
        self._folded = _fold((name, name) for name in self._named)
        self._by_name: dict[str, list[Table]] = {}  # made when it is first asked for
        self._numbers = {t.number: t for t in self._all if t.number is not None}
        self._names = {str(t): t.log_name if self._named[t.log_name] == [t] else str(t) for t in self._all}
        self._parents = _parents(self._all)
        self.shut = frozenset(map(_bare, (*shut, *(t.name for t in self._all if t.closed))))

    def __iter__(self) -> Iterator[Table]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def with_tables(self, further: Iterable[Table]) -> Tables:
        """Return these tables with further ones, which no list restricts."""
        tables = (*self._all, *further)
        return Tables(tables, self.dialect, shut=self.shut, warnings=self.warnings)

    def halting(self, tables: Container[Table], reason: str) -> Tables:
        """Return all tables, with these halted for this reason."""
        halted = (replace(table, halted=reason) if table in tables else table for table in self._all)
        return Tables(halted, self.dialect, shut=self.shut, warnings=self.warnings)

    def find(self, name: str) -> Table | None:
        """Return the table of this name in a row or a file, None if there is none."""
        named = self._named.get(name)
        if named is None:
            spellings = self._folded.get(name.lower(), [])
            named = [t for spelling in spellings for t in self._named[spelling]]
        if len(named) > 1:
            raise AmbiguousName(name, " or ".join(str(t) for t in named))
        return named[0] if named else None

    def name_of(self, table: Table) -> str:
        """Return the name of the table: its own, with the schema if other tables have the same name."""
        return self._names[str(table)]

    def spellings(self) -> set[str]:
        """Return every name that finds a table or a child of one, without case."""
        return {*self._folded, *self._parents}

    def halted(self) -> dict[str, str]:
        """Return the tables that publish nothing for now, and why."""
        return {str(table): table.halted for table in self._all if table.halted}

    def halted_spellings(self) -> frozenset[str]:
        """Return every name, without case, that finds a halted table or a child of one."""
        named = {
            folded
            for folded, spellings in self._folded.items()
            if any(table.halted for name in spellings for table in self._named[name])
        }
        children = {name for name, places in self._parents.items() if any(of.halted for of, _ in places)}
        return frozenset(named | children)

    def writes_plain(self, name: str) -> bool:
        """Return whether a row that spells a table like this uses plain names, which the dialect keeps in
        capitals.
        """
        return self.dialect in _KEEPS_CAPITALS and name == name.lower()

    def parents(self, name: str) -> Sequence[tuple[Table, str]]:
        """Return the parents of the child table of that name, each with the child's name there."""
        return self._parents.get(name, ()) or self._parents.get(name.lower(), ())

    def get(self, name: str) -> Table:
        """Return the table of that name."""
        table = self.find(name)
        if table is None:
            raise UnknownTable(name)
        return table

    def of(self, schema: str | None, name: str) -> Table | None:
        """Return the table of a change, which names schema and table apart.

        A table that is described without a schema is used if no other table has its name.
        """
        for table in self._named.get(name, ()):
            if table.schema == schema and table.name == name:
                return table
        if schema is None:
            return self.find(name)
        return self.find(f"{schema}.{name}") or self._without_schema(name)

    def _without_schema(self, name: str) -> Table | None:
        namesakes = self.namesakes(name)
        return namesakes[0] if len(namesakes) == 1 and namesakes[0].schema is None else None

    def namesakes(self, name: str) -> list[Table]:
        """Return the tables of this name, whatever their schemas; without case if none has it exactly."""
        if not self._by_name:
            for table in self._all:
                self._by_name.setdefault(table.name, []).append(table)
                self._by_name.setdefault(table.name.lower(), []).append(table)
        tables = self._by_name.get(name) or self._by_name.get(name.lower(), [])
        return list(dict.fromkeys(tables))

    def how_to_state_key(self, schema: str | None, name: str) -> str:
        """Return what to write where the key of a table is not known, and which namesakes do not state it."""
        namesakes = [str(table) for table in self.namesakes(name) if table.schema != schema]
        why = f"; it describes {' and '.join(namesakes)}, which is of another schema" if namesakes else ""
        return f'state it in the tables file: [tables.{name}] key = ["…"]{why}'

    def shuts(self, name: str) -> bool:
        """Return whether rows of an unknown table may be another spelling of a table with lists."""
        return bool(self.shut) and _bare(name) in self.shut

    def numbered(self, number: int) -> Table | None:
        """Return the table to which a capture gave this number."""
        return self._numbers.get(number)


def plain_name(name: str) -> str:
    """Return an identifier of a catalogue that keeps plain names in capitals, as people write it."""
    return name.lower() if name == name.upper() else name


def reference_key(tables: Tables, column: Column) -> tuple[Table, str] | None:
    """Return the table and key column that a referring column's values name, if they can be named."""
    if column.reference is None:
        return None
    target = tables.get(column.reference)
    return (target, target.key[0]) if len(target.key) == 1 else None


def _parents(tables: Iterable[Table]) -> dict[str, list[tuple[Table, str]]]:
    """Return the parents of each child, by its names and these without case."""
    parents: dict[str, list[tuple[Table, str]]] = {}
    for table in tables:
        names: dict[str, str] = {}
        for column in table.columns.values():
            child = column.name.rpartition(".")[0]
            for column_name in (column.name, *column.aliases) if child else ():
                child_name = column_name.rpartition(".")[0]
                names |= {child_name: child, child_name.lower(): child}
        for name, child in names.items():
            parents.setdefault(name, []).append((table, child))
    return parents


def _bare(name: str) -> str:
    """Return a table's name without its schema, case, quotes and blanks around it."""
    return name.rpartition(".")[2].strip(" \t\r\n\"'`[]").lower()


def _fold(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return what is called by each name without case, from pairs of a name and what has it."""
    folded: dict[str, dict[str, None]] = {}
    for name, called in pairs:
        folded.setdefault(name.lower(), {})[called] = None
    return {name: list(called) for name, called in folded.items()}


def _only(columns: Mapping[str, Column], folded: dict[str, list[str]], name: str) -> Column | None:
    spellings = folded.get(name.lower(), ())
    return columns[spellings[0]] if len(spellings) == 1 else None
