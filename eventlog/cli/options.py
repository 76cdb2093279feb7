"""Declared settings as options of commands, and the help that lists them.

An option holds what its flag or environment variable states; the settings file and the default come later.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from textwrap import wrap
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from eventlog.cli.terminal import print_sentence
from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.settings import declared, demand_text, is_file, is_flag, read_value, variable
from eventlog.core.tables import Tables
from eventlog.files.small_files import read_tables_file

F = TypeVar("F", bound=Callable[..., Any])


_FLAG_VALUES = {"false": False, "no": False, "off": False, "true": True, "yes": True, "on": True}


_SETTINGS = "Settings: "  # before the heading of what declares them
_EXPLAINED = ("the database", "the loop", "the session", "the sink", "the target")  # in every short help
_SHORT = 36  # lines of settings that are all explained
_WORDS, _ALL = "eventlog.words", "eventlog.all"  # of the context: the command line, whether all is explained


class SettingOption(click.Option):
    """An option that is listed under a heading of the help."""

    heading = ""


def _explain_all(ctx: click.Context, option: click.Parameter, is_set: bool) -> None:
    if is_set and not ctx.resilient_parsing:
        click.echo(help_with_all_settings(ctx), color=ctx.color)
        ctx.exit()


def help_with_all_settings(ctx: click.Context) -> str:
    """Return the help of a command with the meaning of every setting."""
    ctx.meta[_ALL] = True
    return ctx.get_help()


_HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_explain_all,
    help="Show the meaning of every setting, and exit.",
)


class SettingsCommand(click.Command):
    """A command whose settings are listed under the headings of what declares them.

    Where they are many, the help explains the settings of the formats and sinks on the command line, and only
    names the others.
    """

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with --help-all before --help."""
        *params, last = super().get_params(ctx)
        return [*params, _HELP_ALL, last]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse a value after a flag that takes none, and name the right flag."""
        ctx.meta[_WORDS] = tuple(args)
        flags = {
            flag: option for option in self.params if isinstance(option, click.Option) for flag in option.opts
        }
        for word, following in pairwise([*args, ""]):
            flag, equals, value = word.partition("=")
            value = (value if equals else following).lower()
            option = flags.get(flag)
            if option is not None and option.is_flag and option.secondary_opts and value in _FLAG_VALUES:
                right_flag = flag if _FLAG_VALUES[value] else option.secondary_opts[0]
                raise click.UsageError(f"{flag} takes no value: write {right_flag}", ctx)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options; of a long list of settings those that matter, and the names of the others."""
        sections: dict[str, list[click.Parameter]] = {}
        for parameter in self.get_params(ctx):
            sections.setdefault(getattr(parameter, "heading", "") or "Options", []).append(parameter)
        short = {} if ctx.meta.get(_ALL) else _sections_only_named(ctx, sections)
        for heading, parameters in sections.items():
            if heading not in short:
                _write_section(ctx, formatter, heading, parameters)
        if short:
            with formatter.section("Settings that --help-all explains"):
                for heading, parameters in short.items():
                    _write_names(formatter, heading.removeprefix(_SETTINGS), parameters)


def _sections_only_named(
    ctx: click.Context, sections: dict[str, list[click.Parameter]]
) -> dict[str, list[click.Parameter]]:
    """Return the sections of settings that a short help only names; none if all of them are few lines."""
    settings = {heading: params for heading, params in sections.items() if heading.startswith(_SETTINGS)}
    measure = ctx.make_formatter()
    for heading, params in settings.items():
        _write_section(ctx, measure, heading, params)
    if measure.getvalue().count("\n") <= _SHORT:
        return {}
    words = ctx.meta.get(_WORDS, ())
    named = {word for flag, word in pairwise(words) if flag in ("--from", "--to", "--sink")}
    named |= {word.partition("=")[2] for word in words if word.startswith(("--from=", "--to=", "--sink="))}
    headings = {*_EXPLAINED, *named, *(f"sink {name}" for name in named)}
    if "log" in named:
        headings.add("the log")
    if named & {"qlik-message", "debezium"}:
        headings.add("topics of Kafka")
    return {
        heading: params
        for heading, params in settings.items()
        if heading.removeprefix(_SETTINGS) not in headings
    }


def _write_section(
    ctx: click.Context, formatter: click.HelpFormatter, heading: str, parameters: Sequence[click.Parameter]
) -> None:
    records = (parameter.get_help_record(ctx) for parameter in parameters)
    with formatter.section(heading):
        formatter.write_dl([record for record in records if record is not None])


def _write_names(formatter: click.HelpFormatter, heading: str, parameters: Sequence[click.Parameter]) -> None:
    """Write the flags of a section; no flag is cut at a hyphen."""
    flags = " ".join(parameter.opts[0] for parameter in parameters)
    indent = " " * formatter.current_indent
    lines = wrap(
        f"{heading}: {flags}",
        formatter.width,
        initial_indent=indent,
        subsequent_indent=indent + "    ",
        break_on_hyphens=False,
    )
    formatter.write("\n".join(lines) + "\n")


def settings_options(
    declaring: Iterable[tuple[str, type]], without: Collection[str] = ()
) -> Callable[[F], F]:
    """Return a decorator that adds an option for each setting of these (heading, settings class).

    A setting of two classes is under the first heading. Those of `without` and those that the command
    declares itself are left out.
    """

    def decorate(command: F) -> F:
        options: dict[str, SettingOption] = {}
        own_names = {parameter.name for parameter in command.__dict__.get("__click_params__", ())}
        for heading, settings in declaring:
            for field in declared(settings):
                if field.name not in {*options, *own_names, *without}:
                    options[field.name] = setting_option(
                        field, heading, type=_SettingType(field), envvar=variable(field.name)
                    )
        return add_options(command, options.values())

    return decorate


def add_options(command: F, options: Iterable[click.Option]) -> F:
    """Return the command with these options before those that it has."""
    params = command.__dict__.setdefault("__click_params__", [])
    params[:0] = reversed(list(options))  # click turns the order around
    return command


def setting_option(field: dataclasses.Field[Any], heading: str, **attributes: Any) -> SettingOption:
    """Return the option of one setting."""
    flag = "--" + field.name.replace("_", "-")
    if is_flag(field):
        names, attributes = [f"{flag}/--no-{flag[2:]}"], attributes | {"type": _FlagType(field)}
        option = SettingOption(names, default=None, help=_help(field), **attributes)
    else:
        metavar = field.metadata["metavar"] or None
        kind = {"type": FILE_NAME} if is_file(field) else {}
        option = SettingOption([flag], help=_help(field), metavar=metavar, **(kind | attributes))
    option.heading = f"{_SETTINGS}{heading}"
    return option


def _help(field: dataclasses.Field[Any]) -> str:
    text = str(field.metadata["help"])
    if field.metadata["choices"]:
        text += f" ({', '.join(field.metadata['choices'])})"
    default = field.default
    if default not in (None, "", False, ()):
        shown = ",".join(default) if isinstance(default, tuple) else default
        text += f"  [default: {'yes' if default is True else shown}]"
    return f"{text}  [env: {variable(field.name)}]"


class _SettingType(click.ParamType[Any]):
    """A setting's text, read as its declaration requires."""

    name = "text"

    def __init__(self, field: dataclasses.Field[Any]) -> None:
        self._field = field

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return read_value(self._field, value)
        except EventlogError as fault:
            self.fail(str(fault), param, ctx)


class _FlagType(click.types.BoolParamType):
    """A flag, whose text in the environment is read as that of a file is."""

    def __init__(self, field: dataclasses.Field[Any]) -> None:
        self._type = _SettingType(field)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self._type.convert(value, param, ctx)


def read_tables(path: Path | None) -> Tables:
    """Return the tables of a tables file; none without one."""
    tables = Tables() if path is None else read_tables_file(path)
    for words in tables.warnings:
        print_sentence(words)
    return tables


class TextType(click.types.StringParamType):
    """A text, of an option or argument that is not the name of a file."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            demand_text(value)
        except EventlogError as fault:
            self.fail(str(fault), param, ctx)
        return super().convert(value, param, ctx)


TEXT = TextType()


class FileNameType(click.ParamType[str]):
    """The name of a file or another place, whose bytes need not be text."""

    name = "path"


FILE_NAME = FileNameType()


class NameAndValue(click.ParamType[tuple[str, str]]):
    """A name and a value with an equals sign between them."""

    def __init__(self, name: str, example: str) -> None:
        self.name = name
        self._example = example

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        name, equals, text = str(value).partition("=")
        if not equals or not name:
            self.fail(f"expected {self.name}, as in {self._example}", param, ctx)
        TEXT.convert(name, param, ctx)
        return name, text


# Options of several commands; each has one name and one help.
_SHARED: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "--config": click.option(
        "--config",
        "config_file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="the settings file  [default: eventlog.toml]",
    ),
    "--as": click.option(
        "--as",
        "container",
        help="the inputs' container, if their names do not show it: csv, jsonl, parquet, …",
    ),
    "--output-as": click.option(
        "--output-as",
        "output_container",
        help="the output's container, if its name does not show it: csv, jsonl, parquet, …",
    ),
    "--tables": click.option(
        "--tables",
        "tables_file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="the tables file",
    ),
    "--current": click.option(
        "--current",
        multiple=True,
        type=NameAndValue("TABLE=FILE", "usr=usr.csv"),
        help="a table's current rows, for query-back events",
    ),
    "--state": click.option(
        "--state",
        type=click.Path(dir_okay=False, path_type=Path),
        help="remember here what was delivered",
    ),
    "--expand-truncate": click.option(
        "--expand-truncate", is_flag=True, help="write a truncate as deletes of the --current rows"
    ),
    "--refused": click.option(
        "--refused", type=click.Path(path_type=Path), help="keep here what is refused, unchanged"
    ),
    "--strict": click.option("--strict", is_flag=True, help="stop at the first record that is refused"),
}


def shared_options(*flags: str) -> Callable[[F], F]:
    """Return a decorator that adds options which several commands have."""

    def decorate(command: F) -> F:
        for flag in reversed(flags):
            _SHARED[flag](command)
        return command

    return decorate


def refuse_flags(names: Container[str], reason: str) -> None:
    """Raise Misuse for a flag of these parameters on the command line."""
    ctx = click.get_current_context()
    for parameter in ctx.command.params:
        is_given = ctx.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
        if is_given and parameter.name in names:
            raise Misuse(f"{parameter.opts[0]} {reason}")


def refuse_unused_settings(declaring: Sequence[tuple[str, type]], parts: set[str]) -> None:
    """Raise Misuse for a flag that belongs only to formats or sinks that take no part."""
    ctx = click.get_current_context()
    used_settings = [settings for heading, settings in declaring if heading in parts]
    used_names = {field.name for settings in used_settings for field in declared(settings)}
    for heading, settings in declaring:
        for field in declared(settings):
            is_given = ctx.get_parameter_source(field.name) is ParameterSource.COMMANDLINE
            if is_given and field.name not in used_names:
                flag = "--" + field.name.replace("_", "-")
                here = ", ".join(name for name, _ in declaring if name in parts)
                raise Misuse(f"{flag} is a setting of {heading}, which takes no part here; what does: {here}")
