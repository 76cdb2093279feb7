"""Install, replace and remove the triggers of a table; doing it twice changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection, Engine

from eventlog.core.entry import EVENT_TYPES
from eventlog.core.portions import portions
from eventlog.core.tables import Table
from eventlog.sql.capture.extreme_keys import UNFINDABLE, unfindable_keys
from eventlog.sql.capture.refusals import CannotTrack, demand_defaults, raise_refusals, referring_to_script
from eventlog.sql.capture.subject import installed_of, read_subject
from eventlog.sql.capture.track_record import TrackRecord, forget, read_record, write_record
from eventlog.sql.catalogue import Catalogue, NoSuchTable
from eventlog.sql.common import templates
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.common.expression import literal
from eventlog.sql.connect import DatabaseFailed, execute_plain
from eventlog.sql.error_causes import blames_rights
from eventlog.sql.log.log_admin import LogAdmin
from eventlog.sql.names import Log
from eventlog.sql.queries import Queries
from eventlog.sql.relation import Choice, Installed, Relation, place_of, qualified
from eventlog.sql.trigger_rows import Subject, TriggerRow, TriggerRows, routines, triggers_of

_READ_BACK = {number for number, kind in EVENT_TYPES.items() if kind.query_back}
_TRIED = 500  # expressions of one query


@dataclass(frozen=True)
class TrackPlan:
    """The statements that bring the triggers of one table, and its record, to a choice."""

    table: Table
    statements: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()  # queries with the expressions of the triggers

    def run(self, connection: Connection) -> None:
        """Run the statements; CannotTrack if triggers would fail, NotAllowed if the user lacks a right."""
        for trial in self.trials:
            self._try(connection, trial)
        with referring_to_script(self.table):
            _run(connection, self.statements)

    def _try(self, connection: Connection, trial: str) -> None:
        """Run a query with expressions of triggers, unless the user may not read the table."""
        try:
            with connection.begin_nested():
                execute_plain(connection, trial)
        except DatabaseFailed as fault:
            if not blames_rights(fault):
                raise CannotTrack(str(self.table), f"its triggers would fail: {fault}") from fault


def track(engine: Engine, log: Log, name: str, choice: Choice) -> TrackPlan:
    """Bring the triggers of a table to the choice; an empty plan means that they were so already."""
    with engine.begin() as connection:
        demand_defaults(connection, log)
        plan = plan_track(connection, log, name, choice)
        plan.run(connection)
    return plan


def untrack(engine: Engine, log: Log, name: str, *, discard: bool = False) -> TrackPlan:
    """Take the triggers of a table away; raise LogInUse if its rows are not published, unless they may go."""
    with engine.begin() as connection:
        plan = plan_untrack(connection, log, name)
        if plan.statements and not discard:
            logged_as = read_record(connection, log).logged_as(place_of(plan.table))
            LogAdmin(connection, Queries(log)).demand_published(logged_as)
        plan.run(connection)
    return plan


def install_routines(engine: Engine, log: Log) -> None:
    """The procedures for triggers of one's own, and the switch for bulk loads; any number of times."""
    with engine.begin() as connection:
        catalogue = Catalogue(connection)
        _run(connection, _routines(catalogue, catalogue.located(log)))


def remove_routines(engine: Engine, log: Log) -> None:
    """The opposite, before the log is uninstalled."""
    with engine.begin() as connection:
        _run(connection, routines(Catalogue(connection).located(log), "drop_routines"))


def tracked(connection: Connection, log: Log, *, recorded: bool = True) -> list[str]:
    """Return the tables that carry triggers of this log, which could not be written to without it; with
    those on record, unless something else fills the log.
    """
    catalogue = Catalogue(connection)
    log = catalogue.located(log)
    marked = {place for place, ours in catalogue.marked(log).items() if ours}
    has_record = recorded and catalogue.at((log.place or "", log.companion_name("tracked")))
    entries = read_record(connection, log) if has_record else ()
    return sorted(".".join(place) for place in marked | {entry.place for entry in entries})


def plan_track(connection: Connection, log: Log, name: str, choice: Choice) -> TrackPlan:
    """Return what `track` would do."""
    catalogue = Catalogue(connection)
    log = catalogue.located(log)
    record = read_record(connection, log)
    subject = read_subject(catalogue, record, log, catalogue.find(name), choice)
    raise_refusals(subject)
    return plan_for(catalogue, record, subject)


def plan_for(catalogue: Catalogue, record: TrackRecord, subject: Subject) -> TrackPlan:
    """Return what brings the triggers of a subject, and the record, to their proper state."""
    recording = () if record.stands(subject) else tuple(write_record(subject))
    statements = (*recording, *_replacing(catalogue, record, subject))
    if not statements:
        return TrackPlan(subject.table, ())
    warnings = (*_warnings(subject), *_unfindable(catalogue.connection, subject))
    return TrackPlan(subject.table, statements, warnings, tuple(_trials(subject)))


def plan_offline(log: Log, table: Table, choice: Choice) -> TrackPlan:
    """Return what `track` would do to a table of a tables file that has no triggers of ours yet.

    Raise CannotTrack for what only the catalogue can answer.
    """
    if log.schema is None or table.schema is None:
        raise CannotTrack(
            str(table), "without a connection the log and the table are named with their schemas"
        )
    if choice.children:
        raise CannotTrack(str(table), "--child needs the foreign keys of the catalogue: connect with --url")
    table, choice = _without_quotes(log.dialect, table, choice)
    subject = Subject(log, Relation(table), choice, name=table.name)
    raise_refusals(subject)
    creates = (statement for trigger in triggers_of(subject) for statement in trigger.create)
    statements = (*write_record(subject), *routines(log), *creates)
    return TrackPlan(table, statements, tuple(_warnings(subject)))


def _without_quotes(dialect: Dialect, table: Table, choice: Choice) -> tuple[Table, Choice]:
    """Return a table and a choice with names as the catalogue has them, if they were given without quotes."""
    fold = dialect.fold
    columns = {fold(name): replace(column, name=fold(name)) for name, column in table.columns.items()}
    if len(columns) < len(table.columns):
        raise CannotTrack(str(table), "without a connection no two columns may differ only in capitals")
    table = replace(
        table,
        schema=table.schema and fold(table.schema),
        name=fold(table.name),
        columns=columns,
        key=tuple(map(fold, table.key)),
    )
    chosen_names = None if choice.columns is None else tuple(map(fold, choice.columns))
    return table, replace(choice, columns=chosen_names, without=tuple(map(fold, choice.without)))


def plan_untrack(connection: Connection, log: Log, name: str) -> TrackPlan:
    """Return what `untrack` would do; of a table that is gone, only the record is left."""
    catalogue = Catalogue(connection)
    log = catalogue.located(log)
    record = read_record(connection, log)
    try:
        relation = catalogue.find(name)
    except NoSuchTable:
        entry = record.find(name)
        if entry is None:
            raise
        return TrackPlan(Table(*entry.place, {}), tuple(forget(log, entry.place)))
    children = [child.place for child in record.children(relation.place)]
    drops = _drops(log, installed_of(catalogue, record, log, relation, children))
    forgetting = forget(log, relation.place) if record.get(relation.place) else ()
    return TrackPlan(relation.table, (*drops, *forgetting))


def plan_silence(connection: Connection, log: Log) -> list[TrackPlan]:
    """Return what drops the triggers of all tables on record, which stay on record."""
    catalogue = Catalogue(connection)
    log = catalogue.located(log)
    record = read_record(connection, log)
    relations = [relation for entry in record if (relation := catalogue.at(entry.place)) is not None]
    children = {r.place: [child.place for child in record.children(r.place)] for r in relations}
    return [
        TrackPlan(r.table, tuple(_drops(log, installed_of(catalogue, record, log, r, children[r.place]))))
        for r in relations
    ]


def script(log: Log, plan: TrackPlan) -> str:
    """Return the plan as a file for the database's own client."""
    head = templates.statements(log.dialect, "session", {}) if plan.statements else ()
    return log.dialect.script([*head, *plan.statements])


def _replacing(catalogue: Catalogue, record: TrackRecord, subject: Subject) -> Iterator[str]:
    """Yield the statements after which the triggers of a subject are those that it should have."""
    relation = catalogue.relation(*subject.relation.place)
    children = [entry.place for entry in record.children(relation.place)]
    children += [child.relation.place for child in subject.children]
    installed = list(installed_of(catalogue, record, subject.log, relation, children))
    expected = {(t.schema, t.table, t.name): t for t in triggers_of(subject)}
    places = {(t.schema, t.table, t.name): (t.body.strip(), t.firing) for t in installed}
    if places == {place: (t.body.strip(), t.firing) for place, t in expected.items()}:
        return
    stale = [t for t in installed if (t.schema, t.table, t.name) not in expected]
    used = {t.routine for t in installed} - {t.routine for t in stale}
    yield from _drops(subject.log, stale, used)
    yield from _routines(catalogue, subject.log)
    if subject.owner is not None:
        yield from routines(subject.log, "routines_owner", owner=subject.dialect.quote(subject.owner))
    for trigger in expected.values():
        yield from trigger.create


def _routines(catalogue: Catalogue, log: Log) -> Iterator[str]:
    """Return the statements that make the log's routines.

    Routines that lose their grants when they are made anew are included only if they differ.
    """
    statements = list(routines(log))
    if log.dialect.triggers.replaces_routines:
        yield from statements
        return
    bodies = catalogue.routines(log)
    bodies_by_name = {qualified(log.dialect, log.place, name): body for name, body in bodies.items()}
    for drop, create in zip(statements[::2], statements[1::2], strict=True):
        _, begin, body = create.partition("begin\n")
        if bodies_by_name.get(drop.partition(" if exists ")[2]) != (begin + body).replace("'", ""):
            yield from (drop, create)


def _trials(subject: Subject) -> Iterator[str]:
    """Yield queries that evaluate the expressions of the triggers on a row of each table."""
    rows = TriggerRows(subject)
    logged = (*rows.inserted("n"), *rows.updated("o", "n"))
    of_table = [rows.key("n"), rows.moved("o", "n"), *_of_rows(logged)]
    yield from _trial(subject.relation, of_table, subject.dialect)
    for child in subject.children:
        of_child = [rows.child_key(child, "n"), rows.child_moved(child, "o", "n")]
        yield from _trial(
            child.relation, [*of_child, *_of_rows(rows.child_rows(child, "o", "n"))], subject.dialect
        )


def _of_rows(rows: Iterable[TriggerRow]) -> Iterator[str]:
    for row in rows:
        yield from filter(None, (row.old_text, row.new_text, row.when))


def _trial(relation: Relation, expressions: Iterable[str], dialect: Dialect) -> Iterator[str]:
    table = qualified(dialect, *relation.place)
    for portion in portions(dict.fromkeys(expressions), _TRIED):
        holes = {"expressions": ",\n  ".join(portion), "table": table}
        yield from templates.statements(dialect, "trial", holes)


def _warnings(subject: Subject) -> Iterator[str]:
    for relation in (subject.relation, *(child.relation for child in subject.children)):
        for target in relation.silent_cascades(subject.dialect):
            yield (
                f"the foreign key of {relation.table} to {target} cascades and fires no trigger"
                f" in {subject.dialect.title}: such changes will not be logged"
            )
    readable = set(subject.per_field)
    for column in subject.columns:
        if column not in readable:
            unreadable = subject.dialect.values.expressions.of(column.type).unreadable
            yield (
                f"column {column.name} is of type {column.type}, which {unreadable}: no row and no document"
                " has its value"
            )


def _unfindable(connection: Connection, subject: Subject) -> Iterator[str]:
    """Yield a sentence about each key that rows of these types could not be read back by."""
    if {subject.choice.insert, subject.choice.update} & _READ_BACK:
        for key in unfindable_keys(connection, subject.dialect, subject.relation):
            yield UNFINDABLE.format(key=key)


def _drops(log: Log, installed: Iterable[Installed], used: Collection[str] = ()) -> Iterator[str]:
    stale = sorted(installed, key=lambda t: (t.schema or "", t.table, t.name))
    for trigger in stale:
        holes = {
            "trigger": log.dialect.quote(trigger.name),
            "table": qualified(log.dialect, trigger.schema, trigger.table),
            "schema": log.dialect.quote(trigger.schema or ""),
            "drop_package": literal(f"drop package {_package(log, trigger)}"),
        }
        yield from templates.statements(log.dialect, "drop_trigger", holes)
    for routine in sorted({t.routine for t in stale if t.routine} - set(used)):
        yield from templates.statements(log.dialect, "drop_routine", {"routine": routine})


def _package(log: Log, trigger: Installed) -> str:
    package_of = log.dialect.triggers.package
    return (
        ""
        if package_of is None
        else qualified(log.dialect, log.place, package_of(log, trigger.schema, trigger.name))
    )


def _run(connection: Connection, statements: Iterable[str]) -> None:
    for statement in statements:
        execute_plain(connection, statement)
