"""The databases at hand: every conformance test runs on each of them, and asks the dialect, never its name.

An embedded PostgreSQL is always there. EVENTLOG_TEST_URLS names further servers, separated by commas. If a
Docker engine answers, containers are started. Missing databases are listed once, at the top of the run and at
its end; with EVENTLOG_TEST_ALL they are an error.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy.engine import URL, Engine, make_url

from eventlog.embedded import FAST, Server, embedded_postgres
from eventlog.sql import connect
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.dialects import DIALECTS, dialect_of
from eventlog.sql.names import Log
from eventlog.sql.schema import migrate
from tests.kit.warm import SESSIONS

EMBEDDED = "embedded PostgreSQL"
LOGICAL = {"wal_level": "logical", "max_replication_slots": "40", "max_wal_senders": "40"}


@dataclass(frozen=True)
class Database:
    """An empty database of one server, made for one test module."""

    name: str
    url: URL
    dialect: Dialect

    @property
    def address(self) -> str:
        """The URL with its password."""
        return self.url.render_as_string(hide_password=False)

    def engine(self, *connection_init: str) -> Engine:
        """Return an engine that keeps no connection: what a test sets in a session ends with it."""
        return connect.connect(self.url, connection_init)


def _from_environment() -> dict[str, URL]:
    named = os.environ.get("EVENTLOG_TEST_URLS", "")
    urls = [make_url(text.strip()) for text in named.split(",") if text.strip()]
    return {f"{DIALECTS[url.get_backend_name()].title} at {url.host}:{url.port}": url for url in urls}


def _docker_answers() -> bool:
    if "DOCKER_HOST" in os.environ:
        return True
    with socket.socket(socket.AF_UNIX) as attempt:
        return attempt.connect_ex("/var/run/docker.sock") == 0


_NAMED = _from_environment()
_CONTAINERS = ("PostgreSQL container", "MySQL container", "Oracle container")
_WITH_CONTAINERS = _docker_answers() or bool(os.environ.get("EVENTLOG_TEST_ALL"))
AT_HAND = (EMBEDDED, *_NAMED, *(_CONTAINERS if _WITH_CONTAINERS else ()))
PARAMETERS = [
    pytest.param(name, marks=() if name == EMBEDDED else (pytest.mark.servers, pytest.mark.conformance))
    for name in AT_HAND
]


def summary() -> str:
    """Return one line: what the tests run on, and what not."""
    missing = "" if _WITH_CONTAINERS else f"; no {', '.join(_CONTAINERS)}, for no Docker engine answers"
    return f"databases: {', '.join(AT_HAND)}{missing}"


@contextlib.contextmanager
def _container(name: str) -> Iterator[URL]:
    from testcontainers.community.mysql import MySqlContainer
    from testcontainers.community.oracle import OracleDbContainer
    from testcontainers.community.postgres import PostgresContainer

    makers: dict[str, Callable[[], Any]] = {
        "PostgreSQL container": lambda: PostgresContainer("postgres:13-alpine", driver="psycopg"),
        "MySQL container": lambda: MySqlContainer("mysql:8.4", dialect="pymysql", username="root"),
        "Oracle container": lambda: OracleDbContainer("gvenzl/oracle-free:slim"),
    }
    with makers[name]() as container:
        yield make_url(container.get_connection_url())


def own_ids(dialect: Dialect) -> str:
    """Return what lets an insert choose the record ids of a log that eventlog made."""
    return "overriding system value " if dialect.schema.sequence_hidden else ""


def server_url(name: str, embedded: Server) -> contextlib.AbstractContextManager[URL]:
    """Return the server of that name."""
    if name == EMBEDDED:
        return contextlib.nullcontext(make_url(embedded.url))
    if name in _NAMED:
        return contextlib.nullcontext(_NAMED[name])
    return _container(name)


@contextlib.contextmanager
def embedded_server() -> Iterator[Server]:
    settings = FAST | LOGICAL | {"max_connections": "100", "shared_buffers": "256MB"}
    settings |= {"scram_iterations": "1"}  # no one else reaches the server, and a password is 192 random bits
    with embedded_postgres(settings=settings) as server:
        url = make_url(server.url)
        with connect.connect(url).begin() as connection:
            connection.exec_driver_sql(f"alter role {url.username} password '{url.password}'")
            connection.exec_driver_sql("alter database template0 allow_connections true")
        connect.connect(url.set(database="template0")).connect().close()  # its copies know their catalogue
        with connect.connect(url).begin() as connection:
            connection.exec_driver_sql("alter database template0 allow_connections false")
        yield server


@cache
def _owner(url: URL) -> Engine:
    """Return an engine that makes and drops databases; its connection stays until the next one is made."""
    owner = connect.connect(url, keep_open=1)
    connect.dialect_at(owner)
    return owner


@contextlib.contextmanager
def temporary_database(
    name: str, url: URL, options: str = "", template: str = "template0"
) -> Iterator[Database]:
    """Make a database on that server (a schema of its own on Oracle), and drop it afterwards.

    On PostgreSQL it is a copy of `template`; elsewhere it is empty.
    """
    owner = _owner(url)
    dialect = dialect_of(owner)
    place = f"t_{secrets.token_hex(6)}"
    make, drop, reach = PLACES[dialect.name]
    SESSIONS.end(template)  # no one may be connected to what is copied
    copies_files = dialect.name == "postgresql" and (owner.dialect.server_version_info or ()) >= (15,)
    strategy = " strategy file_copy" if copies_files else ""  # half the CPU of copying by the server's log
    _run(owner, (make[0] + strategy + options, *make[1:]), place, template)
    try:
        yield Database(name, reach(url, place), dialect)
    finally:
        SESSIONS.end(place)
        owner.dispose()  # the server may have been killed meanwhile
        _run(owner, drop, place)


@contextlib.contextmanager
def installed(name: str, url: URL) -> Iterator[str]:
    """Make a database with an installed log, which is faster to copy than to make; return its name."""
    with temporary_database(name, url) as database:
        engine = database.engine()
        migrate.install(engine, Log(database.dialect))
        engine.dispose()
        yield str(database.url.database)


def _run(engine: Engine, statements: tuple[str, ...], place: str, template: str = "") -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in statements:
            connection.execute(sqlalchemy.text(statement.format(place=place, template=template)))


def _database(url: URL, place: str) -> URL:
    return url.set(database=place)


_MYSQL_PLACE = (("create database {place} character set utf8mb4",), ("drop database {place}",), _database)
PLACES: dict[str, tuple[tuple[str, ...], tuple[str, ...], Callable[[URL, str], URL]]] = {
    "postgresql": (
        ("create database {place} template {template}",),
        ("drop database {place} with (force)",),
        _database,
    ),
    "mariadb": _MYSQL_PLACE,
    "mysql": _MYSQL_PLACE,
    "oracle": (
        (
            'create user {place} identified by "{place}" quota unlimited on users',
            "grant connect, resource, create view to {place}",
        ),
        ("drop user {place} cascade",),
        lambda url, place: url.set(username=place, password=place),
    ),
}
CLIENTS = {
    "postgresql": ["psql", "-q", "-X"],
    "mariadb": ["mariadb", "--no-defaults"],
    "mysql": ["mysql", "--no-defaults"],
}
