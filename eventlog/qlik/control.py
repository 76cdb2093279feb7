"""Replicate's control tables: the task of a table, how it was altered, which partitions are closed."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from eventlog.core.errors import EventlogError, Refused
from eventlog.core.formats import Row, Source
from eventlog.core.plurals import quantity
from eventlog.qlik import partitions
from eventlog.qlik.ddl import Ddl, read_ddl

# "Control Tables", and what each holds
CONTROL: Final = {
    partitions.TABLE: "the change data partitions",
    "attrep_apply_exceptions": "changes that were not applied to the target",
    "attrep_audit_table": "all changes of a task once more, as JSON",
    "attrep_changes": "changes that the task applies together",
    "attrep_ddl_history": "the changes of the tables' structure",
    "attrep_history": "figures of the task",
    "attrep_status": "the state of the task",
    "attrep_suspended_tables": "the tables that the task has suspended",
}
STATUS: Final = "attrep_status"
HISTORY: Final = "attrep_ddl_history"
SUSPENDED: Final = "attrep_suspended_tables"
USED: Final = (partitions.TABLE, HISTORY, STATUS, SUSPENDED)
At = tuple[str, str]  # owner and name of a table, in lower case
T = TypeVar("T")
_NET_CHANGES = re.compile(r"attrep_changes[0-9a-f_]*")  # one for each task, named by its hash
_NO_DIGIT = re.compile(r"[^0-9]", re.ASCII)


def control_table(name: str) -> str:
    """Return the control table of that name, with or without a schema before it; empty if it is none."""
    bare = name.lower().rpartition(".")[2]
    if _NET_CHANGES.fullmatch(bare):
        return "attrep_changes"
    return bare if bare in CONTROL else ""


def check_control(name: str, sources: Iterable[Source[Row]]) -> Iterator[Refused]:
    """Yield notices about a control table: that it is skipped, or that rows of it name no partition."""
    if name == partitions.TABLE:
        yield from partitions.check(sources)
        return
    for source in sources:
        rows = quantity(sum(1 for _ in source.records), "row")
        warning = f"skipped: a control table with {CONTROL[name]} ({rows}), no changes of a table"
        yield Refused(source.name, warning, fault=False)


class Control:
    """The content of the control tables that were read; other facts are unknown."""

    def __init__(self, suffix: str) -> None:
        self._suffix = suffix.lower()
        self._task_of: dict[At, tuple[str, str]] = {}  # the time at which it was last named, and the task
        self._tasks: set[str] = set()  # those that have a row of their own
        self._ends: dict[At, set[dt.datetime]] = {}  # of partitions
        self._ddl: dict[At, dict[tuple[str, int], Ddl]] = {}

    def take(self, name: str, source: Source[Row]) -> Iterator[Refused]:
        """Read a control table; Refused for its rows that cannot be understood."""
        if name not in USED:
            yield from check_control(name, [source])
            return
        columns = tuple(column.upper() for column in source.columns)
        for record in source.records:
            if isinstance(record, Refused):
                yield record
                continue
            try:
                self._row(name, dict(zip(columns, record.cells, strict=False)))
            except EventlogError as fault:
                yield Refused(source.at(record.where), str(fault), record.raw)

    def _row(self, name: str, cells: Mapping[str, Any]) -> None:
        server, task = _text(cells, "SERVER_NAME"), _text(cells, "TASK_NAME")
        named = f"{server}/{task}" if server else task
        if name == STATUS:
            self._tasks.add(named)
            return
        at = _text(cells, "TABLE_OWNER").lower(), _text(cells, "TABLE_NAME").lower()
        when = _NO_DIGIT.sub("", _text(cells, "SUSPEND_TIMESTAMP"))
        if name == partitions.TABLE:
            start, end = partitions.read_name(_text(cells, "PARTITION_NAME"))
            self._ends.setdefault(at, set()).add(end)
            when = f"{start:%Y%m%d%H%M%S}"
        elif name == HISTORY:
            ddl = read_ddl(cells)
            ddl = ddl._replace(of_change_table=at[1].endswith(self._suffix))
            self._ddl.setdefault(at, {})[ddl.seq, ddl.version] = ddl
            when = ddl.seq
        if at[1].endswith(self._suffix):
            at = at[0], at[1].removesuffix(self._suffix)
        if when >= self._task_of.get(at, ("", ""))[0]:
            self._task_of[at] = when, named

    def task_of(self, schema: str | None, table: str) -> str:
        """Return the task of a table; empty if all tables are of one task, or none is named.

        If several tasks are named for a table, the last one counts, because a task may be renamed.
        """
        if len(self._tasks | {task for _, task in self._task_of.values()}) < 2:
            return ""
        found = _found(self._task_of, schema, table)
        return found[1] if found else ""

    def closed(self, schema: str | None, table: str, now: dt.datetime) -> dt.datetime | None:
        """Return the end of the last partition of a table that is listed and over, or None if there is
        none.
        """
        known = (_found(self._ends, schema, name) or () for name in (table, table + self._suffix))
        return max((end for ends in known for end in ends if end <= now), default=None)

    def history(self, schema: str | None, table: str) -> tuple[Ddl, ...]:
        """Return the changes of the structure of a table, in order.

        Those of its change table count only if there are none of the table itself.
        """
        for name in (table, table + self._suffix):
            found = _found(self._ddl, schema, name)
            if found:
                return tuple(ddl for _, ddl in sorted(found.items()))
        return ()


def _text(cells: Mapping[str, Any], name: str) -> str:
    cell = cells.get(name)
    return "" if cell is None else str(cell).strip()


def _found(kept: Mapping[At, T], schema: str | None, table: str) -> T | None:
    """Return what is kept for a table; without a schema, for the only one of that name."""
    name = table.lower()
    if schema is not None:
        return kept.get((schema.lower(), name), kept.get(("", name)))
    found = [value for (_, known), value in kept.items() if known == name]
    return found[0] if len(found) == 1 else None
