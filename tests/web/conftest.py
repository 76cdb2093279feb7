"""A log whose publisher is looked at: failed rows, waiting rows, and the pages about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pytest
from sqlalchemy.engine import Engine, make_url

from eventlog.embedded import Server
from eventlog.opening.config import Config
from eventlog.opening.open_log import open_store
from eventlog.opening.publisher_settings import PublisherSettings
from eventlog.publisher.cycle import Publisher
from eventlog.publisher.preparation import make_reader
from eventlog.publisher.readiness import Readiness
from eventlog.sinks.sink import OutgoingDocument, Reply
from eventlog.sql.capture import track
from eventlog.sql.connect import execute_plain
from eventlog.sql.log.store import Store
from eventlog.sql.names import log_named
from eventlog.sql.relation import Choice
from eventlog.sql.schema import migrate
from eventlog.status.log_watch import LogWatch, Outage
from eventlog.web.monitor.page_data import PageData
from eventlog.web.monitor.pages import pages_app
from eventlog.xds.answers import Level, Status
from tests.kit.databases import EMBEDDED, Database, temporary_database
from tests.kit.statements import run_statements
from tests.web.receiver.conftest import HOST, HOSTILE, Client, Site, client, site

__all__ = ["client", "site"]
TOKEN = "let me"
READINESS = Readiness()
USR = "create table usr (idu integer primary key, fname varchar(64))"


class Picky:
    """A sink that refuses by instruction."""

    def __init__(self) -> None:
        self.refuses = False
        self.is_busy = False
        self.busy_with = ""  # what a document that is to wait contains
        self.words = HOSTILE

    def deliver(self, documents: Iterable[OutgoingDocument]) -> Iterator[Reply]:
        for document in documents:
            is_busy = self.is_busy and self.busy_with in document.text
            level = Level.RETRY if is_busy else Level.ERROR if self.refuses else Level.SUCCESS
            yield Reply([Status(level, item.event_id, self.words) for item in document.items])

    def knows(self, name: str) -> bool:
        return False

    def close(self) -> None:
        """Do nothing, because nothing is open."""


@dataclass
class Process:
    """The facts that a process gives the board."""

    store: Store | None
    leads: bool = True
    outage: Outage | None = None
    readiness: Readiness = READINESS

    def __post_init__(self) -> None:
        self.watch = LogWatch(self)


@dataclass
class Watched:
    """A publisher, its board, and its pages."""

    engine: Engine
    store: Store
    publisher: Publisher
    sink: Picky
    board: PageData
    process: Process
    client: Client

    def run(self, *statements: str) -> None:
        run_statements(self.engine, *statements)

    def letters(self) -> str:
        with self.engine.connect() as connection:
            sql = "select string_agg(status, '' order by record_id) from eventlog"
            return str(connection.exec_driver_sql(sql).scalar())


@pytest.fixture(scope="session")
def tracking_usr(embedded: Server) -> Iterator[str]:
    """A database with a log that tracks usr."""
    with temporary_database(EMBEDDED, make_url(embedded.url)) as database:
        engine = database.engine()
        log = log_named(database.dialect, "eventlog")
        migrate.install(engine, log)
        with engine.begin() as connection:
            execute_plain(connection, USR)
        track.track(engine, log, "usr", Choice(insert=1, update=2))
        engine.dispose()
        yield str(database.url.database)


@pytest.fixture
def usr_database(embedded: Server, tracking_usr: str) -> Iterator[Database]:
    """A database of the test's own with that log."""
    with temporary_database(EMBEDDED, make_url(embedded.url), template=tracking_usr) as database:
        yield database


@pytest.fixture
def watched(usr_database: Database, site: Site) -> Iterator[Watched]:
    engine, url = usr_database.engine(), usr_database.address
    config = Config({"url": url, "allow_loopback": True, "http_password": "hush", "monitor_token": TOKEN})
    store = open_store(config)
    leader = store.lead("test")
    assert leader is not None
    sink, process = Picky(), Process(store)
    board = PageData(process, config)
    reader = lambda: make_reader(config, store)  # noqa: E731
    publisher = Publisher(store, reader, sink, leader.epoch, 1, PublisherSettings())
    with site.showing(pages_app(board, HOST)) as client:
        yield Watched(engine, store, publisher, sink, board, process, client)
    leader.close()
    store.engine.dispose()
    engine.dispose()
