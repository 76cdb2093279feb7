"""Rows of the log that cannot be sent, or not as they were meant."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import timedelta

from eventlog.core import tablekey
from eventlog.core.entry import EVENT_TYPES, Letter, read_event_type, read_integer
from eventlog.core.errors import AmbiguousName, EventlogError, MalformedKey, WrongRow
from eventlog.core.identity import object_of
from eventlog.core.plurals import quantity
from eventlog.core.tables import Tables
from eventlog.sql.capture.checks.finding import Checked, Finding

_PER_FIELD = frozenset(number for number, kind in EVENT_TYPES.items() if kind.per_field)
SAMPLE = 10_000  # pending rows that are looked at one by one
_PLAIN = re.compile("[A-Za-z0-9]+")
_LETTERS = frozenset(status.value for status in Letter)


def _null_times(seen: Checked) -> Iterator[Finding]:
    names = seen.log.names()
    for (count,) in seen.ask("check_null_times"):
        if count:
            yield seen.of_log(
                f"{quantity(count, 'row has', 'rows have')} no event_time",
                "give the column its default, and the rows a time:",
                f"update {names['log']} set {names['event_time']} = {names['utc_now']}"  # noqa: S608
                f" where {names['event_time']} is null;",
            )


def _letters(seen: Checked) -> Iterator[Finding]:
    for letter, count in seen.ask("check_letters"):
        if letter not in _LETTERS:
            named = "null" if letter is None else repr(letter)
            rows = quantity(count, "row has", "rows have")
            yield seen.of_log(
                f"{rows} the status {named}, which is reserved: none is ever picked up",
                "delete them, or set it to N to have them sent:",
                *_renewed(seen, letter),
            )


def _renewed(seen: Checked, letter: str | None) -> Iterator[str]:
    """The statement that makes such rows new, where it cannot mean others: not by case, nor by a quote."""
    if letter and _PLAIN.fullmatch(letter) and seen.log.stored["status"].exact:
        names = seen.log.names()
        these = f"where {names['status']} = '{letter}'"
        yield f"update {names['log']} set {names['status']} = 'N' {these};"  # noqa: S608


def _types(seen: Checked) -> Iterator[Finding]:
    for cell, count in seen.ask("check_types"):
        try:
            read_event_type(cell)
        except WrongRow as fault:
            remedy = "mend the trigger that writes them; the publisher gives them status E"
            yield seen.of_log(f"of {count} pending rows {fault}", remedy)


def _unusable(seen: Checked) -> Iterator[Finding]:
    count = seen.backlog().unusable
    if count:
        most = seen.log.stored["record_id"].most
        yield seen.of_log(
            f"{count} pending rows have no usable record_id, a whole number from 1 to {most}: no publisher"
            " can finish them, and none picks them up",
            "give each a record_id, or delete it; they are listed by:",
            seen.command("errors"),
        )


def _pending(seen: Checked) -> Iterator[Finding]:
    rows = seen.ask("check_pending", most=SAMPLE)
    tables = seen.tables
    keys = {(row.table_name, row.table_key) for row in rows if None not in row[1:3]}
    yield from _malformed(seen, keys)
    yield from _padded(seen, keys)
    yield from _two_forms(seen, keys)
    yield from _unknown_names(
        seen, Counter(row.table_name for row in rows if row.table_name is not None), tables
    )
    named = Counter(
        (row.table_name, row.column_name)
        for row in rows
        if None not in row[1:] and read_integer(row.event_type) in _PER_FIELD
    )
    yield from _unknown_columns(seen, named, tables)
    yield from _loopback(seen, Counter(row.perpetrator for row in rows))


def _malformed(seen: Checked, keys: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    for table, key in sorted(keys):
        try:
            tablekey.read(key)
        except MalformedKey as fault:
            remedy = f"write keys as {seen.log.beside('key_value')} does, or track {table} with eventlog"
            yield seen.of_log(f"the key {key!r} of {table}: {fault}", remedy)


def _padded(seen: Checked, keys: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    spellings: dict[tuple[str, str], set[str]] = {}
    for table, key in keys:
        spellings.setdefault((table, key.replace(" ", "")), set()).add(key)
    for (table, _), same in sorted(spellings.items()):
        if len(same) > 1:
            yield seen.of_log(
                f"keys of {table} differ only in blanks: {', '.join(map(repr, sorted(same)))}; they count as"
                " different objects",
                "write the keys of one table in one format, from every trigger",
            )


def _two_forms(seen: Checked, keys: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Report objects of published tables whose association is another one as logged than in the catalogue's
    names."""
    forms = {(table, key): object_of(seen.tables, table, key) for table, key in sorted(keys)}
    odd = {name: key for (_, key), name in forms.items() if name[1] != key}
    if odd:
        (table, canonical), logged = min(odd.items())
        yield seen.of_log(
            f"{len(odd)} pending objects have two associations, such as {logged} of {table}, which is"
            f" {canonical} in the catalogue's names",
            "write keys with the catalogue's names, in the order of the key, and quotes only where they must"
            ' be; or set association = "canonical", on an attached log once the receiver knows its objects by'
            " the catalogue's names",
        )


def _unknown_names(seen: Checked, names: Counter[str], tables: Tables) -> Iterator[Finding]:
    for name, count in sorted(names.items()):
        try:
            known = tables.find(name) is not None or bool(tables.parents(name))
        except AmbiguousName as fault:
            yield seen.of_log(f"{quantity(count, 'pending row')}: {fault}", "log the name with its schema")
            continue
        if not known:
            rows = quantity(count, "pending row names", "pending rows name")
            yield seen.of_log(
                f"{rows} {name}, which is no table or view that is published",
                "track it, name it in sync-tables or sync-schema, or mend the trigger that writes them",
            )


def _unknown_columns(seen: Checked, named: Counter[tuple[str, str]], tables: Tables) -> Iterator[Finding]:
    """Report columns that rows name and their tables lack."""
    found: Counter[tuple[str, str]] = Counter()
    for (name, column), count in named.items():
        with suppress(EventlogError):
            table = tables.find(name)
            if table is not None and table.key and table.column(column) is None:
                found[str(table), column] += count
    for (name, column), count in sorted(found.items()):
        rows = quantity(count, "pending row names", "pending rows name")
        yield seen.of_log(
            f"{rows} column {column!r}, which {name} lacks: values leave as strings, and types 7 and 8 bring"
            " none",
            "add the column, mend what writes the rows, or refuse them with unknown-columns = refuse",
        )


def _loopback(seen: Checked, perpetrators: Counter[str | None]) -> Iterator[Finding]:
    if seen.driver_user is not None and (count := perpetrators[seen.driver_user]):
        rows = quantity(count, "pending row is", "pending rows are")
        yield seen.of_log(
            f"{rows} the work of {seen.driver_user}, as whom the publisher connects: such"
            " count as loopback and are not published",
            "let the publisher connect as a user of its own, or set allow-loopback",
        )


def _overdue(seen: Checked) -> Iterator[Finding]:
    oldest = seen.backlog().oldest
    ((now,),) = seen.ask("now")
    if oldest is not None and now - oldest > seen.patience:
        age = timedelta(seconds=int((now - oldest).total_seconds()))
        yield seen.of_log(
            f"the oldest pending row has waited {age}",
            "start a publisher, or see why the one that runs does not send them:",
            seen.command("status"),
        )


ROW_CHECKS: tuple[Callable[[Checked], Iterator[Finding]], ...] = (
    _null_times,
    _letters,
    _types,
    _unusable,
    _pending,
    _overdue,
)
