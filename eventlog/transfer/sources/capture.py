"""A live capture session as a source: the rows of the tables, then their changes, without a gap.

The session is active before the first table is read, from a position before every transaction that was open
then. So a change that the tables do not show is in the stream. `overlap` marks changes that both show.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, InvalidValue, Refused
from eventlog.core.tables import Column, Table, Tables
from eventlog.core.typenames import kind_of
from eventlog.formats.gbase import snapshot
from eventlog.formats.gbase.address import Address
from eventlog.formats.gbase.catalogue import CapturableTable, describe, read_table_name
from eventlog.formats.gbase.changes import ReadItem, StreamReader
from eventlog.formats.gbase.gbase_settings import GbaseSettings, Lock
from eventlog.formats.gbase.records import seconds_of
from eventlog.formats.gbase.session import MissingCatalogue, ServerError, Session
from eventlog.formats.gbase.snapshot import CapturedDatabase, ServerMoment
from eventlog.formats.gbase.transactions import Position, Unseen
from eventlog.transfer.sources.capture_settings import CaptureSettings

_MARK = (("overlap", True),)


def marked(change: Change, shown: Mapping[int, ServerMoment]) -> Change:
    """Return a change, with the mark if the snapshot of its table may show it.

    `shown` has the moment when each table had been read, by its number.
    """
    number = change.fact("number")
    read = shown.get(number) if isinstance(number, int) else None
    if read is None or not _within(change, read):
        return change
    return change._replace(extra=change.extra + _MARK)


def _within(change: Change, read: ServerMoment) -> bool:
    """Return whether a change was committed before its table had been read."""
    commit = change.fact("commit")
    if not isinstance(commit, int) or commit <= read.sequence:
        return True
    return change.time is not None and seconds_of(change.time) <= read.seconds


CATALOGUE: Final = "syscdcv1"
_ROWS: Final = 1000  # of a snapshot that are handed out together


class Transport(Protocol):
    """The way to a server: connections to its databases, and the bytes of a session."""

    def connect(self, database: str, *, transactions: bool) -> CapturedDatabase: ...
    def read(self, connection: CapturedDatabase, session: int, size: int) -> bytes: ...
    def close(self) -> None: ...


class LogGone(EventlogError):
    """log {0}, where the capture must start, is no longer on the disk of the server (the oldest is {1}): \
remove the state file, and load the tables again"""


class CaptureState(NamedTuple):
    """The state from which a capture goes on."""

    position: Position = Position()
    unseen: Unseen = Unseen.REFUSED
    shown: tuple[tuple[str, ServerMoment], ...] = ()  # when each of these tables had been read whole
    started: bool = False


class Capture:
    """One session over some tables."""

    def __init__(
        self,
        transport: Transport,
        address: Address,
        names: Sequence[str],
        declared: Tables,
        reading: GbaseSettings,
        settings: CaptureSettings,
        *,
        since: str | None = None,
    ) -> None:
        self._transport = transport
        self._address = address
        self._reading = reading
        self._settings = settings
        self._lock = Lock(settings.snapshot_lock)
        self._owner = address.vendor.owner
        self._databases: dict[str, CapturedDatabase] = {}
        self._exit = ExitStack()
        self._state = CaptureState() if since is None else _load(since)
        captured_names = [read_table_name(name, address.database) for name in dict.fromkeys(names)]
        self._tables = [
            describe(self._database(w.database), w, reading.text, self._owner) for w in captured_names
        ]
        self._named_tables = [_named(t, n, declared) for n, t in enumerate(self._tables, 1)]
        self.tables = Tables(self._named_tables, "informix")

    @property
    def state(self) -> str | None:
        """The state after the pieces that were read; None where a run could not go on from it."""
        return json.dumps(_dump(self._state)) if self._state.position.restart > 0 else None

    @property
    def uncarried_columns(self) -> Iterator[tuple[str, str]]:
        """The columns that no stream carries, with their tables."""
        return ((str(table.table), column) for table in self._tables for column in table.uncapturable)

    def answers(self, *, once: bool = False) -> Generator[Iterator[ReadItem]]:
        """Yield an iterator for each piece that the session hands out; read it to its end before the next.

        With `once` it ends when the server has nothing more.
        """
        with ExitStack() as stack:
            session = self._begin(stack)
            yield from self._snapshots()
            yield from self._stream(session, once)

    def close(self) -> None:
        """Close what is open; the session is closed by then."""
        self._exit.close()

    def _begin(self, stack: ExitStack) -> Session:
        """Return an active session, from the position of the state or from the oldest open transaction."""
        if self._state.started:
            self._check_log(self._state.position.restart)
            return self._session(stack, self._state.position.restart)
        try:
            position, now = self._start()
        except ServerError:
            session = self._session_under_lock(stack)
            self._state = CaptureState(Position(), Unseen.TAKEN, (), True)
            return session
        session = self._session(stack, position)
        past = now.sequence if self._lock is Lock.NONE else 0
        self._state = CaptureState(Position(position, past), Unseen.NOTED, (), True)
        return session

    def _start(self) -> tuple[int, ServerMoment]:
        """Return a position before all that is open now and all that will be, and this moment."""
        connection = self._any_database()
        now = snapshot.server_moment(connection, self._owner)
        current = snapshot.current_log(connection)
        if current is None:
            raise ServerError("sysmaster names no current log")
        log = snapshot.lowest_open_log(connection)
        return snapshot.start_of_log(current if log is None else min(log, current)), now

    def _session(self, stack: ExitStack, position: int) -> Session:
        connection = self._connect_catalogue(stack)
        session = Session(
            connection,
            lambda number, size: self._transport.read(connection, number, size),
            self._address.server,
            timeout=self._settings.server_timeout,
            owner=self._owner,
            keep_logging=self._settings.keep_logging,
        )
        stack.enter_context(session)
        for number, table in enumerate(self._tables, 1):
            session.capture(str(table.table), [column.name for column in table.columns], number)
        session.activate(position)
        return session

    def _connect_catalogue(self, stack: ExitStack) -> CapturedDatabase:
        try:
            connection = self._transport.connect(CATALOGUE, transactions=False)
        except ServerError as fault:
            if "-329" in str(fault):  # no such database
                raise MissingCatalogue("the connection", str(fault)) from fault
            raise
        stack.callback(connection.close)
        return connection

    def _session_under_lock(self, stack: ExitStack) -> Session:
        """Return an active session that began while no transaction had open changes in the tables."""
        for table in self._tables:
            connection = self._database(table.table.database)
            snapshot.share_lock(connection, table)
        session = self._session(stack, 0)
        for connection in self._databases.values():
            connection.commit()
        return session

    def _snapshots(self) -> Iterator[Iterator[ReadItem]]:
        """Yield the rows of the tables that were not read yet."""
        done = dict(self._state.shown)
        for number, (table, named) in enumerate(zip(self._tables, self._named_tables, strict=True), 1):
            if self._lock is Lock.NONE or str(table.table) in done:
                continue
            name = named.schema, named.name
            connection = self._database(table.table.database)
            answers = snapshot.read_table(connection, table, self._lock, number, name, self._owner)
            while piece := list(islice(answers, _ROWS)):
                yield self._rows(piece, str(table.table))
            self._check_log(self._state.position.restart)

    def _rows(self, piece: Sequence[Change | Refused | ServerMoment], table: str) -> Iterator[ReadItem]:
        """Yield the rows of a piece of a table; the last one ends the reading of the table."""
        for answer in piece:
            if isinstance(answer, ServerMoment):
                shown = dict(self._state.shown) | {table: answer}
                self._state = self._state._replace(shown=tuple(shown.items()))
            else:
                yield answer

    def _stream(self, session: Session, once: bool) -> Iterator[Iterator[ReadItem]]:
        shown = dict(self._state.shown)
        numbered = {n: shown[str(t.table)] for n, t in enumerate(self._tables, 1) if str(t.table) in shown}
        server, position = self._address.server, self._state.position
        stream = StreamReader(self.tables, self._reading, server, position, self._state.unseen)
        chunks = session.chunks()
        while True:
            chunk = next(chunks)
            yield self._piece(stream, chunk, numbered)
            if stream.over is not None:
                raise stream.over
            if stream.lost or (once and stream.idle):
                yield stream.close()
                return

    def _piece(
        self, stream: StreamReader, chunk: bytes, shown: Mapping[int, ServerMoment]
    ) -> Iterator[ReadItem]:
        for answer in stream.feed(chunk):
            yield marked(answer, shown) if isinstance(answer, Change) else answer
        self._state = self._state._replace(position=stream.position)

    def _check_log(self, position: int) -> None:
        """Raise LogGone if the log of a position is no longer on the server.

        Without the right to ask, the server reports it later.
        """
        if not position:
            return
        with suppress(ServerError):
            oldest = snapshot.oldest_log(self._any_database())
            if oldest is not None and snapshot.log_of(position) < oldest:
                raise LogGone(snapshot.log_of(position), oldest)

    def _database(self, name: str) -> CapturedDatabase:
        if name not in self._databases:
            connection = self._transport.connect(name, transactions=True)
            self._exit.callback(connection.close)
            self._databases[name] = connection
        return self._databases[name]

    def _any_database(self) -> CapturedDatabase:
        return next(iter(self._databases.values()))


def _named(described: CapturableTable, number: int, declared: Tables) -> Table:
    """Return the table as changes name it: as the tables file does, else as the catalogue does."""
    captured = described.table
    declared_table = declared.of(captured.owner, captured.name)
    if declared_table is not None:
        return replace(declared_table, key=declared_table.key or described.key, number=number)
    columns = {
        column.name: Column(column.name, column.declared, kind_of(column.declared, "informix"), column.name)
        for column in described.columns
    }
    return Table(captured.owner, captured.name, columns, described.key, number)


def _dump(state: CaptureState) -> dict[str, Any]:
    return {**state.position._asdict(), "unseen": state.unseen.value, "tables": dict(state.shown)}


def _load(state: str) -> CaptureState:
    """Return the state of an earlier run; raise InvalidValue if it is none."""
    try:
        fields = json.loads(state)
        shown = tuple(
            (str(name), ServerMoment(int(sequence), int(seconds)))
            for name, (sequence, seconds) in fields["tables"].items()
        )
        position = Position(int(fields["restart"]), int(fields["delivered"]))
        return CaptureState(position, Unseen(fields["unseen"]), shown, True)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise InvalidValue(state[:40], "the state of a capture") from None
