"""A MariaDB that keeps the names of tables without their case, as Windows and some operators have it."""

from __future__ import annotations

import pytest

from eventlog.sql.connect import connect
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.schema import migrate
from tests.world.killable import killable_mariadb

pytestmark = pytest.mark.quick


@pytest.mark.long
def test_one_leads_however_publishers_write_the_name_of_the_log() -> None:
    with killable_mariadb("--lower-case-table-names=1") as (_, database):
        engine = connect(database.url)
        migrate.install(engine, Log(database.dialect))
        leader = Store(engine, Log(database.dialect)).lead("first")
        assert leader is not None
        for other in (Log(database.dialect, "EventLog"), Log(database.dialect, schema="PROOF")):
            store = Store(engine, other)
            assert store.lead("second") is None
            holder = store.holder()
            assert holder is not None
            assert holder.publisher
        leader.close()
        engine.dispose()
