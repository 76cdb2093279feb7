"""Remedies that name a setting, as the user would follow them: a flag, or a line of the settings file.

Messages are written without knowing that: `unknown-tables = string`, or `the setting max-record`.
"""

from __future__ import annotations

import re
from pathlib import Path

import click

from eventlog.publisher.config import FILE

_HINT = re.compile(
    r"'[^']*'|\"[^\"]*\"|\bthe setting (?P<bare>[a-z]+(?:-[a-z]+)*)"
    r"|\b(?P<name>[a-z]+(?:-[a-z]+)+) = (?P<value>[\w.-]*\w)"
)
_called: list[click.Context] = []


def use_names_of(ctx: click.Context) -> None:
    """Use the setting names of the command that is running in hints."""
    _called[:] = [ctx]


def with_hints(text: str) -> str:
    """Return the text with its hints as this user would follow them; what is quoted is none."""
    return _HINT.sub(_hint, text)


def _hint(match: re.Match[str]) -> str:
    name, value = match["bare"] or match["name"], match["value"]
    if name is None or f"--{name}" not in _flags():
        return match[0]
    if file := _file():
        return f"{name} in {file}" if value is None else f"{name} = {_written(value)} in {file}"
    return f"--{name}" if value is None else f"--{name} {value}"


def _flags() -> set[str]:
    """Return the flags of the command that was called."""
    return {flag for ctx in _called for parameter in ctx.command.params for flag in parameter.opts}


def _file() -> Path | None:
    """Return the settings file that the command has read, if there is one."""
    for ctx in _called:
        for option in ctx.command.params:
            if "--config" in option.opts and ((path := ctx.params.get(str(option.name))) or FILE.exists()):
                return path or FILE
    return None


def _written(value: str) -> str:
    """Return the value as TOML has it."""
    return value if value in ("true", "false") or value.isdecimal() else f'"{value}"'
