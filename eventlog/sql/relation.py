"""The catalogue's facts about a table that triggers need, and the choice of what is logged of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from enum import Enum
from shlex import quote
from typing import Any, NamedTuple

from eventlog.core.errors import EventlogError
from eventlog.core.tables import Column, Table
from eventlog.sql.common.dialect import Dialect

MARK = "eventlog track "  # begins the text in a trigger about what it logs


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key: columns that name the key of another table."""

    columns: tuple[str, ...]
    target_schema: str | None
    target: str
    target_columns: tuple[str, ...]
    on_delete: str = "no action"
    on_update: str = "no action"

    @property
    def cascades(self) -> bool:
        """Return whether a change of the other table changes rows of this one."""
        return {self.on_delete, self.on_update} - {"no action", "restrict"} != set()


Place = tuple[str, str]  # the schema and the name of a table


def place_of(table: Table) -> Place:
    """Return the place of a table of the catalogue."""
    return table.schema or "", table.name


class Identity(NamedTuple):
    """The identity of a table besides its name; a table that was dropped and made anew has another number."""

    kind: str = "table"
    table_id: str | None = None
    owner: str | None = None

    @property
    def is_table(self) -> bool:
        """Return whether triggers of ours can log its changes."""
        return self.kind in ("table", "partitioned")


class Owner(NamedTuple):
    """The role to which a log belongs, where there is such a thing."""

    name: str | None = None
    almighty: bool = False  # a superuser


_PLAIN = Identity()


class Firing(Enum):
    """The sessions in which a trigger fires; the names are PostgreSQL's, which alone has the choice."""

    ORIGIN = "origin"  # in all but those of replication
    REPLICA = "replica"  # in those of replication alone
    ALWAYS = "always"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class Installed:
    """A trigger on a table."""

    name: str
    body: str = ""
    row: bool = False  # fires once a row, after the change
    firing: Firing = Firing.ORIGIN
    schema: str | None = None
    table: str = ""  # a partition's name, if it is on one
    routine: str = ""  # the function that it calls, quoted, where triggers call one
    internal: bool = False  # the database's own, for a foreign key


@dataclass(frozen=True)
class Relation:
    """A table with its keys and triggers."""

    table: Table
    foreign_keys: tuple[ForeignKey, ...] = ()
    triggers: tuple[Installed, ...] = ()
    leaves: tuple[tuple[str, str], ...] = ()  # schema and name of each partition that holds rows
    below: tuple[tuple[str, str], ...] = ()  # of each partition, leaves included
    virtual: tuple[str, ...] = ()  # columns whose values a trigger does not see
    identity: Identity = _PLAIN
    deferrable: bool = False  # its key may be had twice until the transaction ends
    family: tuple[
        tuple[str, str], ...
    ] = ()  # tables by inheritance: name, and whether parent, child or whole

    @property
    def kind(self) -> str:
        return self.identity.kind

    @property
    def place(self) -> Place:
        return place_of(self.table)

    def columns(self, names: tuple[str, ...] | None, without: tuple[str, ...] = ()) -> tuple[Column, ...]:
        """Return the logged columns outside the key, in their order."""
        chosen = self.table.columns.keys() if names is None else set(names)
        left_out = {*self.table.key, *self.virtual, *without}
        return tuple(c for c in self.table.columns.values() if c.name in chosen and c.name not in left_out)

    def silent_cascades(self, dialect: Dialect) -> tuple[str, ...]:
        """Return the tables whose changes cascade to this one without firing a trigger."""
        if dialect.triggers.cascades_fire:
            return ()
        return tuple(foreign.target for foreign in self.foreign_keys if foreign.cascades)

    @property
    def key(self) -> tuple[tuple[str, Column], ...]:
        return tuple((column.name, column) for column in self.table.key_columns)


@dataclass(frozen=True)
class Child:
    """A child table, whose columns are multi-valued attributes of the parent."""

    relation: Relation
    columns: tuple[Column, ...]
    link: ForeignKey

    def attribute(self, column: Column) -> str:
        """Return the name of a column as an attribute of the parent."""
        return f"{self.relation.table.name}.{column.name}"

    def key(self, names: Iterable[str]) -> tuple[tuple[str, Column], ...]:
        """Return the columns of the parent's key, each with the column of the child that holds it."""
        child_names = dict(zip(self.link.target_columns, self.link.columns, strict=True))
        return tuple((name, self.relation.table.columns[child_names[name]]) for name in names)

    def linking(self, dialect: Dialect, parent: str, alias: str) -> str:
        """Return the condition that a row of the child belongs to a row of its parent, by their aliases."""
        expressions, quote, columns = dialect.values.expressions, dialect.quote, self.relation.table.columns

        def compared(name: str, value: str) -> str:
            return expressions.compared(columns[name], value)

        return " and ".join(
            f"{compared(name, f'{parent}.{quote(target)}')} {expressions.equals}"
            f" {compared(name, f'{alias}.{quote(name)}')}"
            for target, name in zip(self.link.target_columns, self.link.columns, strict=True)
        )


def qualified(dialect: Dialect, schema: str | None, name: str) -> str:
    """Return the quoted name of something in a schema."""
    return dialect.quote(name) if schema is None else f"{dialect.quote(schema)}.{dialect.quote(name)}"


INSERTS = (5, 1, 7)
UPDATES = (6, 2, 3, 8)
DELETES = (4, None)
GRANULARITIES = ("auto", "statement", "row")


class IllegalChoice(EventlogError):
    """{0!r} is no choice of what to track: it is {1}"""


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice that `track` is given; the first of each is the default."""

    insert: int = 5
    update: int = 6
    delete: int | None = 4
    columns: tuple[str, ...] | None = None  # None: all
    granularity: str = "auto"
    children: tuple[str, ...] = ()  # child.column
    without: tuple[str, ...] = ()  # of all columns, or of those chosen
    replicated: bool = False  # also what replication writes

    def __post_init__(self) -> None:
        for value, legal in (
            (self.insert, INSERTS),
            (self.update, UPDATES),
            (self.delete, DELETES),
            (self.granularity, GRANULARITIES),
        ):
            if value not in legal:
                raise IllegalChoice(value, ", ".join(map(str, legal)))

    def mark(self) -> str:
        """Return the words by which a trigger's text contains the choice: one line, without quotes or comment
        ends.
        """
        chosen = {name: value for name, value in asdict(self).items() if value != _DEFAULTS[name]}
        return MARK + json.dumps(chosen, sort_keys=True).replace("'", r"\u0027").replace("*/", r"*\u002f")

    def words(self) -> str:
        """Return the choice as it is on record, where children have lines of their own."""
        return replace(self, children=()).mark().removeprefix(MARK)

    def flags(self) -> str:
        """Return the flags of `track` that make this choice, each after a blank, as a shell takes them."""
        flags = []
        for name, value in asdict(self).items():
            if value == _DEFAULTS[name]:
                continue
            if name == "children":
                flags += [f" --child {quote(child)}" for child in value]
            elif value is True:
                flags.append(f" --{name}")
            else:
                words = "off" if value is None else ",".join(value) if isinstance(value, tuple) else value
                flags.append(f" --{name} {quote(str(words))}")
        return "".join(flags)


def read_choice(words: str, children: Iterable[str] | None = None) -> Choice:
    """Return the choice at the beginning of a text, with its children if they are given separately."""
    try:
        entries = json.JSONDecoder().raw_decode(words)[0]
        values: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in entries.items()}
        return Choice(**values) if children is None else Choice(**values, children=tuple(children))
    except (ValueError, TypeError, AttributeError) as fault:
        raise IllegalChoice(words[:80], "what track writes") from fault


_DEFAULTS = asdict(Choice())
