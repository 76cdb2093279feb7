"""A capture server for tests: it answers the calls by the specification and sends the stream.

It implements a port (a DB-API connection and a read function), because no real server was available.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from eventlog.formats.gbase.columns import Text
from eventlog.formats.gbase.records import Error, Timeout
from eventlog.formats.gbase.schema import Schema, read_schema
from eventlog.formats.gbase.writer import write_head, write_schema


@dataclass
class Server:
    """A server with tables by name, and a log of (sequence, record)."""

    schemas: dict[str, str]
    log: list[tuple[int, bytes]] = field(default_factory=list)
    full_rows: set[str] = field(default_factory=set)
    captured: dict[str, int] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    session: int | None = None
    oldest: int = 1  # the first sequence that is still on disk
    installed: bool = True
    broken: bool = False
    active: bool = False
    sent: bytes = b""

    def cursor(self) -> FakeCursor:
        return FakeCursor(self)

    def call(self, function: str, arguments: Sequence[object]) -> int:
        self.calls.append(function)
        if self.broken and function != "cdc_closesess":
            return -83792
        return int(getattr(self, function)(*arguments))

    def cdc_opensess(
        self, server: str, session: int, timeout: int, max_records: int, major: int, minor: int
    ) -> int:
        if (major, minor) not in ((1, 0), (1, 1)):
            return -83702
        self.session = 41
        return self.session

    def cdc_set_fullrowlogging(self, table: str, on: int) -> int:
        if table not in self.schemas:
            return -83705
        if not on and table in self.captured:
            return -83710
        (self.full_rows.add if on else self.full_rows.discard)(table)
        return 0

    def cdc_startcapture(self, session: int, zero: int, table: str, columns: str, number: int) -> int:
        if session != self.session or zero != 0:
            return -83708
        schema = self.schema(table)
        if set(columns.split(",")) != set(schema.names):
            return -83707
        self.captured[table] = number
        return 0

    def cdc_activatesess(self, session: int, position: int) -> int:
        if position and position < self.oldest:
            return -83713
        for table, number in self.captured.items():
            self.sent += write_schema(number, self.schema(table))
        self.active = True
        start = position or (self.log[-1][0] + 1 if self.log else 0)
        self.sent += b"".join(record for sequence, record in self.log if sequence >= start)
        return 0

    def cdc_endcapture(self, session: int, zero: int, table: str) -> int:
        return 0 if self.captured.pop(table, None) is not None else -83711

    def cdc_closesess(self, session: int) -> int:
        self.session, self.sent, self.broken, self.active = None, b"", False, False
        self.captured.clear()
        return 0

    def schema(self, table: str) -> Schema:
        return read_schema(self.schemas[table], Text())

    def happen(self, sequence: int, record: bytes) -> None:
        """Log a record, and send it if a session is active."""
        self.log.append((sequence, record))
        if self.active:
            self.sent += record

    def break_session(self) -> None:
        self.broken = True
        self.sent += write_head(Error(1, -83790))

    def read(self, session: int, size: int) -> bytes:
        """Return what there is, cut anywhere, or a TIMEOUT record."""
        assert session == self.session
        piece, self.sent = self.sent[: min(size, 50)], self.sent[min(size, 50) :]
        return piece or write_head(Timeout(self.log[-1][0] if self.log else 0))


class FakeCursor:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._result = 0

    def execute(self, operation: str, parameters: Sequence[object], /) -> None:
        function = operation.removeprefix("execute function informix.").partition("(")[0]
        assert operation.count("?") == len(parameters)
        if not self._server.installed:
            raise OSError("[SQLCODE -674] Routine (cdc_opensess) can not be resolved.")
        self._result = self._server.call(function, parameters)

    def fetchone(self) -> tuple[object, ...] | None:
        return (self._result,)

    def close(self) -> None:
        pass
