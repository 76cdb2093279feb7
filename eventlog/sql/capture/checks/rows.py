"""Rows of the log that cannot be sent, or not as they were meant."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import timedelta

from eventlog.core import tablekey
from eventlog.core.entry import EVENT_TYPES, MAX_RECORD_ID, Letter, read_event_type, read_integer
from eventlog.core.errors import AmbiguousName, EventlogError, MalformedKey, WrongRow
from eventlog.core.identity import object_of
from eventlog.core.plurals import quantity
from eventlog.core.tables import Tables
from eventlog.sql.capture.checks.finding import Checked, Finding

_PER_FIELD = frozenset(number for number, kind in EVENT_TYPES.items() if kind.per_field)
SAMPLE = 10_000  # pending rows that are looked at one by one
_PLAIN = re.compile("[A-Za-z0-9]+")
_LETTERS = frozenset(status.value for status in Letter)


def _null_times(checked: Checked) -> Iterator[Finding]:
    names = checked.log.names()
    for (count,) in checked.ask("check_null_times"):
        if count:
            yield checked.of_log(
                f"{quantity(count, 'row has', 'rows have')} no event_time",
                "give the column its default, and the rows a time:",
                f"update {names['log']} set {names['event_time']} = {names['utc_now']}"  # noqa: S608
                f" where {names['event_time']} is null;",
            )


def _letters(checked: Checked) -> Iterator[Finding]:
    for letter, count in checked.ask("check_letters"):
        if letter not in _LETTERS:
            named = "null" if letter is None else repr(letter)
            rows = quantity(count, "row has", "rows have")
            yield checked.of_log(
                f"{rows} the status {named}, which is reserved: none is ever picked up",
                "delete them, or set it to N to have them sent:",
                *_renewed(checked, letter),
            )


def _renewed(checked: Checked, letter: str | None) -> Iterator[str]:
    """Yield the statement that makes such rows new, where it cannot mean others: not by case, nor
    by a quote.
    """
    if letter and _PLAIN.fullmatch(letter) and checked.log.stored["status"].exact:
        names = checked.log.names()
        these = f"where {names['status']} = '{letter}'"
        yield f"update {names['log']} set {names['status']} = 'N' {these};"  # noqa: S608


def _types(checked: Checked) -> Iterator[Finding]:
    for cell, count in checked.ask("check_types"):
        try:
            read_event_type(cell)
        except WrongRow as fault:
            remedy = "mend the trigger that writes them; the publisher gives them status E"
            yield checked.of_log(f"of {count} pending rows {fault}", remedy)


def _unusable(checked: Checked) -> Iterator[Finding]:
    for (count,) in checked.ask("check_ids"):
        if count:
            yield checked.of_log(
                f"{count} pending rows have no usable record_id, a whole number from 1 to {MAX_RECORD_ID}: no"
                " publisher can finish them, and none picks them up",
                "give each a record_id, or delete it",
            )


def _pending(checked: Checked) -> Iterator[Finding]:
    rows = checked.ask("check_pending", most=SAMPLE)
    tables = checked.tables
    keys = {(row.table_name, row.table_key) for row in rows if None not in row[1:3]}
    yield from _malformed(checked, keys)
    yield from _padded(checked, keys)
    yield from _two_forms(checked, keys)
    yield from _unknown_names(
        checked, Counter(row.table_name for row in rows if row.table_name is not None), tables
    )
    named = Counter(
        (row.table_name, row.column_name)
        for row in rows
        if None not in row[1:] and read_integer(row.event_type) in _PER_FIELD
    )
    yield from _unknown_columns(checked, named, tables)
    yield from _loopback(checked, Counter(row.perpetrator for row in rows))


def _malformed(checked: Checked, keys: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    for table, key in sorted(keys):
        try:
            tablekey.read(key)
        except MalformedKey as fault:
            remedy = (
                f"write keys as {checked.log.beside('key_value')} has them, or track {table} with eventlog"
            )
            yield checked.of_log(f"the key {key!r} of {table}: {fault}", remedy)


def _padded(checked: Checked, keys: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    spellings: dict[tuple[str, str], set[str]] = {}
    for table, key in keys:
        spellings.setdefault((table, key.replace(" ", "")), set()).add(key)
    for (table, _), same in sorted(spellings.items()):
        if len(same) > 1:
            yield checked.of_log(
                f"keys of {table} differ only in blanks: {', '.join(map(repr, sorted(same)))}; they count as"
                " different objects",
                "write the keys of one table in one format, from every trigger",
            )


def _two_forms(checked: Checked, keys: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Report objects of published tables whose association is another one as logged than in the catalogue's
    names."""
    forms = {(table, key): object_of(checked.tables, table, key) for table, key in sorted(keys)}
    odd = {name: key for (_, key), name in forms.items() if name[1] != key}
    if odd:
        (table, canonical), logged = min(odd.items())
        yield checked.of_log(
            f"{len(odd)} pending objects have two associations, such as {logged} of {table}, which is"
            f" {canonical} in the catalogue's names",
            "write keys with the catalogue's names, in the order of the key, and quotes only where needed;"
            ' or set association = "canonical", on an attached log only after the receiver has its objects'
            " under the catalogue's names",
        )


def _unknown_names(checked: Checked, names: Counter[str], tables: Tables) -> Iterator[Finding]:
    for name, count in sorted(names.items()):
        try:
            exists = tables.find(name) is not None or bool(tables.parents(name))
        except AmbiguousName as fault:
            yield checked.of_log(f"{quantity(count, 'pending row')}: {fault}", "log the name with its schema")
            continue
        if not exists:
            rows = quantity(count, "pending row names", "pending rows name")
            yield checked.of_log(
                f"{rows} {name}, which is no table or view that is published",
                "track it, name it in sync-tables or sync-schema, or mend the trigger that writes them",
            )


def _unknown_columns(checked: Checked, named: Counter[tuple[str, str]], tables: Tables) -> Iterator[Finding]:
    """Report columns that rows name and their tables lack."""
    counts: Counter[tuple[str, str]] = Counter()
    for (name, column), count in named.items():
        with suppress(EventlogError):
            table = tables.find(name)
            if table is not None and table.key and table.column(column) is None:
                counts[str(table), column] += count
    for (name, column), count in sorted(counts.items()):
        rows = quantity(count, "pending row names", "pending rows name")
        yield checked.of_log(
            f"{rows} column {column!r}, which {name} lacks: values leave as strings, and types 7 and 8 bring"
            " none",
            "add the column, mend what writes the rows, or refuse them with unknown-columns = refuse",
        )


def _loopback(checked: Checked, perpetrators: Counter[str | None]) -> Iterator[Finding]:
    if checked.driver_user is not None and (count := perpetrators[checked.driver_user]):
        rows = quantity(count, "pending row is", "pending rows are")
        yield checked.of_log(
            f"{rows} the work of {checked.driver_user}, as whom the publisher connects: such"
            " count as loopback and are not published",
            "let the publisher connect as a user of its own, or set allow-loopback",
        )


def _overdue(checked: Checked) -> Iterator[Finding]:
    oldest = checked.backlog().oldest
    ((now,),) = checked.ask("now")
    if oldest is not None and now - oldest > checked.patience:
        age = timedelta(seconds=int((now - oldest).total_seconds()))
        yield checked.of_log(
            f"the oldest pending row has waited {age}",
            "start a publisher, or see why the one that runs does not send them:",
            checked.command("status"),
        )


ROW_CHECKS: tuple[Callable[[Checked], Iterator[Finding]], ...] = (
    _null_times,
    _letters,
    _types,
    _unusable,
    _pending,
    _overdue,
)
