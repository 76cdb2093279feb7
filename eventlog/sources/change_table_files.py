"""Change tables in files, as inputs of a feed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from eventlog.core.errors import Refused
from eventlog.core.formats import Source
from eventlog.files.inputs import Advance, check_inputs, open_sources, stem_of
from eventlog.jobs.job import Job


class FileTables:
    """The change tables in files."""

    def __init__(self, job: Job, advance: Advance) -> None:
        check_inputs(job.inputs)
        self._job = job
        self._advance = advance

    def clock(self) -> str:
        """Return the time part of a change_seq when the files were written: of each table's last,
        the first.
        """
        written: dict[str, float] = {}
        for name in self._job.inputs:
            stem = stem_of(name)
            at = dt.datetime.now().timestamp() if name == "-" else Path(name).stat().st_mtime
            written[stem] = max(at, written.get(stem, 0))
        moment = dt.datetime.fromtimestamp(min(written.values(), default=0), dt.UTC)
        return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 10_000:02}"

    def open(self, low: Callable[[str], str]) -> Iterator[Source[Any] | Refused]:
        """Return the files; each is read as a whole."""
        job = self._job
        return open_sources(job.inputs, job.source.shape, job.container, self._advance, job.limits)
