"""The database in memory answers as PostgreSQL does: the same statements on both, in the same order.

Several sessions take turns. Where one would wait for another, both databases give up instead.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import bindparam, text
from sqlalchemy.engine import Engine

from eventlog.embedded import Server as Server_
from eventlog.sql import tables_read
from eventlog.sql.common.dialect import Call
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.current_rows import current_rows
from eventlog.sql.log.log_record import Notice
from eventlog.sql.log.pending import PickUpFilter, pending_statement
from eventlog.sql.names import Log
from eventlog.sql.postgresql import POSTGRESQL
from eventlog.sql.queries import Queries
from eventlog.sql.readable import ReadableTable
from eventlog.sql.schema import migrate
from tests.kit.databases import EMBEDDED, server_url, temporary_database
from tests.kit.statements import run_statements
from tests.kit.tiers import drawn
from tests.laws.simulate.decisions import Replayed
from tests.laws.simulate.people import TABLES, USR
from tests.laws.simulate.run import DESCRIBED
from tests.laws.simulate.server import LOG, NamedQueries, Server, Session, named
from tests.laws.simulate.store import Refused, Transaction
from tests.laws.simulate.world import World

pytestmark = pytest.mark.quick

SESSIONS = 3
(_USR,) = DESCRIBED
_REWRITE = "alter table usr alter column name type varchar(40) using name || ''"


class Side(Protocol):
    """One of the two databases."""

    queries: Queries

    def run(self, session: int, call: Call) -> Any: ...
    def end(self, session: int, *, commit: bool) -> None: ...
    def draw(self, session: int) -> None: ...
    def log(self, session: int, key: int) -> None: ...
    def change(self, session: int, kind: str, key: int) -> Any: ...
    def read(self, session: int, keys: Sequence[int]) -> Any: ...
    def forms(self, session: int) -> Any: ...


class OnPostgres:
    """The truth."""

    def __init__(self, engine: Engine, log: Log) -> None:
        self.queries = Queries(log)
        self._dialect = log.dialect
        self._connections = [
            engine.connect().execution_options(isolation_level="AUTOCOMMIT") for _ in range(SESSIONS)
        ]
        self._ids: dict[int, int] = {}
        for connection in self._connections:
            connection.exec_driver_sql("set lock_timeout to '15ms'")

    def run(self, session: int, call: Call) -> Any:
        result = self._connections[session].execute(*call)
        return [tuple(row) for row in result] if result.returns_rows else result.rowcount

    def end(self, session: int, *, commit: bool) -> None:
        connection = self._connections[session]
        connection.exec_driver_sql("commit" if commit else "rollback")

    def draw(self, session: int) -> None:
        sequence = "select nextval(pg_get_serial_sequence('eventlog', 'record_id'))"
        self._ids[session] = int(self._connections[session].exec_driver_sql(sequence).scalar() or 0)

    def log(self, session: int, key: int) -> None:
        insert = "insert into eventlog (record_id, event_type, table_name, table_key) overriding system value"
        self._run(session, f"{insert} values ({self._ids.pop(session)}, 6, 'usr', 'idu={key}')")

    def change(self, session: int, kind: str, key: int) -> Any:
        statement = {
            "insert": f"insert into usr values ({key}, 'new', null)",
            "update": f"update usr set name = name || '!' where idu = {key}",
            "delete": f"delete from usr where idu = {key}",
            "rewrite": _REWRITE,
        }[kind]
        self._run(session, statement)

    def _run(self, session: int, statement: str) -> None:
        self._connections[session].execute(text(statement.replace(":", r"\:")))

    def read(self, session: int, keys: Sequence[int]) -> Any:
        source = ReadableTable(_USR, self._dialect)
        return list(current_rows(self._connections[session], self.queries, source, [[str(k)] for k in keys]))

    def forms(self, session: int) -> Any:
        (call,) = tables_read._forms(self._dialect, [("public", "usr")], every=False)
        return len(self.run(session, call))

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


class InMemory:
    """The store of the simulator."""

    def __init__(self) -> None:
        self.queries: Queries = NamedQueries(LOG)
        self._server = Server(World(Replayed([])), TABLES)
        self._server.store._wait = give_up
        self._server.store.nap = lambda: give_up(None)
        self._sessions = [Session(str(number), None) for number in range(SESSIONS)]
        self._ids: dict[int, int] = {}

    def run(self, session: int, call: Call) -> Any:
        statement = named(call.clause)
        assert statement is not None
        if statement.name in ("snapshot", "work"):
            self._sessions[session].transaction = self._server.begin(frozen=statement.name == "snapshot")
            return []
        return self._server.execute(self._sessions[session], statement, call.values)

    def end(self, session: int, *, commit: bool) -> None:
        of = self._sessions[session]
        transaction, of.transaction = of.transaction, None
        assert transaction is not None
        self._server.store.end(transaction, commit=commit and not of.has_failed)
        of.has_failed = False

    def draw(self, session: int) -> None:
        self._server.store.sequence += 1
        self._ids[session] = self._server.store.sequence

    def log(self, session: int, key: int) -> None:
        number = self._ids.pop(session)
        row = dict.fromkeys(("event_time", "perpetrator", "column_name", "old_value", "new_value"))
        names = {"record_id": number, "table_name": "usr", "table_key": f"idu={key}"}
        values = row | names | {"status": "N", "event_type": 6}
        self._try(session, lambda store, of: store.insert(of, "log", values))

    def change(self, session: int, kind: str, key: int) -> Any:
        def work(store: Any, of: Transaction) -> None:
            if kind == "rewrite":
                store.rewrite(of, USR)
                return
            store.keep_form(of, USR)
            if kind == "insert":
                store.insert(of, USR, {"idu": key, "name": "new", "phone": None})
            elif kind == "update":
                store.update(of, USR, lambda row: row["idu"] == key, lambda row: {"name": f"{row['name']}!"})
            else:
                store.delete(of, USR, lambda row: row["idu"] == key)

        self._try(session, work)

    def _try(self, session: int, work: Callable[[Any, Transaction], None]) -> None:
        of = self._sessions[session]
        assert of.transaction is not None
        try:
            work(self._server.store, of.transaction)
        except Refused as fault:
            of.has_failed = True
            raise DatabaseFailed(str(fault)) from fault

    def read(self, session: int, keys: Sequence[int]) -> Any:
        call = self.queries.call(
            "current_measured",
            {"rows": USR},
            first=0,
            most=1 << 40,
            keys=json.dumps({"k0": [str(key) for key in keys]}),
        )
        return [(place, tuple(texts)) for place, _, *texts in self.run(session, call)]

    def forms(self, session: int) -> Any:
        (call,) = tables_read._forms(LOG.dialect, [("public", "usr")], every=False)
        return len(self.run(session, call))


def give_up(blocker: object) -> None:
    raise Refused("lock timeout")


class Step(NamedTuple):
    """One step of a schedule."""

    session: int
    kind: str
    number: int


READS = ("pending", "ids", "rows", "facts", "remembered", "read", "forms", "moment", "failed", "position")
WRITES = ("finish", "remove", "remember", "settle", "note_highest", "forget_lower", "epoch", "lock", "renew")
OTHER_WRITES = ("log", "insert", "update", "delete", "hold", "forget", "fail", "number", "note", "rewrite")
OUTCOMES = ("settled", "gone", "failed", "renewed", "resent", "partly", "unsure", "lacking")
COMPARED = ("known_put", "known_put", "known_next", "known_outcome", "known_outcome", "known_outcome")
COMPARED_READS = ("known_page", "known_letters", "known_of", "known_counts")
KINDS = (
    *("try", "answer", "tries", "tried", "first_place"),
    *READS,
    *WRITES,
    *OTHER_WRITES,
    *COMPARED,
    *COMPARED_READS,
    "compare_log",
    "compare_logged",
    "draw",
    "draw",
    "log",
    "commit",
    "commit",
    "rollback",
    "freeze",
)
STEPS = st.builds(Step, st.integers(0, SESSIONS - 1), st.sampled_from(KINDS), st.integers(1, 9))


def answer(side: Side, step: Step) -> Any:
    """Return what a database answers to a step."""
    session, kind, number = step
    queries, ids = side.queries, json.dumps([number, number + 1])
    if kind in ("insert", "update", "delete", "rewrite"):
        return side.change(session, kind, number)
    if kind == "read":
        return side.read(session, [number, number + 1])
    if kind in ("forms", "draw"):
        return getattr(side, kind)(session)
    if kind == "log":
        return side.log(session, number)
    is_compared = kind.startswith(("known", "compare"))
    call = compared_call(queries, kind, number) if is_compared else call_of(queries, kind, number, ids)
    result = side.run(session, call)
    if is_compared and isinstance(result, list):  # blanks fill a digest up
        result = [tuple(cell.strip() if isinstance(cell, str) else cell for cell in row) for row in result]
        return sorted(result, key=str)
    if kind in ("known_put", "known_next", "compare_log"):
        return None
    return sorted(result) if kind in ("failed", "rows", "number", "tried") else result


def compared_call(queries: Queries, kind: str, number: int) -> Call:
    """Return a statement on the state of a receiver."""
    object_table, key_hash = "usr", str(number % 3) * 32
    if kind == "known_outcome":
        clause = queries.clause(f"known_{OUTCOMES[number % len(OUTCOMES)]}")
        clause = clause.bindparams(bindparam("hashes", expanding=True))
        return Call(clause, {"object_table": object_table, "hashes": [key_hash, "2" * 32]})
    row: dict[str, Any] = {
        "object_table": object_table,
        "key_hash": key_hash,
        "next_digest": (None, "n", "?")[number % 3],
    }
    row |= {"next_values": "w", "first_id": number, "last_id": number + 1}
    state = {
        "object_key": f"idu={number % 3}",
        "digest": (None, "d", "??", "?")[number % 4],
        "row_values": "v",
    }
    logged: dict[str, Any] = dict.fromkeys(("perpetrator", "column_name", "old_value", "new_value"))
    logged |= {"event_type": 6, "table_name": "usr", "table_key": f"idu={number % 3}"}
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "known_put": ("known_put_all", {"rows": json.dumps([row | state])}),
        "known_next": ("known_next_all", {"rows": json.dumps([row])}),
        "known_page": ("known_page", {"after": 0, "most": number}),
        "known_letters": ("known_letters", {"after": 0, "upto": number + 1}),
        "known_of": ("known_of", {"object_table": object_table}),
        "known_counts": ("known_counts", {}),
        "compare_log": ("compare_log_all", {"rows": json.dumps([logged])}),
        "compare_logged": ("compare_logged", {"after": number - 1}),
    }
    name, values = calls[kind]
    return queries.call(name, **values)


def call_of(queries: Queries, kind: str, number: int, ids: str) -> Call:
    """Return a statement of the log."""
    call = queries.call
    choice = PickUpFilter(limit=number)
    is_even = number % 2 == 0
    hashed = str(number) * 64
    spelling: dict[str, Any] = {"table_name": "usr", "table_key": f"idu={number}"}
    waiting: dict[str, Any] = {
        "event_id": "e",
        "record_ids": "[1]",
        "max_changes": 1,
        "tries": 1,
        "reason": "r",
    }
    calls: dict[str, Callable[[], Call]] = {
        "pending": lambda: pending_statement(queries, "pending_bytes", choice),
        "ids": lambda: pending_statement(queries, "further", choice, after=number - 2),
        "rows": lambda: call("spelled_by_id", ids=ids),
        "remembered": lambda: call("remembered"),
        "moment": lambda: call("latest_redrive"),
        "failed": lambda: call("failed_together", ids=ids),
        "position": lambda: call("highest"),
        "finish": lambda: call("finish", ids=ids, letter="E" if is_even else "S"),
        "remove": lambda: call("remove", ids=ids),
        "remember": lambda: call("remember", batch=number, epoch=1, first_id=1, last_id=number, content="x"),
        "settle": lambda: call("settle" if is_even else "forget_batch", batch=number),
        "note_highest": lambda: call("note_highest", highest=number),
        "forget_lower": lambda: call("forget_lower", former=0, highest=number),
        "epoch": lambda: call("epoch"),
        "lock": lambda: call("begin_epoch", leader="a", session_id="1") if is_even else call("lock_state"),
        "renew": lambda: call("renew" if is_even else "skip", ids=ids),
        "hold": lambda: (
            call("hold", object_hash=hashed, first_id=number, next_at="2026-01-01", **spelling, **waiting)
            if is_even
            else call("hold_spelling", object_hash=hashed, spelling_hash=hashed, **spelling)
        ),
        "forget": lambda: (
            call("forget_event", object_hash=hashed, event_id="e")
            if is_even
            else call("forget_spellings", object_hash=hashed)
        ),
        "fail": lambda: (
            call("fail", record_id=number, event_id="e", reason="r", document=None, tries=1)
            if is_even
            else call("forget_failure", ids=ids)
        ),
        "number": lambda: call("held"),
        "try": lambda: (
            call("keep_try", record_id=number, try_number=1, event_id="e", batch=number, part=1)
            if is_even
            else call("forget_tries", ids=ids)
        ),
        "answer": lambda: (
            call("keep_answer", batch=number, part=1, answer="error", words="w", answered_at=None)
            if is_even
            else call("forget_answers", ids=ids)
        ),
        "tries": lambda: call("tries_of", ids=ids) if is_even else call("last_part", batch=number - 1),
        "tried": lambda: call("tried_pending", most=99) if is_even else call("latest_batch"),
        "first_place": lambda: call("first_place"),
        "note": lambda: call(
            "note", **Notice("redrive" if is_even else "x")._asdict() | {"record_ids": None}
        ),
        "facts": lambda: call("row_facts", ids=ids),
    }
    return calls[kind]()


def outcome(side: Side, step: Step) -> Any:
    """Return what a database answers, or that it refuses."""
    try:
        return answer(side, step)
    except DatabaseFailed:
        return "refused"


def compare(sides: tuple[Side, Side], schedule: Sequence[Step]) -> None:
    """Run a schedule on both, and demand the same answer to each step."""
    open_sessions: dict[int, bool] = {}  # whether it has failed
    drawn_by: set[int] = set()
    for place, step in enumerate([*schedule, *(Step(n, "commit", 1) for n in range(SESSIONS))]):
        session, kind = step.session, step.kind
        if kind in ("commit", "rollback"):
            if session in open_sessions:
                for side in sides:
                    side.end(session, commit=kind == "commit")
                del open_sessions[session]
            continue
        if session not in open_sessions:
            for side in sides:
                side.run(session, side.queries.call("snapshot" if kind == "freeze" else "work"))
            open_sessions[session] = kind == "freeze"
        if kind == "freeze" or (
            open_sessions[session] and kind not in (*READS, *COMPARED_READS, "compare_logged")
        ):
            continue  # a snapshot only reads
        if kind == "log" and session not in drawn_by:
            continue
        (drawn_by.add if kind == "draw" else drawn_by.discard if kind == "log" else id)(session)
        truth, simulated = (outcome(side, step) for side in sides)
        assert simulated == truth, f"step {place}, {step}"
        if truth == "refused":
            for side in sides:
                side.end(session, commit=False)
            del open_sessions[session]


@pytest.fixture(scope="module")
def postgres_engine(embedded: Server_) -> Iterator[Engine]:
    """A PostgreSQL with a log and the table usr."""
    with server_url(EMBEDDED, embedded) as url, temporary_database(EMBEDDED, url) as database:
        engine = database.engine()
        migrate.install(engine, Log(database.dialect))
        run_statements(
            engine, "create table usr (idu integer primary key, name varchar(40), phone varchar(40))"
        )
        yield engine
        engine.dispose()


@pytest.mark.slow("each schedule is of forty round trips")
@settings(max_examples=drawn(300))
@given(schedule=st.lists(STEPS, max_size=40))
def test_every_answer_is_that_of_postgresql(postgres_engine: Engine, schedule: list[Step]) -> None:
    names = Log(POSTGRESQL).names()
    emptied = ", ".join(
        names[name]
        for name in ("log", "batch", "retry", "held", "failed", "notice", "sent", "known", "answer", "try")
    )
    run_statements(
        postgres_engine,
        f"truncate {emptied}, usr restart identity",
        f"update {names['state']} set epoch = 0, leader = null",
    )
    truth = OnPostgres(postgres_engine, Log(POSTGRESQL))
    try:
        compare((truth, InMemory()), schedule)
    finally:
        truth.close()
