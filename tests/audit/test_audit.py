"""`eventlog audit`: a log and what a folder has of it; each corruption is named at its row."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lxml import etree
from markupsafe import escape
from sqlalchemy import text
from sqlalchemy.engine import Engine

from eventlog.audit import on_record
from eventlog.audit.audit_report import Law
from eventlog.audit.on_record import read_facts
from eventlog.embedded import Server
from eventlog.publisher.monitor import Monitor
from eventlog.sql.capture.track import track, untrack
from eventlog.sql.log.log_record import NoticeKind
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.relation import Choice
from eventlog.sql.schema import migrate
from eventlog.status.log_status import read_log_status
from tests.kit.commands import Done, Shell
from tests.kit.databases import EMBEDDED, Database, server_url, temporary_database
from tests.kit.logs import metrics_text

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

    def call(self, *words: str) -> Done:
        return self._shell.run(*words, "--url", self._url)

    def run(self, *words: str) -> None:
        done = self.call(*words)
        assert done.code == 0, done.stderr

    def audit(self, *words: str, code: int = 0) -> Any:
        done = self.call("audit", "--allow-loopback", "--delivered", str(self.documents), *words)
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


def test_the_rows_of_a_log_are_read_chunk_by_chunk(
    kept_log: AuditedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size in (1, 3, 4, 8, 9):
        monkeypatch.setattr(on_record, "_CHUNK", size)
        with Store(kept_log.engine, kept_log.log).snapshot() as snapshot:
            assert on_record.read_log(snapshot).ids.tolist() == [*range(1, 9)]


def test_a_log_is_accounted_for(audited_log: AuditedLog) -> None:
    report = audited_log.audit("--json")
    assert (report["rows"], report["events"], report["not_judged"]) == (8, 6, 0)
    assert [law["breaches"] for law in report["laws"]] == [0] * len(report["laws"])
    assert audited_log.audit("--json")["digest"] == report["digest"]
    audited_log.change("update usr set fname = 'Joe' where idu = 1")
    pending = audited_log.audit("--json")
    assert pending["letters"] == {"N": 1, "S": 8}
    assert pending["digest"] != report["digest"]


def test_documents_and_tables_have_one_state(audited_log: AuditedLog) -> None:
    assert audited_log.audit("--state", "--json")["rows"] == 8
    corrupt(documents(audited_log)["8-8"], b"Doe", b"Poe")
    assert audited_log.broken("--state") == [("delivered", 8), ("explained", 8), ("same_state", 8)]
    corrupt(documents(audited_log)["8-8"], b"Poe", b"Doe")
    untrack(audited_log.engine, audited_log.log, "usr")
    audited_log.change("delete from usr")
    assert audited_log.broken("--state", "--sync-tables", "usr") == [("same_state", 8)]
    audited_log.change("delete from eventlog")
    assert audited_log.broken() == [("accounted", 1)]


def test_rows_of_a_child_table_are_part_of_the_state(audited_log: AuditedLog) -> None:
    audited_log.change("create table usr_phone (idu integer references usr, phoneno varchar(20))")
    audited_log.run("track", "usr", "--insert", "1", "--update", "2", "--child", "usr_phone.phoneno")
    audited_log.change("insert into usr_phone values (1, '555'), (1, '[1]'), (1, null)")
    audited_log.publish()
    tables = ("--sync-tables", "usr usr_phone")
    report = audited_log.audit("--state", "--json", *tables)
    assert [law["breaches"] for law in report["laws"]] == [0] * len(report["laws"])
    untrack(audited_log.engine, audited_log.log, "usr")
    audited_log.change("update usr_phone set phoneno = '556' where phoneno = '555'")
    assert audited_log.broken("--state", *tables) == [("same_state", 10)]


def test_an_object_that_is_there_and_never_left_is_named(audited_log: AuditedLog) -> None:
    """Log a row before its object is there, and let the object come without a row."""
    columns = "event_type, perpetrator, table_name, table_key"
    audited_log.change(f"insert into eventlog ({columns}) values (5, null, 'usr', 'idu=3')")
    audited_log.publish()
    assert audited_log.audit("--state", "--json")["letters"] == {"S": 9}
    untrack(audited_log.engine, audited_log.log, "usr")
    audited_log.change("insert into usr values (3, 'Ann', 'Lee')")
    assert audited_log.broken("--state", "--sync-tables", "usr") == [("same_state", 9)]


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
        assert read_facts(snapshot.record()).waiting == {9}


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
        "update eventlog set perpetrator = 'idm' where record_id = 9",
    )
    idm = ("--no-allow-loopback", "--driver-user", "idm")
    audited_log.publish(*idm)
    driver = (*idm, "--state")
    assert audited_log.audit(*driver, "--json")["laws"][-1]["judged"]
    audited_log.run("purge", "--older-than", "0s", "--letters", "S")
    assert "rows of the driver itself may be among the deleted ones" in audited_log.audit(*driver)
    assert audited_log.broken("--state") == [("same_state", 8)]  # with allow-loopback it was to be sent


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
    assert "in_order" in dict(audited_log.broken())
    record.write_text("".join(f"\n{name} out\n" for name in names[2:]))
    assert audited_log.audit(code=2) == ""


def test_cleared_values_skips_and_names_without_numbers_are_read(audited_log: AuditedLog) -> None:
    audited_log.change("update usr set fname = null where idu = 1")  # row 9
    audited_log.publish()
    audited_log.change("update usr set lname = 'Roe' where idu = 1")  # row 10
    audited_log.publish()
    audited_log.change("insert into usr (idu, lname) values (3, 'Joke')")  # row 11
    audited_log.run("skip", "11", "--because", "a joke")
    audited_log.audit("--state")
    assert re.search(r"  skip  20[-0-9 :]+  by .+: row 11", audited_log.audit("--object", "usr", "idu=3"))
    names = [*documents(audited_log)]
    for name, path in documents(audited_log).items():
        path.rename(audited_log.documents / f"{name}.xml")
    record = audited_log.documents / ".eventlog" / "record"
    record.write_text("".join(f"\n{name} out\n" for name in names))
    audited_log.audit("--state")  # 10-10 is before 3-3 by its name


@pytest.mark.parametrize(("first", "second"), [("1-2", "3-3"), ("4-4", "8-8")])
def test_two_documents_of_an_object_in_each_others_places_are_out_of_order(
    kept_log: AuditedLog, first: str, second: str
) -> None:
    kept_log.restore()
    paths = documents(kept_log)
    contents = paths[first].read_bytes(), paths[second].read_bytes()
    for name, content in zip((second, first), contents, strict=True):
        paths[name].write_bytes(content)
    assert [law for law, _ in kept_log.broken()] == ["in_order"]


def test_each_letter_that_is_none_is_named(kept_log: AuditedLog) -> None:
    for letter in (" ", "X", "?"):
        kept_log.restore()
        kept_log.change(f"update eventlog set status = '{letter}' where record_id in (3, 7)")
        assert kept_log.broken() == [("answered", 3)]


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


ALTERED = ("delivered", "explained")
CORRUPTIONS: dict[str, tuple[Callable[[AuditedLog], object], list[tuple[str, int]]]] = {
    "a deleted document": (lambda log: documents(log)["4-4"].unlink(), [("delivered", 4)]),
    "a deleted document of two rows": (lambda log: documents(log)["1-2"].unlink(), [("delivered", 1)]),
    "two documents swapped": (swap, [("in_order", 3)]),
    "one twice with another content": (repeat_with_another_value, [("explained", 3)]),
    "one of another object": (name_another_object, [(law, 8) for law in ALTERED]),
    "another operation": (turn_into_a_delete, [(law, 7) for law in ALTERED]),
    "an emptied document": (
        lambda log: documents(log)["4-4"].write_bytes(b""),
        [("delivered", 4)],
    ),
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
        [("accounted", 3)],
    ),
    "a row of an insert gone": (
        lambda log: log.change("delete from eventlog where record_id = 2"),
        [("accounted", 2)],
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


def test_the_page_for_people_names_place_and_remedy(kept_log: AuditedLog, tmp_path: Path) -> None:
    kept_log.restore()
    documents(kept_log)["4-4"].unlink()
    page = kept_log.audit("-o", str(tmp_path / "report.html"), code=1)
    assert page.splitlines()[:5] == [
        "8 rows (S 8), 5 delivered events",
        "holds     every row is in an event on record, or has its reason there",
        "broken    what is on record as sent is at the receiver, byte for byte: once at row 4 of usr idu=1",
        "          what left of its event is not at the receiver",
        f"          {Law.DELIVERED.remedy}",
    ]
    written = (tmp_path / "report.html").read_text()
    *lines, digest = page.splitlines()
    for words in (digest.removeprefix("digest "), *(line[10 if "  " in line else 0 :] for line in lines)):
        assert escape(words.strip()) in written
    assert not re.findall("(?:href|src)=(?!.#content)|url\\(|@import|http", written)
    assert kept_log.audit("-o", "missing/report.html", code=2) == ""
    assert kept_log.audit("-o", "report.html", "--object", "usr", "idu=2", code=2) == ""


def test_a_document_that_is_cut_is_reported(kept_log: AuditedLog) -> None:
    kept_log.restore()
    path = documents(kept_log)["4-4"]
    path.write_bytes(path.read_bytes()[:-60])
    assert "document 1 (byte 0) cannot be read: the document is cut short" in kept_log.audit(code=1)


def test_the_same_xml_in_another_spelling_is_a_note(kept_log: AuditedLog) -> None:
    """Write it as a receiver does that keeps documents in canonical form, and with white space between."""
    kept_log.restore()
    canonical, spaced = (documents(kept_log)[name] for name in ("1-2", "3-3"))
    canonical.write_bytes(etree.tostring(etree.fromstring(canonical.read_bytes()), method="c14n"))
    tree = etree.fromstring(spaced.read_bytes())
    etree.indent(tree)
    spaced.write_bytes(etree.tostring(tree, encoding="utf-16"))
    report = kept_log.audit("--state", "--json")
    assert (report["spelled_anew"], report["events"]) == (1, 6)
    corrupt(canonical, b"Jack", b"Jacky")
    assert kept_log.broken() == [("delivered", 1), ("explained", 1)]


@pytest.mark.parametrize("delivered", ["log.csv", "folder", "log.parquet", "empty.gz", "other.sqlite"])
def test_what_holds_no_documents_is_refused(tmp_path: Path, delivered: str) -> None:
    (tmp_path / "log.csv").write_text("record_id")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "log.csv").write_text("record_id")
    pq.write_table(pa.table({"record_id": [1]}), tmp_path / "log.parquet")
    (tmp_path / "empty.gz").write_bytes(gzip.compress(b"<html><body/></html>"))
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as file:
        file.execute("create table something (n integer)")
    with closing(Shell(tmp_path)) as shell:
        done = shell.run("audit", "--delivered", delivered, "--url", "postgresql://localhost:1/x")
    assert (done.code, done.stdout) == (2, ""), done
    no_archive = "is not a receiver's file, because it does not begin with its version: name another file\n"
    assert (no_archive if "sqlite" in delivered else f"{delivered} holds no documents") in done.stderr


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
