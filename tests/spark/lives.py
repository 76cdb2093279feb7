"""A live log for the tests: rows as triggers write them, a backlog of them, and what a publisher would do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from eventlog_spark.backlog import Backlog
from eventlog_spark.live_log import Finished, Live, run_live
from sqlalchemy import text
from sqlalchemy.engine import Engine

from eventlog.audit.audit_report import AuditReport
from eventlog.audit.delivered import DeliveredDocument, DocumentFiles
from eventlog.audit.laws import Arrivals, judge
from eventlog.audit.on_record import read_log
from eventlog.opening.config import Config
from eventlog.opening.publisher_settings import PublisherSettings
from eventlog.publisher.cycle import Publisher
from eventlog.publisher.preparation import make_reader, read_rules
from eventlog.publisher.reading import FoldedPickUp
from eventlog.sinks.sink import Sink
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.log.pending import PickUpFilter
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.schema import migrate
from eventlog.transfer.job import Job
from eventlog.xds.documents import document
from tests.kit.logs import leading, write_rows
from tests.spark.helpers import CLOCK, lines

CONFIG = Config(
    {"sync_tables": "usr", "allow_loopback": True, "max_changes": 3}, tables={"usr": {"withhold": ["secret"]}}
)
ROWS: list[tuple[Any, ...]] = [
    (2, "idu=1", "fname", "a", "b"),
    (6, "idu=2", None, None, None),
    (5, "idu=3", None, None, None),
    (8, "idu= 2", "lname", None, None),
    (2, "idu=1", "lname", None, "x"),
    (6, "idu=x", None, None, None),
    (4, "idu=4", None, None, None),
    (1, "idu=5", "fname", None, "\u0001"),
    (2, "idu=99999999999999999999", "fname", "swallowed", "too"),
    (6, "idu=99999999999999999999", None, None, None),
    (6, "idu=99999999999", None, None, None),
    (2, "idu=99999999999", "secret", "1", "2"),
    (4, "idu=99999999999", None, None, None),
    (7, "idu=99999999999", "fname", None, None),
    (1, "idu=99999999999", "lname", None, "not swallowed"),
    (5, "idu=6", None, None, None),
    (7, "idu=7", "fname", None, None),
    (8, "idu=8", "lname", None, None),
]


def log_of(engine: Engine, dialect: Dialect) -> Log:
    """Return the log with its schema, as commands name it: the sessions of Spark's tasks search no path."""
    with engine.connect() as connection:
        return Catalogue(connection).located(Log(dialect))


def make_store(engine: Engine, dialect: Dialect) -> Store:
    """Return an installed log with rows, and their table."""
    log = log_of(engine, dialect)
    migrate.install(engine, log)
    columns = "idu integer primary key, fname varchar(64), lname varchar(64), secret integer"
    with engine.begin() as connection:
        connection.execute(text(f"create table usr ({columns})"))
        connection.execute(text("insert into usr values (1, 'John', 'Doe', 7), (2, 'Ann', null, 8)"))
        connection.execute(
            text("insert into usr values (6, 'Bo', 'Roe', 9), (7, 'Cy', 'Roe', 9), (8, 'Di', 'Roe', 9)")
        )
    store = Store(engine, log)
    write(store, ROWS)
    names = log.names()
    with engine.begin() as connection:  # a time that MariaDB writes with a nought at its end
        of_some = f"where {names['event_type']} > 4"
        time = "timestamp '2025-03-23 10:57:19.120000'"
        connection.execute(text(f"update {names['log']} set {names['event_time']} = {time} {of_some}"))
    return store


def write(store: Store, rows: list[tuple[Any, ...]], change: str | None = None) -> None:
    """Write rows as triggers log them, and their changes."""
    columns = ("event_type", "table_key", "column_name", "old_value", "new_value")
    with store.engine.begin() as connection:
        if change is not None:
            connection.execute(text(change))
        write_rows(connection, store.log, *(dict(zip(columns, row, strict=True)) for row in rows))


def pending(store: Store) -> int:
    with store.snapshot() as snapshot:
        return len(snapshot.pick_up(PickUpFilter()).cells)


def letters(store: Store) -> str:
    """Return the letters of all rows, in their order."""
    names = store.log.names()
    with store.engine.connect() as connection:
        status_rows = connection.execute(
            text(f"select {names['status']} from {names['log']} order by {names['record_id']}")
        )
        return "".join(letter for (letter,) in status_rows)


def failures(store: Store) -> dict[int, str]:
    """Return the reasons of failed rows."""
    with store.engine.connect() as connection:
        failed_rows = connection.execute(text(f"select record_id, reason from {store.log.names()['failed']}"))
        return {int(row[0]): str(row[1]) for row in failed_rows}


def backlog(
    spark: Any,
    store: Store,
    folder: Path,
    meanwhile: Callable[[], None] = lambda: None,
    finish: bool = False,
    config: Config = CONFIG,
    at: str = "fold",
    **how: Any,
) -> Finished:
    """Return a backlog of the log; `meanwhile` is done when its rows are copied, or at another step."""
    options = dict(config.values) | asdict(read_rules(config, store))
    job = Job("log", "xds", (), str(folder), options=options)

    def step(sentence: str) -> None:
        if sentence.split()[0] == at:
            meanwhile()

    return run_live(spark, Backlog(job, CLOCK, partitions=2, **how), Live(store, config, finish), step)


def publish(store: Store, sink: Sink, config: Config = CONFIG) -> None:
    """One cycle of a publisher."""
    settings = config.build(PublisherSettings)
    with leading(store) as epoch:
        Publisher(store, partial(make_reader, config, store), sink, epoch, 10, settings).cycle()


def published(store: Store, config: Config = CONFIG) -> FoldedPickUp:
    """Return the outcomes that the publisher would give to the pending rows."""
    reader = make_reader(config, store)
    with store.snapshot() as snapshot:
        return reader.preview(snapshot, PickUpFilter(1_000_000), thorough=True)


def documents_of(reading: FoldedPickUp) -> list[str]:
    """Return the publisher's documents, an event each."""
    return [document([event.text]) for event in reading.events.events()]


def documents(folder: Path) -> list[str]:
    return lines(folder)


def audit(store: Store, folder: Path, before: Sequence[DeliveredDocument] = ()) -> tuple[list[str], int]:
    """Return what the receipt has against what a backlog wrote after these documents, and how many events it
    does not judge.
    """
    with store.snapshot() as snapshot:
        log = read_log(snapshot)
    arrivals, report, delivered = Arrivals(log), AuditReport(), DocumentFiles(folder / "documents")
    delivered.mark()
    for _ in arrivals.add(chain(before, delivered.documents())):
        pass
    judge(log, arrivals, report, "eventlog", lambda ids: {})
    return [breach.words.partition(":")[0] for breach in report.first_breaches.values()], report.not_judged
