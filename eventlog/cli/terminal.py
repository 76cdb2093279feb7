"""Output for people: each message is a line, and rows are a table on a terminal.

A remedy that names a setting (`unknown-tables = string`, or `the setting max-record`) is printed as the user
would follow it: as a flag, or as a line of the settings file. A tables file is printed with its flag.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice, zip_longest
from pathlib import Path
from shutil import get_terminal_size
from typing import IO, NamedTuple

import click

from eventlog.core.redaction import one_line, visible, without_secrets
from eventlog.files.output_files import standard_output
from eventlog.opening.config import FILE

_LONGEST, _END = 2000, 200  # characters of a line, and of its end
_NARROWEST = 40  # columns of a terminal that shows tables
_PAGE = 200  # rows that a terminal shows under one heading
_HINT = re.compile(
    r"'[^']*'|\"[^\"]*\"|\bthe setting (?P<bare>[a-z]+(?:-[a-z]+)*)"
    r"|\b(?P<name>[a-z]+(?:-[a-z]+)+) = (?P<value>[\w.-]*\w)|(?:^|\b(?:the|a) )(?P<tables>tables) file\b"
)
_called: list[click.Context] = []


def print_sentence(sentence: str, style: str = "") -> None:
    """Print a sentence of ours on standard error."""
    print_line(sentence, "eventlog: ", style)


def print_line(line: str, before: str = "", style: str = "") -> None:
    """Print a line on standard error, which may be closed, without secrets and control characters.

    A terminal shows it in lines that end between words, unless memory or files are used up.
    """
    text = _short(one_line(without_secrets(with_hints(line))))
    with suppress(Exception):
        if draws(sys.stderr):
            from rich.text import Text

            from eventlog.cli.console import console_of

            console_of(sys.stderr).print(Text.assemble((before, style), text, overflow="fold"))
            return
    with suppress(OSError, ValueError):
        click.echo(before + text, err=True)


def _short(line: str) -> str:
    """Return the line without its middle, where what it quotes is very long."""
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - _END]} … {line[-_END:]}"


def show(*lines: str) -> None:
    """Print lines for people on standard output, their spaces unchanged."""
    write_output("".join(f"{as_cell(line)}\n" for line in lines), safe=True)


def show_json(records: Iterable[Mapping[str, object]]) -> None:
    """Print each record as a line of JSON."""
    for record in records:
        show(json.dumps(record, default=str))


ShownCell = str | tuple[str, ...]  # of one line, or of several


class Listing(NamedTuple):
    """A table on a terminal, or lines elsewhere; a word of `styles` that begins a cell has that style."""

    headings: tuple[str, ...]
    layout: str  # of the first line of a row, where no table is drawn
    styles: Mapping[str, str] = {}
    indent: int = 0  # of the lines that follow it

    def show(self, rows: Iterable[tuple[ShownCell, ...]]) -> None:
        """Print the rows in tables if the terminal has room for them, else in lines."""
        lines_of_rows = ([_lines(cell) for cell in row] for row in rows)
        if draws(sys.stdout) and get_terminal_size().columns >= _NARROWEST:
            from eventlog.cli.console import drawn_table

            while page := [*islice(lines_of_rows, _PAGE)]:
                write_output(drawn_table(sys.stdout, self.headings, page, self.styles), safe=True)
        for row in lines_of_rows:
            first, *further = zip_longest(*row)
            show(self.layout.format(*first), *(" " * self.indent + line[-1] for line in further))


def _lines(cell: ShownCell) -> list[str]:
    return [as_cell(line) for line in ((cell,) if isinstance(cell, str) else cell)]


def as_cell(text: str) -> str:
    """Return the text on one line, its spaces unchanged, without control characters."""
    return visible(text).replace("\n", "⟨U+000A⟩")


def write_output(text: str, safe: bool = False) -> None:
    """Write text to standard output; a terminal gets control characters visibly, unless the text is safe."""
    out = standard_output(safe)
    out.write(text.encode("utf-8", "surrogatepass"))
    out.flush()


def draws(stream: IO[str]) -> bool:
    """Return whether a stream is a terminal that can draw tables and progress."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


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
