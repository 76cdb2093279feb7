"""Several statements in one round trip, by the pipeline mode of PostgreSQL's client library.

psycopg's own pipeline waits for the socket at each statement, which takes several times as long. A statement
that comes again on a connection is prepared there. psycopg itself must prepare none on it, because it drops
all prepared statements of a session after a rollback.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate
from typing import Any, NamedTuple

from psycopg import abc, adapt, errors
from psycopg.adapt import PyFormat
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGconn, PGresult
from psycopg.waiting import Ready, Wait
from sqlalchemy import text
from sqlalchemy.engine import URL, Connection

from eventlog.sql.common.dialect import Call

MAX_STATEMENTS = 200  # statements that a connection remembers
_DIALECT: Any = URL.create("postgresql+psycopg").get_dialect()
_NUMBERED = _DIALECT(paramstyle="numeric_dollar")  # writes $1, $2, …
_PREPARED = "eventlog_prepared"  # among what is kept with a connection
_COMMIT = Call(text("commit"), {})

_GOOD = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)

Key = tuple[bytes, Sequence[int] | None]  # a statement and the types of its values


class Bound(NamedTuple):
    """A statement with its values in the form of the protocol."""

    key: Key
    values: Sequence[Any] | None = None
    formats: Sequence[Format] | None = None


class PreparedStatements:
    """The statements that came on a connection; those that came twice are prepared."""

    def __init__(self) -> None:
        self._names: OrderedDict[Key, bytes | None] = OrderedDict()
        self._round = 0  # part of the names, which are new after a failure

    def send(self, pgconn: PGconn, bound: Bound) -> int:
        """Send a statement. Return how many answers come before its own."""
        (command, types), formats = bound.key, bound.formats
        was_sent, name = bound.key in self._names, self._names.pop(bound.key, None)
        prepares = was_sent and name is None
        if prepares:
            # all users to whom a pooler gives this session in turn make one name of one statement
            digest = blake2b(command + repr(types).encode(), digest_size=16).hexdigest()
            name = f"eventlog_{digest}_{self._round}".encode()
            pgconn.send_prepare(name, command, types)
        if name is None:
            pgconn.send_query_params(command, bound.values, types, formats)
        else:
            pgconn.send_query_prepared(name, bound.values, formats)
        self._names[bound.key] = name
        return int(prepares)

    def send_surplus(self, pgconn: PGconn) -> None:
        """Drop the oldest statements beyond the limit, here and in the server."""
        while len(self._names) > MAX_STATEMENTS:
            _, name = self._names.popitem(last=False)
            if name is not None:
                pgconn.send_query_params(b"deallocate " + name, None)

    def forget(self, bounds: Iterable[Bound]) -> None:
        """Forget statements, because one of them failed: its table may be another one by now."""
        self._round += 1
        for bound in bounds:
            self._names.pop(bound.key, None)


def run_in_pipeline(connection: Connection, calls: Sequence[Call], *, commit: bool = False) -> list[Any]:
    """Run statements on a connection that commits by itself. Return the rows of each.

    In place of rows is the number of changed rows, if a statement returns none. Nothing after a statement
    that fails is run.
    """
    driver: Any = connection.connection.dbapi_connection
    prepared: PreparedStatements = connection.info.setdefault(_PREPARED, PreparedStatements())
    transformer = adapt.Transformer(driver)
    bounds = [_bound(transformer, call) for call in ([*calls, _COMMIT] if commit else calls)]
    with driver.lock:
        try:
            results, failed = driver.wait(_exchange(driver.pgconn, prepared, bounds))
        except BaseException:
            driver.close()  # answers may still come, which would be taken for others
            raise
    if failed is not None:
        prepared.forget(bounds)
        raise errors.error_from_result(failed, driver.info.encoding)
    return [_rows(transformer, result) for result in results[: len(calls)]]


def _bound(transformer: abc.Transformer, call: Call) -> Bound:
    command, names = _numbered(call.clause.text)
    if not names:
        return Bound((command, None))
    values = [call.values[name] for name in names]
    dumped = transformer.dump_sequence(values, [PyFormat.AUTO] * len(values))
    return Bound((command, transformer.types), dumped, transformer.formats)


@lru_cache(maxsize=2_000)
def _numbered(statement: str) -> tuple[bytes, Sequence[str]]:
    """Return a statement with numbers for its parameters, and the parameters' names."""
    compiled = text(statement).compile(dialect=_NUMBERED)
    return str(compiled).encode(), tuple(compiled.positiontup or ())


def _exchange(
    pgconn: PGconn, prepared: PreparedStatements, bounds: Sequence[Bound]
) -> abc.PQGen[tuple[list[PGresult], PGresult | None]]:
    """Send statements and wait for all answers. Return their results, and the first that is an error."""
    pgconn.enter_pipeline_mode()
    before = [prepared.send(pgconn, bound) for bound in bounds]
    prepared.send_surplus(pgconn)
    pgconn.pipeline_sync()
    while pgconn.flush():
        if (yield Wait.RW) & Ready.R:
            pgconn.consume_input()
    answers: list[PGresult] = []
    while (answer := (yield from _answer(pgconn))) is None or answer.status != ExecStatus.PIPELINE_SYNC:
        if answer is not None:  # else it ends the answers to one statement
            answers.append(answer)
    pgconn.exit_pipeline_mode()
    failed = next((answer for answer in answers if answer.status not in _GOOD), None)
    ends = accumulate(count + 1 for count in before)
    return [answers[end - 1] for end in ends], failed


def _answer(pgconn: PGconn) -> abc.PQGen[PGresult | None]:
    while pgconn.is_busy():
        if (yield Wait.R):
            pgconn.consume_input()
    return pgconn.get_result()


def _rows(transformer: abc.Transformer, result: PGresult) -> Any:
    """Return the rows of a result, or the number of changed rows."""
    if result.status == ExecStatus.COMMAND_OK:
        return result.command_tuples or 0
    transformer.set_pgresult(result)
    return transformer.load_rows(0, result.ntuples, tuple)
