"""Oracle: one compound trigger a table. It notes the rows as they change and inserts them in bulk; what
a changed key means is inserted at the end of the statement, all deletes first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eventlog.sql import templates
from eventlog.sql.dialects import literal
from eventlog.sql.log import Log
from eventlog.sql.triggers import (
    Child,
    Row,
    Rows,
    Subject,
    Trigger,
    Writer,
    indent,
    object_name,
    qualified,
)
from eventlog.tables import Table

OLD, NEW = ":old", ":new"


def write(subject: Subject) -> Iterator[Trigger]:
    """The triggers of a subject: one, and one for each child."""
    writer = _Writer(subject)
    yield writer.trigger(subject.table, dict(writer.blocks()))
    for child in subject.children:
        yield writer.trigger(child.relation.table, dict(writer.child_blocks(child)), subject.table.name)


def name_of(log: Log, table: str, event: str, parent: str | None) -> str:
    """One trigger is for all events; it shares the names of its schema."""
    return object_name(log.dialect, log.dialect.fold(log.table), table, parent)


class _Writer:
    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.dialect = subject.dialect
        self.rows = Rows(subject)

    def blocks(self) -> Iterator[tuple[str, str]]:
        """What is noted of a row, by event."""
        rows = self.rows
        old, new = rows.key(OLD), rows.key(NEW)
        yield "insert", notes("changed", rows.inserted(NEW), new)
        moved = notes("departed", rows.deleted(), old) + notes("arrived", rows.inserted(NEW), new)
        kept = notes("changed", rows.updated(OLD, NEW), new)
        yield "update", either(rows.moved(OLD, NEW), moved, kept)
        if deleted := rows.deleted():
            yield "delete", notes("changed", deleted, old)

    def child_blocks(self, child: Child) -> Iterator[tuple[str, str]]:
        rows = self.rows
        old, new = rows.child_key(child, OLD), rows.child_key(child, NEW)
        taken = either(rows.linked(child, OLD), notes("changed", rows.child_rows(child, OLD, None), old))
        given = either(rows.linked(child, NEW), notes("changed", rows.child_rows(child, None, NEW), new))
        kept = either(rows.linked(child, NEW), notes("changed", rows.child_rows(child, OLD, NEW), new))
        yield "insert", given
        yield "update", either(rows.child_moved(child, OLD, NEW), taken + given, kept)
        yield "delete", taken

    def trigger(self, table: Table, blocks: dict[str, str], parent: str | None = None) -> Trigger:
        subject, dialect, log = self.subject, self.dialect, self.subject.log
        cases = [
            f"{'if' if not number else 'elsif'} {event[:-1] if event.endswith('e') else event}ing then\n"
            + indent(block.rstrip("\n"), 2)
            for number, (event, block) in enumerate(blocks.items())
        ]
        holes = log.names() | {
            "mark": subject.choice.mark(),
            "capture": qualified(dialect, log.place, log.beside("capture")),
            "table_text": literal(subject.logged_as),
            "rows": indent("\n".join((*cases, "end if;")), 2),
        }
        body = templates.statement(dialect, "capture_body", **holes)
        name = name_of(log, table.name, "", parent)
        there = {
            "schema": dialect.quote(table.schema or ""),
            "trigger": dialect.quote(name),
            "table": qualified(dialect, table.schema, table.name),
            "events": " or ".join(blocks),
            "body": body,
        }
        made = tuple(templates.statements(dialect, "trigger", there))
        return Trigger(name, table.schema, table.name, body, made)


def notes(rows: str, noted: Sequence[Row], key: str) -> str:
    """The calls that note these rows for the end of the statement."""
    return "".join(_note(rows, row, key) for row in noted)


def either(condition: str, then: str, otherwise: str = "") -> str:
    lines = [f"if {condition} then", indent(then.rstrip("\n"), 2)]
    if otherwise:
        lines += ["else", indent(otherwise.rstrip("\n"), 2)]
    return "\n".join((*lines, "end if;", ""))


def _note(rows: str, row: Row, key: str) -> str:
    values = [rows, str(row.event_type), key]
    if row.column is not None:
        values += [literal(row.column), row.old or "null", row.new or "null"]
    call = f"note({', '.join(values)});\n"
    return either(row.when, call) if row.when else call


WRITER = Writer(
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
    ),
    reads_parent=False,
)
