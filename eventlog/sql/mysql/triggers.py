"""The triggers of MySQL and MariaDB: row-level triggers, the only ones there are.

The order of the rows is correct by itself: unique keys are checked row by row, so an update can give a row
only a free key. No trigger may change its own table. MySQL replaces no trigger in one step: a trial that does
nothing is made first, so that a trigger that cannot be made leaves the existing one. A session may choose the
next number of a table (`insert_id`), and so use up numbers of the log: MariaDB's triggers undo that; MySQL's
cannot, and refuse the change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eventlog.core.tables import Table
from eventlog.sql.common import templates
from eventlog.sql.common.dialect import TriggerWriter
from eventlog.sql.common.expression import literal
from eventlog.sql.mysql.column_types import USER
from eventlog.sql.names import Log
from eventlog.sql.relation import Child, qualified
from eventlog.sql.trigger_rows import (
    Subject,
    Trigger,
    TriggerRow,
    TriggerRows,
    indent,
    object_name,
)


def write(subject: Subject) -> Iterator[Trigger]:
    """Yield the triggers of a subject."""
    writer = _Writer(subject)
    for event, body in writer.bodies():
        yield writer.trigger(subject.table, event, body)
    for child in subject.children:
        for event, body in writer.child_bodies(child):
            yield writer.trigger(child.relation.table, event, body, subject.table.name)


def name_of(log: Log, table: str, event: str, parent: str | None) -> str:
    """Return the name of a trigger; triggers share the names of their schema."""
    return object_name(log.dialect, log.table, table, parent, event)


class _Writer:
    def __init__(self, subject: Subject) -> None:
        self.dialect = subject.dialect
        self.subject = subject
        self.rows = TriggerRows(self.subject)
        self.names = subject.log.names()

    def bodies(self) -> Iterator[tuple[str, str]]:
        rows = self.rows
        old_key, new_key = rows.key("old"), rows.key("new")
        yield "insert", self.log(rows.inserted("new"), new_key)
        yield (
            "update",
            self.branch(
                rows.moved("old", "new"),
                self.log(rows.deleted(), old_key) + self.log(rows.inserted("new"), new_key),
                self.log(rows.updated("old", "new"), new_key),
            ),
        )
        if deleted := rows.deleted():
            yield "delete", self.log(deleted, old_key)

    def child_bodies(self, child: Child) -> Iterator[tuple[str, str]]:
        rows = self.rows
        old_key, new_key = rows.child_key(child, "old"), rows.child_key(child, "new")
        parent = qualified(self.dialect, self.subject.table.schema, self.subject.table.name)
        parent_exists = f"exists (select 1 from {parent} p where {rows.same_key(child, 'old', 'p')})"  # noqa: S608
        removed = self.branch(parent_exists, self.log(rows.child_rows(child, "old", None), old_key))
        added = self.branch(rows.linked(child, "new"), self.log(rows.child_rows(child, None, "new"), new_key))
        changed = self.branch(
            rows.linked(child, "new"), self.log(rows.child_rows(child, "old", "new"), new_key)
        )
        yield "insert", added
        yield "update", self.branch(rows.child_moved(child, "old", "new"), removed + added, changed)
        yield "delete", removed

    def branch(self, condition: str, then: str, otherwise: str = "") -> str:
        lines = [f"if {condition} then", indent(then, 2)]
        if otherwise:
            lines += ["else", indent(otherwise, 2)]
        return "\n".join((*lines, "end if;", ""))

    def log(self, rows: Sequence[TriggerRow], key: str) -> str:
        return "".join(self._row(row, key) for row in rows)

    def _row(self, row: TriggerRow, key: str) -> str:
        names = ["event_type", "perpetrator", "table_name", "table_key"]
        values = [str(row.event_type), "who", literal(self.subject.logged_as), key]
        if row.column is not None:
            names += ["column_name", "old_value", "new_value"]
            values += [literal(row.column), row.old_text or "null", row.new_text or "null"]
        into = ", ".join(self.names[name] for name in names)
        statement = f"insert into {self.names['log']} ({into})\nvalues ({', '.join(values)});\n"
        return self.branch(row.when, statement) if row.when else statement

    def trigger(self, table: Table, event: str, rows: str, parent: str | None = None) -> Trigger:
        log = self.subject.log
        holes = {
            "mark_text": literal(self.subject.choice.mark()),
            "user": USER,
            "notice": self.names["notice"],
            "rows": indent(rows.rstrip("\n"), 4),
        }
        body = templates.statement(self.dialect, "capture_body", **holes)
        name = name_of(log, table.name, event, parent)
        place_holes = {
            "schema": self.dialect.quote(table.schema or ""),
            "trigger": self.dialect.quote(name),
            "trial": self.dialect.quote(object_name(self.dialect, name, "trial")),
            "table": qualified(self.dialect, table.schema, table.name),
            "event": event,
            "body": body,
        }
        statements = tuple(templates.statements(self.dialect, "trigger", place_holes))
        return Trigger(name, table.schema, table.name, as_in_catalogue(body), statements)


def as_in_catalogue(body: str) -> str:
    """Return the body as `catalogue_triggers` returns it: MySQL's catalogue writes doubled single quotes as
    one.
    """
    return body.replace("'", "")


MARIADB_TRIGGERS = TriggerWriter(
    write,
    name_of,
    ways_round=(
        (
            "truncate, and dropping a partition, fire no trigger on it",
            "delete from the table instead, or empty the copies and resync",
        ),
        (
            "a replica that applies row-based changes fires no trigger",
            "publish from the primary, or set slave_run_triggers_for_rbr where there is such a setting",
        ),
    ),
    cascades_fire=False,
    are_hidden=True,
)

# MySQL cannot keep the text of a trigger in which a name contains its own quotes: with letters
# beyond ASCII it fails (3507), else its catalogue has another text.
TRIGGERS = MARIADB_TRIGGERS._replace(no_name_with="`", replaces_routines=False)
