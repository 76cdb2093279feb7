"""Settings as click options: flag, then environment, then file, then default; `--help` says so."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from eventlog import tablesfile
from eventlog.settings import declared, value_type
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
    kind = value_type(field)
    choices = field.metadata["choices"]
    default = field.default
    help_text = field.metadata["help"]
    if default not in (None, False) and kind is not bool:
        help_text += f"  [default: {default}]"
    if kind is bool:
        return SettingOption(
            [f"{flag}/--no-{flag[2:]}"], default=None, help=help_text, envvar=_variable(field.name)
        )
    if choices:
        return SettingOption(
            [flag], type=_Choice(choices, kind), default=None, help=help_text, envvar=_variable(field.name)
        )
    return SettingOption(
        [flag],
        type=kind,
        default=None,
        help=help_text,
        metavar=field.metadata["metavar"] or None,
        envvar=_variable(field.name),
    )


def _variable(name: str) -> str:
    return f"EVENTLOG_{name.upper()}"


class _Choice(click.Choice[str]):
    """A choice whose value has the setting's type."""

    def __init__(self, choices: Iterable[str], kind: type) -> None:
        super().__init__(tuple(choices))
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self._kind(super().convert(str(value), param, ctx))


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
