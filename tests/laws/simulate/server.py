"""A database server of the world, and what the publisher has in place of SQLAlchemy's engine.

Every statement, commit and connect is a step of the world, and each may fail. The statement is refused, the
connection is cut before or after the server did the work, or the process dies. A session may outlive its
client for a while, with its locks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple, Self

from eventlog.sql import tables_read
from eventlog.sql.common.dialect import Call
from eventlog.sql.connect import ConnectionLost, DatabaseFailed
from eventlog.sql.names import Log
from eventlog.sql.postgresql import POSTGRESQL
from eventlog.sql.queries import Queries, run_calls
from tests.laws.simulate.statements import Rows, Statements, UserTable, make_tables
from tests.laws.simulate.store import Refused, Store, Transaction
from tests.laws.simulate.world import Process, World

LOG = Log(
    replace(
        POSTGRESQL,
        sessions=replace(POSTGRESQL.sessions, load_run_calls=None),
        statements=replace(POSTGRESQL.statements, packs_columns=False),
    )
)
_BEGIN = {"snapshot": True, "work": False}  # which statements begin a transaction; whether it is frozen
REFUSAL = "the statement failed"
_SAVEPOINT = ("savepoint", "back_to_savepoint")  # no server refuses these
_LOCK = {"lead", "resign", "lock_holders", "session_id", "stand_by", "end_stand_by", "standbys"}


class Named(NamedTuple):
    """A statement by its name, in place of its text."""

    name: str
    holes: Mapping[str, str]

    def bindparams(self, *parameters: object) -> Self:
        return self

    def execution_options(self, **options: object) -> Self:
        return self


class United(Named):
    """A statement on the rows of one query, whose values are numbered."""


class NamedQueries(Queries):
    """The statements of a log by their names instead of their texts."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.run_calls = partial(run_calls, log.dialect)

    def name(self, hole: str) -> str:
        return hole

    def piece(self, name: str) -> str:
        return name

    def pieces(self, *names: str) -> str:
        return " ".join(names)

    def relation(self, *, in_order: bool = False) -> str:
        return ""

    def filled(self, name: str, **holes: str) -> str:
        return holes.get("source", "").replace('"', "")

    def of_table(self, table: object, make: Callable[[], str]) -> Any:
        return Named("rows_of_keys", {"rows": make()})

    def calls_of(self, name: str, **holes: str) -> list[Call]:
        return [Call(self.clause(name, **holes), {})]

    def clause(self, name: str, **holes: str) -> Any:
        return Named(name, holes)


class Faults:
    """The faults of a server and its clients, and how often each comes, in thousandths of the steps."""

    def __init__(self) -> None:
        self.refused = self.cut_before = self.cut_after = self.unnoticed = self.death = 0


class Session:
    """A session of the server."""

    def __init__(self, name: str, owner: Process | None) -> None:
        self.name = name
        self.owner = owner  # the process of its client
        self.is_open = True
        self.transaction: Transaction | None = None
        self.has_failed = False  # the transaction has, and takes no more statements


class Server:
    """The database of the world."""

    def __init__(self, world: World, user_tables: Mapping[str, UserTable]) -> None:
        self.world = world
        self.faults = Faults()
        self.user_tables = user_tables
        self.store = Store(world.wait, world.report)
        self.store.nap = partial(world.sleep, 0.1)
        self.leader: Session | None = None  # whose session has the lock
        self.clock = 0.0  # by how much the server's clock is ahead
        self.sessions: dict[Session, None] = {}
        self._opened = 0
        make_tables(self.store, user_tables)

    def now(self) -> float:
        return self.world.now + self.clock

    def begin(self, *, frozen: bool = False) -> Transaction:
        return self.store.begin(self.now(), frozen=frozen)

    def open_session(self) -> Session:
        self._opened += 1
        session = Session(str(self._opened), self.world.current)
        self.sessions[session] = None
        return session

    def abandon(self, session: Session) -> None:
        """End a session whose client is gone; the server may notice that later."""
        if session.is_open and self.world.dice.chance(self.faults.unnoticed):
            seconds = self.world.dice.choose((1.0, 10.0, 60.0))
            self.world.start("the end of a session", partial(self.close, session), seconds)
        else:
            self.close(session)

    def end_sessions(self, process: Process) -> None:
        """End the sessions of a process that has ended."""
        for session in [session for session in self.sessions if session.owner is process]:
            self.abandon(session)

    def close(self, session: Session) -> None:
        """End a session, and what it has open."""
        self.sessions.pop(session, None)
        session.is_open = False
        if session.transaction is not None:
            self.store.end(session.transaction, commit=False)
        if self.leader is session:
            self.leader = None

    def execute(self, session: Session, statement: Named, values: Any) -> Rows | int:
        """Run a statement in the session's transaction."""
        if session.has_failed and statement.name != "back_to_savepoint":
            raise DatabaseFailed("the transaction is aborted")
        session.has_failed = False
        if statement.name in _LOCK:
            return getattr(self, f"_{statement.name}")(session)  # type: ignore[no-any-return]
        assert session.transaction is not None
        statements = Statements(self.store, session.transaction, self.user_tables)
        try:
            if isinstance(values, list):
                return sum(statements.run(*statement, row) for row in values)  # type: ignore[misc]
            return statements.run(*statement, values)
        except Refused as fault:
            session.has_failed = True
            raise DatabaseFailed(str(fault)) from fault

    def _lead(self, session: Session) -> Rows:
        if self.leader is None:
            self.leader = session
        return [(self.leader is session,)]

    def _resign(self, session: Session) -> Rows:
        if self.leader is session:
            self.leader = None
        return [(None,)]

    def _lock_holders(self, session: Session) -> Rows:
        return [] if self.leader is None else [("eventlog", self.leader.name, None)]

    def _stand_by(self, session: Session) -> Rows:
        return [(True,)]

    def _end_stand_by(self, session: Session) -> Rows:
        return [(None,)]

    def _standbys(self, session: Session) -> Rows:
        return []

    def _session_id(self, session: Session) -> Rows:
        return [(session.name,)]


class Result:
    """The answer to a statement."""

    def __init__(self, answer: Rows | int) -> None:
        self.returns_rows = isinstance(answer, list)
        self.rowcount = answer if isinstance(answer, int) else len(answer)
        self._rows = answer if isinstance(answer, list) else []

    def all(self) -> Rows:
        return self._rows

    def scalar(self) -> Any:
        return self._rows[0][0] if self._rows else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        """Do nothing, because nothing is open."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._rows)


class Connection:
    """A client's connection to the server."""

    dialect = SimpleNamespace(name="postgresql", driver="simulated", positional=True)

    def __init__(self, server: Server, *, autocommit: bool) -> None:
        self._server = server
        self._autocommit = autocommit
        self.info = {"encoding": "utf-8"}
        self._call(lambda: None)
        self._session = server.open_session()
        self.invalidated = False

    def execute(self, clause: Any, values: Any = None) -> Result:
        """Run a statement."""
        statement = named(clause)
        if statement is None:  # a setting
            return Result([])
        if isinstance(statement, United):
            values = {name.rstrip("0123456789"): value for name, value in values.items()}
        work = partial(self._execute, statement, values or {})
        return Result(self._call(work, is_refusable=statement.name not in _SAVEPOINT))

    def _execute(self, statement: Named, values: Any) -> Rows | int:
        server, session = self._server, self._session
        if statement.name in _BEGIN:
            assert session.transaction is None
            session.transaction = server.begin(frozen=_BEGIN[statement.name])
            return []
        is_alone = session.transaction is None and self._autocommit
        if session.transaction is None:
            session.transaction = server.begin()
        try:
            answer = server.execute(session, statement, values)
        except BaseException:
            if is_alone:
                self._end(commit=False)
            raise
        if is_alone:
            self._end(commit=True)
        return answer

    @property
    def transaction(self) -> Transaction | None:
        return self._session.transaction

    def in_transaction(self) -> bool:
        return self.transaction is not None

    def commit(self) -> None:
        if self.in_transaction():
            self._call(partial(self._end, commit=True))

    def rollback(self) -> None:
        if self.in_transaction() and not self.invalidated:
            self._end(commit=False)

    def _end(self, *, commit: bool) -> None:
        session = self._session
        transaction, session.transaction = session.transaction, None
        if transaction is not None:
            self._server.store.end(transaction, commit=commit and not session.has_failed)
        session.has_failed = False

    def _call(self, work: Callable[[], Any], *, is_refusable: bool = True) -> Any:
        """Let the server do some work, in whatever way that may fail."""
        server, faults = self._server, self._server.faults
        chance = server.world.dice.chance
        server.world.step()
        if chance(faults.death):
            server.world.die()
        if not hasattr(self, "_session"):
            if chance(faults.cut_before):
                raise ConnectionLost("refused")
            return None
        if self.invalidated or not self._session.is_open or chance(faults.cut_before):
            self._lose()
        if chance(faults.refused) and is_refusable:
            self._session.has_failed = self.in_transaction()
            raise DatabaseFailed(REFUSAL)
        answer = work()
        if not self._session.is_open or chance(faults.cut_after):
            self._lose()
        if chance(faults.death):
            server.world.die()
        return answer

    def _lose(self) -> None:
        """Mark the connection as lost. The server may notice that later."""
        self.invalidated = True
        self._server.abandon(self._session)
        raise ConnectionLost("it was cut")

    def close(self) -> None:
        """Close the connection; the sessions of a process that died are ended by `end_sessions`."""
        process = self._session.owner
        if not (self.invalidated or (process is not None and process.doomed)):
            self.invalidated = True
            self._server.close(self._session)

    def detach(self) -> None: ...

    @contextmanager
    def begin_nested(self) -> Iterator[None]:
        try:
            yield
        except DatabaseFailed:
            self._session.has_failed = False
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        self.close()


class Engine:
    """An engine that connects to the server."""

    def __init__(self, server: Server, *, autocommit: bool = False) -> None:
        self._server = server
        self._autocommit = autocommit

    def execution_options(self, **options: object) -> Engine:
        return Engine(self._server, autocommit=True)

    def connect(self) -> Connection:
        return Connection(self._server, autocommit=self._autocommit)

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """A transaction that is committed at its end."""
        with self.connect() as connection:
            yield connection
            connection.commit()

    def dispose(self) -> None: ...


def unite(connection: Connection, queries: Queries, clause: Named, united: Sequence[Named]) -> Named:
    """Return the statement with the rows of the one query in `united`, if there is one."""
    return United(clause.name, united[0].holes) if united else clause


def named(clause: Any) -> Named | None:
    """Return what a clause runs; None if it only sets something."""
    if isinstance(clause, Named):
        return clause
    if clause is tables_read._clause(LOG.dialect):
        return Named("table_forms", {})
    words = str(clause).split()
    if words[:2] == ["lock", "table"]:
        return Named("lock_tables", {"tables": " ".join(words[2 : words.index("in")])})
    return None
