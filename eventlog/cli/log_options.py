"""What the commands of a database share: options, and settings from flag, environment and file."""

from __future__ import annotations

import functools
import getpass
import logging
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from eventlog.cli.exits import verbose_option
from eventlog.cli.log_records import Records, RecordsAsJson
from eventlog.cli.options import SettingOption, add_options, setting_option, shared_options
from eventlog.core.settings import declared, unknown_variables, variable
from eventlog.files.limits import Limits
from eventlog.fold import Rules
from eventlog.opening.comparing_settings import MODES, ComparingSettings
from eventlog.opening.config import Config, read_config
from eventlog.opening.publisher_settings import (
    DaemonSettings,
    DatabaseSettings,
    LookSettings,
    PublisherSettings,
    SessionSettings,
    SourceSettings,
    TablePublishing,
)
from eventlog.sinks import SINKS, sink_kind
from eventlog.web.monitor import MonitorSettings
from eventlog.xds.xds_settings import XdsSettings

logger = logging.getLogger("eventlog.settings")

Declarations = tuple[tuple[str, type], ...]

DATABASE: Declarations = (("the database", DatabaseSettings),)
LOOKING: Declarations = (*DATABASE, ("looks", LookSettings))
READING: Declarations = (
    *LOOKING,
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

_VERBOSE = verbose_option()
_FORMAT = SettingOption(
    ["--log-format"], type=click.Choice(("text", "json")), default="text", help="how records of the log look"
)


def live_options(
    declarations: Declarations, without: Collection[str] = (), *, logs: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the settings as options, and give the command the settings of flags, environment and file.

    `without` are settings that the command does not use: they may be in the file, but are no flags. A command
    that `logs` writes records as a publisher does.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        options: dict[str, click.Option] = {}
        for heading, settings in declarations:
            for field in declared(settings):
                if field.name not in {*options, *without, *_NOT_LIVE}:
                    options[field.name] = setting_option(field, heading)

        @functools.wraps(command)
        def configured(config_file: Path | None, **values: Any) -> None:
            if logs:
                start_logging(values.pop("verbose"), values.pop("log_format"))
            flags = {name: values.pop(name) for name in options}
            command(config=read_all(flags, config_file), **values)

        of_records = (_VERBOSE, _FORMAT) if logs else ()
        return add_options(shared_options("--config")(configured), (*of_records, *options.values()))

    return decorate


def publisher_options(*, logs: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the settings of a publisher with --mode, and give the command those that a publisher uses."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @click.option("--mode", type=click.Choice(MODES), help="a short name of --publication-mode")
        @functools.wraps(command)
        def configured(mode: str | None, config: Config, **values: Any) -> None:
            publication = {} if mode is None else {"publication_mode": mode}
            command(config=_for_publisher(replace(config, values={**config.values, **publication})), **values)

        return live_options(RUNNING, without=_NOT_PUBLISHING, logs=logs)(configured)

    return decorate


def _for_publisher(config: Config) -> Config:
    """Return the settings without those that a file has for other commands."""
    used = {field.name for _, settings in RUNNING for field in declared(settings)} - _NOT_PUBLISHING
    return replace(config, values={name: value for name, value in config.values.items() if name in used})


_NOT_PUBLISHING = frozenset(("pretty",))
# A live log publishes rows with N alone, and every known database has positions.
_NOT_LIVE = ("status",)


def _system_user() -> str:
    """Return the name of the system's user, or the number of one without a name, as in containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


by_option = click.option(
    "--by",
    "who",
    metavar="NAME",
    default=_system_user,
    help="who does it, for `history`  [default: the system's user]",
)


def start_logging(verbose: bool, log_format: str) -> None:
    """Log records to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RecordsAsJson() if log_format == "json" else Records(verbose))
    root = logging.getLogger("eventlog")
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbose else logging.INFO)


def database_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name the database and the log."""
    return live_options(DATABASE, without=("connection_init",), logs=False)(command)


def read_all(flags: Mapping[str, Any], file: Path | None) -> Config:
    """Return the settings of flags, environment and file; the last two may hold those of all commands."""
    names = {field.name for _, settings in ALL for field in declared(settings)}
    return read_config((settings for _, settings in ALL), flags, _variables(names), file)


def _variables(names: Iterable[str]) -> dict[str, str]:
    """Return the environment without the settings of commands that read no settings file."""
    unknown = unknown_variables(os.environ, names)
    settings = {variable(name) for name in _all_settings()} if unknown else ()
    return {name: value for name, value in os.environ.items() if name not in unknown or name not in settings}


def _all_settings() -> set[str]:
    """Return the names of the settings of all commands, whose modules are imported."""
    root = click.get_current_context().find_root()
    assert isinstance(root.command, click.Group)
    commands = (root.command.get_command(root, name) for name in root.command.list_commands(root))
    params = (parameter for command in commands if command for parameter in command.params)
    return {str(parameter.name) for parameter in params if isinstance(parameter, SettingOption)}
