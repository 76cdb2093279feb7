"""How the demo tells: sections that wait for the reader, SQL, rows and documents, coloured on a terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence

import click

from eventlog.core.shown import visible
from eventlog.xds.documents import indent

_LONGEST = 24
_STATUS = {"N": "yellow", "S": "green", "W": "yellow", "E": "red", "F": "red"}
_PARTS = re.compile(r"(?P<tag></?[\w-]+|/?>)|(?P<name> [\w-]+=)|(?P<text>\"[^\"]*\"|(?<=>)[^<\n]+)")
_COLOURS = {"tag": "blue", "name": "cyan", "text": "green"}
_ALONE = re.compile(r"(<(add-attr|add-value|remove-value)\b[^>]*>)\n *(<value .*</value>)\n *(</\2>)")


class Teller:
    """Tells section after section; with pauses, the next one waits for a key."""

    def __init__(self, *, fast: bool) -> None:
        self.pauses = not fast and sys.stdin.isatty() and sys.stdout.isatty()
        self._begun = False

    def section(self, title: str, told: str) -> None:
        if self._begun:
            self.pause("any key goes on")
        self._begun = True
        click.echo()
        click.secho(f"== {title}", bold=True, fg="magenta")
        click.echo(click.wrap_text(told, 100))

    def pause(self, words: str) -> None:
        """Wait for a key; Ctrl-C ends the demo, and so does the end of what is typed."""
        if not self.pauses:
            return
        click.secho(f"\n  … {words}", dim=True, nl=False)
        try:
            click.getchar()
        except EOFError:
            raise KeyboardInterrupt from None
        finally:
            click.echo("\r\033[K", nl=False)


def code(text: str) -> None:
    """SQL, or a command."""
    for line in text.splitlines():
        click.secho(f"  {line}", fg="cyan")


def note(text: str) -> None:
    click.secho(f"  {text}", dim=True)


def rows(headings: Sequence[str], found: Iterable[Sequence[object]]) -> None:
    """The rows of the log, in columns; the second is their status."""
    cells = [[_cell(value) for value in row] for row in found]
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    click.secho("  " + _line(headings, widths), dim=True)
    for row in cells:
        status = click.style(row[1].ljust(widths[1]), fg=_STATUS.get(row[1]), bold=True)
        click.echo("  " + _line([row[0], status, *row[2:]], widths))


def event(text: str) -> None:
    """An event of a document, as people like to read it."""
    for line in _ALONE.sub(r"\1\3\4", indent(text)).splitlines():
        click.echo("  " + _PARTS.sub(_colour, line))


def _colour(match: re.Match[str]) -> str:
    return click.style(match[0], fg=_COLOURS[match.lastgroup or "text"])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _cell(value: object) -> str:
    text = "" if value is None else visible(str(value))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
