"""The state of a stream of messages, as Spark keeps it: one task for each sequence, on RocksDB."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from eventlog.core.tables import Tables
from eventlog.qlik.message_settings import MessageSettings
from eventlog.sequence.settings import StreamSettings
from eventlog_spark.stream.holding import Holding, Released
from eventlog_spark.stream.waiting import TopicMessage

_FRAME = pa.schema(
    [
        ("kind", pa.string()),
        ("turn", pa.int64()),
        ("late", pa.bool_()),
        ("incomplete", pa.bool_()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("value", pa.binary()),
        ("where", pa.string()),
        ("reason", pa.string()),
    ]
)
SCHEMA = from_arrow_schema(_FRAME)
_ROWS = 10_000  # of one frame


class _State:
    """The state of a stream, in Spark's state store."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self.at = handle.getValueState("at", "moment long")
        self._progress = handle.getValueState("progress", "told string")
        self._waiting = handle.getMapState("waiting", "name string", "told string")
        self._messages = handle.getMapState("messages", "name string, round long", "packed binary")
        self._metadata = handle.getMapState("metadata", "id string", "told string")

    def progress(self) -> str | None:
        found = self._progress.get()
        return None if found is None else found[0]

    def keep_progress(self, text: str) -> None:
        self._progress.update((text,))

    def waiting(self) -> Sequence[tuple[str, str]]:
        if not self._waiting.exists():
            return []
        return [(name, text) for (name,), (text,) in self._waiting.iterator()]

    def keep(self, name: str, text: str) -> None:
        self._waiting.updateValue((name,), (text,))

    def drop(self, name: str, rounds: Sequence[int]) -> None:
        self._waiting.removeKey((name,))
        self.drop_messages(name, rounds)

    def messages(self, name: str, round_: int) -> bytes:
        found = self._messages.getValue((name, round_))
        assert found is not None
        return bytes(found[0])

    def keep_messages(self, name: str, round_: int, packed: bytes) -> None:
        self._messages.updateValue((name, round_), (packed,))

    def drop_messages(self, name: str, rounds: Sequence[int]) -> None:
        for round_ in rounds:
            self._messages.removeKey((name, round_))

    def metadata(self) -> Mapping[str, str]:
        if not self._metadata.exists():
            return {}
        return {name: text for (name,), (text,) in self._metadata.iterator()}

    def keep_metadata(self, schema_id: str, text: str) -> None:
        self._metadata.updateValue((schema_id,), (text,))

    def drop_metadata(self, schema_id: str) -> None:
        self._metadata.removeKey((schema_id,))


class TransactionProcessor(StatefulProcessor):
    """A processor from messages to whole transactions; a timer starts the next batch if something is held."""

    def __init__(self, tables: Tables, reading: MessageSettings, bounds: StreamSettings) -> None:
        self._given = tables, reading, bounds

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = _State(handle)

    def handleInputRows(self, key: Any, rows: Iterable[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        """Yield a batch with messages."""
        messages = (
            TopicMessage(topic, int(partition), int(offset), value, key)
            for frame in rows
            for topic, partition, offset, value, key in zip(
                *(frame[name] for name in TopicMessage._fields), strict=True
            )
        )
        return self._step(messages, timerValues.getCurrentProcessingTimeInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803
        """Yield the result of a batch without messages; a batch with messages was already processed."""
        now = timerValues.getCurrentProcessingTimeInMs()
        found = self._state.at.get()
        if found is None or found[0] != now:
            yield from self._step((), now)

    def _step(self, messages: Iterable[TopicMessage], now: int) -> Iterator[Any]:
        self._state.at.update((now,))
        holding = Holding(*self._given, kept=self._state)
        released = holding.step(messages, now)
        while rows := list(islice(released, _ROWS)):
            yield _frame(rows)
        if holding.waits:
            self._handle.registerTimer(now + 1)


def _frame(rows: Sequence[Released]) -> Any:
    columns = zip(zip(*rows, strict=True), _FRAME, strict=True)
    arrays = [pa.array(list(cells), field.type) for cells, field in columns]
    return pa.Table.from_arrays(arrays, schema=_FRAME).to_pandas()
