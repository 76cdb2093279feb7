"""A bar on standard error, when it is a terminal: for files that are read, and for a job of many tasks."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from eventlog.files.inputs import Advance

_PATIENCE = 2.0  # seconds of silence before a bar
_EVERY = 10.0  # seconds between two lines where no terminal shows a bar
_WIDTH = 40
_WIPE = "\r\033[K"


@contextmanager
def progress(names: Sequence[str]) -> Iterator[Advance]:
    """What is told of every byte read of these files."""
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
    """One bar for a job of which more becomes known on the way: it stands still rather than go back."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._terminal = sys.stderr.isatty()
        self._begun = self._told = time.monotonic()
        self._share = 0.0
        self._lock = threading.Lock()  # those who tell are a thread of their own

    def say(self, sentence: str) -> None:
        """A sentence, above the bar."""
        with self._lock:
            self.wipe()
            self._say(sentence)

    def tell(self, done: int, known: int) -> None:
        """How many tasks are done, of those that are known."""
        with self._lock:
            self._share = max(self._share, done / known if known else 0.0)
            if self._terminal:
                self._draw()
            elif known and time.monotonic() > self._told + _EVERY:
                self._told = time.monotonic()
                self._say(f"{done} of {known} tasks are done")

    def wipe(self) -> None:
        """Take the bar away."""
        if self._terminal:
            click.echo(_WIPE, nl=False, err=True)

    def _draw(self) -> None:
        full = round(self._share * _WIDTH)
        seconds = time.monotonic() - self._begun
        bar = f"  [{'#' * full}{'-' * (_WIDTH - full)}] {self._share:4.0%}  {seconds:.0f} s"
        click.echo(_WIPE + bar, nl=False, err=True)


@contextmanager
def job_progress(say: Callable[[str], None]) -> Iterator[JobBar]:
    """A bar for a job; it is gone at the end."""
    bar = JobBar(say)
    try:
        yield bar
    finally:
        bar.wipe()
