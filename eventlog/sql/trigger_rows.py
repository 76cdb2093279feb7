"""What the triggers of a table log, row by row; `triggers.py` of each dialect writes it in statements.

Pure: from the log's names, the table as the catalogue describes it and the choice to the rows, their
conditions and their texts as SQL.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from eventlog.core.tables import Column, Table
from eventlog.sql.common import templates
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.common.expression import Expressions, literal
from eventlog.sql.names import Log
from eventlog.sql.relation import Child, Choice, Firing, Relation, qualified

VALUES = frozenset((1, 2, 3))  # the event types that carry values
PER_FIELD = VALUES | {7, 8}
REPLICATED = "replicated"  # whatever replication does to a row
EMPTIED = "truncated"  # a truncate is over
EVENTS = ("insert", "update", "delete", "truncate", EMPTIED, REPLICATED)
CHILD_TYPES = {2: 2, 6: 8, 8: 8}  # an update of the parent, as a change of a child row is logged


@dataclass(frozen=True)
class Subject:
    """All that the triggers of one table are written from."""

    log: Log
    relation: Relation
    choice: Choice
    children: tuple[Child, ...] = ()
    name: str | None = None  # that its rows give the table, where it is not the table's own
    owner: str | None = None  # whose rights its functions have, where they are of some role

    @property
    def logged_as(self) -> str:
        return self.name or self.table.name

    @property
    def dialect(self) -> Dialect:
        return self.log.dialect

    @property
    def table(self) -> Table:
        return self.relation.table

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.relation.columns(self.choice.columns, self.choice.without)

    @property
    def per_field(self) -> tuple[Column, ...]:
        """Return the columns with rows of their own: those with a text."""
        expression_of = self.dialect.values.expressions.of
        return tuple(column for column in self.columns if not expression_of(column.type).unreadable)


class TriggerRow(NamedTuple):
    """One row that a trigger logs, in SQL."""

    event_type: int
    column: str | None = None
    old_text: str | None = None
    new_text: str | None = None
    when: str | None = None


class Trigger(NamedTuple):
    """A trigger: its table, the text by which it is recognised, and the statements that make it."""

    name: str
    schema: str | None
    table: str
    body: str
    create: tuple[str, ...]
    firing: Firing = Firing.ORIGIN


def triggers_of(subject: Subject) -> Iterator[Trigger]:
    """Yield the triggers of a subject, as its database writes them."""
    yield from subject.dialect.triggers.write(subject)


class TriggerRows:
    """The rows that the changes of a subject are logged as; the aliases name the old and the new row."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.dialect = subject.dialect
        self.expressions: Expressions = self.dialect.values.expressions

    def key(self, alias: str) -> str:
        return self.expressions.key(self.subject.relation.key, alias, self.dialect.quote)

    def moved(self, old_alias: str, new_alias: str) -> str:
        """Return whether an update gave the row another key."""
        return " or ".join(
            self.expressions.differ(column, old_alias, new_alias, self.dialect.quote)
            for column in self.subject.table.key_columns
        )

    def inserted(self, new_alias: str) -> list[TriggerRow]:
        """Return a new row: as one event, or its columns that are not null, and the first if all are."""
        kind = self.subject.choice.insert
        if kind not in PER_FIELD:
            return [TriggerRow(kind)]
        columns = self.subject.columns
        rows = [
            self._row(kind, column, None, new_alias, self._has_value(new_alias, column)) for column in columns
        ]
        nothing = " and ".join(self._missing(new_alias, column) for column in columns)
        return [*rows, TriggerRow(kind, columns[0].name, when=nothing)]

    def updated(self, old_alias: str, new_alias: str) -> list[TriggerRow]:
        """Return a row with other values: as one event if any column changed, or the columns that did."""
        kind = self.subject.choice.update
        changed = [
            (column, self.expressions.differ(column, old_alias, new_alias, self.dialect.quote))
            for column in self.subject.columns
        ]
        if kind not in PER_FIELD:
            anything = " or ".join(differs for _, differs in changed)
            return [TriggerRow(kind, when=anything)] if changed else []
        return [self._row(kind, column, old_alias, new_alias, differs) for column, differs in changed]

    def deleted(self) -> list[TriggerRow]:
        return [] if self.subject.choice.delete is None else [TriggerRow(self.subject.choice.delete)]

    def child_key(self, child: Child, alias: str) -> str:
        """Return the parent's table_key, from the columns of the child that name it."""
        return self.expressions.key(child.key(self.subject.table.key), alias, self.dialect.quote)

    def child_moved(self, child: Child, old_alias: str, new_alias: str) -> str:
        columns = child.relation.table.columns
        return " or ".join(
            self.expressions.differ(columns[name], old_alias, new_alias, self.dialect.quote)
            for name in child.link.columns
        )

    def linked(self, child: Child, alias: str) -> str:
        """Return whether a child row names a parent."""
        columns = child.relation.table.columns
        return " and ".join(self._has_value(alias, columns[name]) for name in child.link.columns)

    def same_key(self, child: Child, alias: str, parent: str) -> str:
        return child.linking(self.dialect, parent, alias)

    def child_rows(self, child: Child, old_alias: str | None, new_alias: str | None) -> list[TriggerRow]:
        """Return the values that a child row took from its parent, gave it, or changed."""
        kind = CHILD_TYPES[self.subject.choice.update]
        rows = []
        for column in child.columns:
            if old_alias and new_alias:
                when = self.expressions.differ(column, old_alias, new_alias, self.dialect.quote)
            else:
                when = self._has_value(old_alias or new_alias or "", column)
            row = self._row(kind, column, old_alias, new_alias, when)
            rows.append(row._replace(column=child.attribute(column)))
        return rows

    def child_read_back(self, child: Child) -> list[TriggerRow]:
        """Return the rows after which a parent's values of the child are read back, whatever they were."""
        return [TriggerRow(8, child.attribute(column), when="true") for column in child.columns]

    def _row(
        self, kind: int, column: Column, old_alias: str | None, new_alias: str | None, when: str
    ) -> TriggerRow:
        def text(alias: str | None) -> str | None:
            return (
                self.expressions.text(column, alias, self.dialect.quote) if alias and kind in VALUES else None
            )

        return TriggerRow(kind, column.name, text(old_alias), text(new_alias), when)

    def _missing(self, alias: str, column: Column) -> str:
        return self.expressions.missing.format(x=f"{alias}.{self.dialect.quote(column.name)}")

    def _has_value(self, alias: str, column: Column) -> str:
        return self.expressions.present.format(x=f"{alias}.{self.dialect.quote(column.name)}")


ROUTINES = (
    "event",
    "key_value",
    "capture",
    "capture_off",
    "capture_on",
    "capture_is_off",
    "switch",
    "leadership",
)


def routines(log: Log, file: str = "routines", **values: str) -> Iterator[str]:
    """Return what belongs to the log as a whole and can be made repeatedly; drop_routines removes it."""
    holes = {name: qualified(log.dialect, log.place, log.companion_name(name)) for name in ROUTINES}
    quoted = log.dialect.values.expressions.quoted.format(v="value")
    holes["event_label"] = log.dialect.quote(log.companion_name("event"))
    holes["routine_texts"] = ", ".join(literal(log.companion_name(name)) for name in ROUTINES)
    holes |= {"quoted": quoted, "off": holes["capture_is_off"]}
    holes |= {f"bare_{name}": bare for name, bare in replace(log, schema=None).names().items()}
    filled = log.names() | holes | values
    yield from templates.statements(log.dialect, file, filled)


def routine_names(log: Log, statements: Sequence[str]) -> Iterator[str]:
    """Yield the names of the routines that these statements make."""
    for name in map(log.companion_name, ROUTINES):
        quoted = re.escape(qualified(log.dialect, log.place, name))
        creation = re.compile(rf"create (or replace )?(function|procedure|package) {quoted}")
        if any(creation.search(statement) for statement in statements):
            yield name


_TO_FILL_IN = "eventlog current schema"


def printed_routines(log: Log, file: str = "routines") -> Iterator[str]:
    """Yield the statements that make the routines, for a script.

    If the log has no schema, they make them in the current schema of the user who runs the script.
    """
    in_current_schema = log.dialect.schema.in_current
    if log.schema or not in_current_schema or file != "routines":
        yield from routines(log, file)
        return
    schema = log.dialect.quote(_TO_FILL_IN)
    for statement in routines(replace(log, schema=_TO_FILL_IN), file):
        yield in_current_schema.format(statement=statement, schema=schema)


def object_name(dialect: Dialect, *parts: str | None) -> str:
    """Return the name of something of ours; of one too long, the end becomes a checksum."""
    name = "$".join(part for part in parts if part)
    if len(name.encode()) <= dialect.names.longest:
        return name
    start = name.encode()[: dialect.names.longest - 9].decode(errors="ignore")
    return f"{start}${zlib.crc32(name.encode()):08x}"


_QUOTED_OR_LINE_END = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|\n(?=[^\n])""")


def indent(text: str, by: int) -> str:
    """Return the lines of the text, moved to the right; a line end within quotes belongs to a name."""
    margin = " " * by
    moved = _QUOTED_OR_LINE_END.sub(lambda match: match[0] + margin * (match[0] == "\n"), text)
    return margin + moved.removesuffix("\n")
