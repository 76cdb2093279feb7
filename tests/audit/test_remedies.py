"""The remedies that an audit prints for a state: run as they are, they make the receiver right."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from lxml import etree
from sqlalchemy.engine import Engine, create_engine, make_url

from eventlog.audit.delivered import DocumentFiles
from eventlog.embedded import Server
from tests.kit.commands import Done, Shell
from tests.kit.databases import EMBEDDED, temporary_database
from tests.kit.statements import run_statements, select_rows

pytestmark = pytest.mark.quick

Values = dict[str, str | None]
TABLE = "create table usr (idu integer primary key, fname varchar(64), lname varchar(64))"
FILLED = "insert into usr values (1, 'Jack', 'Frost'), (2, 'Eve', 'Snow')"
UPDATE, REMOVAL = "update usr set fname = 'Joe', lname = null where idu = 1", "delete from usr where idu = 1"
OUT = "--sink files --files-folder out"


@dataclass
class Site:
    """A database with a log, the table usr, and a folder of documents."""

    log: Engine
    shell: Shell
    source: Engine  # of the table
    variables: dict[str, str] = field(default_factory=dict)

    def sql(self, *statements: str) -> None:
        run_statements(self.source, *statements, autocommit=True)

    def without_triggers(self, *statements: str) -> None:
        run_statements(self.source, "set local session_replication_role = replica", *statements)

    def call(self, words: str) -> Done:
        address = self.log.url.render_as_string(hide_password=False)
        variables = {"EVENTLOG_URL": address, "EVENTLOG_ALLOW_LOOPBACK": "yes", **self.variables}
        return self.shell.run(*shlex.split(words), **variables)

    def audit(self) -> Done:
        return self.call("audit --state --delivered out")

    def calls(self, *commands: str) -> None:
        for words in commands:
            done = self.call(words)
            assert done.code == 0, (words, done)

    def publish(self) -> None:
        self.calls(f"run --once {OUT}")

    def tracked(self) -> None:
        """Fill the table, and publish it with triggers."""
        self.calls("track usr --insert 1 --update 2")
        self.sql(FILLED)
        self.publish()

    def compared(self) -> None:
        """Fill the table, and publish it by comparing."""
        self.variables |= {"EVENTLOG_PUBLICATION_MODE": "compare", "EVENTLOG_SYNC_TABLES": "usr"}
        self.sql(FILLED)
        self.publish()

    def begin_anew(self) -> None:
        """Take the present table for what the receiver has."""
        run_statements(self.log, "delete from eventlog_known")
        self.calls(f"run --once {OUT} --startup-option future")

    def rows(self) -> dict[str, Values]:
        """Return the objects of the table."""
        rows = select_rows(self.source, "select idu, fname, lname from usr")
        return {f"idu={idu}": {"fname": fname, "lname": lname} for idu, fname, lname in rows}

    def objects(self) -> dict[str, Values]:
        """Return what the documents make of each object at the receiver."""
        objects: dict[str, Values] = {}
        for document in DocumentFiles(self.shell.folder / "out").documents():
            for event in map(etree.fromstring, document.texts):
                key = str(event.findtext("association")).partition(",")[0]
                if event.tag == "delete":
                    objects.pop(key, None)
                    continue
                values = objects.setdefault(key, dict.fromkeys(("fname", "lname")))
                for attribute in event.iterfind("*[@attr-name]"):
                    new = [*attribute.iterfind("value"), *attribute.iterfind("add-value/value")]
                    values[str(attribute.get("attr-name"))] = new[0].text if new else None
        return objects


def update(site: Site) -> None:
    site.tracked()
    site.without_triggers(UPDATE)


def removal(site: Site) -> None:
    site.tracked()
    site.without_triggers(REMOVAL)


def never_left(site: Site) -> None:
    """Log a row before its object is there, and let the object come without a row."""
    site.tracked()
    columns = "event_type, perpetrator, table_name, table_key"
    site.sql(f"insert into eventlog ({columns}) values (5, null, 'usr', 'idu=3')")
    site.publish()
    site.without_triggers("insert into usr values (3, 'Ann', 'Lee')")


def deleted_and_there(site: Site) -> None:
    site.tracked()
    site.sql(REMOVAL)
    site.publish()
    site.without_triggers("insert into usr values (1, 'Ann', 'Lee')")


def several(site: Site) -> None:
    site.tracked()
    site.without_triggers("update usr set fname = 'Ann' where idu = 2", REMOVAL)


def kept_then_update(site: Site) -> None:
    site.tracked()
    site.calls("resync usr --compare")
    site.without_triggers(UPDATE)


def kept_then_gone(site: Site) -> None:
    site.tracked()
    site.calls("resync usr --compare")
    site.without_triggers(REMOVAL)


def kept_then_logged_and_gone(site: Site) -> None:
    """Let a row of the log explain to the comparison why the object differs."""
    site.tracked()
    site.calls("resync usr --compare")
    site.sql(UPDATE)
    site.publish()
    site.without_triggers(REMOVAL)


def update_then_kept(site: Site) -> None:
    update(site)
    site.calls("resync usr --compare")


def gone_then_kept(site: Site) -> None:
    removal(site)
    site.calls("resync usr --compare")


def kept_and_purged(site: Site) -> None:
    kept_then_update(site)
    site.calls("purge --older-than 0s --letters S")


def kept_and_deleted_from_log(site: Site) -> None:
    site.tracked()
    site.calls("resync usr --compare")
    site.variables |= {"EVENTLOG_DELETE_FROM_LOG": "yes"}
    site.without_triggers(UPDATE)


def by_slot(site: Site, statement: str) -> None:
    site.variables |= {"EVENTLOG_PUBLICATION_MODE": "slot", "EVENTLOG_SYNC_TABLES": "usr"}
    site.calls("install --mode slot")
    site.sql(FILLED)
    site.publish()
    (name,) = select_rows(site.log, "select pubname from pg_publication")[0]
    site.sql(
        f'alter publication "{name}" drop table usr', statement, f'alter publication "{name}" add table usr'
    )
    assert "eventlog resync public.usr --compare" in site.call(f"run --once {OUT}").stderr


def without_note(site: Site) -> None:
    """Let no one notice the gap, as if the row had another reason."""
    site.sql("delete from eventlog_notice where kind = 'gap'")


def update_in_gap(site: Site) -> None:
    by_slot(site, UPDATE)


def gone_in_gap(site: Site) -> None:
    by_slot(site, REMOVAL)


def update_past_slot(site: Site) -> None:
    by_slot(site, UPDATE)
    without_note(site)


def gone_past_slot(site: Site) -> None:
    by_slot(site, REMOVAL)
    without_note(site)


def compared_and_not_yet(site: Site) -> None:
    site.compared()
    site.sql(UPDATE)


def compared_and_not_yet_gone(site: Site) -> None:
    site.compared()
    site.sql(REMOVAL)


def compared_anew(site: Site) -> None:
    site.compared()
    site.sql(UPDATE)
    site.begin_anew()


def compared_anew_and_gone(site: Site) -> None:
    site.compared()
    site.sql(REMOVAL)
    site.begin_anew()


def elsewhere_anew(site: Site) -> None:
    site.sql("drop table usr")
    site.source = create_engine(f"sqlite:///{site.shell.folder / 'source.db'}")
    site.variables |= {"EVENTLOG_SOURCE_URL": str(site.source.url)}
    site.sql(TABLE)
    compared_anew(site)


RESYNC, COMPARE = "eventlog resync usr", "eventlog resync usr --compare"
RUN, RUN_RESYNC = "eventlog run --once --mode compare", "eventlog run --once --startup-option resync"
DELETE = (
    "insert into eventlog (event_type, perpetrator, table_name, table_key) values (4, null, 'usr', 'idu=1');"
)
SCENES: dict[Callable[[Site], None], list[str]] = {
    update: [RESYNC],
    removal: [DELETE],
    never_left: [RESYNC],
    deleted_and_there: [RESYNC],
    several: [DELETE, RESYNC],
    kept_then_update: [COMPARE],
    kept_then_gone: [COMPARE],
    kept_then_logged_and_gone: [COMPARE, DELETE],
    update_then_kept: [COMPARE, RESYNC],
    gone_then_kept: [DELETE],
    kept_and_purged: [RESYNC],
    kept_and_deleted_from_log: [RESYNC],
    update_in_gap: [COMPARE],
    gone_in_gap: [COMPARE],
    update_past_slot: [COMPARE, RESYNC],
    gone_past_slot: [DELETE],
    compared_and_not_yet: [RUN],
    compared_and_not_yet_gone: [RUN],
    compared_anew: [RUN, RESYNC],
    compared_anew_and_gone: [DELETE],
    elsewhere_anew: [RUN_RESYNC],
}  # the commands that are needed until all holds, in their order


@pytest.fixture(scope="module")
def template(embedded: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with temporary_database(EMBEDDED, make_url(embedded.url)) as database:
        engine = database.engine()
        site = Site(engine, Shell(tmp_path_factory.mktemp("template")), engine)
        site.sql(TABLE)
        site.calls("install")
        engine.dispose()
        yield str(database.url.database)


@pytest.fixture
def site(embedded: Server, template: str, shell: Shell) -> Iterator[Site]:
    with temporary_database(EMBEDDED, make_url(embedded.url), template=template) as database:
        engine = database.engine()
        new_site = Site(engine, shell, engine)
        yield new_site
        slots = "from pg_replication_slots where database = current_database()"
        run_statements(engine, f"select pg_drop_replication_slot(slot_name) {slots}")
        engine.dispose()
        new_site.source.dispose()


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
@pytest.mark.family
def test_the_remedies_of_an_audit_make_the_receiver_right(scene: Callable[[Site], None], site: Site) -> None:
    scene(site)
    assert site.objects() != site.rows()
    commands: list[str] = []
    while (done := site.audit()).code == 1:
        assert len(commands) < len(SCENES[scene]), (commands, done)
        assert done.stdout.count("broken") == 1, done
        remedies = re.findall("`([^`]+)`", done.stdout)
        commands.append(next(command for command in remedies if command not in commands))
        if commands[-1].startswith("insert"):
            run_statements(site.log, commands[-1])
        else:
            site.calls(
                commands[-1].removeprefix("eventlog ") + (f" {OUT}" if " run " in commands[-1] else "")
            )
        site.publish()
    assert done.code == 0, done
    assert [command.replace('"', "").replace("public.", "") for command in commands] == SCENES[scene]
    assert site.objects() == site.rows()


@pytest.mark.parametrize("lost", ["1-2", "5-5"])
def test_a_lost_document_is_missed_until_its_rows_are_purged(lost: str, site: Site) -> None:
    site.tracked()
    site.sql("update usr set fname = 'Joe' where idu = 1")
    site.publish()
    (path,) = (site.shell.folder / "out").glob(f"*-{lost}.xml")
    path.unlink()
    assert site.objects() != site.rows()
    remedies = re.findall("`([^`]+)`", site.audit().stdout)
    assert {*remedies} >= {"eventlog resync TABLE", "eventlog purge --older-than AGE"}
    site.calls("resync usr")
    site.publish()
    assert site.objects() == site.rows()
    done = site.audit()
    assert (done.code, done.stdout.count("broken")) == (1, 1)
    site.calls("purge --older-than 0s")
    assert site.audit().code == 0
    assert site.objects() == site.rows()


def test_a_comparison_without_a_kept_state_reports_that_nothing_was_logged(site: Site) -> None:
    update(site)
    done = site.call("resync usr --compare")
    assert (done.code, select_rows(site.log, "select count(*) from eventlog")) == (0, [(4,)])
    assert "usr: nothing was logged, because no state was kept to compare with" in done.stderr
    assert "`eventlog resync usr` logs all that the table has" in done.stderr
