"""The live side of `explain`: the log that flags, environment and file name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from eventlog.cli.log_options import ALL
from eventlog.operate.explaining import Explained, explain_store, summarise
from eventlog.publisher.config import read_config, read_file
from eventlog.publisher.open_log import opened


def configured(flags: Mapping[str, Any], file: Path | None) -> bool:
    """Return whether a database is named by flag, environment or file."""
    return bool(flags.get("url") or os.environ.get("EVENTLOG_URL") or "url" in read_file(file))


def explain_log(
    flags: Mapping[str, Any],
    file: Path | None,
    table: str | None,
    key: str | None,
    everything: bool,
    say: Callable[[str], None],
) -> Iterator[Explained]:
    """Yield the rows of the next cycle, then sentences about the others; with a key every row of that object,
    with `everything` every pending row.
    """
    config = read_config((settings for _, settings in ALL), flags, os.environ, file)
    with opened(config) as store:
        yield from explain_store(config, store, table, key, everything=everything)
        if key is None and not everything:
            for sentence in summarise(config, store):
                say(f"{sentence} (row by row with --all)")
