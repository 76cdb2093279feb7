"""`eventlog audit`: a log and what a folder has of it; each corruption is named at its row."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from markupsafe import escape
from sqlalchemy import text
from sqlalchemy.engine import Engine

from eventlog.audit.log_side import read_facts
from eventlog.embedded import Server
from eventlog.opening.log_status import read_log_status
from eventlog.opening.recorded_settings import read_published
from eventlog.publisher.monitor import Monitor
from eventlog.sql.capture.track import track, untrack
from eventlog.sql.log.record import NoticeKind
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.relation import Choice
from eventlog.sql.schema import migrate
from eventlog.web.receiver.archive import Archive
from eventlog.web.receiver.incoming import read as read_incoming
from tests.kit.brokers import MOCK, addresses, own_name
from tests.kit.commands import Shell
from tests.kit.databases import EMBEDDED, Database, server_url, temporary_database
from tests.kit.logs import metrics_text
from tests.kit.terminal import Terminal

pytestmark = pytest.mark.quick

CHANGES = (
    "insert into usr values (1, 'Jack', 'Frost')",  # rows 1 and 2, one document
    "update usr set fname = 'John' where idu = 1",  # row 3
    "update usr set fname = 'Jim' where idu = 1",  # row 4
    "insert into usr values (2, 'Eve', 'Snow')",  # rows 5 and 6
    "delete from usr where idu = 2",  # row 7
    "update usr set lname = 'Doe' where idu = 1",  # row 8
)


class AuditedLog:
    """A log whose documents are in a folder."""

    def __init__(self, database: Database, shell: Shell, folder: Path) -> None:
        self.engine: Engine = database.engine()
        self.documents = folder / "documents"
        self._shell = shell
        self._url = database.url.render_as_string(hide_password=False)
        self.log = Log(database.dialect)
        migrate.install(self.engine, self.log)
        self.change("create table usr (idu integer primary key, fname varchar(64), lname varchar(64))")
        track(self.engine, self.log, "usr", Choice(1, 2))
        for change in CHANGES:  # each in a pick-up of its own
            self.change(change)
            self.publish()

    def change(self, *statements: str) -> None:
        with self.engine.begin() as connection:
            for statement in statements:
                connection.execute(text(statement))

    def publish(self, *words: str) -> None:
        into = ("--sink", "files", "--files-folder", "documents")
        self.run("run", "--once", "--allow-loopback", *into, *words)

    def run(self, *words: str) -> None:
        done = self._shell.run(*words, "--url", self._url)
        assert done.code == 0, done.stderr

    def audit(self, *words: str, code: int = 0) -> Any:
        done = self._shell.run(
            "audit", "--allow-loopback", "--delivered", str(self.documents), *words, "--url", self._url
        )
        assert done.code == code, done.stdout + done.stderr
        assert "this is a bug" not in done.stderr, done.stderr
        return json.loads(done.stdout) if "--json" in words else done.stdout

    def broken(self, *words: str) -> list[tuple[str, int]]:
        """Return the laws that do not hold, each with its first row."""
        report = self.audit("--json", *words, code=1)
        return [(law["law"], law["first"]["record_id"]) for law in report["laws"] if law["breaches"]]

    def keep(self) -> None:
        """Keep the log and the folder as they are now."""
        self.change("create table saved_log as select * from eventlog")
        shutil.copytree(self.documents, self.documents.with_name("saved"))

    def restore(self) -> None:
        """Return to what was kept."""
        self.change(
            "delete from eventlog",
            "insert into eventlog overriding system value select * from saved_log",
        )
        shutil.rmtree(self.documents)
        shutil.copytree(self.documents.with_name("saved"), self.documents)


@contextmanager
def made_log(database: Database, folder: Path) -> Iterator[AuditedLog]:
    with closing(Shell(folder)) as shell:
        log = AuditedLog(database, shell, folder)
        yield log
        log.engine.dispose()


@pytest.fixture
def audited_log(database: Database, tmp_path: Path) -> Iterator[AuditedLog]:
    with made_log(database, tmp_path) as log:
        yield log


@pytest.fixture(scope="module")
def kept_log(embedded: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditedLog]:
    with (
        server_url(EMBEDDED, embedded) as url,
        temporary_database(EMBEDDED, url) as database,
        made_log(database, tmp_path_factory.mktemp("audit")) as log,
    ):
        log.keep()
        yield log


def test_a_log_is_accounted_for(audited_log: AuditedLog) -> None:
    report = audited_log.audit("--json")
    assert (report["rows"], report["objects"], report["events"]) == (8, 2, 6)
    assert [law["breaches"] for law in report["laws"]] == [0] * len(report["laws"])
    assert audited_log.audit("--json")["digest"] == report["digest"]
    audited_log.change("update usr set fname = 'Joe' where idu = 1")
    pending = audited_log.audit("--json")
    assert pending["letters"] == {"N": 1, "S": 8}
    assert pending["digest"] != report["digest"]


def test_documents_and_tables_have_one_state(audited_log: AuditedLog) -> None:
    assert audited_log.audit("--state", "--json")["rows"] == 8
    copy = documents(audited_log)["8-8"]
    copy.write_bytes(copy.read_bytes().replace(b"Doe", b"Poe"))
    assert audited_log.broken("--state") == [("content", 8), ("same_state", 8)]
    assert audited_log.audit("--without-contents", "--json")["laws"][2]["judged"] is False
    copy.write_bytes(copy.read_bytes().replace(b"Poe", b"Doe"))
    untrack(audited_log.engine, audited_log.log, "usr")
    audited_log.change("delete from usr")
    assert audited_log.broken("--state", "--sync-tables", "usr") == [("same_state", 8)]
    audited_log.change("delete from eventlog")
    assert audited_log.broken() == [("explained", 1)]


def test_an_object_that_is_there_and_never_left_is_named(audited_log: AuditedLog) -> None:
    """Log a row before its object is there, and let the object come without a row."""
    columns = "event_type, perpetrator, table_name, table_key"
    audited_log.change(f"insert into eventlog ({columns}) values (5, null, 'usr', 'idu=3')")
    audited_log.publish()
    assert audited_log.audit("--state", "--json")["letters"] == {"S": 9}
    untrack(audited_log.engine, audited_log.log, "usr")
    audited_log.change("insert into usr values (3, 'Ann', 'Lee')")
    assert audited_log.broken("--state", "--sync-tables", "usr") == [("same_state", 9)]


def test_what_is_published_is_on_record_whenever_it_changes(audited_log: AuditedLog) -> None:
    audited_log.change("alter table usr add column phone varchar(40)")
    for _ in range(2):
        audited_log.publish()
    with Store(audited_log.engine, audited_log.log).snapshot() as snapshot:
        notices = snapshot.record().notices_of(NoticeKind.PUBLISH)
    later, first = ([*read_published(str(notice.words))[0].get("usr").columns] for notice in notices)
    assert (first, later) == (["idu", "fname", "lname"], ["idu", "fname", "lname", "phone"])
    tables, facts = read_published(str(notices[0].words))
    assert facts == {
        "document": "xds",
        "time_syntax": 1,
        "insert_query_back": "modify",
        "dialect": audited_log.log.dialect.name,
    }
    assert [column.name for column in tables.get("usr").data] == ["fname", "lname", "phone"]


def test_an_audit_is_recorded_for_status_and_history(audited_log: AuditedLog) -> None:
    report = audited_log.audit("--record", "--by", "ada", "--json")
    documents(audited_log)["4-4"].unlink()
    audited_log.audit("--record", "--json", code=1)
    with Store(audited_log.engine, audited_log.log).snapshot() as snapshot:
        latest, first = snapshot.record().notices_of(NoticeKind.AUDIT)
    results = [json.loads(str(notice.words)) for notice in (first, latest)]
    assert [result["breaches"] for result in results] == [0, 1]
    assert (first.who, first.row_count, results[0]["digest"]) == ("ada", 8, report["digest"])
    store = Store(audited_log.engine, audited_log.log)
    status = read_log_status(store)
    assert status.audit is not None
    assert (status.audit.rows, status.audit.breaches) == (8, 1)
    assert 0 <= status.audit.age < 3600
    monitor = Monitor()
    monitor.connected(store)
    assert "eventlog_audit_breaches 1.0\n" in metrics_text(monitor)


@pytest.mark.slow("it audits and publishes a dozen times")
def test_a_later_audit_judges_what_changed_since(audited_log: AuditedLog) -> None:
    """Find a corruption of the day, bring back the object of a redriven row, and leave the others outside."""
    log = audited_log
    assert "no audit without a breach is on record, so all" in log.audit("--since")
    log.change("insert into usr values (4, '\x01', 'Lee')")  # rows 9 and 10
    log.publish()
    record_an_audit(log)
    assert log.audit("--since", "--json")["objects"] == 0
    log.change("insert into usr values (3, 'Ann', 'Lee')")  # rows 11 and 12
    log.publish()
    report = log.audit("--since", "--json")
    assert (report["rows"], report["objects"], report["events"]) == (2, 1, 1)
    before = documents(log)["3-3"].stat().st_mtime
    corrupt(documents(log)["3-3"], b"John", b"Joan")
    os.utime(documents(log)["3-3"], (before, before))
    assert "only objects that changed since 20" in log.audit("--since")
    assert log.broken() == [("content", 3)]
    foreign = log.documents / "000000000000099-5-5.xml"
    foreign.write_bytes(documents(log)["7-7"].read_bytes().replace(b"eventlog:7", b"eventlog:99"))
    assert log.broken("--since") == [("explained", 99)]
    foreign.unlink()
    corrupt(documents(log)["11-12"], b"Ann", b"Anna")
    a_day_passes(log)
    assert log.broken("--since", "--record") == [("content", 11)]
    a_day_passes(log)
    assert log.broken("--since") == [("content", 11)]  # as long as it is there
    corrupt(documents(log)["11-12"], b"Anna", b"Ann")
    corrupt(documents(log)["3-3"], b"Joan", b"John")
    record_an_audit(log)
    log.change("update usr set fname = 'Lea' where idu = 4")  # row 13
    log.run("redrive", "9")
    log.publish()
    assert log.audit("--since", "--json")["letters"] == {"S": 2, "E": 1}  # the last brings the old value, too
    for name in documents(log).keys() & {"9-10", "9-9", "10-10"}:
        path = documents(log)[name]
        path.rename(log.documents.with_name(path.name))
    assert log.broken("--since") == [("accounted", 9)]
    for path in log.documents.parent.glob("*-*.xml"):
        path.rename(log.documents / path.name)
    record_an_audit(log)
    assert log.audit("--since", "--json")["objects"] == 0
    log.run("skip", "13", "--because", "a joke")
    assert log.audit("--since", "--json")["letters"] == {"S": 2, "W": 1}


def record_an_audit(log: AuditedLog) -> None:
    """Leave an audit on record, a day after all before it and a day before now."""
    a_day_passes(log)
    log.audit("--record")
    a_day_passes(log)


def a_day_passes(log: AuditedLog) -> None:
    """Make all that is on record a day older, with the documents."""
    times = {"eventlog_batch": ("settled_at", "remembered_at"), "eventlog_notice": ("noticed_at",)}
    for table, names in times.items():
        for name in names:
            log.change(f"update {table} set {name} = {name} - interval '1' day")
    with log.engine.begin() as connection:
        for (words,) in connection.execute(text("select words from eventlog_notice where kind = 'audit'")):
            result = json.loads(words)
            at, first, received = result["mark"]
            a_day_before = str(datetime.fromisoformat(at) - timedelta(days=1))
            result["mark"] = [a_day_before, first, {name: place - 86400 for name, place in received.items()}]
            values = {"words": words, "a_day_before": json.dumps(result)}
            connection.execute(
                text("update eventlog_notice set words = :a_day_before where words = :words"), values
            )
    for path in documents(log).values():
        at = path.stat().st_mtime - 86400
        os.utime(path, (at, at))


def corrupt(path: Path, before: bytes, after: bytes) -> None:
    """Replace a text in a document."""
    text_before = path.read_bytes()
    assert before in text_before
    path.write_bytes(text_before.replace(before, after))


def test_a_row_that_the_publisher_refused_comes_late(audited_log: AuditedLog) -> None:
    """Let a row that was mended and redriven come after later rows of its object."""
    audited_log.change("update usr set fname = '\x01' where idu = 1")
    audited_log.change("update usr set lname = 'Poe' where idu = 1")
    audited_log.publish()
    audited_log.change("update usr set fname = 'Joe' where idu = 1")
    audited_log.run("redrive", "9")
    audited_log.publish()
    letters = audited_log.audit("--state", "--json")["letters"]
    assert letters == {"S": 10, "E": 1}  # the last row brings the old value, too
    receipt = audited_log.audit("--object", "usr", "idu=1")
    assert re.search(r"  redrive  20[-0-9 :]+  by .+: row 9\n", receipt)
    assert re.search(r"  row 11  20[-0-9 :]+  failed: .*U\+0001", receipt)
    assert receipt.endswith("  now  fname Joe, lname Poe\n")
    with Store(audited_log.engine, audited_log.log).snapshot() as snapshot:
        assert read_facts(snapshot).redriven == {9}


def test_a_present_row_that_no_document_can_carry_is_not_compared(audited_log: AuditedLog) -> None:
    """Report it, and judge the others: no law is broken."""
    audited_log.change("insert into usr values (3, '\x01', 'Frost')")
    audited_log.publish()
    page = audited_log.audit("--state")
    assert "open      usr idu=3 is not compared: " in page
    assert "U+0001" in page
    report = audited_log.audit("--state", "--json")
    assert [len(report[name]) for name in ("not_compared", "unreadable")] == [1, 0]


def test_states_stay_open_once_skipped_rows_are_purged(audited_log: AuditedLog) -> None:
    audited_log.change("update usr set fname = 'Joe' where idu = 1")
    audited_log.run("skip", "9", "--because", "a joke")
    assert audited_log.audit("--state", "--json")["laws"][-1]["judged"]
    for letters in ("S", "E"):  # no row has E
        audited_log.run("purge", "--older-than", "0s", "--letters", letters)
        assert audited_log.audit("--state", "--json")["laws"][-1]["judged"]
    audited_log.run("purge", "--older-than", "0s", "--letters", "W")
    assert not audited_log.audit("--state", "--json")["laws"][-1]["judged"]
    assert "rows that failed or were skipped are purged" in audited_log.audit("--state")


def test_states_stay_open_once_rows_of_the_driver_may_be_purged(audited_log: AuditedLog) -> None:
    """Purge a row that was never sent: no one knows any more that the receiver itself changed the object."""
    audited_log.change(
        "update usr set lname = 'Day' where idu = 1",
        "update eventlog set status = 'S', perpetrator = 'idm' where record_id = 9",
    )
    driver = ("--no-allow-loopback", "--driver-user", "idm", "--state")
    assert audited_log.audit(*driver, "--json")["laws"][-1]["judged"]
    audited_log.run("purge", "--older-than", "0s", "--letters", "S")
    assert "rows of the driver itself may be among the deleted ones" in audited_log.audit(*driver)
    assert audited_log.broken("--state") == [("same_state", 8)]  # with allow-loopback it was to be sent


ROWS = """\
record_id,status,event_type,event_time,perpetrator,table_name,table_key,column_name,old_value,new_value
1,S,1,2025-03-23 10:57:19,hr,usr,idu=1,fname,,Jack
2,S,2,2025-03-23 10:57:20,hr,usr,idu=1,fname,Jack,John
3,S,2,2025-03-23 10:57:20,hr,usr,idu=1,idu,1,1
4,S,2,2025-03-23 10:57:20,hr,usr,idu=1,fname,John,John
5,S,6,2025-03-23 10:57:20,eventlog,usr,idu=1,,,
6,N,4,2025-03-23 10:57:21,hr,usr,idu=2,,,
"""


@pytest.mark.parametrize("name", ["log.csv", "log.parquet", "log.jsonl"])
def test_an_export_is_audited_from_files(tmp_path: Path, name: str) -> None:
    (tmp_path / "log.csv").write_text(ROWS)
    rows = list(csv.DictReader(ROWS.splitlines()))
    typed = [{key: text or None for key, text in row.items()} for row in rows]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in typed))
    table = pa.Table.from_pylist(typed).set_column(0, "record_id", pa.array(range(1, 7)))
    pq.write_table(table, tmp_path / "log.parquet")
    with closing(Shell(tmp_path)) as shell:
        shell.run(
            *("convert", "--to", "xds", "log.csv", "-o", "some.xml", "--unknown-tables", "string"),
            *("--status", "S", "--driver-user", "eventlog"),
        )
        words = ("audit", name, "--delivered", "some.xml", "--json")
        done = shell.run(*words, "--driver-user", "eventlog")
        assert (done.code, json.loads(done.stdout)["letters"]) == (0, {"N": 1, "S": 5}), done
        broken = json.loads(shell.run(*words).stdout)["laws"][0]["first"]
        assert broken["record_id"] == 5  # the own user is not named


def test_what_a_receiver_answered_counts(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(ROWS.replace("5,S", "5,W"))
    archive = Archive(tmp_path / "received")
    for number, operation, level in (
        (1, "add", "success"),
        (2, "modify", "warning"),
        (5, "modify", "warning"),
    ):
        text = f'<{operation} class-name="usr" event-id="eventlog:{number}">'
        text += f"<association>idu=1,table=usr</association></{operation}>"
        body = f"<nds><input>{text}</input></nds>".encode()
        archive.keep("2025-03-23 11:00:00", body, read_incoming(body), level, b"")
    archive.close()
    with closing(Shell(tmp_path)) as shell:
        done = shell.run("audit", "log.csv", "--delivered", "received", "--json")
        laws = {law["law"]: law for law in json.loads(done.stdout)["laws"] if law["breaches"]}
        assert laws.keys() == {"answered"}
        assert laws["answered"]["first"] == {
            "object": "usr idu=1",
            "record_id": 2,
            "reason": "it is S, and was answered warning in document 2 (eventlog:2)",
        }


def test_the_topic_of_the_kafka_sink_is_audited(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(ROWS)
    topic = own_name("audit")
    with closing(Shell(tmp_path)) as shell, addresses(MOCK) as brokers:
        words = ("--unknown-tables", "string", "--status", "S", "--driver-user", "eventlog")
        shell.run("convert", "--to", "xds", "log.csv", "-o", "documents.xml", *words)
        sink = ("--sink", "kafka", "--kafka-topic", topic, "--kafka-brokers", brokers)
        assert shell.run("deliver", "documents.xml", *sink).code == 0
        audit = ("audit", "log.csv", "--delivered", f"kafka:{topic}", "--kafka-brokers", brokers)
        done = shell.run(*audit, "--driver-user", "eventlog", "--json")
        assert (done.code, json.loads(done.stdout)["events"]) == (0, 2), done
        assert shell.run(*audit[:4]).code == 2


def test_the_report_is_a_page_that_needs_no_other_file(tmp_path: Path) -> None:
    rows = ROWS.replace("idu=1", "idu=<script>alert(1)</script>").replace("6,N", "6,S")
    (tmp_path / "log.csv").write_text(rows)
    (tmp_path / "none.xml").write_text("")
    with closing(Shell(tmp_path)) as shell:
        words = ("audit", "log.csv", "--delivered", "none.xml", "-o", "report.html")
        done = shell.run(*words)
        assert (done.code, "broken    every row" in done.stdout) == (1, True), done
        assert shell.run(*words[:-1], "missing/report.html").code == 2
        assert shell.run(*words, "--object", "usr", "idu=2").code == 2
    page = (tmp_path / "report.html").read_text()
    *lines, digest = done.stdout.splitlines()
    for words_of_line in (
        digest.removeprefix("digest "),
        *(line[10 if "  " in line else 0 :] for line in lines),
    ):
        assert escape(words_of_line.strip()) in page
    assert "<script" not in page
    assert not re.findall("(?:href|src)=(?!.#content)|url\\(|@import|http", page)


def test_an_event_reads_alike_with_and_without_statuses(tmp_path: Path) -> None:
    header = ROWS.partition("\n")[0]
    (tmp_path / "log.csv").write_text(header + '\n1,S,2,2025-03-23,hr,usr,idu=1,fname,a,"b\nc"\n')
    archive = Archive(tmp_path / "received #1?")
    with closing(Shell(tmp_path)) as shell:
        words = ("--unknown-tables", "string", "--status", "S")
        body = shell.run("convert", "--to", "xds", "log.csv", *words).stdout.encode()
        retry = b'<nds><output><status level="retry" event-id="eventlog:1"/></output></nds>'
        for reply in (retry, b""):
            archive.keep("2025-03-23 11:00:00", body, read_incoming(body), "success", reply)
        archive.close()
        assert b"b&#10;c" in body
        done = shell.run("audit", "log.csv", "--delivered", "received #1?", "--json")
        assert (done.code, json.loads(done.stdout)["events"]) == (0, 2), done


def test_a_database_that_is_no_receiver_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as file:
        file.execute("create table something (n integer)")
    (tmp_path / "log.csv").write_text(ROWS)
    with closing(Shell(tmp_path)) as shell:
        done = shell.run("audit", "log.csv", "--delivered", "other.sqlite")
    assert (done.code, "no file of `eventlog receive`" in done.stderr) == (2, True), done


@pytest.mark.parametrize("delivered", ["log.csv", "folder", "log.parquet", "empty.gz"])
def test_what_holds_no_documents_is_refused(tmp_path: Path, delivered: str) -> None:
    (tmp_path / "log.csv").write_text(ROWS)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "log.csv").write_text(ROWS)
    pq.write_table(pa.table({"record_id": [1]}), tmp_path / "log.parquet")
    (tmp_path / "empty.gz").write_bytes(gzip.compress(b"<html><body/></html>"))
    with closing(Shell(tmp_path)) as shell:
        done = shell.run("audit", "log.csv", "--delivered", delivered)
    assert (done.code, done.stdout) == (2, ""), done
    assert f"{delivered} holds no documents" in done.stderr


def test_a_folder_is_in_the_order_in_which_its_documents_went(audited_log: AuditedLog) -> None:
    """A row that is committed late goes later than one with a higher number."""
    with audited_log.engine.connect() as late:
        late.execute(text("insert into usr values (3, null, 'Late')"))
        audited_log.change("update usr set fname = 'Jo' where idu = 1")
        audited_log.publish()
        late.commit()
    audited_log.change("update usr set fname = 'Joe' where idu = 1")
    audited_log.publish("--batch-size", "2")
    assert list(documents(audited_log))[-2:] == ["10-10", "9-11"]
    audited_log.audit("--state")
    shutil.rmtree(audited_log.documents / ".eventlog")  # their names are enough
    audited_log.audit("--state")


def test_a_folder_of_the_first_version_is_in_the_order_of_its_record(audited_log: AuditedLog) -> None:
    audited_log.change("update usr set fname = 'Jo' where idu = 1")  # row 9
    audited_log.change("update usr set fname = 'Joe' where idu = 1")  # row 10
    audited_log.publish()
    names = [*documents(audited_log)]
    for name, path in documents(audited_log).items():
        path.rename(audited_log.documents / f"{name}.xml")
    record = audited_log.documents / ".eventlog" / "record"
    record.write_text("".join(f"\n{name} out\n" for name in names))
    audited_log.audit("--state")
    record.write_text("".join(f"\n{name} out\n" for name in reversed(names)))
    assert audited_log.broken()[0][0] == "in_order"
    record.write_text("".join(f"\n{name} out\n" for name in names[2:]))
    assert audited_log.audit(code=2) == ""


def test_odd_types_and_keys_of_other_tables_excuse_nothing(tmp_path: Path) -> None:
    rows = ROWS.splitlines()[0] + "\n1,S,2,2025-03-23,hr,usr,idu=1,id,a,b\n2,S,4,2025-03-23,hr,dept,id=1,,,\n"
    (tmp_path / "log.csv").write_text(rows)
    (tmp_path / "none").mkdir()
    with closing(Shell(tmp_path)) as shell:
        done = shell.run("audit", "log.csv", "--delivered", "none", "--json")
    accounted = json.loads(done.stdout)["laws"][0]
    assert (accounted["breaches"], accounted["first"]["record_id"]) == (2, 1)


def test_a_row_of_a_type_that_is_none_is_read(audited_log: AuditedLog) -> None:
    event = '<delete event-id="eventlog:9"><association>idu=9,table=usr</association></delete>'
    (audited_log.documents / "000000000000099-9-9.xml").write_text(f"<nds><input>{event}</input></nds>")
    columns = "status, event_type, table_name, table_key"
    audited_log.change(f"insert into eventlog ({columns}) values ('S', 9, 'usr', 'idu=9')")
    assert audited_log.broken() == [("explained", 9)]


def test_a_document_that_is_cut_is_reported(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(ROWS)
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "1-1.xml").write_text(
        "<nds><input><add class-name='usr' event-id='eventlog:1'>"
    )
    with closing(Shell(tmp_path)) as shell:
        done = shell.run("audit", "log.csv", "--delivered", "documents")
    assert done.code == 1
    assert "unread    1-1.xml: document 1 (byte 0) cannot be read: the document is cut short" in done.stdout


def test_paths_are_checked_before_the_log_is_read(tmp_path: Path) -> None:
    with closing(Shell(tmp_path)) as shell:
        done = shell.run("audit", "--delivered", "none", "--url", "postgresql://localhost:1/x")
        assert (done.code, done.stderr) == (2, "eventlog: none: no such file or folder\n")
        (tmp_path / "documents").mkdir()
        done = shell.run("audit", "--delivered", "documents")
        assert (done.code, done.stderr.partition("?")[0]) == (2, "eventlog: which log")


def documents(log: AuditedLog) -> dict[str, Path]:
    """Return the files in the order of their numbers, by the names of their documents."""
    return {path.stem.partition("-")[2]: path for path in sorted(log.documents.glob("*.xml"))}


def swap(log: AuditedLog) -> None:
    first, second = (documents(log)[name] for name in ("3-3", "4-4"))
    texts = first.read_bytes(), second.read_bytes()
    first.write_bytes(texts[1])
    second.write_bytes(texts[0])


def repeat_with_another_value(log: AuditedLog) -> None:
    copy = log.documents / "000000000000099-99-99.xml"
    copy.write_bytes(documents(log)["3-3"].read_bytes().replace(b"John", b"Joan"))


def name_another_object(log: AuditedLog) -> None:
    path = documents(log)["8-8"]
    path.write_bytes(path.read_bytes().replace(b"idu=1,", b"idu=3,"))


def turn_into_a_delete(log: AuditedLog) -> None:
    path = documents(log)["7-7"]
    path.write_bytes(path.read_bytes().replace(b"delete", b"add"))


CORRUPTIONS: dict[str, tuple[Callable[[AuditedLog], object], list[tuple[str, int]]]] = {
    "a deleted document": (lambda log: documents(log)["4-4"].unlink(), [("accounted", 4)]),
    "a deleted document of two rows": (lambda log: documents(log)["1-2"].unlink(), [("accounted", 1)]),
    "two documents swapped": (swap, [("in_order", 3)]),
    "one twice with another content": (repeat_with_another_value, [("content", 3), ("one_content", 3)]),
    "one of another object": (name_another_object, [("accounted", 8), ("explained", 8)]),
    "another operation": (turn_into_a_delete, [("explained", 7), ("content", 7)]),
    "a letter changed to warning": (
        lambda log: log.change("update eventlog set status = 'W' where record_id = 4"),
        [("answered", 4)],
    ),
    "a letter changed to new": (
        lambda log: log.change("update eventlog set status = 'N' where record_id = 8"),
        [("answered", 8)],
    ),
    "a letter changed to error": (
        lambda log: log.change("update eventlog set status = 'E' where record_id = 3"),
        [("answered", 3)],
    ),
    "a letter that is none": (
        lambda log: log.change("update eventlog set status = 'X' where record_id in (4, 8)"),
        [("answered", 4)],
    ),
    "no letter": (
        lambda log: log.change("update eventlog set status = ' ' where record_id = 7"),
        [("answered", 7)],
    ),
    "a row gone": (
        lambda log: log.change("delete from eventlog where record_id = 3"),
        [("explained", 3)],
    ),
    "a row of an insert gone": (
        lambda log: log.change("delete from eventlog where record_id = 2"),
        [("accounted", 1), ("explained", 2)],
    ),
    "a row that was never sent": (
        lambda log: log.change(
            "insert into eventlog (status, event_type, table_name, table_key) values ('S', 4, 'usr', 'idu=9')"
        ),
        [("accounted", 9)],
    ),
}


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_each_corruption_is_named_at_its_row(kept_log: AuditedLog, corruption: str) -> None:
    corrupt, expected = CORRUPTIONS[corruption]
    kept_log.restore()
    corrupt(kept_log)
    assert kept_log.broken() == expected


def test_the_page_for_people_names_place_and_remedy(kept_log: AuditedLog) -> None:
    kept_log.restore()
    documents(kept_log)["4-4"].unlink()
    page = kept_log.audit(code=1)
    assert page.splitlines()[:5] == [
        "8 rows (S 8), 2 objects, 5 delivered events",
        "broken    every row is accounted for: once at row 4 of usr idu=1",
        "          it is S, and no document contains it",
        "          look for the document; if it is lost, `eventlog resync TABLE` sends the present rows",
        "holds     nothing was delivered that no row explains",
    ]
    assert page.splitlines()[-1].startswith("digest ")


def test_the_receipt_of_an_object(kept_log: AuditedLog) -> None:
    kept_log.restore()
    lines = kept_log.audit("--object", "USR", "idu=2").splitlines()
    times = re.compile(r" [0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:.]+ ")
    assert [times.sub("", line) for line in lines] == [
        "usr idu=2",
        "  row 5  type 1  fname  S  in eventlog:5-6:e96f71a6",
        "  row 6  type 1  lname  S  in eventlog:5-6:e96f71a6",
        "  row 7  type 4  S  in eventlog:7",
        "  event eventlog:5-6:e96f71a6  rows 5, 6, document 5-6, answered",
        "  event eventlog:7  row 7, document 7-7, answered",
        "  000000000000004-5-6.xml  add  eventlog:5-6:e96f71a6  answered success",
        "  000000000000005-7-7.xml  delete  eventlog:7  answered success",
        "  now  the table does not have it",
    ]


@pytest.mark.slow("it judges a log of 100 000 rows")
@pytest.mark.parametrize("moment", ["rows are read", "parts are judged", ""])
def test_an_audit_that_is_stopped_leaves_nothing(tmp_path: Path, moment: str) -> None:
    header = ROWS.partition("\n")[0]
    rows = (f"{n},S,6,2025-03-23,hr,usr,idu={n},,," for n in range(1, 100_001))
    (tmp_path / "log.csv").write_text("\n".join((header, *rows)))
    (tmp_path / "none.xml").write_text("")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    words = ("audit", "log.csv", "--delivered", "none.xml", "--without-contents")
    terminal = Terminal(tmp_path, *words, variables={"TMPDIR": str(temporary)})
    if moment:
        terminal.read_until(moment.encode())
        terminal.process.send_signal(signal.SIGINT)
    terminal.read_until(None)  # until no process has the terminal any more
    assert terminal.close() == (130 if moment else 1)
    assert [*temporary.iterdir()] == []
    counts = [
        (int(done), int(total)) for done, total in re.findall(rb"(\d+) of (\d+) parts", terminal.written)
    ]
    assert counts == sorted(counts)
    assert moment or counts[-1] == (128, 128)
    assert moment or b"100,000 rows are read" in terminal.written
