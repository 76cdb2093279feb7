"""A terminal, drawn by rich. Importing rich takes 0.06 s, so this module is imported when it draws."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import IO

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text


class OpenConsole(Console):
    """A console that never hides the cursor, because a killed process could not show it again."""

    def show_cursor(self, show: bool = True) -> bool:
        return False


@cache
def console_of(stream: IO[str]) -> Console:
    """Return the console of a terminal; nothing that it prints is read as markup."""
    return OpenConsole(
        file=stream,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        force_terminal=True,
        force_jupyter=False,
        markup=False,
        emoji=False,
        highlight=False,
    )


def drawn_table(
    stream: IO[str],
    headings: Iterable[str],
    rows: Iterable[Sequence[Sequence[str]]],
    styles: Mapping[str, str],
) -> str:
    """Return the lines of a table as wide as a terminal; wider cells are divided, no line ends with spaces.

    A cell has one line or several. A blank line follows a row of several lines.
    """
    table = Table(*(Column(name, overflow="fold") for name in headings), box=None, pad_edge=False)
    table.padding, table.show_header = (0, 2, 0, 0), any(headings)
    for row in rows:
        table.add_row(*(_text(lines, styles) for lines in row))
        if any(len(lines) > 1 for lines in row):
            table.add_row()
    console = console_of(stream)
    with console.capture() as capture:
        console.print(table)
    return "".join(f"{line.rstrip()}\n" for line in capture.get().rstrip("\n").split("\n"))


def _text(lines: Sequence[str], styles: Mapping[str, str]) -> Text:
    text = Text("\n".join(lines))
    if len(lines) > 1:
        text.stylize("bold", 0, len(lines[0]))
    for word, style in styles.items():
        if text.plain.startswith(word):
            text.stylize(style, 0, len(word))
    return text
