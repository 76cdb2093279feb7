"""A lock that keeps looks from the log, and the session that holds it, as far as our user may see it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import NamedTuple

from sqlalchemy.engine import Engine

from eventlog.core.errors import EventlogError, shortened
from eventlog.core.redaction import one_line, without_secrets
from eventlog.sql.common.dialect import TimeLimits
from eventlog.sql.connect import DatabaseFailed, limited
from eventlog.sql.error_causes import blames_lock, blames_time
from eventlog.sql.log.leader import Holder
from eventlog.sql.names import Log
from eventlog.sql.queries import Queries

_MAX_STATEMENT = 200  # characters that are shown of one


class LogLocked(DatabaseFailed):
    """the log is locked{0}"""

    # Its text begins with a blank or a comma, and names the holder, or what would show it.
    @property
    def ending(self) -> str:
        """Return the statement that ends the session; empty if it is not known."""
        return self.args[1] if self.args[1:] else ""


class LookEnded(DatabaseFailed):
    """this took longer than a look may ({0} s by look-limit): {1}"""


class LockHolder(NamedTuple):
    """The session that keeps others from the log."""

    role: str | None
    process: str | None  # None: a transaction that was prepared for a second phase has it
    seen_as: str | None  # its application, or where it comes from
    since: datetime | None  # when its transaction or its statement began, in UTC
    now: datetime | None
    is_idle: bool  # its transaction waits for the next statement
    statement: str | None  # None: it is not ours to see
    waiting: str | None  # the statement that waits for this session, and keeps looks from the log meanwhile

    def words(self, shows_more: str) -> str:
        """Return who it is and what it does, and what would show more where that is hidden."""
        if self.process is None:
            return "by a prepared transaction, which `select * from pg_prepared_xacts` shows"
        words = f"by {Holder(self.role, self.process, self.seen_as, publisher=True)}"
        if self.since is not None:
            is_today = self.now is not None and self.now.date() == self.since.date()
            words += f", since {self.since:{'%H:%M:%S' if is_today else '%Y-%m-%d %H:%M:%S'}} UTC"
        if self.statement is None:
            return f"{words}; its statement is not shown, which needs {shows_more}"
        if self.is_idle:
            words += ", idle in its transaction"
        if self.statement:
            words += f"{' after' if self.is_idle else ':'} {_quoted(self.statement)}"
        return words + (f"; {_quoted(self.waiting)} waits for it" if self.waiting else "")


def _quoted(statement: str) -> str:
    return f"`{shortened(without_secrets(one_line(statement)).replace('`', ''), _MAX_STATEMENT)}`"


@contextmanager
def naming_lock(engine: Engine, log: Log, limits: TimeLimits | None) -> Iterator[None]:
    """Raise LogLocked if a statement waits too long for a lock on the log, LookEnded if it takes too long."""
    try:
        yield
    except DatabaseFailed as fault:
        if limits is None or isinstance(fault, LogLocked | LookEnded):
            raise
        if blames_time(fault, log.dialect):
            raise LookEnded(limits.statement, *fault.args) from fault
        if not blames_lock(fault, log.dialect):
            raise
        if (facts := _holder_facts(engine, log, limits)) is None:
            raise LookEnded(limits.lock, *fault.args) from fault
        raise LogLocked(*facts) from fault


def _holder_facts(engine: Engine, log: Log, limits: TimeLimits) -> Sequence[str] | None:
    """Return who locks the log, in words, and what ends that session; None if no session locks it."""
    shows_more = log.dialect.sessions.shows_holders
    with suppress(EventlogError), limited(engine, log.dialect, limits).connect() as connection:
        row = Queries(log).run(connection, "log_lockers").first()
        if row is None:
            return None
        holder, ending = LockHolder(*row), log.dialect.sessions.end_session
        ending = ending.format(process=holder.process) if holder.process else ""
        return f" {holder.words(shows_more)}", ending
    return (f", by whom is not shown, which needs {shows_more}",)
