"""eventlog track and untrack: the triggers of tables, or their text for a DBA."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from sqlalchemy.engine import Engine

from eventlog.cli.log_options import database_options
from eventlog.cli.options import read_tables, refuse_flags
from eventlog.cli.terminal import print_line, print_sentence, write_output
from eventlog.core.each_table import do_each
from eventlog.core.errors import Misuse
from eventlog.opening.config import Config
from eventlog.opening.open_log import OF_OWNER, naming_rights, place_of_log
from eventlog.opening.sent_documents import has_whole_seconds
from eventlog.slot.slot_tables import refuse_slot
from eventlog.sql.capture import readers
from eventlog.sql.capture import track as tracking
from eventlog.sql.capture.refusals import NoDefault
from eventlog.sql.common.time_fractions import LOST, with_fractions
from eventlog.sql.connect import ConnectionLost
from eventlog.sql.dialects import DIALECTS, dialect_named, dialect_of
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.relation import DELETES, GRANULARITIES, INSERTS, UPDATES, Choice

F = TypeVar("F", bound=Callable[..., Any])

_WRITTEN = "statements are written for"

_sql = click.option("--sql", is_flag=True, help="print the statements instead; the catalogue is only read")
_tables = click.argument("tables", nargs=-1, required=True)
_reader = click.option(
    "--for",
    "reader",
    type=click.Choice(tuple(readers.READERS)),
    help="instead of the log: a table for a connector that reads and deletes its rows",
)


_OF_THE_LOG = (
    *("insert", "update", "delete", "columns", "without", "granularity", "children", "replicated"),
    *("dialect", "tables_file"),
)


def _types(numbers: tuple[int | None, ...]) -> click.Choice[str]:
    return click.Choice(["off" if number is None else str(number) for number in numbers])


@click.command()
@_tables
@click.option("--insert", type=_types(INSERTS), default="5", show_default=True, help="event type of new rows")
@click.option(
    "--update", type=_types(UPDATES), default="6", show_default=True, help="event type of changed rows"
)
@click.option(
    "--delete", type=_types(DELETES), default="4", show_default=True, help="event type of deleted rows"
)
@click.option("--columns", metavar="A,B", help="only these columns and the key  [default: all]")
@click.option("--without", metavar="A,B", help="all columns but these")
@click.option(
    "--granularity",
    type=click.Choice(GRANULARITIES),
    default="auto",
    show_default=True,
    help="PostgreSQL: log at the end of a statement, or at its first row before other row-level triggers",
)
@click.option(
    "--child",
    "children",
    multiple=True,
    metavar="TABLE.COLUMN",
    help="a column of a child table as a multi-valued attribute of its parent; any number of times",
)
@click.option(
    "--replicated",
    is_flag=True,
    help="PostgreSQL: also log what logical replication writes here, which otherwise fires no trigger",
)
@_reader
@click.option("--identity", metavar="COLUMN", help="with --for: the column that names an object")
@_sql
@click.option(
    "--dialect",
    type=click.Choice(tuple(DIALECTS)),
    help="with --sql: write for this database without a connection; TABLES are of --tables",
)
@click.option(
    "--tables",
    "tables_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="with --dialect: the tables file",
)
@database_options
@naming_rights(OF_OWNER)
def track(
    tables: tuple[str, ...],
    insert: str,
    update: str,
    delete: str,
    columns: str | None,
    without: str | None,
    granularity: str,
    children: tuple[str, ...],
    replicated: bool,
    reader: str | None,
    identity: str | None,
    sql: bool,
    dialect: str | None,
    tables_file: Path | None,
    config: Config,
) -> None:
    """Log the changes of TABLES by triggers.

    Doing it again changes nothing; another choice replaces the triggers. A table whose changes a trigger
    cannot see or name is refused with the reason and the way out. Of several
    TABLES each is tried; those that were refused are named at the end, and the exit code is 1.
    """
    if columns and without:
        raise click.UsageError("--columns and --without exclude each other")
    choice = Choice(
        int(insert),
        int(update),
        None if delete == "off" else int(delete),
        _names(columns),
        granularity,
        children,
        _names(without) or (),
        replicated,
    )
    if (reader is None) != (identity is None):
        raise Misuse("--for and --identity go together: the column names an object of the table")
    place = place_of_log(config)
    if reader is not None:
        refuse_flags(_OF_THE_LOG, "is of the log, and --for writes none")
        _track_for_reader(place.connect(), reader, tables, identity, sql)
        return
    if dialect is not None or tables_file is not None:
        if not (sql and dialect and tables_file):
            raise Misuse("--sql, --dialect and --tables go together: triggers written without a connection")
        described = read_tables(tables_file)
        if described.dialect not in (None, dialect):
            raise Misuse(f"{tables_file} describes tables of {described.dialect}, and --dialect is {dialect}")
        log = place.log(dialect_named(dialect))

        def write(table: str) -> None:
            plan = tracking.plan_offline(log, described.get(table), choice)
            write_output(tracking.script(log, plan))
            _print_warnings(plan.warnings)

        _do_each(tables, write, _WRITTEN)
        return
    engine = place.connect()
    log = place.find(engine)
    refuse_slot(Store(engine, log))
    whole_seconds = has_whole_seconds(config)

    def act(table: str) -> None:
        _track(engine, log, table, choice, sql, whole_seconds=whole_seconds)

    _do_each(tables, act, _WRITTEN if sql else "tracked")


@click.command()
@_tables
@_reader
@_sql
@click.option("--discard", is_flag=True, help="even where rows are not published yet")
@database_options
@naming_rights(OF_OWNER)
def untrack(
    tables: tuple[str, ...],
    reader: str | None,
    sql: bool,
    discard: bool,
    config: Config,
) -> None:
    """Log the changes of TABLES no longer; rows that are logged already stay.

    A publisher does not read a table that is not tracked, so rows that are not published are asked about.
    """
    place = place_of_log(config)
    engine = place.connect()
    if reader is not None:
        _track_for_reader(engine, reader, tables, None, sql)
        return
    log = place.find(engine)

    def act(table: str) -> None:
        _untrack(engine, log, table, sql, discard)

    _do_each(tables, act, _WRITTEN if sql else "untracked")


def _do_each(tables: Sequence[str], act: Callable[[str], object], done: str) -> None:
    do_each(tables, act, done, print_sentence, (Misuse, ConnectionLost, NoDefault))


def _track_for_reader(
    engine: Engine, reader: str, tables: Sequence[str], identity: str | None, sql: bool
) -> None:
    """Make or remove tables for a reader, or print the statements that do."""

    def act(table: str) -> None:
        with engine.connect() as connection:
            if identity is None:
                plan = readers.plan_no_reader(connection, reader, table)
            else:
                plan = readers.plan_reader(connection, reader, table, identity)
        if sql:
            write_output(dialect_of(engine).script(plan.statements))
            return
        plan.run(engine)
        done, idle = ("is made", "is there already") if plan.makes else ("is removed", "was not there")
        print_line(f"{plan.table} {done if plan.statements else idle}")
        _print_warnings(plan.warnings)

    _do_each(tables, act, _WRITTEN if sql else "done for")


def _track(engine: Engine, log: Log, table: str, choice: Choice, sql: bool, *, whole_seconds: bool) -> None:
    if sql:
        with engine.connect() as connection:
            plan = tracking.plan_track(connection, log, table, choice)
        write_output(tracking.script(log, plan))
    else:
        plan = tracking.track(engine, log, table, choice)
        print_line(f"{plan.table} {'is tracked' if plan.statements else 'is tracked so already'}")
    _print_warnings(plan.warnings)
    columns = (column for column in plan.table.columns.values() if _is_logged(choice, column.name))
    if whole_seconds and plan.statements and (names := with_fractions(columns, log.dialect)):
        _print_warnings([LOST.format(", ".join(names))])


def _is_logged(choice: Choice, name: str) -> bool:
    chosen = choice.columns is None or name.lower() in map(str.lower, choice.columns)
    return chosen and name.lower() not in map(str.lower, choice.without)


def _untrack(engine: Engine, log: Log, table: str, sql: bool, discard: bool) -> None:
    if sql:
        with engine.connect() as connection:
            write_output(tracking.script(log, tracking.plan_untrack(connection, log, table)))
        return
    plan = tracking.untrack(engine, log, table, discard=discard)
    print_line(f"{plan.table} {'is untracked' if plan.statements else 'was not tracked'}")


def _print_warnings(warnings: Iterable[str]) -> None:
    for warning in warnings:
        print_line(warning, "  ")


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())
