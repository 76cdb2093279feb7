"""The demo's output: sections, SQL, rows and documents, in colours on a terminal."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence

import click

from eventlog.core.redaction import visible
from eventlog.xds.documents import indent

_WIDEST = 100  # characters of a line
_STATUS = {"N": "yellow", "S": "green", "W": "yellow", "E": "red", "F": "red"}


class Narrator:
    """A narrator of sections; with pauses, the next section waits for a key."""

    def __init__(self, *, fast: bool) -> None:
        self.pauses = not fast and sys.stdin.isatty() and sys.stdout.isatty()
        self._begun = False

    def section(self, title: str, text: str) -> None:
        if self._begun:
            self.pause("Press any key to continue")
        self._begun = True
        click.echo()
        click.secho(f"== {title}", bold=True, fg="magenta")
        paragraph(text)

    def pause(self, words: str) -> None:
        """Wait for a key. Ctrl-C or the end of the input ends the demo."""
        if not self.pauses:
            return
        click.secho(f"\n  {words} …", dim=True, nl=False)
        try:
            click.getchar()
        except EOFError:
            raise KeyboardInterrupt from None
        finally:
            click.echo("\r\033[K", nl=False)


def paragraph(text: str) -> None:
    """Write a text in lines of the terminal's width, divided between words."""
    for line in _wrapped(text, _columns()):
        click.echo(line)


def code(text: str) -> None:
    """Write SQL or commands; what a line has no room for follows in indented lines."""
    for line in text.splitlines():
        for piece in _wrapped(line, _columns() - 2, "    "):
            click.secho(f"  {piece}", fg="cyan")


def note(text: str) -> None:
    """Write a remark."""
    for line in _wrapped(text, _columns() - 2):
        click.secho(f"  {line}", dim=True)


def rows(headings: Sequence[str], records: Iterable[Sequence[object]]) -> None:
    """Write rows of the log as a table; the second column is the status."""
    cells = [["" if value is None else visible(str(value)) for value in row] for row in records]
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    click.secho("  " + _line(headings, widths), dim=True)
    for row in cells:
        status = click.style(row[1].ljust(widths[1]), fg=_STATUS.get(row[1]), bold=True)
        click.echo("  " + _line([row[0], status, *row[2:]], widths))


def event(text: str) -> None:
    """Write an event of a document, indented."""
    for line in indent(text).splitlines():
        click.echo("  " + click.style(line, fg="blue"))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _columns() -> int:
    """Return the width of the terminal, at most that of a line that can be read."""
    return min(shutil.get_terminal_size().columns, _WIDEST)


def _wrapped(text: str, columns: int, further: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        columns,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
