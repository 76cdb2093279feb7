"""A standby takes over: without the slot the mode stops loudly and its remedy works, with it all goes on."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from eventlog.embedded import FAST, Server, embedded_postgres, programs
from eventlog.sql.connect import connect
from tests.kit.databases import LOGICAL
from tests.kit.support import until
from tests.slot.rig import Copy, SlotWorld, life, once, rows_of, slot_world

pytestmark = [pytest.mark.quick, pytest.mark.cold, pytest.mark.slow("starts two servers")]

SETTINGS = FAST | LOGICAL | {"max_connections": "50"}
SYNCHRONIZED = {
    "sync_replication_slots": "on",
    "hot_standby_feedback": "on",
    "primary_slot_name": "standby",
}
_READY = "select count(*) from pg_replication_slots where synced and not temporary"


@contextmanager
def standby_of(primary: Server, settings: Mapping[str, str]) -> Iterator[Server]:
    """Start a standby of a server, from a copy of its data."""
    url = make_url(primary.url)
    address = f"host={url.query['host']} user={url.username} password={url.password} dbname=postgres"
    with tempfile.TemporaryDirectory(prefix="eventlog-standby-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        backup = ("pg_basebackup", "-D", f"{folder}/data", "-d", address, "-R", "--checkpoint=fast")
        subprocess.run([programs() / backup[0], *backup[1:]], check=True, capture_output=True)
        (folder / "eventlog-embedded").write_text(f"{url.password}\n")
        owner = primary.folder.stat()
        for path in (folder, *folder.rglob("*")):
            shutil.chown(path, owner.st_uid, owner.st_gid)
        with embedded_postgres(folder, {**SETTINGS, **settings}) as server:
            yield server


class Pair:
    """A primary with a world and its standby, which can take over."""

    def __init__(self, primary: Server, standby: Server, world: SlotWorld) -> None:
        self._primary = primary
        self.world = world
        url = make_url(standby.url).set(database=world.engine.url.database)
        self.successor = SlotWorld(connect(url), world.log.dialect)

    def take_over(self) -> None:
        """Kill the primary once the standby has what it committed, and promote the standby."""
        end = self.world.value("select pg_current_wal_lsn()::text")
        replayed = f"select pg_last_wal_replay_lsn() >= '{end}'::pg_lsn"
        until(lambda: self.successor.value(replayed))
        self._primary.kill()
        self.successor.run("select pg_promote()")


@contextmanager
def pair(settings: Mapping[str, str]) -> Iterator[Pair]:
    with embedded_postgres(settings=SETTINGS) as primary:
        url = make_url(primary.url)
        with slot_world("failover", url) as world:
            world.run("select pg_create_physical_replication_slot('standby', true)")
            with standby_of(primary, settings) as standby:
                servers = Pair(primary, standby, world)
                try:
                    yield servers
                finally:
                    servers.successor.engine.dispose()
                    primary.kill()
                    primary.start()  # its database is dropped
                    world.engine.dispose()


def _change(world: SlotWorld) -> None:
    world.run("delete from usr where idu = 1", "update usr set fname = 'June'", "insert into usr values (3)")


def test_a_standby_without_the_slot_stops_loudly_and_install_mends_it() -> None:
    copy = Copy()
    with pair({}) as servers:
        servers.world.fill()
        servers.world.run("insert into usr values (1, 'Jack', 'Frost'), (2, 'Jane', 'Doe')")
        once(servers.world, copy)
        _change(servers.world)
        servers.take_over()
        world, before = servers.successor, dict(copy.rows)
        with life(world, copy) as publisher:
            publisher.cycle()
            why = publisher.filler.unread["public.usr"]
        assert "there is no slot" in why
        assert "`eventlog install --mode slot` makes it again" in why
        assert copy.rows == before
        assert any("differed and were logged" in line for line in world.fill())
        world.run("insert into usr values (4, 'later')")
        with life(world, copy) as publisher:
            publisher.cycle()
            assert publisher.filler.unread == {}
        assert copy.rows == rows_of(world)


def _advance(world: SlotWorld, copy: Copy) -> bool:
    """Let the slot move on, because a standby keeps it only from its own beginning on."""
    world.run("select pg_log_standby_snapshot()", "update usr set lname = lname")
    once(world, copy)
    return True


@pytest.mark.long  # a standby follows and takes over
def test_a_standby_that_keeps_the_slot_loses_and_doubles_nothing() -> None:
    copy = Copy()
    with pair(SYNCHRONIZED) as servers:
        servers.world.fill()
        servers.world.run("insert into usr values (1, 'Jack', 'Frost'), (2, 'Jane', 'Doe')")
        once(servers.world, copy)
        until(lambda: _advance(servers.world, copy) and servers.successor.value(_READY), pause=0.2)
        _change(servers.world)
        servers.take_over()
        world = servers.successor
        before = len(world.logged())
        with life(world, copy) as publisher:
            publisher.cycle()
            assert publisher.filler.unread == {}
        assert copy.rows == rows_of(world)
        assert [kind for kind, *_ in world.logged()[before:]] == [4, 6, 5]
