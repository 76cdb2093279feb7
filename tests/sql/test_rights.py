"""The printed grants suffice: a publisher that is neither owner nor superuser does its work with them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator

import pytest
from sqlalchemy.engine import URL

from eventlog.config import Config
from eventlog.publisher import Publisher, PublisherSettings
from eventlog.publishing.explaining import explain_store
from eventlog.publishing.opening import opened
from eventlog.publishing.session import make_reader
from eventlog.sql import migrate
from eventlog.sql.upkeep import Which
from tests.databases import Database
from tests.publisher.world import Receiver
from tests.sql.tracked import Tracked

MAKE = {True: "create role {0} login password '{1}'", False: "create user {0} identified by '{1}'"}
DROP = {True: ("drop owned by {0}", "drop role {0}"), False: ("drop user {0}",)}


@pytest.fixture
def publisher(tracking: Tracked, database: Database) -> Iterator[URL]:
    """A user with the printed grants, and the right to read the one table."""
    if tracking.dialect.lock_is_transactional:
        pytest.skip("users of Oracle are made in another way")
    name, password = f"pub_{secrets.token_hex(4)}", secrets.token_hex(12)
    postgres = tracking.dialect.statement_triggers
    tracking.run(MAKE[postgres].format(name, password))
    printed = migrate.grants_script(tracking.log, name)
    grants = re.findall(r"^grant .*?(?=;$)", printed, re.MULTILINE)
    tracking.run("create table usr (idu integer primary key, fname varchar(64))")
    tracking.track("usr")
    tracking.run(*grants, f"grant select on usr to {name}")
    yield database.url.set(username=name, password=password)
    tracking.run(*(statement.format(name) for statement in DROP[postgres]))


def test_a_publisher_publishes_explains_and_looks_after_its_log(tracking: Tracked, publisher: URL) -> None:
    tracking.run("insert into usr values (1, 'Jack')")
    tracking.run("insert into eventlog (event_type, table_name, table_key) values (6, 'nowhere', 'k=1')")
    config = Config({"url": publisher.render_as_string(hide_password=False), "log_table": "eventlog"})
    with opened(config) as store:
        assert [found.entry.table_name for found, _ in explain_store(config, store)] == ["usr", "nowhere"]
        leader, receiver = store.lead("rights"), Receiver()
        assert leader is not None
        with leader:
            made = make_reader(config, store)
            Publisher(store, lambda: made, receiver, leader.epoch, 1, PublisherSettings()).cycle()
        assert receiver.objects == ["idu=1"]
        with store.upkeep() as upkeep:
            (failed,) = upkeep.failures(Which())
            assert upkeep.skip([failed.record_id], "nobody's") == 1
            assert upkeep.state().epoch == leader.epoch
            assert [count.status for count in upkeep.counts()] == ["S", "W"]
