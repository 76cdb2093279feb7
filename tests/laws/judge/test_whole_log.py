"""The second reading on a log in a database: it names what no receipt can know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from eventlog.audit.delivered import DocumentFiles
from eventlog.core.identity import ObjectName
from eventlog.sql.capture.track import track
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.relation import Choice
from eventlog.sql.schema import migrate
from tests.kit.commands import Shell
from tests.kit.databases import Database
from tests.kit.statements import run_statements
from tests.laws.judge.whole_log import breaches_of_log

pytestmark = pytest.mark.quick

CHANGES = (
    "insert into usr values (1, 'Jack', 'Frost')",
    "update usr set fname = 'John' where idu = 1",
    "insert into usr values (2, 'Eve', 'Snow')",
    "delete from usr where idu = 2",
)


class PublishedLog:
    """A log whose documents are in a folder."""

    def __init__(self, database: Database, shell: Shell, folder: Path) -> None:
        self.engine, self.log = database.engine(), Log(database.dialect)
        self.store = Store(self.engine, self.log)
        self._documents = folder / "documents"
        migrate.install(self.engine, self.log)
        run_statements(
            self.engine,
            "create table usr (idu integer primary key, fname varchar(64), lname varchar(64))",
        )
        track(self.engine, self.log, "usr", Choice(1, 2))
        url = database.url.render_as_string(hide_password=False)
        words = ("run", "--once", "--allow-loopback", "--sink", "files", "--max-changes", "1", "--url", url)
        for change in CHANGES:
            run_statements(self.engine, change)
            assert shell.run(*words).code == 0

    def breaches(self, present: dict[ObjectName, bytes] | None = None) -> list[tuple[str, int]]:
        documents = DocumentFiles(self._documents).documents()
        log_breaches = breaches_of_log(self.store, self.engine, documents, present)
        return [(breach.law.name, breach.record_id) for breach in log_breaches]


@pytest.fixture
def published(database: Database, tmp_path: Path) -> Iterator[PublishedLog]:
    with closing(Shell(tmp_path)) as shell:
        log = PublishedLog(database, shell, tmp_path)
        yield log
        log.engine.dispose()


def test_what_was_published_is_as_specified_until_a_row_is_another_one(published: PublishedLog) -> None:
    assert published.breaches() == []
    assert published.breaches({("usr", "idu=1"): present_row("John")}) == []
    assert published.breaches({("usr", "idu=1"): present_row("Joan")}) == [("SAME_STATE", 3)]
    log = published.log.names()["log"]  # a receipt cannot know that a row is another one now
    run_statements(published.engine, f"update {log} set new_value = 'Joan' where record_id = 3")
    assert published.breaches() == [("CONTENT", 3)]


def present_row(fname: str) -> bytes:
    """Return the present row of an object as an add."""
    values = "".join(
        f'<add-attr attr-name="{name}"><value type="string">{text}</value></add-attr>'
        for name, text in (("fname", fname), ("lname", "Frost"))
    )
    association = "<association>idu=1,table=usr</association>"
    return f'<add class-name="usr" event-id="present:0">{association}{values}</add>'.encode()
