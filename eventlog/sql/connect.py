"""Connections: an engine for a URL, sessions whose texts depend on no setting, and the one place
where the errors of drivers become ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any

import sqlalchemy
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool

from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.extras import extra
from eventlog.sql.common import templates
from eventlog.sql.common.dialect import Dialect, TimeLimits, begin_plainly
from eventlog.sql.dialects import SCHEMES, dialect_named, dialect_of


class InvalidUrl(Misuse):
    """{0}: a database is named as postgresql://user:password@host:port/database"""


class DriverMissing(Misuse):
    """the driver that {0}:// names is not installed ({1}): write {2}://, or install it"""


class DatabaseFailed(EventlogError):
    """the database refused: {0}"""


class ConnectionLost(EventlogError):
    """no connection to the database: {0}"""


# A right that the user lacks: in PostgreSQL, in MariaDB and MySQL, and in Oracle.
DENIALS = frozenset(("42501", "1044", "1142", "1143", "1370", "1031"))
_PLACE = re.compile(r"\nLINE \d+: [^\n]*\n *\^")  # in a statement, which the reader has not before him
_ENCODING = "encoding"  # of a connection, kept with it


def connect(url: str | URL, connection_init: Sequence[str] = (), *, keep_open: int = 0) -> Engine:
    """Return an engine whose every new connection has our settings and has run the given statements.

    It keeps that many connections open for the next use; a caller that asks for some disposes of the engine.
    """
    dialect = dialect_named(read_url(url).get_backend_name())
    return _connect(url, _statements(dialect, "session", "own_session"), connection_init, (), keep_open)


def connect_to_log(url: str | URL, connection_init: Sequence[str] = (), *, keep_open: int = 0) -> Engine:
    """Return an engine for a log and its tables.

    Row security hides nothing silently from its sessions, unless a given statement allows it. Functions of
    others in searched schemas are never run by a bare name.
    """
    dialect = dialect_named(read_url(url).get_backend_name())
    settings = _statements(dialect, "session", "own_session", "see_all")
    return _connect(url, settings, connection_init, _statements(dialect, "pin_path"), keep_open)


def _statements(dialect: Dialect, *names: str) -> Sequence[str]:
    return tuple(statement for name in names for statement in templates.statements(dialect, name, {}))


def _connect(
    url: str | URL,
    settings: Sequence[str],
    connection_init: Sequence[str],
    last_settings: Sequence[str],
    keep_open: int,
) -> Engine:
    """Return an engine whose every new connection has run these statements, in this order."""
    address = read_url(url)
    pool: dict[str, Any] = {"pool_size": keep_open} if keep_open else {"poolclass": NullPool}
    with _driver(address):
        engine = sqlalchemy.create_engine(address, connect_args=_name(address), **pool)
    event.listen(engine, "do_connect", _dial)
    event.listen(engine, "handle_error", _translate, retval=True)
    dialect = dialect_named(address.get_backend_name())
    begin = dialect.sessions.begin if address.drivername == dialect.sessions.driver else begin_plainly

    def prepare(connection: Any, record: Any) -> None:
        begin(connection, settings, connection_init, last_settings)
        record.info[_ENCODING] = _encoding_of(connection)

    # before SQLAlchemy looks at a session, where it learns how names and texts are quoted
    event.listen(engine, "connect", prepare, insert=True)
    if dialect.sessions.listen is not None:
        dialect.sessions.listen(engine)
    return engine


def connect_any(url: str | URL) -> Engine:
    """Return an engine for tables that are read and written with standard statements.

    It accepts SQL Server, DB2, Informix, SQLite and others, by any installed driver that the URL names.
    """
    address = _address(url)
    if address.get_backend_name() in SCHEMES:
        return connect(url)
    try:
        engine = sqlalchemy.create_engine(address, poolclass=NullPool)
    except ArgumentError:
        raise InvalidUrl(f"{address.drivername} is not a supported driver") from None
    except ImportError as fault:
        raise DriverMissing(address.drivername, fault.name, address.get_backend_name()) from fault
    event.listen(engine, "handle_error", _translate, retval=True)
    return engine


def _name(address: URL) -> dict[str, str]:
    """Return what makes the server show our sessions as eventlog's, unless the URL names them."""
    dialect = dialect_named(address.get_backend_name())
    ours = dialect.sessions.label if address.drivername == dialect.sessions.driver else None
    return {ours: "eventlog"} if ours and ours not in address.query else {}


def connect_at(engine: Engine, level: str) -> Connection:
    """Return a connection at an isolation level: SQLAlchemy asks for one past its own door for errors."""
    connection = engine.connect()
    try:
        return connection.execution_options(isolation_level=level)
    except connection.dialect.loaded_dbapi.Error as fault:
        failed = translated(connection, fault)
        connection.close()
        raise failed from fault


def limited(engine: Engine, dialect: Dialect, limits: TimeLimits) -> Engine:
    """Return an engine on the same connections whose statements have these limits.

    They end with the statement or its transaction, so no later user of a session has them, and they take no
    round trip of their own.
    """
    if dialect.sessions.limit is not None:
        return _limited_by_statement(engine, dialect.sessions.limit, limits)
    settings = limit_statements(dialect, limits)
    if not settings:
        return engine
    begin = "; ".join(("begin", *settings))
    limited_engine = engine.execution_options(**dialect.sessions.options)

    def begin_limited(connection: Connection) -> None:
        try:
            connection.connection.cursor().execute(begin)
        except connection.dialect.loaded_dbapi.Error as fault:
            raise translated(connection, fault) from fault

    event.listen(limited_engine, "begin", begin_limited)
    return limited_engine


def _limited_by_statement(
    engine: Engine, limit: Callable[[str, TimeLimits], str], limits: TimeLimits
) -> Engine:
    limited_engine = engine.execution_options()

    def rewrite(
        connection: Connection, cursor: Any, statement: str, values: Any, *facts: object
    ) -> tuple[str, Any]:
        return limit(statement, limits), values

    event.listen(limited_engine, "before_cursor_execute", rewrite, retval=True)
    return limited_engine


def limit_statements(dialect: Dialect, limits: TimeLimits) -> Sequence[str]:
    """Return what limits the statements of a transaction after its begin; nothing where each has its own."""
    named = (("limit_locks", limits.lock), ("limit_statements", limits.statement))
    return tuple(
        text
        for name, seconds in named
        if seconds is not None
        for text in templates.statements(dialect, name, {"seconds": str(seconds)})
    )


def execute_plain(connection: Connection, statement: str) -> None:
    """Run a statement whose text is all its own: no colon or percent sign in it means a parameter."""
    connection.exec_driver_sql(statement, execution_options={"no_parameters": True})


def dialect_at(engine: Engine) -> Dialect:
    """Return the dialect of the server itself, asked if the URL cannot distinguish MySQL from MariaDB."""
    with engine.connect():
        return dialect_of(engine)


def read_url(url: str | URL) -> URL:
    """Return the address of a database, with the driver that we use where it names none.

    Nothing of one that is wrong is quoted, for it may hold a password.
    """
    address = _address(url)
    dialect = dialect_named(address.get_backend_name())
    return address if "+" in address.drivername else address.set(drivername=dialect.sessions.driver)


def _address(url: str | URL) -> URL:
    try:
        address = make_url(url)
    except (ArgumentError, ValueError):
        raise InvalidUrl("that is no URL") from None
    if isinstance(url, str) and url.count("@") > (address.username is not None):
        raise InvalidUrl("an @ in a user, a password or a parameter is written %40")
    if address.port is not None and not 0 < address.port < 65536:
        raise InvalidUrl("a port is a number from 1 to 65535")
    return address


def _dial(dialect: Any, record: object, words: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Return a connection of the driver; a parameter of the URL that it does not know is misuse."""
    try:
        return dialect_named(dialect.name).sessions.dial(
            dialect.driver, partial(dialect.connect, *words), named
        )
    except (TypeError, ValueError) as fault:
        raise InvalidUrl(f"the driver does not take its parameters ({fault})") from None


@contextmanager
def _driver(address: URL) -> Iterator[None]:
    dialect = dialect_named(address.get_backend_name())
    try:
        with extra(dialect.sessions.extra, dialect.title) if dialect.sessions.extra else nullcontext():
            yield
    except ArgumentError:
        raise InvalidUrl(f"{address.drivername} is not a supported driver") from None
    except ImportError as fault:
        raise DriverMissing(address.drivername, fault.name, dialect.name) from fault


def _encoding_of(connection: Any) -> str:
    """Return the encoding in which a driver sends texts; psycopg uses the database's own."""
    encoding: str = getattr(getattr(connection, "info", None), "encoding", "utf-8")
    return encoding


def keepable(connection: Connection, words: str) -> str:
    """Return the words with each character that the database could not keep written by its number: a reason
    that a receiver gave may hold any.
    """
    encoding = connection.info[_ENCODING]
    return words.replace("\0", r"\x00").encode(encoding, "backslashreplace").decode(encoding)


def translated(connection: Connection, fault: Exception) -> EventlogError:
    """Return our error for one that the driver itself raised; a lost connection is not used again."""
    words = _message_of(fault)
    if connection.dialect.is_disconnect(fault, connection.connection.driver_connection, None):  # type: ignore[arg-type]
        connection.invalidate(fault)
        return ConnectionLost(words)
    return DatabaseFailed(" ".join((words, *_advice(connection.dialect.name, fault))))


def error_numbers(fault: Any) -> set[str]:
    """Return the numbers by which a database names the error of a driver."""
    first = fault.args[0] if fault is not None and fault.args else None
    return set(map(str, (getattr(fault, "sqlstate", None), getattr(first, "code", None), first)))


def _translate(context: Any) -> EventlogError | None:
    running = context.execution_context
    is_question = running is not None and running.execution_options.get("skip_user_error_events")
    if is_question and DENIALS.isdisjoint(error_numbers(context.original_exception)):
        return None  # SQLAlchemy itself asks this way whether a table exists
    if not isinstance(context.original_exception, Exception):  # a signal: the connection is not used again
        _cancel(context)
        return None
    words = _message_of(context.original_exception)
    if context.is_disconnect or context.connection is None:
        return ConnectionLost(words if context.connection else _with_port(words, context.engine.url))
    if context.sqlalchemy_exception is None:
        return None
    return DatabaseFailed(" ".join((words, *_advice(context.dialect.name, context.original_exception))))


def _cancel(context: Any) -> None:
    """End in the server what an interrupted session runs, where its driver does not."""
    scheme, connection = context.dialect.name, context.connection
    if (
        connection is not None
        and scheme in SCHEMES
        and (cancel := SCHEMES[scheme].sessions.cancel) is not None
    ):
        with suppress(EventlogError):  # it has ended
            cancel(context.engine, connection.connection.dbapi_connection)


def _advice(scheme: str, fault: BaseException) -> Iterator[str]:
    number = fault.args[0] if fault.args else None
    if scheme in SCHEMES and isinstance(number, int) and number in SCHEMES[scheme].sessions.advice:
        yield SCHEMES[scheme].sessions.advice[number]


def _with_port(words: str, url: URL) -> str:
    """Return the words of a failed connection with its port, which some drivers leave out."""
    return words if url.port is None or f"port {url.port}" in words else f"{words} (port {url.port})"


def _message_of(fault: BaseException) -> str:
    texts = [argument for argument in fault.args if isinstance(argument, str)]
    return " ".join(_PLACE.sub("", texts[-1] if texts else str(fault)).split())
