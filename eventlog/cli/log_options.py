"""What the commands of a database share: options, and settings from flag, environment and file."""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections.abc import Callable, Container, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from eventlog.cli.exits import verbose_option
from eventlog.cli.log_records import Records, RecordsAsJson
from eventlog.cli.options import SettingOption, add_options, setting_option
from eventlog.core.settings import declared
from eventlog.files.limits import Limits
from eventlog.fold import Rules
from eventlog.publisher.comparing import ComparingSettings
from eventlog.publisher.config import Config, read_config
from eventlog.publisher.daemon import DaemonSettings
from eventlog.publisher.open_log import DatabaseSettings, LogPlace, place_of
from eventlog.publisher.session import SessionSettings
from eventlog.publisher.settings import PublisherSettings
from eventlog.publisher.tables import SourceSettings, TablePublishing
from eventlog.sinks import SINKS, sink_kind
from eventlog.sql.log import binding
from eventlog.web.monitor import MonitorSettings
from eventlog.xds.settings import XdsSettings

logger = logging.getLogger("eventlog.settings")

F = TypeVar("F", bound=Callable[..., Any])
Declarations = tuple[tuple[str, type], ...]

DATABASE: Declarations = (("the database", DatabaseSettings),)
READING: Declarations = (
    *DATABASE,
    ("the tables", TablePublishing),
    ("their database", SourceSettings),
    ("the log", Rules),
    ("documents", XdsSettings),
    ("publishing", PublisherSettings),
)
SINK: Declarations = (
    ("the sink", SessionSettings),
    *((f"sink {name}", sink_kind(name).settings) for name in SINKS),
)
INPUT: Declarations = (("the input", Limits),)
RUNNING: Declarations = (
    *READING,
    ("comparing", ComparingSettings),
    ("the loop", DaemonSettings),
    *SINK,
    ("monitoring", MonitorSettings),
)
ALL: Declarations = (*RUNNING, *INPUT)  # what a file may hold

_CONFIG = SettingOption(
    ["--config", "config_file"],
    type=click.Path(dir_okay=False, path_type=Path),
    help="the settings file  [default: eventlog.toml]",
)
_VERBOSE = verbose_option()
_FORMAT = SettingOption(
    ["--log-format"], type=click.Choice(("text", "json")), default="text", help="how records of the log look"
)


def live_options(declarations: Declarations, without: Container[str] = ()) -> Callable[[F], F]:
    """Add the settings as options, whose values are checked together with the file's and environment's.

    `without` are settings that the command does not use: they may be in the file, but are no flags.
    """

    def decorate(command: F) -> F:
        options: dict[str, click.Option] = {
            "config_file": _CONFIG,
            "verbose": _VERBOSE,
            "log_format": _FORMAT,
        }
        for heading, settings in declarations:
            for field in declared(settings):
                if field.name not in options and field.name not in without and field.name not in _NOT_LIVE:
                    options[field.name] = setting_option(field, heading)
        return add_options(command, options.values())

    return decorate


# A live log publishes rows with N alone, and every known database has positions.
_NOT_LIVE = ("status",)


def read_live(
    flags: Mapping[str, Any],
    config_file: Path | None,
    verbose: bool = False,
    log_format: str = "text",
) -> Config:
    """Return the settings of a command that logs as a publisher does."""
    start_logging(verbose, log_format)
    return read_all(flags, config_file)


def start_logging(verbose: bool, log_format: str) -> None:
    """Log records to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RecordsAsJson() if log_format == "json" else Records(verbose))
    root = logging.getLogger("eventlog")
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbose else logging.INFO)


class DatabaseFlags(NamedTuple):
    """The flags of `database_options`."""

    config: Path | None
    url: str | None
    log_table: str | None
    layout: str | None
    log_time: str | None

    def settings(self, **flags: Any) -> Config:
        """Return the settings of these flags, further ones, the environment and the file."""
        named = {name: value for name, value in self._asdict().items() if name != "config"}
        return read_all({**flags, **named}, self.config)

    def place(self) -> LogPlace:
        """Return the place of the log that the settings name."""
        return place_of(self.settings())


def database_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name the database and the log; the command gets them as `database`."""

    @functools.wraps(command)
    def with_flags(**values: Any) -> None:
        flags = DatabaseFlags(*(values.pop(name) for name in DatabaseFlags._fields))
        command(database=flags, **values)

    options = (
        click.option(
            "--config",
            type=click.Path(dir_okay=False, path_type=Path),
            help="the settings file  [default: eventlog.toml]",
        ),
        click.option("--url", help="the database, as a SQLAlchemy URL  [env: EVENTLOG_URL]"),
        click.option(
            "--log-table",
            help="the log, optionally with its schema  [env: EVENTLOG_LOG_TABLE; default: eventlog]",
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
        option(with_flags)
    return with_flags


def read_all(flags: Mapping[str, Any], file: Path | None) -> Config:
    """Return the settings of flags, environment and file; the last two may hold those of all commands."""
    return read_config((settings for _, settings in ALL), flags, os.environ, file)
