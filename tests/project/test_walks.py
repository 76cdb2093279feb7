"""The three journeys of docs/architecture.md: the modules that one row passes, in their order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import count, groupby
from pathlib import Path
from textwrap import wrap

import pytest
from eventlog_spark.fold import FoldToDocuments
from eventlog_spark.log_rows import LogReading
from eventlog_spark.result_rows import Documents
from eventlog_spark.streams import ReadLog
from sqlalchemy.engine import Engine

from eventlog.core import tablesfile
from eventlog.core.errors import Refused
from eventlog.core.formats import Shape
from eventlog.files.inputs import open_sources
from eventlog.fold import Rules
from eventlog.jobs.report import Report
from eventlog.sinks.http import HttpSettings, HttpSink
from eventlog.sql.postgresql import POSTGRESQL
from eventlog.targets.tables.database import Database as DatabaseTarget
from eventlog.targets.tables.settings import ApplySettings
from eventlog.targets.tables.table_writer import TableWriter
from eventlog.transfer.loop import transfer
from eventlog.xds.settings import XdsSettings
from tests.databases import Database
from tests.project.walks import ROOT, recorded
from tests.publisher.world import World, key
from tests.sequence.test_topics import Brokers, feed
from tests.sequence.test_transactions import event
from tests.sinks.receivers import Answering, receiver, say
from tests.spark.helpers import TABLES
from tests.spark.test_document_rows import batches, shuffled

pytestmark = pytest.mark.quick

PAGE = ROOT / "docs" / "architecture.md"
ACCEPTED = b'<nds><output><status level="success" event-id="eventlog:%d"/></output></nds>'


def drawn(modules: list[str]) -> str:
    """Return modules as the page draws them: a line for each stay in a room."""
    stays = groupby(modules, key=lambda module: module.split(".")[0 if "spark" in module else 1])
    lines = []
    for room, inside in stays:
        names = (module.removeprefix("eventlog.").removeprefix(f"{room}.") for module in inside)
        lines.append(f"{room}: {' '.join(names)}")
    return "\n".join(line for long in lines for line in wrap(long, 96, subsequent_indent="    "))


def on_the_page(heading: str) -> str:
    """Return what the page draws under a heading."""
    section = PAGE.read_text("utf-8").partition(f"### {heading}\n")[2]
    return section.partition("```\n")[2].partition("\n```")[0]


def accept(numbers: Iterator[int]) -> Answering:
    """Answer each document with success for the next event."""
    return lambda handler: say(200, ACCEPTED % next(numbers))(handler)


def log_row_to_http(world: World) -> list[str]:
    """Return the modules that a row passes in the second cycle of a publisher."""
    world.user(1)
    with (
        receiver(accept(count(1))) as url,
        closing(HttpSink(HttpSettings(http_url=url))) as sink,
        world.publisher(sink) as publisher,
    ):
        world.write(key(1, event_type=2, column_name="fname", old_value="a", new_value="b"))
        assert publisher.cycle().events == 1
        world.write(key(1, event_type=2, column_name="fname", old_value="b", new_value="c"))
        with recorded() as modules:
            assert publisher.cycle().events == 1
    return modules


def message_to_table(engine: Engine) -> list[str]:
    """Return the modules that a message passes in the second round of a feed."""
    tables = tablesfile.read('[tables.people]\nkey = ["id"]\ncolumns = { id = "integer" }\n')
    brokers = Brokers()
    refused: list[Refused] = []
    source = feed(brokers)
    with closing(DatabaseTarget(engine, "walk", tables, ApplySettings(), refused.append)) as target:
        report = Report(refused.append)
        rows = TableWriter(target, "walk", "qlik-message", ApplySettings(), report.refuse, has_states=True)
        brokers.send(0, event("A", 1, True, 1, "people"))
        transfer(source, rows, lambda changes: changes, report)
        brokers.send(0, event("B", 1, True, 2, "people"))
        with recorded() as modules:
            transfer(source, rows, lambda changes: changes, report)
    assert (rows.tally.inserted, [one.reason for one in refused]) == (2, [])
    return modules


def backlog_row(folder: Path) -> list[str]:
    """Return the modules that a row of a file passes in the tasks of a backlog."""
    log = folder / "log.csv"
    log.write_text(
        "record_id,event_type,table_name,table_key,column_name,old_value,new_value\n"
        "1,2,usr,idu=1,fname,Jack,John\n"
    )
    tables = tablesfile.read(TABLES)
    reading = LogReading(tables, Rules(), "2025-01-01T00:00:00", None, frozenset())
    fold = FoldToDocuments(reading, Documents(tables, XdsSettings()))
    with recorded() as modules:
        sources = open_sources([str(log)], Shape.ROWS, "csv")
        (read,) = ReadLog(reading)(0, sources)
        (row,) = read.to_pylist()
        names = ("table_name", "table_key", "column_name", "old_value", "new_value")
        cells = (row["record_id"], "N", row["kind"], row["event_time"], None, *(row[name] for name in names))
        (made,) = fold(batches(shuffled([cells]), 10))
    (document,) = made.to_pylist()
    assert document["refused"] is None
    assert "John" in document["document"]
    return modules


def test_a_log_row_on_its_way_to_http(postgres: Database) -> None:
    world = World(postgres.engine(), POSTGRESQL)
    world.make()
    assert drawn(log_row_to_http(world)) == on_the_page("A log row on its way to HTTP")
    world.engine.dispose()


def test_a_kafka_message_on_its_way_to_a_table(postgres: Database) -> None:
    engine = postgres.engine()
    assert drawn(message_to_table(engine)) == on_the_page("A Kafka message on its way to a table")
    engine.dispose()


def test_a_backlog_row_on_spark(tmp_path: Path) -> None:
    assert drawn(backlog_row(tmp_path)) == on_the_page("A backlog row on Spark")
