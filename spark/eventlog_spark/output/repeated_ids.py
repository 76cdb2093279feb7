"""record_ids that stand more than once in the whole input: none of their rows can be believed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from eventlog_spark.output.files import Files, LocalFiles

Ids = npt.NDArray[np.int64]
_WINDOW = 4_000_000  # ids compared at a time


def repeated_in(folder: Files, names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Each id that the files of a folder hold more than once, and how often; those of a store are fetched."""
    if isinstance(folder, LocalFiles):
        yield from repeated(Path(folder.name(name)) for name in names)
        return
    with tempfile.TemporaryDirectory(prefix="eventlog-") as here:
        for name in names:
            with folder.open(name) as there, (Path(here) / name).open("wb") as file:
                shutil.copyfileobj(there, file)
        yield from repeated(Path(here) / name for name in names)


def repeated(files: Iterable[Path], window: int = _WINDOW) -> Iterator[tuple[int, int]]:
    """Each id that the sorted files hold more than once, and how often."""
    held = [ids for ids in (np.load(file, mmap_mode="r") for file in files) if len(ids)]
    at = [0] * len(held)
    while live := [n for n, ids in enumerate(held) if at[n] < len(ids)]:
        share = max(1, window // len(live))
        bound = min(held[n][min(at[n] + share, len(held[n])) - 1] for n in live)
        ends = {n: int(np.searchsorted(held[n], bound, "right")) for n in live}
        yield from _counted(np.concatenate([held[n][at[n] : ends[n]] for n in live]))
        for n in live:
            at[n] = ends[n]


def _counted(ids: Ids) -> Iterator[tuple[int, int]]:
    ids = np.sort(ids)
    again = np.unique(ids[1:][ids[1:] == ids[:-1]])
    first, end = np.searchsorted(ids, again, "left"), np.searchsorted(ids, again, "right")
    yield from zip(again.tolist(), (end - first).tolist(), strict=True)
