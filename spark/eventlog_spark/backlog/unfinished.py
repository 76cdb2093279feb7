"""The batches that a publisher remembered when it stopped: they may be delivered, so they keep their event-
ids.

Their events become part of the output as the publisher would send them again. They have the same rows under
the same event-ids, from the next part on, with the present values. --finish settles them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import Self

from eventlog.core.change import Change
from eventlog.core.entry import COLUMNS, Letter
from eventlog.core.tables import Table, Tables
from eventlog.fold import Rules
from eventlog.neutral import dumps
from eventlog.publisher.batches import Remembered, read_memory, still_to_go
from eventlog.publisher.config import Config
from eventlog.publisher.fold import Reader
from eventlog.publisher.reading import Reading
from eventlog.publisher.session import SessionSettings
from eventlog.publisher.tally import letters_of
from eventlog.sinks import open_sink, sink_kind
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.log.work import Failure, RememberedBatch
from eventlog.sql.readable import ReadableTable
from eventlog.xds.settings import XdsSettings

_OBJECT = slice(COLUMNS.index("table_name"), COLUMNS.index("table_key") + 1)
Document = tuple[str, Sequence[Remembered]]


@dataclass(frozen=True)
class Settlement:
    """The way in which --finish settles what was remembered."""

    batches: Sequence[RememberedBatch] = ()
    letters: Mapping[Letter, Sequence[int]] = field(default_factory=dict)
    failures: Sequence[Failure] = ()
    objects: Sequence[tuple[str, str, str]] = ()  # with the event-ids that they no longer wait for

    @property
    def rows(self) -> frozenset[int]:
        return frozenset(row for rows in self.letters.values() for row in rows)

    def text(self) -> str:
        """Return all of it, to be read again."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> Self:
        settlement = json.loads(text)
        return cls(
            [RememberedBatch(*batch) for batch in settlement["batches"]],
            {Letter(letter): ids for letter, ids in settlement["letters"].items()},
            [Failure(*failure) for failure in settlement["failures"]],
            [(name, key, event_id) for name, key, event_id in settlement["objects"]],
        )


class _AsChanges:
    """Writes events as lines of `changes`, which every format can be made from."""

    def write(self, change: Change, event_id: str) -> str:
        named = dict(change.extra) | {"event_id": event_id}
        return dumps(change._replace(extra=tuple(named.items())))


def settle(
    batches: Sequence[RememberedBatch],
    snapshot: Snapshot,
    tables: Tables,
    readable: Mapping[Table, ReadableTable],
    rules: Rules,
    config: Config,
) -> tuple[Settlement, list[str]]:
    """Return the fates of the remembered rows, and the changes that must be sent again, a line each."""
    documents = [document for batch in batches for document in read_memory(batch.content)]
    facts = still_to_go(documents, _known(documents, config))
    reader = Reader(tables, readable, rules, XdsSettings(), _AsChanges())
    reading = reader.read_again(snapshot, facts, thorough=True)
    letters = letters_of(fact for _, among in documents for fact in among)
    letters |= {row: (Letter.ERROR, Failure(row, None, reason)) for row, reason in reading.refused}
    spelled = {cells[0]: cells[_OBJECT] for cells in snapshot.rows(letters)}
    objects = {
        (*reader.object_of(*spelled[row]), fact.run_id)
        for _, among in documents
        for fact in among
        for row in fact.settles[:1]
        if row in spelled
    }
    settlement = Settlement(
        batches,
        {letter: [row for row, (own, _) in letters.items() if own is letter] for letter in Letter},
        [failure for _, failure in letters.values() if failure is not None],
        sorted(objects),
    )
    return settlement, _lines(reading)


def _lines(reading: Reading) -> list[str]:
    return [sending.text + "\n" for sending in reading.sendings]


def _known(documents: Sequence[Document], config: Config) -> set[str]:
    """Return the documents that are out for sure, where the publisher's sink keeps a record of it."""
    name = config.build(SessionSettings).sink
    if not documents or not sink_kind(name).keeps_record:
        return set()
    with closing(open_sink(name, config.given)) as sink:
        return {document for document, _ in documents if sink.knows(document)}
