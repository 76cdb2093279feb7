"""Sessions of PostgreSQL that outlive their connection, as a pooler in session mode keeps them.

A server forks for each session and reads its catalogue anew, which takes 10 ms of CPU. So a connection that
is closed leaves its session, after `discard all`, to the next connection with the same address. Sessions of
roles that tests make end, for the next role of that name is another. A test in which a session must really
end has the mark `cold`.
"""

from __future__ import annotations

import os
import select
import socket
from contextlib import suppress
from threading import Lock
from typing import Any

import psycopg
from psycopg import pq
from psycopg.abc import PQGenConn
from psycopg.pq import ConnStatus, ExecStatus, PipelineStatus, TransactionStatus
from psycopg.pq.abc import PGconn

MAX_IDLE = 8  # idle sessions; each is a process of its server
OWNER = b"eventlog"  # the role that is always there

_begin: Any = psycopg.Connection._connect_gen.__func__  # type: ignore[attr-defined]
_close: Any = psycopg.Connection.close
_ENDED = pq.PGconn.connect_start(b"host=/none")  # takes the place of the session that a connection left
_ENDED.finish()


class Sessions:
    """The idle sessions of this process."""

    def __init__(self) -> None:
        self._are_kept = False
        self._process = os.getpid()
        self._lock = Lock()
        self._idle: list[tuple[str, PGconn]] = []  # with the addresses of their connections

    def keep(self, is_warm: bool) -> None:
        """Keep the sessions of connections that are closed, or end all and keep none."""
        self._are_kept = is_warm
        if not is_warm:
            self.end("")

    def are_kept(self) -> bool:
        """Return whether sessions are kept; they are those of one process, not of its children."""
        return self._are_kept and os.getpid() == self._process

    def take(self, address: str) -> PGconn | None:
        """Return the idle session that was left last with this address, if there is one."""
        with self._lock:
            for place in reversed(range(len(self._idle))):
                if self._idle[place][0] == address:
                    _, session = self._idle.pop(place)
                    if _is_alive(session):
                        return session
                    session.finish()
        return None

    def add(self, address: str, session: PGconn) -> None:
        """Add an idle session; if there are too many, end the one that was left first."""
        with self._lock:
            self._idle.append((address, session))
            if len(self._idle) > MAX_IDLE:
                self._idle.pop(0)[1].finish()

    def end(self, name: str) -> None:
        """End the idle sessions at a database of this name; return when the server has ended them."""
        with self._lock:
            ended = [session for address, session in self._idle if name in address]
            self._idle = [idle for idle in self._idle if idle[1] not in ended]
        sockets = [socket.socket(fileno=os.dup(session.socket)) for session in ended]
        for session in ended:
            session.finish()
        for stream in sockets:
            with stream, suppress(ConnectionError):
                stream.setblocking(True)
                while stream.recv(1024):
                    pass


SESSIONS = Sessions()


def install() -> None:
    """Let each connection of psycopg begin with an idle session and leave its own."""
    psycopg.Connection._connect_gen = classmethod(_begin_warm)  # type: ignore[assignment,method-assign]
    psycopg.Connection.close = _close_warm  # type: ignore[method-assign]


def _begin_warm(cls: Any, /, conninfo: str = "", **limits: Any) -> PQGenConn[Any]:  # early versions have some
    if not SESSIONS.are_kept():
        return (yield from _begin(cls, conninfo, **limits))
    session = SESSIONS.take(conninfo)
    connection = cls(session) if session is not None else (yield from _begin(cls, conninfo, **limits))
    connection.address_of_session = conninfo
    return connection


def _close_warm(self: Any) -> None:
    """Close a connection, whose session is the next one's if it can be made as a new one is."""
    address, session = getattr(self, "address_of_session", None), self.pgconn
    if self.closed or address is None or not SESSIONS.are_kept() or not _clean(session):
        _close(self)
        return
    self._closed, self.pgconn = True, _ENDED
    SESSIONS.add(address, session)


def _clean(session: PGconn) -> bool:
    """Make a session as a new one is; return whether it is."""
    status = session.transaction_status
    is_busy = status in (TransactionStatus.ACTIVE, TransactionStatus.UNKNOWN)
    is_left_open = session.status == ConnStatus.OK and session.pipeline_status == PipelineStatus.OFF
    if not is_left_open or is_busy or session.user != OWNER:
        return False
    session.notice_handler = session.notify_handler = None
    statements = (b"rollback",) * (status != TransactionStatus.IDLE) + (b"discard all",)
    try:
        return all(session.exec_(statement).status == ExecStatus.COMMAND_OK for statement in statements)
    except psycopg.Error:
        return False


def _is_alive(session: PGconn) -> bool:
    """Return whether the server sent nothing since the session was left, as it does when it ends one."""
    poll = select.poll()
    poll.register(session.socket, select.POLLIN)
    return not poll.poll(0)
