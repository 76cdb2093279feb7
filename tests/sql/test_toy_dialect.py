"""Try the steps of docs/contribute/dialects.md with a PostgreSQL that uses no more than it must."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from eventlog.core.entry import Letter
from eventlog.embedded import Server
from eventlog.sql import dialects
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.connect import connect, dialect_at
from eventlog.sql.log.leader_transaction import PAUSED, PickUpEnded, Precondition
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.postgresql import POSTGRESQL
from eventlog.sql.relation import Choice
from eventlog.sql.schema.migrate import install_script
from eventlog.sql.trigger_rows import triggers_of
from tests.kit.databases import Database
from tests.kit.logs import leading
from tests.sql.samples import subject
from tests.sql.test_letters import DEMANDS, refuse_what_is_demanded
from tests.sql.toy import made_in, supported
from tests.sql.tracked import Logged, tracked
from tests.world.world import World

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]
SUITE = ("tests/sql/test_install.py", "tests/sql/test_store.py", "tests/publisher/test_cycle.py")


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[Dialect]:
    """The dialect of the page, which eventlog supports meanwhile."""
    with supported(made_in(tmp_path)) as dialect:
        yield dialect


def test_its_triggers_are_written(toy: Dialect) -> None:
    theirs = subject("postgresql", Choice())
    ours = replace(theirs, log=replace(theirs.log, dialect=toy))
    assert [trigger.name for trigger in triggers_of(ours)] == [t.name for t in triggers_of(theirs)]


def test_a_word_of_the_schema_is_its_own(toy: Dialect) -> None:
    schema = replace(toy.schema, words={**toy.schema.words, "type_long": "longer"})
    assert "cycle_facts longer," in install_script(Log(replace(toy, schema=schema)))
    assert "cycle_facts text," in install_script(Log(toy))


def test_the_server_is_found_by_its_scheme_and_a_change_is_logged(toy: Dialect, postgres: Database) -> None:
    url = postgres.url.set(drivername="toy")
    engine = connect(url)
    assert dialect_at(engine) is toy
    assert dialects.dialect_of(postgres.engine()) is POSTGRESQL
    engine.dispose()
    with tracked(Database("toy", url.set(drivername="toy+psycopg"), toy)) as log:
        log.run("create table usr (idu integer primary key, fname text)")
        log.track("usr")
        assert log.after("insert into usr values (1, 'Jack')") == [Logged(5, "idu=1")]


def test_in_a_pause_documents_do_not_leave_by_the_common_statements(toy: Dialect, postgres: Database) -> None:
    with tracked(Database("toy", postgres.url.set(drivername="toy+psycopg"), toy)) as log:
        store = Store(log.engine, log.log)
        with store.admin() as admin:
            admin.pause("ann", "the receiver moves")
        with leading(store) as epoch:
            with (
                pytest.raises(PickUpEnded, match=PAUSED),
                store.as_leader(epoch, Precondition(leaves=True)) as work,
            ):
                work.finish({Letter.SUCCESS: [1]})
            with store.as_leader(epoch) as work:
                work.finish({Letter.SUCCESS: [1]})


def test_what_a_leader_demands_holds_by_the_common_statements(toy: Dialect, postgres: Database) -> None:
    with tracked(Database("toy", postgres.url.set(drivername="toy+psycopg"), toy)) as log:
        world = World(log.engine, toy)
        log.run("create table usr (idu integer primary key)")
        for reason in DEMANDS:
            world.clear()
            refuse_what_is_demanded(world, reason)


@pytest.mark.long
def test_it_passes_the_conformance_suite(embedded: Server) -> None:
    """Run as the page does, in a process that supports the toy from its start."""
    url = make_url(embedded.url).set(drivername="toy+psycopg").render_as_string(hide_password=False)
    suite = ("-p", "tests.sql.toy", "--tiers", "all", "-m", "conformance", "-q", "-n", "0", *SUITE)
    done = subprocess.run(
        (sys.executable, "-m", "pytest", *suite),
        cwd=ROOT,
        env=os.environ | {"EVENTLOG_TEST_URLS": url},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
