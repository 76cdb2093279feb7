"""The options of every command that uses a database: its URL and the log."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from eventlog.cli.log_options import ALL
from eventlog.publisher.config import Config, read_config
from eventlog.publisher.open_log import LogPlace, place_of
from eventlog.sql.log import binding

F = TypeVar("F", bound=Callable[..., Any])


def database_options(command: F) -> F:
    """Return the options that name the database and the log; the command is handed a Place."""
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
        command = option(command)
    return command


def read_place(
    config: Path | None, url: str | None, log_table: str | None, layout: str | None, log_time: str | None
) -> LogPlace:
    """Return the place that flags, environment and file name."""
    return place_of(read_settings(config, url, log_table, layout, log_time))


def read_settings(
    config: Path | None, url: str | None, log_table: str | None, layout: str | None, log_time: str | None
) -> Config:
    """Return all settings; the file may hold those of all commands."""
    flags = {"url": url, "log_table": log_table, "layout": layout, "log_time": log_time}
    return read_config((settings for _, settings in ALL), flags, os.environ, config)
