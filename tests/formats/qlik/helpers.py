"""What the tests of this part share: sources made by hand, and cells as a CSV file holds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

import sqlalchemy as sa

from eventlog.clients.kafka_settings import KafkaSettings
from eventlog.clients.topic_reader import Topics
from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Object, Row, Sheet, SheetRow, Source
from eventlog.core.tables import Tables
from eventlog.formats.qlik import change_tables, messages
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.formats.qlik.message_writer import MessageWriter
from eventlog.formats.qlik.records import BY_KEYS
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transfer.loop import ChangeSource
from eventlog.transfer.ordered import changes_in_order
from eventlog.transfer.sources.change_tables import StoredTables
from eventlog.transfer.sources.metadata_topic import with_metadata
from eventlog.transfer.sources.sequenced_feed import ChangeTableReading, SequencedFeed, TopicReading
from eventlog.transfer.targets.topics import Sender

NONE = Tables()
HEADERS = (
    "change_seq",
    "change_oper",
    "change_mask",
    "stream_position",
    "operation",
    "transaction_id",
    "timestamp",
)
SEQ = "2024010112000000"


def seq(number: int) -> str:
    return f"{SEQ}{number:019}"


def source(columns: Sequence[str], *rows: Sequence[Any], stem: str = "usr__ct") -> Source[Row]:
    return Source(f"{stem}.csv", stem, tuple(columns), [Row(i, tuple(r)) for i, r in enumerate(rows, 2)])


def ct(*data: str, prefix: str = "header__", headers: Sequence[str] = HEADERS) -> tuple[str, ...]:
    """Return the columns of a change table."""
    return (*(prefix + h for h in headers), *data)


def row(number: int, letter: str, mask: Any, *data: Any, **reported: Any) -> tuple[Any, ...]:
    """Return a row of a change table with the seven default headers."""
    names = {"I": "INSERT", "U": "UPDATE", "D": "DELETE", "B": "BEFOREIMAGE", "T": "TRUNCATE"}
    return (
        reported.get("seq", seq(number)),
        letter,
        mask,
        reported.get("stream", "0003;4"),
        reported.get("operation", names.get(letter)),
        reported.get("transaction", f"{0xAB:032X}"),
        reported.get("timestamp", "2024-01-01 12:00:00.000"),
        *data,
    )


def read_rows(*sources: Source[Row], tables: Tables = NONE, **settings: Any) -> list[Change | Refused]:
    return list(change_tables.read(sources, tables, change_tables.TableSettings(**settings)))


def write_rows(changes: Iterable[Change], tables: Tables = NONE, **settings: Any) -> list[SheetRow | Refused]:
    return list(change_tables.write(changes, tables, change_tables.TableSettings(**settings)))


def as_sources(rows: Iterable[SheetRow | Refused], *, csv: bool = False) -> list[Source[Row]]:
    """Return the written rows as sources, one for each change table; as typed cells, or as CSV holds them."""
    sheets: dict[Sheet, list[Row]] = {}
    for number, item in enumerate(rows, 2):
        assert isinstance(item, SheetRow), item
        cells = tuple(map(_csv, item.cells)) if csv else item.cells
        sheets.setdefault(item.sheet, []).append(Row(number, cells))
    return [
        Source(f"{s.name}.csv", s.name, tuple(c.name for c in s.columns), rows) for s, rows in sheets.items()
    ]


def _csv(cell: Any) -> str | None:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, bytes):
        return cell.hex().upper()
    return cell if cell is None or isinstance(cell, str) else repr(cell)


def read_messages(values: Iterable[Any], tables: Tables = NONE, **settings: Any) -> list[Change | Refused]:
    """Return what messages hold, without the notice that no metadata were read."""
    return _without_by_keys(noted_messages(values, tables, **settings))


def _without_by_keys(items: Iterable[Change | Refused]) -> list[Change | Refused]:
    return [item for item in items if not isinstance(item, Refused) or item.reason != BY_KEYS]


def noted_messages(values: Iterable[Any], tables: Tables = NONE, **settings: Any) -> list[Change | Refused]:
    objects = [Object(i, v) for i, v in enumerate(values, 1)]
    all_settings = {"table": "" if len(tables) == 1 else "t"} | settings  # of messages that name no table
    return list(messages.read([Source("t.jsonl", "t", (), objects)], tables, MessageSettings(**all_settings)))


def whole_transactions(values: Iterable[Any], tables: Tables = NONE) -> list[Change | Refused]:
    """Return the changes of messages in whole transactions; those of one that lacks messages are refused."""
    source = Source("t.jsonl", "t", (), [Object(i, v) for i, v in enumerate(values, 1)])
    reading = MessageSettings(table="" if len(tables) == 1 else "t", whole_transactions=True)
    stream = StreamSettings(open_transactions="refuse")
    return _without_by_keys(changes_in_order(messages.FORMAT, tables, reading, stream, [source]))


def read_store(
    engine: sa.Engine, names: Sequence[str], tables: Tables, reading: change_tables.TableSettings
) -> list[Change | Refused]:
    """Return the changes of change tables in a database, which are read once."""
    inputs = StoredTables(engine, names, tables, reading)
    table_reading = ChangeTableReading(inputs, tables, reading, StreamSettings(), None, once=True)
    return handed_out(SequencedFeed(table_reading))


def publish(
    changes: Iterable[Change], tables: Tables, settings: MessageSettings, kafka: KafkaSettings
) -> Iterator[Refused]:
    """Write the messages of the changes; end when the brokers have all of them."""
    with Sender(kafka).part() as sender:
        for written in MessageWriter(tables, settings).write(changes):
            refused = written if isinstance(written, Refused) else sender.send(written)
            if refused is not None:
                yield refused


def read_topics(
    kafka: KafkaSettings, encoding: str = "json", *, commit: bool = True, **settings: Any
) -> list[Change | Refused]:
    """Return the changes of topics, read once without a state."""
    topics = Topics(kafka, encoding)
    reading = with_metadata(topics, MessageSettings(**settings))
    feed = SequencedFeed(TopicReading(topics, NONE, reading, StreamSettings(), None))
    with closing(feed):
        answers = handed_out(feed)
        if commit:
            feed.commit()
        return answers


def handed_out(source: ChangeSource) -> list[Change | Refused]:
    """Return what a round of a source hands out."""
    answers: list[Change | Refused] = []
    for item in source.round():
        answers += [item] if isinstance(item, Refused) else item.changes
    return answers


def write_messages(changes: Iterable[Change], tables: Tables = NONE, **settings: Any) -> list[Any]:
    return list(messages.write(changes, tables, MessageSettings(**settings)))


def as_text(change: Change | Refused) -> str:
    """Return a change as text, for 1, 1.0 and true are equal; without what counting adds."""
    assert isinstance(change, Change), change
    position_facts = tuple(fact for fact in change.extra if fact[0] == "stream_position")
    return repr(change._replace(extra=position_facts))


def change(item: Change | Refused) -> Change:
    assert isinstance(item, Change), item
    return item


def reason(item: Change | Refused) -> str:
    assert isinstance(item, Refused), item
    return f"{item.where}: {item.reason}"
