"""What cannot be tracked, a table of reasons, each with the way out; and logs without defaults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import inspect
from sqlalchemy.engine import Connection

from eventlog.core import tablekey
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Column
from eventlog.sql.capture.findings import Check, Facts, findings_of
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


def raise_refusals(subject: Subject) -> None:
    """Raise CannotTrack with every reason there is."""
    names = {"where": str(subject.table), "title": subject.dialect.title, "choice": subject.choice}
    refusals = [*findings_of(REFUSALS, subject, names)] or [*findings_of(LIMITS, subject, names)]
    reasons = (f"{reason.what}: {reason.remedy}" if reason.remedy else reason.what for reason in refusals)
    if refusals:
        raise CannotTrack(str(subject.table), "; ".join(dict.fromkeys(reasons)))


def _family(subject: Subject) -> Iterator[Facts]:
    """Yield relatives by inheritance: a statement may change their rows, and fires only the triggers of the
    table that it names.
    """
    yield from ({kin: name} for name, kin in subject.relation.family)


def _table(subject: Subject) -> Iterator[Facts]:
    relation, table, log = subject.relation, subject.table, subject.log
    log_tables = {log.dialect.fold(log.table), *(log.companion_name(name) for name in COMPANIONS)}
    yield {
        "no_table": not relation.identity.is_table,
        "kind": relation.kind,
        "event": log.companion_name("event"),
        "of_log": table.schema == log.place and table.name in log_tables,
        "unheard": subject.choice.replicated and not subject.dialect.triggers.replicates,
        "no_key": not table.key and not table.view,
    }


def _key_names(subject: Subject) -> Iterator[Facts]:
    yield from ({"name": name, "illegal": not tablekey.legal_name(name)} for name in subject.table.key)


def _quoted_names(subject: Subject) -> Iterator[Facts]:
    """Yield names with a quote of its own, with which MySQL makes no trigger."""
    mark, table = subject.dialect.triggers.no_name_with, subject.table
    columns = (*table.key_columns, *subject.columns, *_child_columns(subject))
    links = (name for child in subject.children for name in child.link.columns)
    for name in (table.schema or "", table.name, *(column.name for column in columns), *links):
        yield {"name": name, "mark": mark, "unquotable": mark and mark in name}


def _child_columns(subject: Subject) -> Iterator[Column]:
    return (column for child in subject.children for column in child.columns)


def _key_types(subject: Subject) -> Iterator[Facts]:
    yield from ({"why": subject.dialect.why_no_key(column)} for column in subject.table.key_columns)


def _types(subject: Subject, columns: Iterable[Column]) -> Iterator[Facts]:
    for column in columns:
        yield {"column": column, "unreadable": subject.dialect.values.expressions.of(column.type).unreadable}


def _logged_columns(subject: Subject) -> Iterator[Facts]:
    columns, choice, virtual = subject.table.columns, subject.choice, subject.relation.virtual
    for name in (*(choice.columns or ()), *choice.without):
        facts = {"name": name, "unknown": name not in columns, "names": ", ".join(columns)}
        yield {**facts, "computed": name in virtual and name not in choice.without}
    yield {"only_key": not subject.per_field and choice.insert in PER_FIELD}


def _named_types(subject: Subject) -> Iterator[Facts]:
    """Yield the types of columns that were named; others without a text are left out with a warning."""
    named = subject.columns if subject.choice.columns else ()
    is_per_field = {subject.choice.insert, subject.choice.update} & PER_FIELD
    return _types(subject, (*named, *_child_columns(subject)) if is_per_field else ())


def _broken_names(subject: Subject) -> Iterator[Facts]:
    """Yield names with line ends: a client that reads line by line takes a part of them for a command."""
    relations = (subject.relation, *(child.relation for child in subject.children))
    for table in (relation.table for relation in relations if subject.dialect.schema.reads_lines):
        for name in (table.schema or "", table.name, *table.columns):
            yield {"name": name, "broken": any(ord(character) < 32 for character in name)}


def _children(subject: Subject) -> Iterator[Facts]:
    yield {"incomplete": subject.children and subject.choice.update not in CHILD_TYPES}
    unseen = not subject.dialect.triggers.reads_parent and subject.choice.update in VALUES
    for child in subject.children:
        yield {"child": child.relation.table, "cascades": unseen and child.link.cascades}


def _partitions(subject: Subject) -> Iterator[Facts]:
    partitioned, choice = bool(subject.relation.below), subject.choice
    triggers = sorted({t.name for t in subject.relation.triggers if t.row and not t.internal})
    late = partitioned and triggers and {choice.insert, choice.update} & VALUES
    yield {"late": late, "triggers": ", ".join(triggers), "row": partitioned and choice.granularity == "row"}


def _sizes(subject: Subject) -> Iterator[Facts]:
    limit = subject.dialect.triggers.largest
    for trigger in triggers_of(subject) if limit is not None else ():
        size = len(trigger.body.encode())
        yield {"size": size, "limit": limit, "too_large": size > (limit or 0)}


_BOTH = "and a statement on one changes rows of both while it fires the triggers of one"

REFUSALS: tuple[Check[Subject], ...] = (
    Check(_family, "partition",
        "it is a partition of {partition}",
        "track {partition}, which covers all of its partitions"),
    Check(_family, "parent",
        f"it inherits from {{parent}}, {_BOTH}",
        "make them partitions, or log by hand"),
    Check(_family, "child",
        f"it has a table that inherits from it, {{child}}, {_BOTH}",
        "make them partitions, or log by hand"),
    Check(_table, "no_table",
        "it is a {kind}",
        "log its changes from triggers of your own with {event} "
        "(docs/log/triggers.md has an example on a view)"),
    Check(_table, "of_log",
        "it belongs to the log: each row of its own would log another",
        ""),
    Check(_table, "unheard",
        "no trigger of {title} logs what replication writes",
        "leave out --replicated, and track the table where it is replicated from"),
    Check(_table, "no_key",
        "it has no primary key to name its rows by",
        "add one (docs/log/keys.md has the statements), or track the table that its foreign key points to "
        "with --child"),
    Check(_key_names, "illegal",
        "key column {name} holds one of , ; ' + \" = \\ < >, which a key cannot name",
        "rename it"),
    Check(_quoted_names, "unquotable",
        "no trigger of {title} can name {name}, which holds {mark}",
        "rename it, or leave a column out with --without"),
    Check(_key_types, "why",
        "{why}",
        "give it another key"),
    Check(_logged_columns, "unknown",
        "it has no column {name}",
        "--columns and --without take names from {names}"),
    Check(_logged_columns, "computed",
        "column {name} is computed when it is read, so triggers cannot log it",
        "leave it out"),
    Check(_logged_columns, "only_key",
        "no column except its key is logged, so --insert {choice.insert} would log nothing",
        "choose --insert 5"),
    Check(_named_types, "unreadable",
        "column {column.name} is of type {column.type}, which {unreadable}",
        "leave it out"),
    Check(_broken_names, "broken",
        "the name {name!r} holds a line end or another control character",
        "rename it"),
    Check(_children, "incomplete",
        "an event of type 3 removes all values of a child column to add one",
        "choose --update 2, or 8, which reads them all"),
    Check(_children, "cascades",
        "rows of {child} go with their parent by a cascade, in which {title} lets no trigger see whether the"
        " parent is gone",
        "choose --update 8"),
    Check(_partitions, "late",
        "it is partitioned and has row-level triggers ({triggers}), before which capture cannot come",
        "choose --insert 5 --update 6, which read the row later"),
    Check(_partitions, "row",
        "it is partitioned, which rules out --granularity row",
        "choose statement"),
)  # fmt: skip

# What only triggers that can be written may exceed
LIMITS: tuple[Check[Subject], ...] = (
    Check(_sizes, "too_large",
        "its trigger would have {size} bytes, and {title} takes {limit}",
        "choose --insert 5 --update 6, which need fewer lines, or leave columns out with --without"),
)  # fmt: skip


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
