"""A log that a slot fills, its publisher cycle by cycle, and a receiver that keeps a replica."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import URL

from eventlog.core.each_table import TablesRefused
from eventlog.opening.config import Config
from eventlog.opening.publisher_settings import PublisherSettings
from eventlog.operate.changing import fill_by_slot
from eventlog.publisher.cycle import Publisher
from eventlog.publisher.preparation import make_reader
from eventlog.sinks.sink import Sink
from eventlog.slot.filler import SlotFiller
from eventlog.sql.connect import connect
from eventlog.xds.xds_settings import XdsSettings
from tests.compare.rig import Replica
from tests.kit.databases import temporary_database
from tests.kit.statements import run_statements
from tests.kit.support import until
from tests.world.world import World

Logged = tuple[int, str, str]  # event type, table, key


class Copy(Replica):
    """A receiver that sets what it gets: events of a slot are read back."""

    def _add(self, key: str, event: Any) -> None:
        self.rows.pop(key, None)
        super()._add(key, event)

    def _modify(self, key: str, event: Any) -> None:
        self.rows.setdefault(key, {})
        super()._modify(key, event)

    def _delete(self, key: str, event: Any) -> None:
        self.rows.pop(key, None)


class SlotWorld(World):
    """A log that a slot can fill."""

    def settings(self, tables: str = "usr", **settings: Any) -> Config:
        return Config({"url": self.url, "sync_tables": tables, "publication_mode": "slot", **settings})

    def fill(self, tables: str = "usr", **settings: Any) -> list[str]:
        """Let a slot fill the log, as `install --mode slot` does; return what it reports."""
        lines = list[str]()
        with suppress(TablesRefused):
            for line in fill_by_slot(self.settings(tables, **settings), self.store, "test"):
                lines.append(line)
        return lines

    def run(self, *statements: str) -> None:
        """Run statements, each as a transaction of its own."""
        run_statements(self.engine, *statements, autocommit=True)

    def value(self, statement: str, **values: Any) -> Any:
        with self.engine.connect() as connection:
            return connection.execute(text(statement), values).scalar()

    @property
    def slot(self) -> str:
        with self.store.admin() as admin:
            return admin.slot().slot_name()

    def logged(self, after: int = 0) -> list[Logged]:
        """Return the rows of the log."""
        columns = "event_type, table_name, table_key"
        query = f"select {columns} from eventlog where record_id > :after order by record_id"
        with self.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(query), {"after": after})]

    def gaps(self) -> dict[str, str]:
        with self.store.admin() as admin:
            return {table: gap.why for table, gap in admin.slot().gaps().items()}


class Life:
    """A publisher of a slot from its start to its end."""

    def __init__(self, filler: SlotFiller, publisher: Publisher) -> None:
        self.filler = filler
        self.publisher = publisher

    def cycle(self) -> int:
        """Fill and publish; return how many changes were logged."""
        count = self.filler.prepare(self.publisher)
        self.publisher.cycle()
        return count


@contextmanager
def life(world: SlotWorld, sink: Sink, tables: str = "usr", **settings: Any) -> Iterator[Life]:
    leave_slots(world)
    config = world.settings(tables, **settings)
    with world.elect() as leader:
        filler = SlotFiller(config, world.store, leader.epoch)
        publisher = Publisher(
            world.store,
            lambda: make_reader(config, world.store),
            sink,
            leader.epoch,
            config.build(XdsSettings).batch_size,
            config.build(PublisherSettings),
        )
        try:
            yield Life(filler, publisher)
        finally:
            filler.close()


def once(world: SlotWorld, sink: Sink, tables: str = "usr", **settings: Any) -> Life:
    """Return a publisher that ran one cycle."""
    with life(world, sink, tables, **settings) as publisher:
        publisher.cycle()
    return publisher


def rows_of(world: SlotWorld, table: str = "usr", columns: Sequence[str] = ("fname", "lname")) -> Any:
    with world.engine.connect() as connection:
        rows = connection.execute(text(f"select idu, {', '.join(columns)} from {table}")).all()
    named = ((row[0], zip(columns, row[1:], strict=True)) for row in rows)
    return {f"idu={idu}": {n: v for n, v in values if v is not None} for idu, values in named}


@contextmanager
def slot_world(name: str, url: URL) -> Iterator[SlotWorld]:
    """Make a database with an installed log and the table usr; its slots go with it."""
    with temporary_database(name, url) as database:
        engine = connect(database.url, keep_open=4)
        world = SlotWorld(engine, database.dialect)
        world.make()
        try:
            yield world
        finally:
            drop_slots(world)
            engine.dispose()


def drop_slots(world: SlotWorld) -> None:
    """Drop the slots of a database, so that it can be dropped."""
    ours = "from pg_replication_slots where database = current_database()"
    world.run(f"select pg_terminate_backend(active_pid) {ours} and active_pid is not null")
    leave_slots(world)
    world.run(f"select pg_drop_replication_slot(slot_name) {ours}")


def leave_slots(world: SlotWorld) -> None:
    """Wait until no session of the server reads a slot of this database."""
    active = "select count(*) from pg_replication_slots where database = current_database() and active"
    until(lambda: world.value(active) == 0)
