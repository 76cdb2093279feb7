"""Oracle: a compound trigger a table, which hands each row to a package of the log's owner.

A row is logged as it changes. If an update moves it to another key, its new values wait for the end of the
statement, so that they come after all deletes. Of a table with the key ID, and a column NAME that is logged
when it changes (type 2), this module writes what the trigger does after each row:

    if moved or new_key is null then
      "PACKAGE".note(arrived, false, 4, old_key, null, null, null);
    end if;
    if moved or old_key is null then
      …
    elsif new_key is not null then
      "PACKAGE".change1(arrived, false, said, 2, new_key, 'NAME', :old."NAME", :new."NAME");
    end if;

`capture_body` of capture.sql is the trigger around these lines, and declares their variables:

old_key   the table_key before; null if the row is inserted
new_key   the table_key after; null if the row is deleted
moved     whether an update changed the key
said      how many columns of the row have been logged
arrived   the rows that wait for the end of the statement

`package` and `package_type` of capture.sql declare the procedures: `note` logs one row of the log, `change1`
does so if both values differ, and `differ1` is that condition. Each type of columns has its number.
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

    inserted: str = ""  # when a row is inserted, or moved to this key
    changed: str = ""  # when a row changes and keeps its key
    deleted: str = ""  # when a row is deleted, or moved to another key
    differs: str = ""  # the condition that the column changed


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
        self.expressions = self.log.dialect.values.expressions
        self.deletes = shape.parent is not None or subject.choice.delete is not None  # are logged
        self.old_alias, self.new_alias = (
            (":o", ":n") if shape.table.name in ("OLD", "NEW") else (":old", ":new")
        )

    def row_lines(self, package: Package, columns: Sequence[ColumnLines]) -> str:
        """Return what the trigger does after each row."""
        raise NotImplementedError

    def column_lines(self, package: Package, column: Column) -> ColumnLines:
        """Return what the trigger does with a column of a row."""
        raise NotImplementedError

    def log_column(
        self,
        package: Package,
        kind: int,
        key: str,
        column: Column,
        old_value: str,
        new_value: str,
        waits: str = "false",
    ) -> str:
        """Return a line that logs a column if its values differ; `waits` is the condition that it waits."""
        table, name = self.shape.table, column.name
        logged_name = name if self.shape.parent is None else f"{table.name}.{name}"
        return (
            f"{package.quoted}.change{package.number(column)}"
            f"(arrived, {waits}, said, {kind}, {key}, {literal(logged_name)}, {old_value}, {new_value});\n"
        )

    def value(self, alias: str, name: str) -> str:
        return f"{alias}.{self.log.dialect.quote(name)}"

    def _package(self, name: str) -> Package:
        package = package_of(self.log, self.shape.table.schema, name)
        return Package(self.log, package, self.subject.logged_as, self.shape.key)

    def _body(self, package: Package) -> str:
        columns = [self.column_lines(package, column) for column in self.shape.columns]
        rows = self.row_lines(package, columns)
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
            "package_schema_text": literal(self.log.place) if self.log.place else dialect.schema.current,
            "package_text": literal(package.name),
            "schema_text": literal(table.schema) if table.schema else dialect.schema.current,
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

    def column_lines(self, package: Package, column: Column) -> ColumnLines:
        choice, name = self.subject.choice, column.name
        old_value, new_value = self.value(self.old_alias, name), self.value(self.new_alias, name)
        if self.expressions.of(column.type).unreadable:
            differs = "" if choice.update in PER_FIELD else f"updating({literal(name)})"
            return ColumnLines(differs=differs)
        inserted = changed = differs = ""
        if choice.insert in PER_FIELD:
            inserted = self.log_column(
                package, choice.insert, "new_key", column, "null", new_value, waits="moved"
            )
        if choice.update in PER_FIELD:
            changed = self.log_column(package, choice.update, "new_key", column, old_value, new_value)
        else:
            differs = f"{package.quoted}.differ{package.number(column)}({old_value}, {new_value})"
        return ColumnLines(inserted, changed, differs=differs)

    def row_lines(self, package: Package, columns: Sequence[ColumnLines]) -> str:
        deletion = _log_row(package, self.subject.choice.delete, "old_key")
        deleted = branches(("moved or new_key is null", deletion)) if self.deletes else ""
        inserted = "".join(column.inserted for column in columns) + self._inserted_row(package)
        changed = "".join(column.changed for column in columns) + self._changed_row(package, columns)
        return deleted + branches(
            ("moved or old_key is null", inserted), ("new_key is not null", changed or "null;\n")
        )

    def _inserted_row(self, package: Package) -> str:
        """Return what logs a new row as a whole.

        If its columns are logged one by one, only a row without any value is logged, by its first column.
        """
        kind = self.subject.choice.insert
        if kind not in PER_FIELD:
            return _log_row(package, kind, "new_key", waits="moved")
        name = literal(self.subject.per_field[0].name)
        return branches(("said = 0", _log_row(package, kind, "new_key", name, waits="moved")))

    def _changed_row(self, package: Package, columns: Sequence[ColumnLines]) -> str:
        """Return what logs a changed row as a whole, if any column changed that is not logged by itself."""
        differs = "\nor ".join(column.differs for column in columns if column.differs)
        return (
            branches((differs, _log_row(package, self.subject.choice.update, "new_key"))) if differs else ""
        )


class _Child(_Writer):
    """The trigger of a child table, whose columns are values of the parent's row."""

    def __init__(self, subject: Subject, child: Child) -> None:
        key = child.key(subject.table.key)
        shape = TriggerShape(child.relation.table, subject.table.name, key, child.columns)
        super().__init__(subject, shape)
        self.link = child.link

    def column_lines(self, package: Package, column: Column) -> ColumnLines:
        kind = CHILD_TYPES[self.subject.choice.update]
        old_value, new_value = (self.value(alias, column.name) for alias in (self.old_alias, self.new_alias))
        return ColumnLines(
            inserted=self.log_column(package, kind, "new_key", column, "null", new_value),
            changed=self.log_column(package, kind, "new_key", column, old_value, new_value),
            deleted=self.log_column(package, kind, "old_key", column, old_value, "null"),
        )

    def row_lines(self, package: Package, columns: Sequence[ColumnLines]) -> str:
        inserted, changed, deleted = (
            "".join(lines) or "null;\n"
            for lines in (
                [column.inserted for column in columns],
                [column.changed for column in columns],
                [column.deleted for column in columns],
            )
        )
        had_parent, has_parent = self._linked(self.old_alias), self._linked(self.new_alias)
        return (
            branches((f"(moved or new_key is null) and {had_parent}", deleted))
            + branches((f"(moved or old_key is null) and {has_parent}", inserted))
            + branches((f"not moved and old_key is not null and {has_parent}", changed))
        )

    def _linked(self, alias: str) -> str:
        return "\nand ".join(f"{self.value(alias, name)} is not null" for name in self.link.columns)


def _log_row(package: Package, kind: int | None, key: str, column: str = "null", waits: str = "false") -> str:
    """Return a line that logs a row without values; `waits` is the condition that it waits."""
    return f"{package.quoted}.note(arrived, {waits}, {kind}, {key}, {column}, null, null);\n"


def _grant(package: Package, schema: str) -> str:
    """Return the grant that lets the trigger of another schema's table call its package, and nothing else."""
    return f"grant execute on {package.quoted} to {package.log.dialect.quote(schema)}"


def branches(*cases: tuple[str, str]) -> str:
    """Return an if statement of conditions and lines; the lines of the first true condition run."""
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
