"""A PostgreSQL with prepared transactions has no notifications, so the publisher looks by itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy.engine import make_url

from eventlog.embedded import FAST, embedded_postgres
from eventlog.files.signals import Signals
from eventlog.publisher.sleep import make_sleeper
from eventlog.sql.postgresql import POSTGRESQL
from tests.kit.databases import Database
from tests.sql.tracked import Tracked, tracked

pytestmark = [pytest.mark.quick, pytest.mark.cold]

AGES = 600.0  # seconds, which a test that passes does not sleep


@pytest.fixture
def preparing() -> Iterator[Tracked]:
    """A log on a server of its own, with a tracked table."""
    settings = FAST | {"max_prepared_transactions": "4"}
    with embedded_postgres(settings=settings) as server:
        url = make_url(server.url)
        with tracked(Database("prepares", url, POSTGRESQL)) as tracking:
            tracking.run("create table usr (idu integer primary key)")
            tracking.track("usr")
            yield tracking


def test_a_prepared_change_wakes_the_publisher_once_it_is_committed(preparing: Tracked) -> None:
    signals = Signals()
    bed = make_sleeper(signals, preparing.engine, preparing.log, wake_up=True)
    try:
        bed.announce()
        preparing.run("begin; insert into usr values (1); prepare transaction 'one'")
        assert not bed.sleep(0.05)
        with preparing.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("commit prepared 'one'")
        assert bed.sleep(AGES)
        bed.rise()
        assert not bed.sleep(0.05)
        signals.request_stop()
        assert bed.sleep(AGES)
    finally:
        bed.close()
