"""Change tables in files, as inputs of a feed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from eventlog.core.errors import Refused
from eventlog.core.formats import Shape, Source
from eventlog.files.inputs import Advance, check_inputs, open_sources, stem_of
from eventlog.jobs.job import Job


class FileTables:
    """The change tables of one task in files."""

    def __init__(self, job: Job, name: str, inputs: Sequence[str], advance: Advance) -> None:
        check_inputs(inputs)
        source = job.source
        self.name = name
        self._job = job
        self._advance = advance
        self._shape: Shape = source.shape
        stems = {name: stem_of(name) for name in inputs}
        ahead = source.describes_others or (lambda name: False)
        self._control = [name for name, stem in stems.items() if ahead(stem)]
        self._inputs = {name: stem for name, stem in stems.items() if not ahead(stem)}
        self.names = tuple(dict.fromkeys(self._inputs.values()))

    def clock(self) -> str:
        """Return the time part of a change_seq when the files were written: of each table's last,
        the first.
        """
        written: dict[str, float] = {}
        for name, stem in self._inputs.items():
            at = dt.datetime.now().timestamp() if name == "-" else Path(name).stat().st_mtime
            written[stem] = max(at, written.get(stem, 0))
        moment = dt.datetime.fromtimestamp(min(written.values(), default=0), dt.UTC)
        return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 10_000:02}"

    def control(self) -> Iterator[Source[Any] | Refused]:
        """Yield the control tables among the files."""
        return self._opened(self._control)

    def open(
        self, low: Callable[[str], str], wanted: Callable[[str], bool]
    ) -> Iterator[Source[Any] | Refused]:
        """Return the files of the wanted change tables; each file is read as a whole."""
        return self._opened([name for name, stem in self._inputs.items() if wanted(stem)])

    def _opened(self, names: Sequence[str]) -> Iterator[Source[Any] | Refused]:
        return open_sources(names, self._shape, self._job.container, self._advance, self._job.limits)
