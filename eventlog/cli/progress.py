"""How far a command is: a line on standard error, if that is a terminal, after two seconds of silence.

`progress` draws a bar of the bytes read from files, `counter` words of what was done.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from eventlog.cli.terminal import as_cell, draws
from eventlog.files.inputs import Advance

if TYPE_CHECKING:
    import rich.progress

_SILENT_SECONDS = 2.0  # before a line is drawn
_REDRAW_SECONDS = 0.1


@contextmanager
def progress(names: Sequence[str], passes: int = 1, output: str = "") -> Iterator[Advance]:
    """Return a function that is called with the number of bytes that were read from these files.

    If a command reads the files twice, in two passes, their one bar is half full after the first pass.
    Nothing is drawn if the output is written to a terminal, because it would be mixed with the output.
    """
    total = passes * sum(Path(name).stat().st_size for name in names if name != "-" and Path(name).is_file())
    if not total or (output == "-" and sys.stdout.isatty()):
        yield lambda size: None
        return
    with counter(total) as count:
        yield lambda size: count("working", size)


@contextmanager
def counter(total: int | None = None) -> Iterator[Callable[[str, int], None]]:
    """Return a function that is called with words, and with the bytes that were done since its last call.

    It draws the words, and a bar of the bytes if their total is known.
    """
    next_draw = time.monotonic() + _SILENT_SECONDS  # calls before that draw nothing
    done = 0
    line: rich.progress.Progress | None = None

    def count(words: str, size: int) -> None:
        nonlocal next_draw, done, line
        done += size
        if time.monotonic() < next_draw:
            return
        with suppress(OSError):  # the terminal is gone
            line = line or _line(words, total)
            line.update(line.task_ids[0], description=as_cell(words), completed=done, refresh=True)
        next_draw = time.monotonic() + _REDRAW_SECONDS

    try:
        yield count if draws(sys.stderr) else lambda words, size: None
    finally:
        with suppress(OSError):
            if line is not None:
                line.stop()


def _line(words: str, total: int | None) -> rich.progress.Progress:
    """Return words, with a bar if the total is known. No thread redraws them, because commands may fork."""
    from rich.progress import Progress, TextColumn
    from rich.table import Column

    from eventlog.cli.console import console_of

    _, *bar = Progress.get_default_columns()
    line = Progress(
        TextColumn("{task.description}", markup=False, table_column=Column(overflow="fold")),
        *(bar if total else ()),
        console=console_of(sys.stderr),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    line.add_task(as_cell(words), total=total)
    line.start()
    return line
