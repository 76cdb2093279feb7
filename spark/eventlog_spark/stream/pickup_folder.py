"""The folder of a stream: its progress, and the frozen events of the one pick-up that is on its way.

A file counts once the state names it, and the state is written in one piece after everything else.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from eventlog.core.errors import EventlogError
from eventlog.publisher.confirmed_pickups import LeavingEvent, Taken
from eventlog.xds.documents import document
from eventlog_spark.io.batches import SIZE, bounded
from eventlog_spark.io.folder_files import Files

STATE, ROWS = "_stream", "rows"
_PIECE = 1 << 20  # bytes that are hashed at once
_OPERATIONS = {"a": "add", "m": "modify", "d": "delete"}  # by the first letter of the element

EVENTS = pa.schema(
    [
        ("document", pa.string()),
        ("event_id", pa.string()),
        ("association", pa.string()),
        ("table", pa.string()),
        ("key", pa.string()),
        ("operation", pa.string()),
        ("record_ids", pa.list_(pa.int64())),
        ("pick_up", pa.int64()),
        ("place", pa.int64()),
    ]
)


class Altered(EventlogError):
    """{0} was cut off, changed or removed: the frozen pick-up cannot be sent again. None of its rows is \
finished: start again with an empty folder and a new checkpoint; its rows are sent again under their \
event-ids"""


@dataclass(frozen=True)
class FrozenPickUp:
    """A pick-up in the folder."""

    number: int
    file: str
    sha256: str
    marks: tuple[str, ...]  # of what the log remembers of it
    waited: tuple[tuple[str, str, str], ...]  # event-ids that were sent before, and their objects

    @property
    def objects(self) -> dict[str, tuple[str, str]]:
        """The objects of events that were sent before, by event-id."""
        return {event_id: (table, key) for event_id, table, key in self.waited}


@dataclass(frozen=True)
class FolderState:
    """The progress of a stream."""

    stream: str  # its name, which its checkpoint knows
    epoch: int  # the last one in which it led
    done: int = 0  # the last pick-up that Spark reported as out
    last: FrozenPickUp | None = None

    @property
    def taken(self) -> int:
        """The number of the last pick-up."""
        return 0 if self.last is None else self.last.number

    def text(self) -> str:
        """Return all of it, to be read again."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> Self:
        facts: dict[str, Any] = json.loads(text)
        last = facts["last"]
        if last is not None:
            waited = tuple((event_id, table, key) for event_id, table, key in last["waited"])
            last = FrozenPickUp(**last | {"marks": tuple(last["marks"]), "waited": waited})
        return cls(**facts | {"last": last})


class StreamFolder:
    """The folder of one stream."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._rows = files.below(ROWS)

    @property
    def name(self) -> str:
        return self._files.name("").rstrip("/")

    def state(self) -> FolderState | None:
        """Return the progress of its stream; None if no stream has begun."""
        stored = self._files.text(STATE)
        if stored is None:
            return None
        sealed, _, text = stored.partition("\n")
        if hashlib.sha256(text.encode()).hexdigest() != sealed:
            raise Altered(self._files.name(STATE))
        return FolderState.read(text)

    def put(self, state: FolderState) -> None:
        """Keep how far the stream is."""
        text = state.text()
        self._files.put(STATE, f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}")

    def freeze(self, number: int, taken: Taken) -> FrozenPickUp:
        """Write the events of a pick-up; those of the one before are dropped."""
        self._rows.clear()
        name = f"{number}-{uuid.uuid4().hex}.parquet"
        with self._rows.create(name) as file, pq.ParquetWriter(file, EVENTS) as writer:
            for batch in bounded(_rows(number, taken.events), EVENTS):
                writer.write_batch(batch)
        for written in (name, ""):
            self._rows.sync(written)
        waited = tuple((event_id, *name) for event_id, name in taken.waited.items())
        return FrozenPickUp(number, name, self.part(name, "").digest(), tuple(taken.marks), waited)

    def part(self, file: str, sha256: str) -> FrozenFile:
        """Return a frozen file as tasks read it."""
        return FrozenFile(self._rows, file, sha256)


@dataclass(frozen=True)
class FrozenFile:
    """A frozen file; it travels in pickled code only, for it may hold the keys of a store."""

    files: Files = field(repr=False)
    file: str
    sha256: str

    def digest(self) -> str:
        """Return the digest of its bytes."""
        found = hashlib.sha256()
        with self.files.open(self.file) as file:
            while piece := file.read(_PIECE):
                found.update(piece)
        return found.hexdigest()

    def read(self) -> Iterator[pa.RecordBatch]:
        """Return its rows, after checking that they are the frozen ones."""
        try:
            whole = self.digest() == self.sha256
        except FileNotFoundError:
            whole = False
        if not whole:
            raise Altered(self.files.name(self.file))
        with self.files.open(self.file) as file:
            yield from pq.ParquetFile(file).iter_batches(batch_size=SIZE)


def _rows(number: int, events: Sequence[LeavingEvent]) -> Iterator[tuple[Any, ...]]:
    for place, (sending, association) in enumerate(events):
        row = (document([sending.text]), sending.event_id, association, *sending.object)
        yield (*row, _OPERATIONS[sending.text[1]], list(sending.settles), number, place)
