"""The triggers of PostgreSQL: one SQL statement logs all rows of a statement, from its transition tables.

Granularity `row` is for tables with other row-level triggers, which may change the same rows within the
statement. Then the first row-level firing, before any other trigger, logs the whole statement. Replication
fires no statement-level triggers and fills no transition tables. Its writes are logged row by row by a
separate trigger, which fires in no other session.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from itertools import chain, count

from eventlog.sql.common import templates
from eventlog.sql.common.dialect import TriggerWriter
from eventlog.sql.names import Log
from eventlog.sql.postgresql.trigger_bodies import NEW_ROWS, OLD_ROWS, Bodies
from eventlog.sql.relation import Firing, Place, qualified
from eventlog.sql.trigger_rows import EMPTIED, REPLICATED, Subject, Trigger, indent, object_name

_WAKE_CLASS = 0x6576_6C67  # "evlg"
_REFERENCING = {
    "insert": f"referencing new table as {NEW_ROWS}\n  ",
    "update": f"referencing old table as {OLD_ROWS} new table as {NEW_ROWS}\n  ",
    "delete": f"referencing old table as {OLD_ROWS}\n  ",
}
_FIRST = {"insert": ("new", NEW_ROWS), "update": ("new", NEW_ROWS), "delete": ("old", OLD_ROWS)}
_WHEN = {
    "truncate": "before truncate",
    EMPTIED: "after truncate",
    REPLICATED: "after insert or update or delete",
}


def wake_key(log: Log) -> tuple[int, int]:
    """Return the advisory lock that a sleeping publisher holds: while it does, a statement notifies."""
    checksum = zlib.crc32(log.table.encode())
    return _WAKE_CLASS, checksum - (1 << 32) if checksum >= 1 << 31 else checksum


def write(subject: Subject) -> Iterator[Trigger]:
    """Yield the triggers of a subject."""
    writer = _Writer(subject)
    relation, bodies = subject.relation, writer.bodies
    places = [relation.place, *relation.below]
    by_row = granularity(subject) == "row"
    for event, body in bodies.of_statements():
        yield from writer.triggers(places, event, body, by_row)
    if subject.choice.delete is not None:
        for leaf in relation.leaves or (relation.place,):
            yield from writer.triggers([leaf], "truncate", bodies.truncated(leaf))
    if subject.choice.replicated:  # of a partitioned table, the server gives it to each partition
        yield from writer.triggers([relation.place], REPLICATED, bodies.of_row(), True)
    for child in subject.children:
        place, parent = child.relation.place, subject.table.name
        for event, body in bodies.of_child_statements(child):
            yield from writer.triggers([place, *child.relation.below], event, body, parent=parent)
        leaves = child.relation.leaves or (place,)
        for leaf in leaves:
            yield from writer.triggers([leaf], "truncate", bodies.child_truncated(child, leaf), parent=parent)
        yield from writer.triggers(leaves, EMPTIED, bodies.child_emptied(child), parent=parent)
        if subject.choice.replicated:
            yield from writer.triggers([place], REPLICATED, bodies.of_child_row(child), True, parent)


def name_of(log: Log, _: str, event: str, parent: str | None) -> str:
    """Return the name of a trigger.

    Triggers fire in the order of their names; an exclamation mark sorts before letters and digits.
    """
    return object_name(log.dialect, f"!{log.table}_{event}", parent)


def dollar_quoted(text: str) -> str:
    """Return the text as a constant between marks that it does not contain."""
    marks = chain(["$eventlog$"], (f"$eventlog{number}$" for number in count(1)))
    mark = next(mark for mark in marks if mark not in text)
    return f"{mark}{text}{mark}"


def granularity(subject: Subject) -> str:
    """Return row if other row-level triggers may change the same rows, else statement."""
    if subject.choice.granularity != "auto":
        return subject.choice.granularity
    has_row_triggers = any(trigger.row for trigger in subject.relation.triggers)
    return "row" if has_row_triggers and not subject.relation.below else "statement"


def firing(subject: Subject, event: str) -> Firing:
    """Return the sessions in which a trigger fires; a truncate is one statement wherever it comes from."""
    if event == REPLICATED:
        return Firing.REPLICA
    is_truncate = event in ("truncate", EMPTIED)
    return Firing.ALWAYS if is_truncate and subject.choice.replicated else Firing.ORIGIN


class _Writer:
    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.dialect = subject.dialect
        self.bodies = Bodies(subject)

    def triggers(
        self, places: Sequence[Place], event: str, body: str, by_row: bool = False, parent: str | None = None
    ) -> Iterator[Trigger]:
        """Yield one function, and a trigger that calls it on each of the places."""
        log, table_place = self.subject.log, self.subject.relation.place
        fires = firing(self.subject, event)
        function = object_name(
            self.dialect, log.table, *table_place, *(places[0] if places[0] != table_place else ()), event
        )
        holes = {
            "function": qualified(self.dialect, log.place, function),
            "settings": "\n".join(templates.statements(self.dialect, "session", {})),
            "text": dollar_quoted(text := self._body(event, body, by_row)),
            "trigger": self.dialect.quote(name := name_of(log, table_place[1], event, parent)),
            "event": _WHEN.get(event, f"after {event}"),
            "referencing": _REFERENCING.get(event, ""),
            "granularity": "row" if by_row else "statement",
            "firing": fires.value,
        }
        statements = tuple(templates.statements(self.dialect, "capture", holes))
        if owner := self.subject.owner:
            belongs = holes | {"owner": self.dialect.quote(owner)}
            statements += tuple(templates.statements(self.dialect, "capture_owner", belongs))
        for place in places:
            place_holes = holes | {"table": qualified(self.dialect, *place)}
            create = (*statements, *templates.statements(self.dialect, "trigger", place_holes))
            if fires is not Firing.ORIGIN:
                create += tuple(templates.statements(self.dialect, "trigger_firing", place_holes))
            yield Trigger(name, *place, text, create, fires)
            statements = ()

    def _body(self, event: str, body: str, by_row: bool) -> str:
        holes = {
            "mark": self.subject.choice.mark(),
            "guard": _guard(*_FIRST[event]) if by_row and event in _FIRST else "",
            "off": qualified(
                self.dialect, self.subject.log.place, self.subject.log.companion_name("capture_is_off")
            ),
            "rows": indent(body, 2),
            "wake": ", ".join(map(str, wake_key(self.subject.log))),
            "log_text": self.bodies.names["log_text"],
        }
        return "\n" + templates.statement(self.dialect, "capture_body", **holes) + "\n"


def _guard(first: str, table: str) -> str:
    return (
        f"  if {first} operator(pg_catalog.*<>) (select row(f.*) from {table} f limit 1) then\n"  # noqa: S608
        "    return null; -- the first row of the statement logged them all\n  end if;\n"
    )


TRIGGERS = TriggerWriter(
    write,
    name_of,
    ways_round=(
        (
            "replication, and a session with session_replication_role = replica, fire no trigger on it",
            "track it with --replicated, or resync what such a session changed",
        ),
    ),
    replicates=True,
    by_statement=True,
    on_truncate=True,
)
