"""A publisher that compares, cycle by cycle, and a receiver that keeps a replica."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from lxml import etree
from sqlalchemy import text

from eventlog.opening.comparing_settings import ComparingSettings
from eventlog.opening.config import Config
from eventlog.opening.publisher_settings import PublisherSettings
from eventlog.publisher.comparison import Comparison
from eventlog.publisher.cycle import Publisher
from eventlog.publisher.preparation import make_reader
from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply, Sink
from eventlog.xds.answers import Level, Status
from eventlog.xds.xds_settings import XdsSettings
from tests.kit.logs import Crash, Receiver
from tests.world.world import World

Row = dict[str, str]
ROWS = "select idu, fname, lname from usr"


class Life:
    """A comparing publisher from its start to its end, and what it does."""

    def __init__(self, world: World, comparing: Comparison, publisher: Publisher) -> None:
        self.world = world
        self._comparing = comparing
        self._publisher = publisher

    @property
    def unread(self) -> Mapping[str, str]:
        return self._comparing.unread

    @property
    def stopped_tables(self) -> Collection[str]:
        return self._comparing.stopped_tables

    def poll(self) -> int:
        """Look for what differs; how many objects did."""
        return self._comparing.poll()

    def send(self) -> None:
        """Publish without a poll."""
        self._publisher.cycle()

    def cycle(self) -> int:
        """Poll and publish; how many objects differed."""
        difference_count = self._comparing.prepare(self._publisher)
        self._publisher.cycle()
        return difference_count


@contextmanager
def life(world: World, sink: Sink, tables: str = "usr", **settings: Any) -> Iterator[Life]:
    sections = settings.pop("sections", {})
    settings |= {"url": world.url, "sync_tables": tables, "polling_interval": 0}
    settings["publication_mode"] = "compare"
    config = Config(settings, tables=sections)
    with world.elect() as leader:
        comparing = Comparison(config, world.store, leader.epoch, config.build(ComparingSettings))
        xds = config.build(XdsSettings)
        publisher = Publisher(
            world.store,
            lambda: make_reader(config, world.store),
            sink,
            leader.epoch,
            xds.batch_size,
            config.build(PublisherSettings),
        )
        yield Life(world, comparing, publisher)


class Replica(Receiver):
    """A receiver that applies what it gets, and reports what does not fit."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.rows: dict[str, Row] = {}
        self.reported: Counter[str] = Counter()
        self.moods: dict[str, str] = {}  # by key: how its next event is answered
        self._seen_ids: set[str] = set()

    def _answer(self, document: OutgoingDocument) -> Reply:
        statuses = []
        for event in etree.fromstring(document.text.encode()).iterfind("input/*"):
            key = str(event.findtext("association")).partition(",table=")[0]
            event_id = str(event.get("event-id"))
            taken = event_id in self._seen_ids  # and no one heard it
            mood = "success" if taken else self.moods.pop(key, "success")
            if mood != "success":
                statuses.append(Status(Level[mood.upper()], event_id, "no"))
            if mood in ("success", "warning") and event_id not in self._seen_ids:
                self._seen_ids.add(event_id)
                self.reported[str(event.tag)] += 1
                getattr(self, f"_{event.tag!s}")(key, event)
        return Reply(tuple(statuses)) if statuses else ACCEPTED

    def _add(self, key: str, event: Any) -> None:
        assert key not in self.rows, f"{key} is added twice"
        attrs = ((attr.get("attr-name"), attr.findtext("value")) for attr in event.iterfind("add-attr"))
        self.rows[key] = {str(name): str(value or "") for name, value in attrs}

    def _modify(self, key: str, event: Any) -> None:
        row = self.rows[key]
        for attr in event.iterfind("modify-attr"):
            name = str(attr.get("attr-name"))
            removed, added = attr.find("remove-value/value"), attr.find("add-value/value")
            if attr.find("remove-all-values") is not None:
                row.pop(name, None)
            elif removed is not None:
                assert row.pop(name) == (removed.text or "")
            else:
                assert name not in row
            if added is not None:
                row[name] = added.text or ""

    def _delete(self, key: str, event: Any) -> None:
        del self.rows[key]


class Mortal(Replica):
    """A receiver that may take its publisher with it."""

    def _answer(self, document: Any) -> Any:
        crashing = [key for key, mood in self.moods.items() if mood == "crash"]
        for key in crashing:
            del self.moods[key]
        reply = super()._answer(document)
        if any(f"{key}," in document.text for key in crashing):
            raise Crash
        return reply


def rows_of(world: World) -> dict[str, Row]:
    with world.engine.connect() as connection:
        return as_replica(connection.execute(text(ROWS)).all())


def as_replica(rows: Iterable[Sequence[Any]]) -> dict[str, Row]:
    """Return rows of usr as a replica has them."""
    named = ((row[0], zip(("fname", "lname"), row[1:], strict=True)) for row in rows)
    return {f"idu={idu}": {n: v for n, v in values if v is not None} for idu, values in named}
