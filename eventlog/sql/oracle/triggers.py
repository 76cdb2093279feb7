"""Oracle: a compound trigger a table, which hands each row to a package of the log's owner. Rows are logged
as they change; what begins under a new key is logged at the end of the statement, after all deletes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from eventlog.core.tables import Column, Table
from eventlog.sql.common import templates
from eventlog.sql.common.dialect import TriggerWriter
from eventlog.sql.common.expression import literal
from eventlog.sql.names import Log
from eventlog.sql.oracle.package import KeyParts, Package, package_of
from eventlog.sql.relation import Child, qualified
from eventlog.sql.trigger_rows import CHILD_TYPES, PER_FIELD, Subject, Trigger, indent, object_name

LARGEST = 30_000  # bytes of a trigger's text, with room to the limit of 32 K
END = "\n"


class ColumnLines(NamedTuple):
    """The lines of a trigger for one column, each with a line end."""

    inserted: str = ""  # when a row comes, or comes by another key
    changed: str = ""  # when it changes
    deleted: str = ""  # when it goes, or goes to another key
    differs: str = ""  # whether it changed, as a condition


class TriggerShape(NamedTuple):
    """The facts from which the trigger of one table is written."""

    table: Table
    parent: str | None
    key: KeyParts
    columns: tuple[Column, ...]


def write(subject: Subject) -> Iterator[Trigger]:
    """Yield the trigger of a subject, and one for each child."""
    shape = TriggerShape(subject.table, None, subject.relation.key, subject.columns)
    yield _Parent(subject, shape).trigger()
    for child in subject.children:
        yield _Child(subject, child).trigger()


def name_of(log: Log, table: str, event: str, parent: str | None) -> str:
    """Return the name of a trigger for all events, unique in its schema."""
    return object_name(log.dialect, log.dialect.fold(log.table), table, parent)


class _Writer:
    """Writes the trigger of one table."""

    def __init__(self, subject: Subject, shape: TriggerShape) -> None:
        self.subject = subject
        self.shape = shape
        self.log = subject.log
        self.expressions = self.log.dialect.expressions
        self.deletes = shape.parent is not None or subject.choice.delete is not None  # are logged
        self.old_alias, self.new_alias = (
            (":o", ":n") if shape.table.name in ("OLD", "NEW") else (":old", ":new")
        )

    def rows(self, package: Package, parts: Sequence[ColumnLines]) -> str:
        """Return what is done with a row."""
        raise NotImplementedError

    def part(self, package: Package, column: Column) -> ColumnLines:
        """Return what is done with a column."""
        raise NotImplementedError

    def call(
        self, package: Package, kind: int, key: str, name: str, old_value: str, new_value: str, moved: str
    ) -> str:
        """Return a line that notes a column, where its texts differ."""
        column = self.shape.table.columns[name]
        logged_name = name if self.shape.parent is None else f"{self.shape.table.name}.{name}"
        return (
            f"{package.quoted}.change{package.number(column)}"
            f"(arrived, {moved}, said, {kind}, {key}, {literal(logged_name)}, {old_value}, {new_value});\n"
        )

    def value(self, alias: str, name: str) -> str:
        return f"{alias}.{self.log.dialect.quote(name)}"

    def _package(self, name: str) -> Package:
        package = package_of(self.log, self.shape.table.schema, name)
        return Package(self.log, package, self.subject.logged_as, self.shape.key)

    def _body(self, package: Package) -> str:
        parts = [self.part(package, column) for column in self.shape.columns]
        rows = self.rows(package, parts)
        statements = "".join(package.statements())
        mark = self.subject.choice.mark()
        keys = {
            name: ",\n      ".join(self.value(alias, column.name) for _, column in self.shape.key)
            for name, alias in (("old_key", self.old_alias), ("new_key", self.new_alias))
        }
        return templates.statement(
            self.log.dialect,
            "capture_body",
            **self.log.names(),
            **keys,
            mark=mark if len(mark) < 1000 else mark[: mark.index("{") + 1] + "... }",
            package=package.quoted,
            digest=hashlib.sha256(statements.encode()).hexdigest()[:16],
            rows=indent(rows.rstrip("\n"), 2),
        )

    def trigger(self) -> Trigger:
        table, dialect = self.shape.table, self.log.dialect
        name = name_of(self.log, table.name, "", self.shape.parent)
        package = self._package(name)
        body = self._body(package)
        trigger = qualified(dialect, table.schema, name)
        events = ("insert", "update", "delete") if self.deletes else ("insert", "update")
        holes = {
            "body": body,
            "trigger": trigger,
            "table": qualified(dialect, table.schema, table.name),
            "aliases": "" if self.old_alias == ":old" else "referencing old as o new as n\n",
            "events": " or ".join(events),
            "package_schema_text": literal(self.log.place) if self.log.place else dialect.current_schema,
            "package_text": literal(package.name),
            "schema_text": literal(table.schema) if table.schema else dialect.current_schema,
            "trigger_text": literal(name),
            "drop_trigger": literal(f"drop trigger {trigger}"),
        }
        verified = templates.statement(dialect, "verified", **holes)
        created = templates.statement(dialect, "trigger", **holes)
        grants = [] if table.schema == self.log.place else [_grant(package, table.schema or "")]
        create = (*package.statements(), *grants, verified, created, verified)
        return Trigger(name, table.schema, table.name, body, create)


class _Parent(_Writer):
    """The trigger of the table itself."""

    def part(self, package: Package, column: Column) -> ColumnLines:
        choice, name = self.subject.choice, column.name
        old_value, new_value = self.value(self.old_alias, name), self.value(self.new_alias, name)
        if self.expressions.of(column.type).unreadable:
            differs = "" if choice.update in PER_FIELD else f"updating({literal(name)})"
            return ColumnLines(differs=differs)
        inserted = changed = differs = ""
        if choice.insert in PER_FIELD:
            inserted = self.call(package, choice.insert, "new_key", name, "null", new_value, "moved")
        if choice.update in PER_FIELD:
            changed = self.call(package, choice.update, "new_key", name, old_value, new_value, "false")
        else:
            differs = f"{package.quoted}.differ{package.number(column)}({old_value}, {new_value})"
        return ColumnLines(inserted, changed, differs=differs)

    def rows(self, package: Package, parts: Sequence[ColumnLines]) -> str:
        note, choice = f"{package.quoted}.note", self.subject.choice
        deletion = f"{note}(arrived, false, {choice.delete}, old_key, null, null, null);\n"
        insertion = "".join(part.inserted for part in parts) + self._new_row(package)
        changed = "".join(part.changed for part in parts)
        if differing := "\nor ".join(part.differs for part in parts if part.differs):
            noted = f"{note}(arrived, false, {choice.update}, new_key, null, null, null);\n"
            changed += branches((differing, noted))
        return (branches(("moved or new_key is null", deletion)) if self.deletes else "") + branches(
            ("moved or old_key is null", insertion), ("new_key is not null", changed or "null;\n")
        )

    def _new_row(self, package: Package) -> str:
        """Return what is logged of a new row as a whole: the row, or that none of its columns has a value."""
        kind = self.subject.choice.insert
        if kind not in PER_FIELD:
            return f"{package.quoted}.note(arrived, moved, {kind}, new_key, null, null, null);\n"
        name = literal(self.subject.per_field[0].name)
        noted = f"{package.quoted}.note(arrived, moved, {kind}, new_key, {name}, null, null);\n"
        return branches(("said = 0", noted))


class _Child(_Writer):
    """The trigger of a child table, whose columns are values of the parent's row."""

    def __init__(self, subject: Subject, child: Child) -> None:
        key = child.key(subject.table.key)
        shape = TriggerShape(child.relation.table, subject.table.name, key, child.columns)
        super().__init__(subject, shape)
        self.link = child.link

    def part(self, package: Package, column: Column) -> ColumnLines:
        kind, name = CHILD_TYPES[self.subject.choice.update], column.name
        old_value, new_value = self.value(self.old_alias, name), self.value(self.new_alias, name)
        return ColumnLines(
            inserted=self.call(package, kind, "new_key", name, "null", new_value, "false"),
            changed=self.call(package, kind, "new_key", name, old_value, new_value, "false"),
            deleted=self.call(package, kind, "old_key", name, old_value, "null", "false"),
        )

    def rows(self, package: Package, parts: Sequence[ColumnLines]) -> str:
        inserted, changed, deleted = (
            "".join(texts) or "null;\n"
            for texts in ([p.inserted for p in parts], [p.changed for p in parts], [p.deleted for p in parts])
        )
        return (
            branches((f"(moved or new_key is null) and {self._linked(self.old_alias)}", deleted))
            + branches((f"(moved or old_key is null) and {self._linked(self.new_alias)}", inserted))
            + branches((f"not moved and old_key is not null and {self._linked(self.new_alias)}", changed))
        )

    def _linked(self, alias: str) -> str:
        """Return whether a child row names a parent."""
        return "\nand ".join(f"{self.value(alias, name)} is not null" for name in self.link.columns)


def _grant(package: Package, schema: str) -> str:
    """Return the grant that lets the trigger of another schema's table call its package, and nothing else."""
    return f"grant execute on {package.quoted} to {package.log.dialect.quote(schema)}"


def branches(*cases: tuple[str, str]) -> str:
    """Return the branches for these cases; the first one that holds is taken."""
    texts = (f"if {when} then\n{indent(then.removesuffix(END), 2)}\n" for when, then in cases)
    return "els".join(texts) + "end if;\n"


TRIGGERS = TriggerWriter(
    write,
    name_of,
    ways_round=(
        (
            "truncate, and exchanging or dropping a partition, fire no trigger on it",
            "delete from the table instead, or empty the copies and resync",
        ),
        (
            "a direct-path load (SQL*Loader direct=true) fires no trigger on it",
            "load by the conventional path, or resync afterwards",
        ),
        (
            "what is written into a LOB by its locator (dbms_lob, a driver's stream) fires no trigger",
            "update the row as well, as in set x = x of any other column, or resync afterwards",
        ),
        (
            "flashback table, and what GoldenGate or XStream apply, fire no trigger on it",
            "resync afterwards; have dbms_ddl.set_trigger_firing_property or the apply process fire triggers",
        ),
    ),
    reads_parent=False,
    largest=LARGEST,
    package=package_of,
)
