"""From settings to an open log: the engine, and the columns of the log bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from sqlalchemy.engine import URL, Engine

from eventlog.core.errors import Misuse
from eventlog.opening.config import Config, statements
from eventlog.opening.publisher_settings import DatabaseSettings, LookSettings
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.common import templates
from eventlog.sql.common.dialect import Dialect, TimeLimits
from eventlog.sql.connect import (
    ConnectionLost,
    DatabaseFailed,
    connect_to_log,
    dialect_at,
    limited,
    read_url,
)
from eventlog.sql.dialects import dialect_of
from eventlog.sql.error_causes import blames_rights
from eventlog.sql.log.binding import NoLog, bind
from eventlog.sql.log.log_lock import naming_lock
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log, log_named
from eventlog.sql.schema.migrate import demand_revision, exists


class Denied(DatabaseFailed):
    """the database refused: {0}; {1}"""


@dataclass(frozen=True)
class LogPlace:
    """The place of a log, and its name there."""

    settings: DatabaseSettings
    columns: Mapping[str, str]  # of a log whose columns have other names

    def log(self, dialect: Dialect) -> Log:
        """Return the log by its settings alone."""
        log = log_named(dialect, self.settings.log_table, self.columns)
        return replace(log, local_time=self.settings.log_time == "local")

    def address(self) -> URL:
        """Return the address of the database; raise Misuse if the settings name none, or no URL."""
        if not self.settings.url:
            raise Misuse("which database? Give --url, EVENTLOG_URL, or url in eventlog.toml")
        return read_url(self.settings.url)

    def connect(self, *, keep_open: int = 0) -> Engine:
        """Return an engine for the database."""
        address = self.address()
        return connect_to_log(address, statements(self.settings.connection_init), keep_open=keep_open)

    def find(self, engine: Engine, *, older: bool = False) -> Log:
        """Return the log as it is in the database; from its settings if it does not exist yet. It may be one
        that `install` is to upgrade if `older` allows it.
        """
        with engine.connect() as connection:
            log = Catalogue(connection).located(self.log(dialect_of(connection)))
            demand_revision(connection, log, older=older)
            return bind(connection, log, self.settings.layout) if exists(connection, log) else log


def place_of_log(config: Config) -> LogPlace:
    """Return the place that the settings name."""
    return LogPlace(config.build(DatabaseSettings), config.columns)


def open_store(config: Config, *, keep_open: int = 4, to_look: bool = False) -> Store:
    """Return the log that the settings name, with the limits of a look if it is only looked at; the error
    names what it lacks.
    """
    place, look_limit = place_of_log(config), config.build(LookSettings).look_limit
    limits = TimeLimits(look_limit) if to_look else None
    engine = place.connect(keep_open=keep_open)
    try:
        opening = engine if limits is None else limited(engine, dialect_at(engine), limits)
        with opening.connect() as connection:
            log = Catalogue(connection).located(place.log(dialect_of(connection)))
            with naming_lock(engine, log, limits):
                demand_revision(connection, log)
                try:
                    bound = bind(connection, log, place.settings.layout)
                except NoLog:
                    exists(connection, log)  # MariaDB shows no table without a right on it, and refuses this
                    raise
        store = Store(engine, bound, look_limit)
        return store.looking() if to_look else store
    except BaseException:
        engine.dispose()
        raise


@contextmanager
def opened(config: Config, *, to_look: bool = False) -> Iterator[Store]:
    """The log while the block runs, with the limits of a look if it is only looked at.

    Raise Denied if its user lacks a right.
    """
    with ExitStack() as stack, naming_rights():
        store = open_store(config, to_look=to_look)
        stack.callback(store.engine.dispose)
        yield store


_OF_PUBLISHER = "`eventlog install --sql --grants ROLE` prints the rights of a publisher"
OF_OWNER = "let the owner of the log and of the table give this command, or run what it prints with --sql"


@contextmanager
def naming_rights(remedy: str = _OF_PUBLISHER) -> Iterator[None]:
    """Raise Denied with a remedy if the user lacks a right for what the block does."""
    try:
        yield
    except (DatabaseFailed, ConnectionLost) as fault:  # MariaDB refuses a connection to such a database
        if blames_rights(fault):
            raise Denied(*fault.args, remedy) from fault.__cause__
        raise


def driver_user(engine: Engine, log: Log) -> str:
    """Return our name in the database, whose rows are loopback."""
    with engine.connect() as connection:
        (statement,) = templates.statements(log.dialect, "user", {})
        return str(connection.exec_driver_sql(statement).scalar())
