"""Rows that were refused by column: their files are read again, row by row, to report them as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from eventlog.columnar.vectors import Ints
from eventlog.core.errors import Refused
from eventlog.core.formats import Shape
from eventlog.files.inputs import open_sources
from eventlog.files.limits import Limits


class Refusals:
    """The places of refused rows in these files, and the reasons."""

    def __init__(self, inputs: Sequence[tuple[str, str]], limits: Limits) -> None:
        self._inputs = inputs
        self._limits = limits
        self._reasons: dict[str, int] = {}  # most rows are refused for one of a few
        self._found: list[list[tuple[Ints, Ints]]] = [[] for _ in inputs]

    def add(self, source: int, found: Iterable[tuple[int, str]]) -> None:
        """Remember rows of one file, and why they were refused."""
        refused = list(found)
        if not refused:
            return
        where, reasons = zip(*refused, strict=True)
        codes = [self._reasons.setdefault(reason, len(self._reasons)) for reason in reasons]
        self._found[source].append((np.array(where, np.int64), np.array(codes, np.int64)))

    def records(self) -> Iterator[Refused]:
        """Yield each with the record as it came, file by file."""
        reasons = list(self._reasons)
        for (name, container), found in zip(self._inputs, self._found, strict=True):
            if found:
                where, codes = (np.concatenate(some) for some in zip(*found, strict=True))
                order = np.argsort(where)
                wanted = zip(where[order].tolist(), codes[order].tolist(), strict=True)
                yield from _records(
                    name, container, self._limits, ((at, reasons[code]) for at, code in wanted)
                )


def _records(
    name: str, container: str, limits: Limits, wanted: Iterator[tuple[int, str]]
) -> Iterator[Refused]:
    """Yield the rows at these places, which ascend."""
    place, reason = next(wanted)
    for source in open_sources([name], Shape.ROWS, container, limits=limits):
        if isinstance(source, Refused):
            continue
        for row in source.records:
            if not isinstance(row, Refused) and row.where == place:
                yield source.refuse(row, reason)
                place, reason = next(wanted, (-1, ""))
