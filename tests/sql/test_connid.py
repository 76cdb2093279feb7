"""ConnId's own framework and its ScriptedSQL connector read our queue by our scripts, and lose nothing.

They are fetched into the folder that EVENTLOG_PEERS names. The scripts are the same for every database:
EVENTLOG_TEST_LOGICAL_URL names a PostgreSQL on TCP, and EVENTLOG_TEST_URLS further servers.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.engine import URL, Engine, make_url

from bench.peers.server import peers_server
from eventlog.embedded import Server
from eventlog.sql.capture.readers import plan_no_reader, plan_reader
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.connect import connect
from eventlog.sql.dialects import dialect_of
from tests.kit import judges
from tests.kit.databases import AT_HAND, EMBEDDED, Database, server_url, temporary_database
from tests.kit.statements import run_statements
from tests.sql.test_replicated import LOGICAL
from tests.sql.test_rights import House, connector_grants

pytestmark = pytest.mark.servers

PROGRAM = Path(__file__).with_name("ConnIdReads.java")
SCRIPTS = Path(__file__).parents[2] / "examples" / "connid"
SECONDS = 6.0
LOGICAL_SERVER = "PostgreSQL on TCP"
TABLE = "create table usr (idu integer primary key, login varchar(20) not null unique, name varchar(40))"


JDBC = {
    "postgresql": ("org.postgresql.Driver", "jdbc:postgresql://{place}"),
    "mariadb": ("org.mariadb.jdbc.Driver", "jdbc:mariadb://{place}"),
    # the first password of a user goes to MySQL encrypted with its key
    "mysql": ("org.mariadb.jdbc.Driver", "jdbc:mariadb://{place}?allowPublicKeyRetrieval=true"),
}


@pytest.fixture(scope="module", params=[LOGICAL_SERVER, *(name for name in AT_HAND if name != EMBEDDED)])
def server(request: pytest.FixtureRequest, embedded: Server) -> Iterator[URL]:
    """Each server on TCP in turn."""
    if request.param != LOGICAL_SERVER:
        with server_url(request.param, embedded) as url:
            yield url
    elif named := os.environ.get("EVENTLOG_TEST_LOGICAL_URL"):
        yield make_url(named)
    else:
        with peers_server(LOGICAL) as url:
            yield url


@pytest.fixture
def engine(server: URL) -> Iterator[Engine]:
    with temporary_database("connid", server) as database:
        if database.dialect.name not in JDBC:
            pytest.skip(f"no driver of {database.dialect.title} is fetched")
        new_engine = connect(database.url)
        run_statements(new_engine, TABLE)
        with new_engine.connect() as connection:
            plan = plan_reader(connection, "connid", "usr", "login")
        plan.run(new_engine)
        yield new_engine
        new_engine.dispose()


class Framework:
    """The framework in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.attributes = self._line().split()

    def latest(self) -> int:
        self._ask("latest")
        return int(self._line())

    def sync(self, token: int, count: int = 1_000_000) -> list[list[str]]:
        """Return deltas after a token, at most so many: token, type, uid and name."""
        self._ask(f"{token} {count}")
        return [line.split(" ") for line in iter(self._line, "end")]

    def _ask(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")


@contextmanager
def framework(engine: Engine, user: URL | None = None) -> Iterator[Framework]:
    jars = judges.java("connid")
    bundle = next(jar for jar in jars if jar.endswith("-bundle.jar"))
    url = user or engine.url
    driver, address = JDBC[dialect_of(engine).name]
    place = address.format(place=f"{url.host}:{url.port}/{url.database}")
    words = [place, url.username or "", url.password or "", str(SCRIPTS), driver]
    silent = (
        "-Dorg.identityconnectors.common.logging.class=org.identityconnectors.common.logging.impl.NoOpLogger"
    )
    command = [
        "java",
        silent,
        "-cp",
        os.pathsep.join(jar for jar in jars if jar != bundle),
        str(PROGRAM),
        bundle,
    ]
    with subprocess.Popen(
        [*command, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Framework(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()


def test_deletes_and_transactions_that_commit_late_are_synchronised(engine: Engine) -> None:
    with framework(engine) as connid:
        assert connid.attributes == ["__NAME__", "idu", "login", "name"]
        begun = connid.latest()
        with engine.connect() as late:
            late.execute(text("insert into usr values (1, 'anne', 'Anne')"))
            run_statements(engine, "insert into usr values (2, 'bob', 'Bob')")
            first = connid.sync(begun)
            late.commit()
        assert [delta[1:] for delta in first] == [["CREATE_OR_UPDATE", "bob", "Bob"]]
        token = int(first[-1][0])
        assert [delta[1:] for delta in connid.sync(token)] == [["CREATE_OR_UPDATE", "anne", "Anne"]]
        run_statements(engine, "update usr set name = 'Anna' where idu = 1", "delete from usr where idu = 2")
        again = connid.sync(token)
        assert [delta[1:3] for delta in again] == [
            ["CREATE_OR_UPDATE", "anne"],
            ["CREATE_OR_UPDATE", "anne"],
            ["DELETE", "bob"],
        ]
        assert connid.sync(int(again[-1][0])) == []
        with engine.connect() as connection:
            assert connection.execute(text("select count(*) from usr_queue")).scalar() == 0
        assert connid.latest() == int(again[-1][0])


def write(engine: Engine, number: int, ends: float) -> None:
    """Insert objects and delete some of them, each once, so that nothing makes up for a loss."""
    dice = random.Random(number)
    for key in range(number, 1_000_000, 2):
        if time.monotonic() > ends:
            return
        with engine.begin() as connection:
            connection.execute(text(f"insert into usr values ({key}, 'u{key}', 'n{key}')"))
            time.sleep(dice.uniform(0, 0.02))  # some commit later than others that began after them
            if dice.random() < 0.1:
                connection.rollback()
        if dice.random() < 0.3:
            run_statements(engine, f"delete from usr where idu = {key}")


def test_whoever_restarts_at_any_token_beside_concurrent_commits_loses_nothing(engine: Engine) -> None:
    dice = random.Random(7)
    names: dict[str, str] = {}
    token = restarts = 0
    with framework(engine) as connid:
        ends = time.monotonic() + SECONDS
        writers = [threading.Thread(target=write, args=(engine, number, ends)) for number in range(2)]
        for writer in writers:
            writer.start()
        while (is_writing := any(writer.is_alive() for writer in writers)) or connid.sync(token):
            count = dice.choice((1, 2, 5, 1000)) if is_writing else 1000
            deltas = connid.sync(token, count)
            stop = dice.randrange(len(deltas) + 1) if is_writing and deltas else len(deltas)
            restarts += stop < len(deltas)
            for delta_token, kind, uid, name in deltas[:stop]:  # the others are lost with the process
                names[uid] = name if kind == "CREATE_OR_UPDATE" else "-"
                token = int(delta_token)
    with engine.connect() as connection:
        rows = connection.execute(text("select login, name from usr")).all()
        present = {row.login: row.name for row in rows}
    assert restarts > 3
    assert {uid: name for uid, name in names.items() if name != "-"} == present


def test_the_documented_rights_suffice(engine: Engine, tmp_path: Path) -> None:
    house = House(Database("connid", engine.url, dialect_of(engine)), tmp_path)
    with engine.connect() as connection:
        home = Catalogue(connection).home()
    grants = connector_grants(house, "midpoint")
    user = house.user("reader", *(re.sub(r"\bapp\b", home, grant) for grant in grants))
    try:
        with framework(engine, user) as connid:
            run_statements(
                engine,
                "insert into usr values (1, 'anne', 'Anne')",
                "insert into usr values (2, 'bob', 'Bob')",
            )
            deltas = connid.sync(connid.latest())
            assert [delta[2:] for delta in deltas] == [["anne", "Anne"], ["bob", "Bob"]]
            assert connid.latest() == int(deltas[0][0]) - 1
            assert connid.sync(int(deltas[-1][0])) == []
            assert connid.latest() == int(deltas[-1][0])
    finally:
        house.clean()


def test_a_queue_is_made_once_and_removed(engine: Engine) -> None:
    with engine.connect() as connection:
        assert plan_reader(connection, "connid", "usr", "login").statements == ()
        plan = plan_no_reader(connection, "connid", "usr")
    plan.run(engine)
    with engine.connect() as connection:
        names = [name for _, name, _ in Catalogue(connection).names(None)]
    assert names == ["usr"]
