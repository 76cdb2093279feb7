"""eventlog install and uninstall: the event log, by migrations, or their text for a DBA."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager

import click
from sqlalchemy.engine import Connection, Engine

from eventlog.cli.log_options import DATABASE, by_option, database_options, live_options
from eventlog.cli.options import refuse_flags
from eventlog.cli.terminal import print_line, print_sentence, write_output
from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.plurals import quantity
from eventlog.core.settings import declared
from eventlog.opening.comparing_settings import MODES
from eventlog.opening.config import Config
from eventlog.opening.open_log import naming_rights, opened, place_of_log
from eventlog.opening.publisher_settings import TablePublishing
from eventlog.opening.publisher_tables import read_tables
from eventlog.sql.capture import track
from eventlog.sql.capture.track_record import read_record
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.connect import ConnectionLost, DatabaseFailed, read_url
from eventlog.sql.dialects import DIALECTS, dialect_named, dialect_of
from eventlog.sql.error_causes import blames_rights
from eventlog.sql.log.log_admin import LogAdmin
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.queries import Queries
from eventlog.sql.schema import migrate

_OF_SQL = ("dialect", "attach", "after", "grants")
_NOT_FLAGS = {"connection_init"} | {field.name for field in declared(TablePublishing)} - {"sync_tables"}
_sql = click.option("--sql", is_flag=True, help="print the DDL instead; needs no connection")
_dialect = click.option(
    "--dialect",
    type=click.Choice(tuple(DIALECTS)),
    help="the database that --sql writes for  [default: that of --url]",
)
_attach = click.option(
    "--attach", is_flag=True, help="with --sql: the log is there already, leave it as it is"
)


class NotOwner(DatabaseFailed):
    """the database refused: {0}. If the log exists, let its owner give the command; else give it --sql \
--dialect {1}, and let the owner of the schema run what it prints"""


@click.command()
@live_options((*DATABASE, ("the tables", TablePublishing)), without=_NOT_FLAGS, logs=False)
@_sql
@_dialect
@_attach
@click.option(
    "--from",
    "after",
    metavar="REVISION",
    help="with --sql: the upgrade of a log of this revision, as its table ..._version has it",
)
@click.option("--future-events", is_flag=True, help="also the index that handle-future-events reads by")
@click.option(
    "--grants",
    metavar="ROLE",
    help="with --sql: only the grants that a publisher of that name needs",
)
@click.option(
    "--mode",
    type=click.Choice(MODES),
    help="what fills the log: slot makes one and drops the triggers, trigger makes them and drops the slot;"
    " with --grants: of a publisher with this publication-mode",
)
@by_option
def install(
    config: Config,
    sql: bool,
    dialect: str | None,
    attach: bool,
    after: str | None,
    future_events: bool,
    grants: str | None,
    mode: str | None,
    who: str,
) -> None:
    """Make the event log and its further tables, or bring them up to date.

    A log that exists is attached: it is left as it is, and only the further tables are made.
    """
    place = place_of_log(config)
    if sql:
        log = place.log(dialect_named(dialect or _dialect_of(config)))
        if mode and not grants:
            raise Misuse("--mode goes with --grants")
        if grants:
            _write_grants(config, migrate.grants_script(log, grants, mode), mode)
        else:
            write_output(
                migrate.install_script(log, attached=attach, future_events=future_events, after=after)
            )
        return
    refuse_flags(_OF_SQL, "goes with --sql")
    engine = place.connect()
    with _naming_owner(engine):
        log = place.find(engine, older=True)
        done = migrate.install(engine, log, future_events=future_events)
        if done or mode is None:  # else a publisher's user may give the command
            track.install_routines(engine, log)
        log = place.find(engine)
    with engine.connect() as connection:
        catalogue = Catalogue(connection)
        owner = catalogue.owner(log)
        attached = migrate.is_attached(connection, log)
        print_line(_what_was_done(connection, log, done, attached))
        if done and not attached:
            _warn_of_others(catalogue, log)
        has_triggers = not attached or any(read_record(connection, log))  # or gets them by `track`
    if attached:
        try:
            read_tables(engine, log, config)
        except EventlogError as fault:  # for which `check` and `run` will refuse the log
            print_sentence(str(fault))
    if owner.almighty and has_triggers:
        print_line(
            "its triggers run as a superuser, the owner of the log: fine for a test,"
            " else let a role of its own install it (docs/databases/postgresql.md)"
        )
    if mode is not None:
        with naming_rights():
            _fill(config, Store(engine, log), mode, who)


@contextmanager
def _naming_owner(engine: Engine) -> Iterator[None]:
    """Raise NotOwner if the user lacks a right for what the block does."""
    try:
        yield
    except (DatabaseFailed, ConnectionLost) as fault:
        if blames_rights(fault):
            raise NotOwner(*fault.args, dialect_of(engine).name) from fault.__cause__
        raise


def _write_grants(config: Config, grants: str, mode: str | None) -> None:
    """Write the grants of a publisher, and what makes the publication and the slot if a database is named.

    Its catalogue is only read.
    """
    from eventlog.operate import changing  # Arrow takes a while to load

    if mode != "slot" or config.values.get("url") is None:
        if mode == "slot":
            print_sentence("name the database with --url to get the publication and the slot, too")
        write_output(grants)
        return
    with opened(config) as store:
        script, chosen = changing.slot_script(config, store)
    for line in chosen.unread_lines:
        print_sentence(line)
    write_output(grants + script)
    chosen.demand_all("statements are written for")


def _fill(config: Config, store: Store, mode: str, who: str) -> None:
    """Let triggers, a comparison or a slot fill the log, and print what was done."""
    from eventlog.operate import changing  # Arrow takes a while to load

    if mode == "slot":
        lines = changing.fill_by_slot(config, store, who)
    elif mode == "trigger":
        lines = changing.fill_by_triggers(config, store)
    else:
        lines = changing.fill_by_comparison(config, store)
    for line in lines:
        print_line(line)


@click.command()
@database_options
@_sql
@_dialect
@_attach
@click.option("--discard", is_flag=True, help="even where rows are not published yet")
def uninstall(
    config: Config,
    sql: bool,
    dialect: str | None,
    attach: bool,
    discard: bool,
) -> None:
    """Drop the event log and its further tables; an attached log stays."""
    place = place_of_log(config)
    if sql:
        log = place.log(dialect_named(dialect or _dialect_of(config)))
        write_output(migrate.uninstall_script(log, attached=attach))
        return
    refuse_flags(_OF_SQL, "goes with --sql")
    engine = place.connect()
    log = place.find(engine, older=True)
    was_installed = migrate.uninstall(engine, log, discard=discard)
    if was_installed:
        track.remove_routines(engine, log)
    print_line(f"{log.full_name} is {'uninstalled' if was_installed else 'not installed'}")


def _what_was_done(connection: Connection, log: Log, done: str, attached: bool) -> str:
    words = f"{log.full_name} is {'attached' if attached and done == 'installed' else done or 'up to date'}"
    if not attached:
        return words
    pending = LogAdmin(connection, Queries(log)).backlog().pending
    return f"{words}: {quantity(pending, 'row', 'rows')} pending"


def _warn_of_others(catalogue: Catalogue, log: Log) -> None:
    """Name the tables that may be the log which was meant: those that are no log of ours yet."""
    own_place = (log.place, log.dialect.fold(log.table))
    for schema, table in catalogue.logs():
        version = f"{table}_version", f"{table}_VERSION"
        if (schema, table) == own_place or any(catalogue.at((schema, name)) for name in version):
            continue
        print_sentence(
            f"{schema}.{table} has the ten columns of a log, too: if it is yours, name it with --log-table"
            f" {shlex.quote(f'{schema}.{table}')}"
        )


def _dialect_of(config: Config) -> str:
    """Return the dialect of the configured database, which is not connected to."""
    if not (url := config.values.get("url")):
        raise Misuse(f"--sql needs --dialect: one of {', '.join(DIALECTS)}")
    return read_url(url).get_backend_name()
