"""PostgreSQL: one statement of SQL logs all rows of a statement, from its transition tables.

Granularity `row` is for tables with row-level triggers of others, which may change the same rows inside
the statement: the first of the row-level firings, before any other trigger, logs the whole statement.

Old and new rows of an update are paired by their place: PostgreSQL writes both transition tables
together, row by row. A full join is hashed or merged, never a loop in a loop, whatever the first
statement of the session looked like to the planner.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from typing import NamedTuple

from eventlog.sql import templates
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

OLD, NEW = "eventlog_old", "eventlog_new"
_INSERTED = f"{NEW} n"
_DELETED = f"{OLD} o"
_ONE_PAIR = f"{OLD} o cross join {NEW} n"
_WAKE_CLASS = 0x6576_6C67  # "evlg"
_REFERENCING = {
    "insert": f"referencing new table as {NEW}\n  ",
    "update": f"referencing old table as {OLD} new table as {NEW}\n  ",
    "delete": f"referencing old table as {OLD}\n  ",
    "truncate": "",
}
_FIRST = {"insert": ("new", NEW), "update": ("new", NEW), "delete": ("old", OLD)}


class Place(NamedTuple):
    """A table on which a trigger stands."""

    schema: str | None
    name: str


def wake_key(log: Log) -> tuple[int, int]:
    """The advisory lock that a sleeping publisher holds: while it does, a statement notifies."""
    checksum = zlib.crc32(log.table.encode())
    return _WAKE_CLASS, checksum - (1 << 32) if checksum >= 1 << 31 else checksum


def write(subject: Subject) -> Iterator[Trigger]:
    """The triggers of a subject."""
    writer = _Writer(subject)
    table = subject.table
    places = [Place(table.schema, table.name), *(Place(*below) for below in subject.relation.below)]
    by_row = granularity(subject) == "row"
    for event, body in writer.bodies():
        yield from writer.triggers(places, event, body, by_row)
    if subject.choice.delete is not None:
        for leaf in subject.relation.leaves or (places[0],):
            yield from writer.triggers([Place(*leaf)], "truncate", writer.truncated(Place(*leaf)))
    for child in subject.children:
        for event, body in writer.child_bodies(child):
            place = Place(child.relation.table.schema, child.relation.table.name)
            yield from writer.triggers([place], event, body, parent=table.name)


def name_of(log: Log, _: str, event: str, parent: str | None) -> str:
    """Triggers fire in the order of their names: an exclamation mark comes before letters and digits."""
    return object_name(log.dialect, f"!{log.table}_{event}", parent)


def dollar_quoted(text: str) -> str:
    """The text as a constant between marks that do not stand in it."""
    marks = chain(["$eventlog$"], (f"$eventlog{number}$" for number in count(1)))
    mark = next(mark for mark in marks if mark not in text)
    return f"{mark}{text}{mark}"


def granularity(subject: Subject) -> str:
    """Row where others' row-level triggers may change the same rows, else statement."""
    if subject.choice.granularity != "auto":
        return subject.choice.granularity
    others = any(trigger.row for trigger in subject.relation.triggers)
    return "row" if others and not subject.relation.below else "statement"


class _Writer:
    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.dialect = subject.dialect
        self.rows = Rows(subject)
        self.names = subject.log.names()
        self.table_text = self.rows.expressions.constant(subject.logged_as)

    def bodies(self) -> Iterator[tuple[str, str]]:
        rows = self.rows
        yield "insert", self.log(rows.inserted("n"), "n", _INSERTED)
        yield "update", self.updates()
        if deleted := rows.deleted():
            yield "delete", self.log(deleted, "o", _DELETED)

    def updates(self) -> str:
        """Where rows can move to another partition, that one's own trigger may throw them away."""
        if not self.subject.relation.below:
            return self.paired_updates()
        counts = [f"(select pg_catalog.count(*) from {table})" for table in (OLD, NEW)]  # noqa: S608
        return "\n".join(
            (
                f"if {counts[0]} operator(pg_catalog.<>) {counts[1]} then",
                indent(self.lossy_updates(), 2),
                "else",
                indent(self.paired_updates(), 2),
                "end if;",
            )
        )

    def lossy_updates(self) -> str:
        """Fewer new rows than old ones: their places do not match, so they are paired by their keys."""
        rows, missing = self.rows, self.rows.expressions.missing
        keys = [f'({rows.key(alias)}) collate "C"' for alias in ("n", "o")]
        pairs = f"{OLD} o\n  full join {NEW} n on {keys[0]} operator(pg_catalog.=) {keys[1]}"
        first = self.dialect.quote(self.subject.table.key[0])
        gone, come = (missing.format(x=f"{alias}.{first}") for alias in ("n", "o"))
        parts = [self.log(rows.deleted(), "o", pairs, gone)] if rows.deleted() else []
        parts.append(self.log(rows.inserted("n"), "n", pairs, come))
        if updated := rows.updated("o", "n"):
            parts.append(self.log(updated, "n", pairs, f"not ({gone} or {come})"))
        return "\n".join(parts)

    def paired_updates(self) -> str:
        """One row, as most statements change, needs no pairing: two scans of one row cost a third of it."""
        return "\n".join(
            (
                f"if not exists (select from {NEW} offset 1) then",
                indent(self.single_update(), 2),
                "else",
                indent(self.many_updates(), 2),
                "end if;",
            )
        )

    def single_update(self) -> str:
        moved = self.rows.moved("o", "n")
        updated = self.rows.updated("o", "n")
        if not updated:
            return self.moves(_ONE_PAIR, moved)
        return "\n".join(
            (
                self.log(updated, "n", _ONE_PAIR, f"not ({moved})"),
                "if not found then",
                indent(self.moves(_ONE_PAIR, moved), 2),
                "end if;",
            )
        )

    def many_updates(self) -> str:
        moved = self.rows.moved("o", "n")
        pairs = self.pairs((*self.subject.table.key, *(column.name for column in self.subject.columns)))
        parts = [
            f"if exists (select from {pairs}\n  where {moved}) then",
            indent(self.moves(pairs, moved), 2),
            "end if;",
        ]
        if updated := self.rows.updated("o", "n"):
            parts.append(self.log(updated, "n", pairs, f"not ({moved})"))
        return "\n".join(parts)

    def pairs(self, columns: Iterable[str]) -> str:
        """Each old row of an update beside the new one; no column of the table can be taken for the place."""
        named = dict.fromkeys(columns)
        place = next(name for name in ("eventlog_at" + "_" * n for n in count()) if name not in named)
        listed = ", ".join(f"x.{self.dialect.quote(name)}" for name in named)
        numbered = f"select {listed}, pg_catalog.row_number() over () as {place} from"
        return (
            f"({numbered} {OLD} x) o\n"
            f"  full join ({numbered} {NEW} x) n on n.{place} operator(pg_catalog.=) o.{place}"
        )

    def moves(self, pairs: str, moved: str) -> str:
        """Rows with another key: all deletes before all inserts."""
        rows = self.rows
        deletes = [self.log(rows.deleted(), "o", pairs, moved)] if rows.deleted() else []
        return "\n".join((*deletes, self.log(rows.inserted("n"), "n", pairs, moved)))

    def truncated(self, leaf: Place) -> str:
        return self.log(self.rows.deleted(), "o", f"only {qualified(self.dialect, *leaf)} o")

    def child_bodies(self, child: Child) -> Iterator[tuple[str, str]]:
        rows = self.rows
        keys = {alias: rows.child_key(child, alias) for alias in ("o", "n")}
        linked = {alias: rows.linked(child, alias) for alias in ("o", "n")}
        parent = qualified(self.dialect, self.subject.table.schema, self.subject.table.name)
        # the parent's own delete says it all
        left = f"{linked['o']} and exists (select from {parent} p where {rows.same_key(child, 'o', 'p')})"
        taken, given = rows.child_rows(child, "o", None), rows.child_rows(child, None, "n")
        moved = rows.child_moved(child, "o", "n")
        pairs = self.pairs((*child.link.columns, *(column.name for column in child.columns)))
        yield "insert", self._log(given, keys["n"], _INSERTED, linked["n"])
        yield (
            "update",
            "\n".join(
                (
                    self._log(taken, keys["o"], pairs, f"({moved}) and {left}"),
                    self._log(given, keys["n"], pairs, f"({moved}) and {linked['n']}"),
                    self._log(
                        rows.child_rows(child, "o", "n"),
                        keys["n"],
                        pairs,
                        f"not ({moved}) and {linked['n']}",
                    ),
                )
            ),
        )
        yield "delete", self._log(taken, keys["o"], _DELETED, left)

    def log(self, rows: Sequence[Row], alias: str, source: str, where: str = "") -> str:
        return self._log(rows, self.rows.key(alias), source, where)

    def _log(self, rows: Sequence[Row], key: str, source: str, where: str = "") -> str:
        names = self.names
        into = [names[n] for n in ("event_type", "perpetrator", "table_name", "table_key")]
        values = ["f.event_type", "session_user", self.table_text, key]
        conditions = [f"({where})"] if where else []
        if len(rows) == 1 and rows[0].column is None:
            values[0] = str(rows[0].event_type)
            conditions += [f"({rows[0].when})"] if rows[0].when else []
        else:
            into += [names[n] for n in ("column_name", "old_value", "new_value")]
            values += ["f.column_name", "f.old_value", "f.new_value"]
            source += "\n  cross join lateral (\n" + indent(self._fields(rows), 4) + "\n  ) f"
        condition = "\n  where " + " and ".join(conditions) if conditions else ""
        return (
            f"insert into {names['log']} ({', '.join(into)})\n"
            f"select {', '.join(values)}\nfrom {source}{condition};\nlogged := logged or found;"
        )

    def _fields(self, rows: Sequence[Row]) -> str:
        named = " as event_type, {} as column_name, {} as old_value, {} as new_value"
        return "\nunion all\n".join(
            f"select {row.event_type}"
            + (named if not number else ", {}, {}, {}").format(
                self.rows.expressions.constant(row.column or "") + "::pg_catalog.text",
                row.old or "null::pg_catalog.text",
                row.new or "null::pg_catalog.text",
            )
            + f"\nwhere {row.when}"
            for number, row in enumerate(rows)
        )

    def triggers(
        self, places: Sequence[Place], event: str, body: str, by_row: bool = False, parent: str | None = None
    ) -> Iterator[Trigger]:
        """One function, and a trigger that calls it on each of the places."""
        log, table = self.subject.log, self.subject.table
        here = () if places[0] == (table.schema, table.name) else places[0]
        function = object_name(self.dialect, log.table, table.schema, table.name, *here, event)
        holes = {
            "function": qualified(self.dialect, log.place, function),
            "settings": "\n".join(templates.statements(self.dialect, "session", {})),
            "text": dollar_quoted(text := self._body(event, body, by_row)),
            "trigger": self.dialect.quote(name := name_of(log, table.name, event, parent)),
            "event": ("before " if event == "truncate" else "after ") + event,
            "referencing": _REFERENCING[event],
            "granularity": "row" if by_row else "statement",
        }
        made = tuple(templates.statements(self.dialect, "capture", holes))
        if owner := self.subject.owner:
            belongs = holes | {"owner": self.dialect.quote(owner)}
            made += tuple(templates.statements(self.dialect, "capture_owner", belongs))
        for place in places:
            there = holes | {"table": qualified(self.dialect, *place)}
            create = (*made, *templates.statements(self.dialect, "trigger", there))
            yield Trigger(name, *place, text, create)
            made = ()

    def _body(self, event: str, body: str, by_row: bool) -> str:
        first, table = _FIRST.get(event, ("", ""))
        guard = (
            f"  if {first} operator(pg_catalog.*<>) (select row(f.*) from {table} f limit 1) then\n"  # noqa: S608
            "    return null; -- the first row of the statement logged them all\n  end if;\n"
        )
        holes = {
            "mark": self.subject.choice.mark(),
            "guard": guard if by_row else "",
            "off": qualified(self.dialect, self.subject.log.place, self.subject.log.beside("capture_is_off")),
            "rows": indent(body, 2),
            "wake": ", ".join(map(str, wake_key(self.subject.log))),
            "log_text": self.names["log_text"],
        }
        return "\n" + templates.statement(self.dialect, "capture_body", **holes) + "\n"


WRITER = Writer(
    write,
    name_of,
    ways_round=(
        (
            "a session with session_replication_role = replica fires no trigger on it",
            "resync what such a session changed; with enable always the triggers would fail or log nothing",
        ),
    ),
)
