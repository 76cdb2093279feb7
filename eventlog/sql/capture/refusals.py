"""What cannot be tracked, one small function per reason, each with the way out; and logs without defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import inspect
from sqlalchemy.engine import Connection

from eventlog.core import tablekey
from eventlog.core.errors import EventlogError
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.common import templates
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.error_causes import blames_rights
from eventlog.sql.names import COMPANIONS, Log
from eventlog.sql.trigger_rows import CHILD_TYPES, PER_FIELD, VALUES, Subject, triggers_of


class CannotTrack(EventlogError):
    """{0} cannot be tracked: {1}"""


class NotAllowed(EventlogError):
    """this user may not make or drop the triggers of {0}: {1}. Give the same command --sql, and let the \
owner of the table run what it prints"""


@contextmanager
def referring_to_script(table: object) -> Iterator[None]:
    """Raise NotAllowed if a statement of the block fails because the user lacks a right."""
    try:
        yield
    except DatabaseFailed as fault:
        if blames_rights(fault):
            raise NotAllowed(table, fault) from fault
        raise


def refuse(subject: Subject) -> None:
    """Raise CannotTrack with every reason there is."""
    reasons = [reason for reasons_of in REFUSALS for reason in reasons_of(subject)]
    if reasons := reasons or [*_too_large(subject)]:
        raise CannotTrack(str(subject.table), "; ".join(dict.fromkeys(reasons)))


def _no_table(subject: Subject) -> Iterator[str]:
    if not subject.relation.identity.is_table:
        event = subject.log.companion_name("event")
        yield (
            f"it is a {subject.relation.kind}; log its changes from triggers of your own with {event}"
            " (docs/triggers.md has an example on a view)"
        )


def _family(subject: Subject) -> Iterator[str]:
    """Yield relatives by inheritance: a statement may change their rows, and fires only the triggers of the
    table that it names.
    """
    for name, kin in subject.relation.family:
        if kin == "partition":
            yield f"it is a partition of {name}: track {name}, which covers all of its partitions"
        else:
            kinship = (
                f"inherits from {name}" if kin == "parent" else f"has a table that inherits from it, {name}"
            )
            yield (
                f"it {kinship}, and a statement on one changes rows of both while it fires the triggers of"
                " one: make them partitions, or log by hand"
            )


def _the_log_itself(subject: Subject) -> Iterator[str]:
    log = subject.log
    log_tables = {log.dialect.fold(log.table), *(log.companion_name(name) for name in COMPANIONS)}
    if subject.table.schema == log.place and subject.table.name in log_tables:
        yield "it belongs to the log: each row of its own would log another"


def _not_replicated(subject: Subject) -> Iterator[str]:
    if subject.choice.replicated and not subject.dialect.triggers.replicates:
        yield (
            f"no trigger of {subject.dialect.title} logs what replication writes: leave out --replicated, and"
            " track the table where it is replicated from"
        )


def _no_key(subject: Subject) -> Iterator[str]:
    if not subject.table.key and not subject.table.view:
        yield (
            "it has no primary key to name its rows by: add one, or track the table that its foreign key"
            " points to with --child"
        )


def _illegal_key_name(subject: Subject) -> Iterator[str]:
    for name in subject.table.key:
        if not tablekey.legal_name(name):
            yield f"key column {name} holds one of , ; ' + \" = \\ < >, which a key cannot name: rename it"


def _unquotable(subject: Subject) -> Iterator[str]:
    """Yield a reason for a name with a quote of its own, with which MySQL makes no trigger."""
    mark, table = subject.dialect.triggers.no_name_with, subject.table
    columns = (*table.key_columns, *subject.columns)
    table_names = (table.schema or "", table.name, *(column.name for column in columns))
    for name in (*table_names, *_names_of_children(subject)):
        if mark and mark in name:
            yield (
                f"no trigger of {subject.dialect.title} can name {name}, which holds {mark}: rename it, or"
                " leave a column out with --without"
            )


def _names_of_children(subject: Subject) -> Iterator[str]:
    for child in subject.children:
        yield from (subject.table.schema or "", subject.table.name, *child.link.columns)
        yield from (column.name for column in child.columns)


def _unreadable_key(subject: Subject) -> Iterator[str]:
    for column in subject.table.key_columns:
        if unreadable := subject.dialect.expressions.of(column.type).unreadable:
            yield f"key column {column.name} is of type {column.type}, which {unreadable}"


def _unknown_column(subject: Subject) -> Iterator[str]:
    columns = subject.table.columns
    for name in (*(subject.choice.columns or ()), *subject.choice.without):
        if name not in columns:
            yield f"it has no column {name}: --columns and --without take names from {', '.join(columns)}"
        elif name in subject.relation.virtual and name not in subject.choice.without:
            yield f"column {name} is computed when it is read, so triggers cannot log it: leave it out"


def _nothing_but_key(subject: Subject) -> Iterator[str]:
    if not subject.per_field and subject.choice.insert in PER_FIELD:
        yield (
            f"no column except its key is logged, so --insert {subject.choice.insert} would log nothing: "
            "choose --insert 5"
        )


def _unreadable(subject: Subject) -> Iterator[str]:
    """Yield columns without a text if they were named; others are left out with a warning."""
    named = [*subject.columns] if subject.choice.columns else []
    columns = [*named, *(column for child in subject.children for column in child.columns)]
    if not {subject.choice.insert, subject.choice.update} & PER_FIELD:
        return
    for column in columns:
        if unreadable := subject.dialect.expressions.of(column.type).unreadable:
            yield f"column {column.name} is of type {column.type}, which {unreadable}: leave it out"


def _broken_names(subject: Subject) -> Iterator[str]:
    """Yield names with line ends: a client that reads line by line takes a part of them for a command."""
    if not subject.dialect.reads_lines:
        return
    relations = (subject.relation, *(child.relation for child in subject.children))
    for table in (relation.table for relation in relations):
        for name in (table.schema or "", table.name, *table.columns):
            if any(ord(character) < 32 for character in name):
                yield f"the name {name!r} holds a line end or another control character: rename it"


def _children_of_values(subject: Subject) -> Iterator[str]:
    if subject.children and subject.choice.update not in CHILD_TYPES:
        yield (
            "an event of type 3 removes all values of a child column to add one: choose --update 2, or 8,"
            " which reads them all"
        )


def _cascaded_children(subject: Subject) -> Iterator[str]:
    if subject.dialect.triggers.reads_parent or subject.choice.update not in VALUES:
        return
    for child in subject.children:
        if child.link.cascades:
            yield (
                f"rows of {child.relation.table} go with their parent by a cascade, in which"
                f" {subject.dialect.title} lets no trigger see whether the parent is gone: choose --update 8"
            )


def _rows_of_partitions(subject: Subject) -> Iterator[str]:
    values = {subject.choice.insert, subject.choice.update} & VALUES
    row_triggers = [t.name for t in subject.relation.triggers if t.row and not t.internal]
    if subject.relation.below and row_triggers and values:
        yield (
            f"it is partitioned and has row-level triggers ({', '.join(sorted(set(row_triggers)))}), before"
            " which capture cannot come: choose --insert 5 --update 6, which read the row later"
        )
    if subject.relation.below and subject.choice.granularity == "row":
        yield "it is partitioned, which rules out --granularity row: choose statement"


def _too_large(subject: Subject) -> Iterator[str]:
    """Yield triggers that are larger than the database takes; call this if nothing else refuses them."""
    limit = subject.dialect.triggers.largest
    for trigger in triggers_of(subject) if limit is not None else ():
        if (size := len(trigger.body.encode())) > (limit or 0):
            yield (
                f"its trigger would have {size} bytes, and {subject.dialect.title} takes {limit}: choose"
                " --insert 5 --update 6, which need fewer lines, or leave columns out with --without"
            )


REFUSALS: tuple[Callable[[Subject], Iterator[str]], ...] = (
    _no_table,
    _family,
    _the_log_itself,
    _not_replicated,
    _no_key,
    _illegal_key_name,
    _unquotable,
    _unreadable_key,
    _unknown_column,
    _nothing_but_key,
    _unreadable,
    _broken_names,
    _children_of_values,
    _cascaded_children,
    _rows_of_partitions,
)


_LEFT_TO_THE_LOG = ("record_id", "status", "event_time")


class NoDefault(EventlogError):
    """the log {0} has no default for {1}, and triggers write no value there. A change of a tracked table \
would fail, or the publisher would not find its row. Give the log defaults first:\n{2}"""


def demand_defaults(connection: Connection, log: Log) -> None:
    """Raise NoDefault unless the log fills these columns, by defaults or by a trigger of its own."""
    log = Catalogue(connection).located(log)
    missing = list(_missing(connection, log))
    if missing:
        holes = log.names()
        statements = (statement for name in missing for statement in _remedy(log, name, holes))
        remedies = (f"  {' '.join(statement.split())};" for statement in statements)
        raise NoDefault(log.table, ", ".join(log.column(name) for name in missing), "\n".join(remedies))


def _missing(connection: Connection, log: Log) -> Iterator[str]:
    place = log.dialect.fold(log.table)
    relation = Catalogue(connection).at((log.place or "", place))
    if relation is None or relation.triggers:
        return
    # not on our connection: for the inspector's statements errors are not translated, and it stays so
    described = inspect(connection.engine).get_columns(
        log.reflected(place), log.place and log.reflected(log.place)
    )
    columns = {column["name"].lower(): column for column in described}
    for name in _LEFT_TO_THE_LOG:
        column = columns.get(log.column(name).lower())
        if column is not None and not _is_filled(column):
            yield name


def _is_filled(column: Any) -> bool:
    return bool(column.get("default") or column.get("identity") or column.get("autoincrement") is True)


def _remedy(log: Log, name: str, holes: dict[str, str]) -> Iterator[str]:
    return templates.statements(log.dialect, f"default_{name}", holes)
