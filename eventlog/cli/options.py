"""Settings as click options: flag, then environment, then file, then default; `--help` says so."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from eventlog import tablesfile
from eventlog.settings import declared, read_list, value_reader
from eventlog.tables import Tables

F = TypeVar("F", bound=Callable[..., Any])


class SettingOption(click.Option):
    """An option that stands under a heading in the help."""

    heading = ""


class SettingsCommand(click.Command):
    """A command whose settings are listed under the headings of what declares them."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                heading = parameter.heading if isinstance(parameter, SettingOption) else "Options"
                sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def settings_options(declaring: Iterable[tuple[str, type]]) -> Callable[[F], F]:
    """The options of several declarations, each name once, under the heading of its first."""

    def decorate(command: F) -> F:
        options: dict[str, SettingOption] = {}
        for heading, settings in declaring:
            for field in declared(settings):
                if field.name not in options:
                    options[field.name] = _option(field)
                    options[field.name].heading = f"Settings: {heading}"
        params = command.__dict__.setdefault("__click_params__", [])
        params[:0] = reversed(options.values())
        return command

    return decorate


def _option(field: dataclasses.Field[Any]) -> SettingOption:
    flag = "--" + field.name.replace("_", "-")
    reader = value_reader(field)
    words: dict[str, Any] = {"help": _help(field), "envvar": f"EVENTLOG_{field.name.upper()}"}
    if reader is bool:
        return SettingOption([f"{flag}/--no-{flag[2:]}"], default=None, **words)
    metavar = field.metadata["metavar"] or None
    return SettingOption([flag], type=_SettingType(field, reader), metavar=metavar, **words)


def _help(field: dataclasses.Field[Any]) -> str:
    default = field.default
    if default in (None, "", False, True, ()):
        return str(field.metadata["help"])
    shown = ",".join(default) if isinstance(default, tuple) else default
    return f"{field.metadata['help']}  [default: {shown}]"


class _SettingType(click.ParamType[Any]):
    """A setting's text, read as its declaration says."""

    name = "text"

    def __init__(self, field: dataclasses.Field[Any], reader: Callable[[str], Any]) -> None:
        self._choices: tuple[str, ...] = field.metadata["choices"]
        self._reader = reader

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return f"[{'|'.join(self._choices)}]" if self._choices else None

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        items = read_list(str(value)) if self._reader is read_list else (str(value),)
        for item in items if self._choices else ():
            if item not in self._choices:
                self.fail(f"{item!r} is not one of {', '.join(self._choices)}", param, ctx)
        try:
            return self._reader(str(value))
        except ValueError:
            self.fail(f"{value!r} is no number", param, ctx)


tables_option = click.option(
    "--tables",
    "tables_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="the tables file",
)


def read_tables(path: Path | None) -> Tables:
    """The tables of a tables file; none without one."""
    return Tables() if path is None else tablesfile.read(path.read_text("utf-8"))


class TableFile(click.ParamType[tuple[str, str]]):
    """TABLE=FILE."""

    name = "TABLE=FILE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        table, equals, file = str(value).partition("=")
        if not equals or not table or not file:
            self.fail("expected TABLE=FILE, as in usr=usr.csv", param, ctx)
        return table, file


current_option = click.option(
    "--current", multiple=True, type=TableFile(), help="a table's current rows, for query-back events"
)
