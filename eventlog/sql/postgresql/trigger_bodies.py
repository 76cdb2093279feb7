"""What PostgreSQL's trigger functions do, as statements of SQL: an `insert … select` for each kind of row.

The aliases `o` and `n` name old and new rows: those of the transition tables, or the one row of a
row-level trigger that has no such tables.

Old and new rows of an update are paired by their place: PostgreSQL writes both transition tables
together, row by row. A full join is hashed or merged, never a loop in a loop, whatever the first
statement of the session looked like to the planner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from eventlog.sql.common import templates
from eventlog.sql.relation import Child, Place, qualified
from eventlog.sql.trigger_rows import Subject, TriggerRow, TriggerRows, indent

OLD_ROWS, NEW_ROWS = "eventlog_old", "eventlog_new"
_INSERTED = f"{NEW_ROWS} n"
_DELETED = f"{OLD_ROWS} o"
_ONE_PAIR = f"{OLD_ROWS} o cross join {NEW_ROWS} n"
_OLD_ROW, _NEW_ROW = "(select old.*) o", "(select new.*) n"
_ROW_PAIR = f"{_OLD_ROW} cross join {_NEW_ROW}"
_USER = "session_user"
# A worker of logical replication is no user's session: the author of the change is not known here.
_USER_OR_NOBODY = (
    "case when exists (select from pg_catalog.pg_stat_get_subscription(null) s"
    " where s.pid operator(pg_catalog.=) pg_catalog.pg_backend_pid()) then null else session_user end"
)
# A truncate locks all its tables exclusively before its first trigger fires.
_EXCLUSIVE = "operator(pg_catalog.=) any (eventlog_truncate.exclusive)"
_NOT_EXCLUSIVE = "operator(pg_catalog.<>) all (eventlog_truncate.exclusive)"


class Bodies:
    """The bodies of the functions of one subject."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.dialect = subject.dialect
        self.rows = TriggerRows(subject)
        self.names = subject.log.names()
        self.table_text = self.rows.expressions.constant(subject.logged_as)
        self.perpetrator = _USER_OR_NOBODY if subject.choice.replicated else _USER

    def of_statements(self) -> Iterator[tuple[str, str]]:
        """Return what each event of a statement logs, from its transition tables."""
        yield "insert", self.log(self.rows.inserted("n"), "n", _INSERTED)
        yield "update", self.updates()
        if self.rows.deleted():
            yield "delete", self.deletes(_DELETED)

    def of_row(self) -> str:
        """Return what one row logs that replication writes: row by row, without transition tables."""
        return _by_operation(
            self.log(self.rows.inserted("n"), "n", _NEW_ROW),
            self.single_update(_ROW_PAIR),
            self.deletes(_OLD_ROW),
        )

    def truncated(self, leaf: Place) -> str:
        """Return what a truncate logs, before it empties the table."""
        logged = self.log(self.rows.deleted(), "o", f"only {qualified(self.dialect, *leaf)} o")
        return "\n".join((templates.statement(self.dialect, "sees_all_rows"), logged))

    def of_child_statements(self, child: Child) -> Iterator[tuple[str, str]]:
        """Yield what each event of a statement on a child table logs, from its transition tables."""
        yield "insert", self.child_given(child, _INSERTED)
        columns = (*child.link.columns, *(column.name for column in child.columns))
        yield "update", self.child_changed(child, self.pairs(columns))
        yield "delete", self.child_taken(child, _DELETED)

    def child_truncated(self, child: Child, leaf: Place) -> str:
        """Return what a truncate of a child table takes from the parents that it certainly leaves."""
        source = f"only {qualified(self.dialect, *leaf)} o"
        taken = self.child_taken(child, source, parent_where=f"p.tableoid {_NOT_EXCLUSIVE}")
        logged = templates.statement(self.dialect, "with_exclusive", rows=indent(taken, 2))
        return "\n".join((templates.statement(self.dialect, "sees_all_rows"), logged))

    def child_emptied(self, child: Child) -> str:
        """Return what a truncate of a child table took from the other parents, if they are still there."""
        parent = f"{qualified(self.dialect, self.subject.table.schema, self.subject.table.name)} p"
        rows, key = self.rows.child_read_back(child), self.rows.key("p")
        emptied = self._log(rows, key, parent, f"p.tableoid {_EXCLUSIVE}")
        return templates.statement(self.dialect, "with_exclusive", rows=indent(emptied, 2))

    def of_child_row(self, child: Child) -> str:
        """Return what one row of a child table logs that replication writes."""
        return _by_operation(
            self.child_given(child, _NEW_ROW),
            self.child_changed(child, _ROW_PAIR),
            self.child_taken(child, _OLD_ROW),
        )

    def updates(self) -> str:
        """Return updates of tables whose rows can move to another partition, which may then drop them."""
        if not self.subject.relation.below:
            return self.paired_updates()
        counts = [f"(select pg_catalog.count(*) from {table})" for table in (OLD_ROWS, NEW_ROWS)]  # noqa: S608
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
        """Return updates with fewer new rows than old ones, which are paired by their keys."""
        rows, missing = self.rows, self.rows.expressions.missing
        keys = [f'({rows.key(alias)}) collate "C"' for alias in ("n", "o")]
        pairs = f"{OLD_ROWS} o\n  full join {NEW_ROWS} n on {keys[0]} operator(pg_catalog.=) {keys[1]}"
        first = self.dialect.quote(self.subject.table.key[0])
        is_deleted, is_inserted = (missing.format(x=f"{alias}.{first}") for alias in ("n", "o"))
        parts = [self.deletes(pairs, is_deleted)] if rows.deleted() else []
        parts.append(self.log(rows.inserted("n"), "n", pairs, is_inserted))
        if updated := rows.updated("o", "n"):
            parts.append(self.log(updated, "n", pairs, f"not ({is_deleted} or {is_inserted})"))
        return "\n".join(parts)

    def paired_updates(self) -> str:
        """Return updates by pairs of rows; for one row, as most statements change, two scans are enough and
        cost a third.
        """
        return "\n".join(
            (
                f"if not exists (select from {NEW_ROWS} offset 1) then",
                indent(self.single_update(_ONE_PAIR), 2),
                "else",
                indent(self.many_updates(), 2),
                "end if;",
            )
        )

    def single_update(self, pair: str) -> str:
        moved = self.rows.moved("o", "n")
        updated = self.rows.updated("o", "n")
        if not updated:
            return self.moves(pair, moved)
        return "\n".join(
            (
                self.log(updated, "n", pair, f"not ({moved})"),
                "if not found then",
                indent(self.moves(pair, moved), 2),
                "end if;",
            )
        )

    def many_updates(self) -> str:
        moved = self.rows.moved("o", "n")
        pairs = self.pairs((*self.subject.table.key, *(column.name for column in self.subject.columns)))
        parts = [
            f"if exists (select from {pairs}\n  where {moved}) then",
            indent(self.moves(pairs, moved, self._taken(pairs, moved)), 2),
            "end if;",
        ]
        if updated := self.rows.updated("o", "n"):
            parts.append(self.log(updated, "n", pairs, f"not ({moved})"))
        return "\n".join(parts)

    def pairs(self, columns: Iterable[str]) -> str:
        """Return each old row of an update with the new one; no column of the table can be mistaken for the
        position.
        """
        named = dict.fromkeys(columns)
        place = next(name for name in ("eventlog_at" + "_" * n for n in count()) if name not in named)
        listed = ", ".join(f"x.{self.dialect.quote(name)}" for name in named)
        numbered = f"select {listed}, pg_catalog.row_number() over () as {place} from"
        return (
            f"({numbered} {OLD_ROWS} x) o\n"
            f"  full join ({numbered} {NEW_ROWS} x) n on n.{place} operator(pg_catalog.=) o.{place}"
        )

    def moves(self, pairs: str, moved: str, taken: str = "") -> str:
        """Return rows with another key: all deletes before all inserts."""
        if not self.subject.relation.below or self.subject.relation.deferrable:
            return self._moves(pairs, moved, taken)
        # a merge that inserts before it updates: the server may show the inserted row as the new one
        doubtful = f"({moved}) and {self._still(taken)}"
        return "\n".join(
            (
                self._moves(pairs, f"({moved}) and not ({self._still(taken)})", taken),
                self.log([TriggerRow(5)], "o", pairs, doubtful),
                self.log([TriggerRow(5)], "n", pairs, doubtful),
            )
        )

    def _moves(self, pairs: str, moved: str, taken: str) -> str:
        deletes = [self.deletes(pairs, moved, taken)] if self.rows.deleted() else []
        return "\n".join((*deletes, self.log(self.rows.inserted("n"), "n", pairs, moved)))

    def deletes(self, source: str, where: str = "", taken: str = "") -> str:
        """Return old keys as deleted.

        Until its transaction ends, a deferrable key may have two rows. If another row still has the key, the
        object continues, and is logged as inserted again, to be read back. Keys that moved rows have taken
        are logged as inserted anyway.
        """
        if not self.rows.deleted():
            return ""
        deleted = self.log(self.rows.deleted(), "o", source, where)
        if not self.subject.relation.deferrable:
            return deleted
        condition = f"({where}) and {self._still(taken)}" if where else self._still(taken)
        return "\n".join((deleted, self.log([TriggerRow(5)], "o", source, condition)))

    def _still(self, taken: str) -> str:
        """Return whether another row has the old key now, except those that moved to it."""
        table = qualified(self.dialect, self.subject.table.schema, self.subject.table.name)
        exists = f"exists (select from {table} t where {self._same_row('t', 'o')})"
        if not taken:
            return exists
        return f"{exists} and not exists (select from {taken} t where {self._same_row('t', 'o')})"

    def _taken(self, pairs: str, moved: str) -> str:
        names = ", ".join(f"n.{self.dialect.quote(name)}" for name in self.subject.table.key)
        return f"(select {names} from {pairs} where {moved})"  # noqa: S608

    def _same_row(self, first: str, second: str) -> str:
        """Return whether two rows have one key, letter for letter; a type that is not built in has no safe
        operator.
        """
        expressions, quote = self.rows.expressions, self.dialect.quote
        safe = all(expressions.of(c.type) is not expressions.default for c in self.subject.table.key_columns)
        names = [quote(name) for name in self.subject.table.key]
        if safe:
            equal = (f"{first}.{name} operator(pg_catalog.=) {second}.{name}" for name in names)
            return f"{' and '.join(equal)} and not ({self.rows.moved(first, second)})"
        rows = [f"row({', '.join(f'{alias}.{name}' for name in names)})" for alias in (first, second)]
        return f"{rows[0]} operator(pg_catalog.*=) {rows[1]}"

    def child_given(self, child: Child, source: str, where: str = "") -> str:
        """Return what child rows gave their parents."""
        rows, linked = self.rows, self.rows.linked(child, "n")
        conditions = f"({where}) and {linked}" if where else linked
        return self._log(rows.child_rows(child, None, "n"), rows.child_key(child, "n"), source, conditions)

    def child_taken(self, child: Child, source: str, where: str = "", parent_where: str = "") -> str:
        """Return what child rows took from their parents; the parent's own delete needs no more."""
        rows = self.rows
        parent = qualified(self.dialect, self.subject.table.schema, self.subject.table.name)
        is_parent = " and ".join(filter(None, (rows.same_key(child, "o", "p"), parent_where)))
        parent_exists = f"exists (select from {parent} p where {is_parent})"
        conditions = [f"({where})"] if where else []
        conditions += [rows.linked(child, "o"), parent_exists]
        key = rows.child_key(child, "o")
        return self._log(rows.child_rows(child, "o", None), key, source, " and ".join(conditions))

    def child_changed(self, child: Child, pairs: str) -> str:
        """Return what changed child rows took, gave and changed."""
        rows, moved = self.rows, self.rows.child_moved(child, "o", "n")
        return "\n".join(
            (
                self.child_taken(child, pairs, moved),
                self.child_given(child, pairs, moved),
                self._log(
                    rows.child_rows(child, "o", "n"),
                    rows.child_key(child, "n"),
                    pairs,
                    f"not ({moved}) and {rows.linked(child, 'n')}",
                ),
            )
        )

    def log(self, rows: Sequence[TriggerRow], alias: str, source: str, where: str = "") -> str:
        return self._log(rows, self.rows.key(alias), source, where)

    def _log(self, rows: Sequence[TriggerRow], key: str, source: str, where: str = "") -> str:
        names = self.names
        into = [names[n] for n in ("event_type", "perpetrator", "table_name", "table_key")]
        values = ["f.event_type", self.perpetrator, self.table_text, key]
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

    def _fields(self, rows: Sequence[TriggerRow]) -> str:
        named = " as event_type, {} as column_name, {} as old_value, {} as new_value"
        return "\nunion all\n".join(
            f"select {row.event_type}"
            + (named if not number else ", {}, {}, {}").format(
                self.rows.expressions.constant(row.column or "") + "::pg_catalog.text",
                row.old_text or "null::pg_catalog.text",
                row.new_text or "null::pg_catalog.text",
            )
            + f"\nwhere {row.when}"
            for number, row in enumerate(rows)
        )


def _by_operation(insert: str, update: str, delete: str) -> str:
    parts = (("if", "INSERT", insert), ("elsif", "UPDATE", update), ("elsif", "DELETE", delete))
    lines = [
        f"{word} tg_op operator(pg_catalog.=) '{operation}' then\n{indent(body, 2)}"
        for word, operation, body in parts
        if body
    ]
    return "\n".join((*lines, "end if;"))
