"""A bar on standard error, when it is a terminal: for files that are read, and for a job of many tasks."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from eventlog.files.inputs import Advance
from eventlog.web.words import count, duration

_PATIENCE = 2.0  # seconds of silence before a bar
_EVERY = 10.0  # seconds between two lines where no terminal shows a bar
_WIDTH = 40
_REST = 34  # columns of the text after a bar
_SOME = 0.02  # of the work, after which the rest can be estimated
_WIPE = "\r\033[K"


@contextmanager
def progress(names: Sequence[str]) -> Iterator[Advance]:
    """Return a function that is called with every byte read of these files."""
    total = sum(Path(name).stat().st_size for name in names if name != "-" and Path(name).is_file())
    if not sys.stderr.isatty() or not total:
        yield lambda size: None
        return
    bar = click.progressbar(length=total, label="reading", file=sys.stderr)
    started = time.monotonic()
    behind = 0
    shown = False

    def advance(size: int) -> None:
        nonlocal behind, shown
        behind += size
        if not shown and time.monotonic() - started > _PATIENCE:
            shown = True
        if shown:
            bar.update(behind)
            behind = 0

    yield advance
    if shown:
        bar.render_finish()


class JobBar:
    """A progress bar for a job whose size becomes known on the way; it never goes back, and ends at 100 %."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._terminal = sys.stderr.isatty()
        self._begun = self._printed_at = time.monotonic()
        self._share = 0.0
        self._is_drawn = False
        self._lock = threading.Lock()  # it is updated by another thread

    def say(self, sentence: str) -> None:
        """A sentence, above the bar."""
        with self._lock:
            self.wipe()
            self._say(sentence)

    def tell(self, share: float, read: int, done: int) -> None:
        """Update the share of the work that is done, and the rows read and done."""
        with self._lock:
            self._share = max(self._share, share)
            rows_are = "row is" if read == 1 else "rows are"
            of = f"{count(done)} of " if done else ""
            rows = f"{of}{count(read)} {rows_are} {'done' if done else 'read'}"
            if self._terminal:
                self._draw()
            elif self._share and time.monotonic() > self._printed_at + _EVERY:
                self._printed_at = time.monotonic()
                said = [rows if read else f"{self._share:.0%} is done", *self._left()]
                self._say(", ".join(said))

    def _left(self) -> list[str]:
        """Return how long the rest will take, once that can be estimated."""
        seconds = time.monotonic() - self._begun
        if seconds < _PATIENCE or not _SOME < self._share < 1:
            return []
        return [f"about {duration(round(seconds * (1 / self._share - 1)))} left"]

    def wipe(self) -> None:
        """Take the bar away; one that is full stays on a line of its own."""
        if self._is_drawn:
            click.echo("\n" if self._share == 1 else _WIPE, nl=False, err=True)
        self._is_drawn = False

    def _draw(self) -> None:
        columns = shutil.get_terminal_size().columns - 1
        width = max(min(_WIDTH, columns - _REST), 1)
        full = int(self._share * width)
        seconds = time.monotonic() - self._begun
        bar = f"  [{'#' * full}{'-' * (width - full)}] {int(self._share * 100):3}%"
        line = f"{bar}  {', '.join((f'{seconds:.0f} s', *self._left()))}"
        click.echo(f"{_WIPE}{line[:columns]}", nl=False, err=True)
        self._is_drawn = True


@contextmanager
def job_progress(say: Callable[[str], None]) -> Iterator[JobBar]:
    """Show a bar for a job while the block runs."""
    bar = JobBar(say)
    try:
        yield bar
    finally:
        bar.wipe()
