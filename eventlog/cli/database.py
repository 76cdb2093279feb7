"""What every command that talks to a database is told: where it is and which log is meant."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click
from sqlalchemy.engine import Engine

from eventlog.errors import Misuse
from eventlog.sql import binding
from eventlog.sql.connect import connect, dialect_at
from eventlog.sql.dialects import Dialect
from eventlog.sql.log import Log, log_named
from eventlog.sql.migrate import exists

F = TypeVar("F", bound=Callable[..., Any])
CONFIG = Path("eventlog.toml")


@dataclass(frozen=True)
class Place:
    """The log that the flags, the environment and the file name together."""

    url: str | None
    log_table: str
    columns: Mapping[str, str]
    layout: str | None
    local_time: bool
    connection_init: tuple[str, ...]

    def log(self, dialect: Dialect) -> Log:
        """The log by its settings alone."""
        return replace(log_named(dialect, self.log_table, self.columns), local_time=self.local_time)

    def connect(self) -> Engine:
        """An engine for the database."""
        if self.url is None:
            raise Misuse("which database? say --url, EVENTLOG_URL, or url in eventlog.toml")
        return connect(self.url, self.connection_init)

    def find(self, engine: Engine) -> Log:
        """The log as it stands in the database; by its settings where it is not there yet."""
        log = self.log(dialect_at(engine))
        with engine.connect() as connection:
            if not exists(connection, log):
                return log
            return binding.bind(connection, log, self.layout)


def database_options(command: F) -> F:
    """The options that name the database and the log; the command is handed a Place."""
    options = (
        click.option(
            "--config",
            type=click.Path(dir_okay=False, path_type=Path),
            help="the settings file  [default: eventlog.toml]",
        ),
        click.option("--url", envvar="EVENTLOG_URL", help="the database, as a SQLAlchemy URL"),
        click.option(
            "--log-table",
            envvar="EVENTLOG_LOG_TABLE",
            help="the log, optionally with its schema  [default: eventlog]",
        ),
        click.option(
            "--layout",
            type=click.Choice(tuple(binding.LAYOUTS)),
            help="bind an existing log's columns by position",
        ),
        click.option(
            "--log-time", type=click.Choice(("utc", "local")), help="the zone of event_time  [default: utc]"
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def read_place(
    config: Path | None, url: str | None, log_table: str | None, layout: str | None, log_time: str | None
) -> Place:
    """The place that flags and file name; a flag wins."""
    file = _read(config)
    log = file.get("log", {})
    init = file.get("connection-init", "")
    return Place(
        url or file.get("url"),
        log_table or file.get("log-table", "eventlog"),
        log.get("columns", {}),
        layout or file.get("layout"),
        (log_time or file.get("log-time")) == "local",
        tuple(part.strip() for part in init.split(";") if part.strip()),
    )


def _read(config: Path | None) -> dict[str, Any]:
    path = config or CONFIG
    if config is None and not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as fault:
        raise Misuse(f"{path}: {fault}") from fault
