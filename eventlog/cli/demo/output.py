"""The demo's output: sections, SQL, rows and documents, in colours on a terminal."""

from __future__ import annotations

import os
import sys
import textwrap
import time
from collections.abc import Iterable, Sequence

import click
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from eventlog.core.redaction import visible
from eventlog.xds import documents

_WIDEST = 100  # characters of a line
_STATUS = {"N": "yellow", "S": "green", "W": "yellow", "E": "red", "F": "red"}


class Narrator:
    """A narrator of sections; between them it waits for a key on a terminal, unless the demo is fast."""

    def __init__(self, *, fast: bool) -> None:
        self.pauses = not fast and sys.stdin.isatty() and sys.stdout.isatty()
        self._has_begun = False
        self._begin = time.monotonic()
        self._waited = 0.0  # seconds for keys

    def seconds(self) -> int:
        """Return how long the demo has run, without the time in which it waited for a key."""
        return round(time.monotonic() - self._begin - self._waited)

    def section(self, title: str, text: str) -> None:
        """Wait for a key, but not before the first section; then begin a section."""
        if self._has_begun:
            self.pause("Press any key to continue")
        self.section_at_once(title, text)

    def section_at_once(self, title: str, text: str) -> None:
        """Begin a section without waiting, because the caller has waited, or has asked for a key."""
        self._has_begun = True
        _print(Text(f"\n== {title}", "bold magenta"))
        paragraph(text)

    def pause(self, words: str) -> str:
        """Wait for a key and return it; without pauses, return no key at once.

        Ctrl-C or the end of the input ends the demo.
        """
        if not self.pauses:
            return ""
        click.echo(f"\n  {words} …", nl=False)
        begin = time.monotonic()
        try:
            return click.getchar()
        except EOFError:
            raise KeyboardInterrupt from None
        finally:
            self._waited += time.monotonic() - begin
            click.echo("\r\033[K", nl=False)


def paragraph(text: str) -> None:
    """Write a text in lines of the terminal's width, divided between words."""
    _print(Text(text))


def code(text: str) -> None:
    """Write SQL or commands; no line is divided, because a reader may copy it."""
    _print(Text(textwrap.indent(text, "  "), "cyan"), is_whole=True)


def command(words: str) -> None:
    """Write a command, if it is long in several lines that a shell reads as one."""
    lines = Text(words).wrap(_console(), _console().width - 8)
    code(" \\\n    ".join(line.plain.rstrip() for line in lines))


def note(text: str) -> None:
    """Write a remark."""
    _print(Text(text, "dim"), margin=2)


def rows(headings: Sequence[str], records: Iterable[Sequence[object]]) -> None:
    """Write rows of the log as a table; the second column is the status."""
    table = Table(*headings, box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for record in records:
        number, status, *cells = ("" if value is None else visible(str(value)) for value in record)
        table.add_row(number, Text(status, f"bold {_STATUS.get(status, '')}"), *cells)
    _print(table, margin=2)


def event(text: str) -> None:
    """Write an event of a document, each element in a line."""
    _print(Text(textwrap.indent(visible(documents.indent(text)), "  "), "blue"), is_whole=True)


def _print(renderable: RenderableType, margin: int = 0, is_whole: bool = False) -> None:
    """Print on standard output, so many columns from the left; no line ends with spaces.

    What is whole may have lines that are longer than the terminal's, because none is divided.
    """
    console = _console()
    with console.capture() as capture:
        console.print(Padding(renderable, (0, 0, 0, margin)) if margin else renderable, soft_wrap=is_whole)
    for line in capture.get().removesuffix("\n").split("\n"):
        click.echo(line.rstrip())


def _console() -> Console:
    """Return a console of the terminal's width, at most that of a line that can be read."""
    console = Console(
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        force_terminal=sys.stdout.isatty(),
        markup=False,
        emoji=False,
        highlight=False,
    )
    console.width = min(console.width, _WIDEST)
    return console
