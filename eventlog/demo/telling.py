"""How the demo tells: headings, SQL, rows and documents, coloured where a terminal shows it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import click

from eventlog.shown import visible
from eventlog.xds.documents import indent

_LONGEST = 24
_LETTERS = {"N": "yellow", "S": "green", "W": "yellow", "E": "red", "F": "red"}
_PARTS = re.compile(r"(?P<tag></?[\w-]+|/?>)|(?P<name> [\w-]+=)|(?P<text>\"[^\"]*\"|(?<=>)[^<\n]+)")
_COLOURS = {"tag": "blue", "name": "cyan", "text": "green"}


def heading(title: str, told: str = "") -> None:
    click.echo()
    click.secho(f"== {title}", bold=True, fg="magenta")
    if told:
        click.echo(told)


def sql(text: str) -> None:
    for line in text.splitlines():
        click.secho(f"  {line}", fg="cyan")


def note(text: str) -> None:
    click.secho(f"  {text}", dim=True)


def rows(headings: Sequence[str], found: Iterable[Sequence[object]]) -> None:
    """The rows of the log, in columns."""
    cells = [[_cell(value) for value in row] for row in found]
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    click.secho("  " + _line(headings, widths), dim=True)
    for row in cells:
        click.echo("  " + _line(row, widths))


def outcome(record_id: int, row: str, letter: str, reason: str | None) -> None:
    """What a row came to."""
    state = click.style(letter, fg=_LETTERS.get(letter), bold=True)
    click.echo(f"  {record_id:>3}  {state}  {visible(row)}" + (f": {visible(reason)}" if reason else ""))


def event(text: str) -> None:
    """An event of a document, as people like to read it."""
    for line in indent(text).splitlines():
        click.echo("  " + _PARTS.sub(_colour, line))


def _colour(match: re.Match[str]) -> str:
    return click.style(match[0], fg=_COLOURS[match.lastgroup or "text"])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _cell(value: object) -> str:
    text = "" if value is None else visible(str(value))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
