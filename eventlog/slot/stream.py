"""The stream of a logical replication slot, by the driver's door to libpq.

PostgreSQL documentation, "Streaming Replication Protocol".
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from struct import Struct
from typing import Any, Final

from psycopg import OperationalError, conninfo, pq
from sqlalchemy.engine import Engine

from eventlog.core.errors import EventlogError
from eventlog.slot.decode import EPOCH, VERSION
from eventlog.sql.common import templates
from eventlog.sql.common.expression import literal
from eventlog.sql.connect import ConnectionLost
from eventlog.sql.dialects import dialect_of

_DATA, _ALIVE, _STATUS = b"w", b"k", b"r"
_HEAD: Final = 25  # bytes before a message of the plugin
_ALIVE_FORM = Struct("!cQqB")  # its kind, the end of the server's log, the time, whether to answer
_STATUS_FORM = Struct("!cQQQqB")


class StreamRefused(EventlogError):
    """the server does not stream the slot {0}: {1}"""


class SlotStream:
    """A stream of what a slot sends, from a position on."""

    def __init__(self, engine: Engine, slot: str, position: int, options: Mapping[str, str]) -> None:
        self._slot = slot
        self._connection = _connect(engine)
        self.end = position  # of the server's log, before which nothing else comes
        self._confirmed = position
        settings = {"proto_version": str(VERSION), **options}
        words = ", ".join(f"{name} {literal(value)}" for name, value in settings.items())
        quoted = dialect_of(engine).quote(slot)
        start = (
            f"START_REPLICATION SLOT {quoted} LOGICAL {position >> 32:X}/{position & 0xFFFFFFFF:X} ({words})"
        )
        result = self._connection.exec_(start.encode())
        if result.status != pq.ExecStatus.COPY_BOTH:
            fault = _words(result.error_message)
            self.close()
            raise StreamRefused(slot, fault)
        self._connection.nonblocking = 1

    def fileno(self) -> int:
        """Return the socket."""
        return int(self._connection.socket)

    def messages(self) -> Iterator[bytes]:
        """Yield the plugin's messages that are at hand. Raise ConnectionLost or StreamRefused at the end."""
        connection, is_read = self._connection, False
        while True:
            size, data = connection.get_copy_data(1)
            if size > 0:
                message = bytes(data)
                if message[:1] == _DATA:
                    yield message[_HEAD:]
                elif message[:1] == _ALIVE:
                    self._hear(message)
            elif size < 0:
                raise StreamRefused(self._slot, _words(connection.get_result()) or "it ended")
            elif is_read:
                return
            else:
                is_read = True
                with _connected():
                    connection.consume_input()

    def _hear(self, message: bytes) -> None:
        _, self.end, _, must_answer = _ALIVE_FORM.unpack(message)
        if must_answer:
            self.confirm(self._confirmed)

    def confirm(self, position: int) -> None:
        """Report that nothing before a position is needed any more."""
        self._confirmed = max(self._confirmed, position)
        now = int((time.time() - EPOCH) * 1_000_000)
        report = _STATUS_FORM.pack(_STATUS, *[self._confirmed] * 3, now, 0)
        with _connected():
            self._connection.put_copy_data(report)
            self._connection.flush()

    def close(self) -> None:
        """End the session at the server."""
        self._connection.finish()


@contextmanager
def _connected() -> Iterator[None]:
    try:
        yield
    except OperationalError as fault:
        raise ConnectionLost(" ".join(str(fault).split())) from fault


def _connect(engine: Engine) -> Any:
    _, of_driver = engine.dialect.create_connect_args(engine.url)
    arguments = {name: value for name, value in of_driver.items() if isinstance(value, (str, int))}
    address: dict[str, Any] = {
        "fallback_application_name": "eventlog",
        **arguments,
        "client_encoding": "UTF8",
        "replication": "database",
    }
    connection = pq.PGconn.connect(conninfo.make_conninfo(**address).encode())
    if connection.status != pq.ConnStatus.OK:
        fault = _words(connection.error_message)
        connection.finish()
        raise ConnectionLost(fault)
    # the texts of values must be those that a session of the log reads
    settings = templates.statements(dialect_of(engine), "session", {})
    with _connected():
        connection.exec_("; ".join(settings).encode())
    return connection


def _words(source: Any) -> str:
    """Return an error of the server in one line."""
    message = getattr(source, "error_message", source) or b""
    return " ".join(message.decode(errors="replace").split())
