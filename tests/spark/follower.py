"""Spark as a stream over a live log knows it: an offset log, a commit log, one batch after another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from eventlog_spark.io.folder_files import LocalFiles
from eventlog_spark.stream.pickup_folder import StreamFolder
from eventlog_spark.stream.pickups import Following, Offset

from eventlog.publisher.config import Config
from eventlog.sql.log.store import Store

Row = dict[str, Any]


class Crash(BaseException):
    """kill -9, as far as one process can play it."""


class Doom:
    """Kill this process at a step, at the n-th time or at the n-th of all."""

    def __init__(self, step: str | None = None, nth: int = 1) -> None:
        self._step = step
        self._left = nth
        self.seen = Counter[str]()

    def __call__(self, step: str) -> None:
        self.seen[step] += 1
        self._left -= self._step in (None, step)
        if not self._left:
            raise Crash(step)


NEVER = Doom("never")


@dataclass(frozen=True)
class DyingFiles(LocalFiles):
    """A folder whose writer dies before or after it has written."""

    doom: Doom = NEVER

    def below(self, name: str) -> DyingFiles:
        return DyingFiles(self.name(name), self.doom)

    def create(self, name: str) -> IO[bytes]:
        self.doom("freeze")
        return super().create(name)

    def put(self, name: str, text: str) -> None:
        self.doom("put")
        super().put(name, text)
        self.doom("put it")


def dying_store(doom: Doom) -> Callable[..., Any]:
    """`Store.work` that dies before or after the leader's transaction."""
    work = Store.work

    @contextmanager
    def dying(store: Store, epoch: int) -> Iterator[Any]:
        with work(store, epoch) as working:
            yield working
            doom("commit")
        doom("committed")

    return dying


@dataclass
class Spark:
    """The checkpoint of one query, and what its sink got, batch by batch."""

    folder: Path
    config: Config
    offsets: list[Offset] = field(default_factory=list)
    committed: int = 0
    batches: dict[int, list[Row]] = field(default_factory=dict)  # as they were given first
    ended: Callable[[list[Row]], None] = lambda rows: None
    given: int = 0  # batches, again or not

    def files(self, doom: Doom = NEVER) -> StreamFolder:
        self.folder.mkdir(exist_ok=True)
        return StreamFolder(DyingFiles(str(self.folder), doom))

    def run(self, doom: Doom = NEVER, available_now: bool = True, **given: Any) -> None:
        """A query from its start to its end, or to its doom."""
        following = Following(replace(self.config, given={**self.config.given, **given}), self.files(doom), 0)
        try:
            if available_now:
                following.end_with_what_is_there()
            if len(self.offsets) > self.committed:
                start = self.offsets[-2] if len(self.offsets) > 1 else following.begin()
                self._batch(following, start, doom)
            while self._next(following, doom):
                pass
        finally:
            following.close()

    def _next(self, following: Following, doom: Doom) -> bool:
        start = self.offsets[-1] if self.offsets else following.begin()
        end = following.latest(start)
        if end == start:
            return False
        doom("offset")
        self.offsets.append(end)
        if len(self.offsets) > 1:
            following.done(self.offsets[-2])
        self._batch(following, start, doom)
        return True

    def _batch(self, following: Following, start: Offset, doom: Doom) -> None:
        frozen = following.frozen(start, self.offsets[-1])
        assert frozen is not None
        rows: list[Row] = []
        doom("batch")
        for batch in self.files().part(frozen.file, frozen.sha256).read():
            rows += batch.to_pylist()
        doom("in batch")
        number = len(self.offsets) - 1
        assert self.batches.setdefault(number, rows) == rows  # the same rows, ids and bytes
        self.given += 1
        self.ended(rows)
        doom("batch ended")
        self.committed = len(self.offsets)

    @property
    def rows(self) -> list[Row]:
        return [row for _, rows in sorted(self.batches.items()) for row in rows]

    def column(self, name: str) -> list[Any]:
        return [row[name] for row in self.rows]
