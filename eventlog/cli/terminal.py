"""Output to the terminal: every message to people goes through here, one line each.

A remedy that names a setting (`unknown-tables = string`, or `the setting max-record`) is printed as the user
would follow it: as a flag, or as a line of the settings file. A tables file is printed with its flag.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import click

from eventlog.core.redaction import one_line, visible, without_secrets
from eventlog.files.output_files import standard_output
from eventlog.publisher.config import FILE

_LONGEST, _END = 2000, 200  # characters of a line, and of its end
_HINT = re.compile(
    r"'[^']*'|\"[^\"]*\"|\bthe setting (?P<bare>[a-z]+(?:-[a-z]+)*)"
    r"|\b(?P<name>[a-z]+(?:-[a-z]+)+) = (?P<value>[\w.-]*\w)|(?:^|\b(?:the|a) )(?P<tables>tables) file\b"
)
_called: list[click.Context] = []


def print_sentence(sentence: str, colour: str = "") -> None:
    """Print a sentence of ours on standard error."""
    print_line(
        sentence, styled("eventlog:", sys.stderr, fg=colour, bold=True) + " " if colour else "eventlog: "
    )


def print_line(line: str, before: str = "") -> None:
    """Print a line on standard error, which may be closed, without secrets and control characters."""
    with suppress(OSError, ValueError):
        click.echo(before + _short(one_line(without_secrets(with_hints(line)))), err=True)


def _short(line: str) -> str:
    """Return the line without its middle, where what it quotes is very long."""
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - _END]} … {line[-_END:]}"


class Shade(NamedTuple):
    """A part of a line that a terminal shows in a colour."""

    text: str
    colour: str


def show(*parts: str | Shade) -> None:
    """Print a line for people on standard output, its spaces unchanged."""
    line = "".join(_shown(*part) if isinstance(part, Shade) else _shown(part) for part in parts)
    write_output(line + "\n", safe=True)


def lines_after(text: str, indent: int) -> list[str]:
    """Return a text in lines that a terminal shows after an indent, divided between words; one in a pipe."""
    if not sys.stdout.isatty():
        return [text]
    width = max(shutil.get_terminal_size().columns - indent, 20)
    return textwrap.wrap(visible(text), width, break_long_words=False, break_on_hyphens=False) or [""]


def _shown(text: str, colour: str = "") -> str:
    return styled(visible(text).replace("\n", "⟨U+000A⟩"), sys.stdout, fg=colour or None)


def write_output(text: str, safe: bool = False) -> None:
    """Write text to standard output; a terminal gets control characters visibly, unless the text is safe."""
    out = standard_output(safe)
    out.write(text.encode("utf-8", "surrogatepass"))
    out.flush()


def styled(text: str, stream: IO[str], **style: Any) -> str:
    """Return the text with a colour, where the stream shows one and NO_COLOR is not set."""
    return click.style(text, **style) if any(style.values()) and shows_colour(stream) else text


def shows_colour(stream: IO[str]) -> bool:
    """Return whether colours are wanted: https://no-color.org, and terminals that know them."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def use_names_of(ctx: click.Context) -> None:
    """Use the setting names of the command that is running in hints."""
    _called[:] = [ctx]


def with_hints(text: str) -> str:
    """Return the text with its hints as this user would follow them; what is quoted is none."""
    return _HINT.sub(_hint, text)


def _hint(match: re.Match[str]) -> str:
    if match["tables"] and "--tables" in _command_flags():
        return f"{match[0]} (--tables FILE)"
    name, value = match["bare"] or match["name"], match["value"]
    if name is None or f"--{name}" not in _command_flags():
        return match[0]
    if file := _settings_file():
        return f"{name} in {file}" if value is None else f"{name} = {_written(value)} in {file}"
    return f"--{name}" if value is None else f"--{name} {value}"


def _command_flags() -> set[str]:
    """Return the flags of the command that was called."""
    return {flag for ctx in _called for parameter in ctx.command.params for flag in parameter.opts}


def _settings_file() -> Path | None:
    """Return the settings file that the command has read, if there is one."""
    for ctx in _called:
        for option in ctx.command.params:
            if "--config" in option.opts and ((path := ctx.params.get(str(option.name))) or FILE.exists()):
                return path or FILE
    return None


def _written(value: str) -> str:
    """Return the value as TOML has it."""
    return value if value in ("true", "false") or value.isdecimal() else f'"{value}"'
