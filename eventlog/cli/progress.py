"""A bar on standard error, when it is a terminal, for files that are read."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from eventlog.files.inputs import Advance

_SILENT_SECONDS = 2.0  # seconds of silence before a bar


@contextmanager
def progress(names: Sequence[str], passes: int = 1) -> Iterator[Advance]:
    """Return a function that is called with the bytes of these files, once for each pass over them."""
    total = passes * sum(Path(name).stat().st_size for name in names if name != "-" and Path(name).is_file())
    if not sys.stderr.isatty() or not total:
        yield lambda size: None
        return
    bar = click.progressbar(
        length=total, label="working", file=sys.stderr, update_min_steps=max(total // 1000, 1)
    )
    started = time.monotonic()
    unshown_bytes = 0
    is_shown = False

    def advance(size: int) -> None:
        nonlocal unshown_bytes, is_shown
        unshown_bytes += size
        if not is_shown and time.monotonic() - started > _SILENT_SECONDS:
            is_shown = True
        if is_shown:
            bar.update(unshown_bytes)
            unshown_bytes = 0

    yield advance
    if is_shown:
        bar.update_min_steps = 1
        bar.update(total - bar.pos)
        bar.render_finish()
