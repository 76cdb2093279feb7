"""A capture session: the calls of the vendor's nine steps, over any DB-API connection to syscdcv1.

Step 1, creating that database, is the administrator's; step 6, reading, is `changes.StreamReader`. The
bytes come from a function, because no DB-API can read the session's large object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Final, NamedTuple, Protocol, Self

from eventlog.core.errors import EventlogError, Misuse
from eventlog.gbase.faults import ERRORS, error_name

READ_SIZE: Final = 32_000  # servers before 12.10.xC4 never return more from one read (APAR IT00258)
MAX_RECORDS: Final = 256  # per read; larger values were refused

_NO_CATALOGUE: Final = -83701
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
_TABLE = re.compile(r"[^\s:.'\"]+:[^\s:.'\"]+\.[^\s:.'\"]+")
# SQLCODEs of a server without the database (-329) or without the routine (-674)
_ABSENT = re.compile(r"-(?:329|674)\b|cdc_opensess|syscdcv1", re.IGNORECASE)


class ServerError(EventlogError):
    """{0}"""


class CaptureError(EventlogError):
    """{0} failed: {1}"""

    def __init__(self, step: str, reason: str, code: int = 0) -> None:
        super().__init__(step, reason, code)

    @property
    def code(self) -> int:
        """The number of the error, 0 where the connection failed."""
        return int(self.args[2])

    @property
    def name(self) -> str:
        """The vendor's name of the error, empty where the number is not known."""
        return ERRORS.get(self.code, ("", ""))[0]


class MissingCatalogue(CaptureError):
    """{0} failed: {1}; the database syscdcv1 is missing: run `dbaccess - syscdcv1.sql` \
in $GBASEDBTDIR/etc as gbasedbt (Informix: in $INFORMIXDIR/etc as informix)"""


class Cursor(Protocol):
    def execute(self, operation: str, parameters: Sequence[object], /) -> object: ...
    def fetchone(self) -> Sequence[object] | None: ...
    def close(self) -> object: ...


class Connection(Protocol):
    def cursor(self) -> Cursor: ...


def rows(
    connection: Connection, statement: str, arguments: Sequence[object] = ()
) -> Iterator[Sequence[object]]:
    """Yield the rows of a query."""
    cursor = connection.cursor()
    try:
        cursor.execute(statement, arguments)
        while (row := cursor.fetchone()) is not None:
            yield row
    finally:
        cursor.close()


def run(connection: Connection, statement: str) -> None:
    """Run a statement that has no result."""
    cursor = connection.cursor()
    try:
        cursor.execute(statement, ())
    finally:
        cursor.close()


Read = Callable[[int, int], bytes]  # session and size to at most so many bytes


class Captured(NamedTuple):
    """A table to capture."""

    name: str  # database:owner.table
    columns: tuple[str, ...]
    number: int  # what its records are marked with


class Session:
    """A session that opens on entry; on exit it ends every capture and closes.

    Full-row logging stays on unless `keep_logging` is false. While it is off, changes are logged in part, and
    a later session would miss them.
    """

    def __init__(
        self,
        connection: Connection,
        read: Read,
        server: str,
        *,
        timeout: int = 5,
        max_records: int = 64,
        version: tuple[int, int] = (1, 1),
        owner: str = "informix",
        placeholder: str = "?",
        keep_logging: bool = True,
    ) -> None:
        if not _NAME.fullmatch(owner):
            raise Misuse(f"{owner!r} is not the owner of the capture functions")
        if not 1 <= max_records <= MAX_RECORDS:
            raise Misuse(f"max_records is {max_records}, not between 1 and {MAX_RECORDS}")
        self._connection = connection
        self._read = read
        self._opening = (server, 0, timeout, max_records, *version)
        self._owner = owner
        self._placeholder = placeholder
        self._keep_logging = keep_logging
        self._logged: list[str] = []
        self._captured: list[str] = []
        self._session: int | None = None

    def __enter__(self) -> Self:
        self._session = self._call("cdc_opensess", *self._opening)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        failures = list(self._undo())
        if failures and error is None:
            raise failures[0]

    def capture(self, table: Captured) -> None:
        """Log full rows, and capture the table's changes in this session (steps 3 and 4)."""
        if not _TABLE.fullmatch(table.name):
            raise Misuse(f"{table.name!r} is not a table as database:owner.table")
        if not table.columns:
            raise Misuse(f"no columns of {table.name} are named")
        self._call("cdc_set_fullrowlogging", table.name, 1)
        self._logged.append(table.name)
        columns = ",".join(table.columns)
        self._call("cdc_startcapture", self.id, 0, table.name, columns, table.number)
        self._captured.append(table.name)

    def activate(self, position: int = 0) -> None:
        """Begin the stream, from now or from a restart position (step 5)."""
        self._call("cdc_activatesess", self.id, position)

    def chunks(self, size: int = READ_SIZE) -> Iterator[bytes]:
        """Yield the stream; empty bytes if a read brought nothing, so that the caller can stop (step 6)."""
        while True:
            yield self._read(self.id, size)

    @property
    def id(self) -> int:
        if self._session is None:
            raise Misuse("the session is not open")
        return self._session

    def _undo(self) -> Iterator[CaptureError]:
        """Undo steps 3 to 5 (steps 7 to 9); each is tried even if another fails."""
        calls: list[tuple[object, ...]] = [
            *(("cdc_endcapture", self.id, 0, name) for name in reversed(self._captured)),
            *(("cdc_set_fullrowlogging", name, 0) for name in self._logged if not self._keep_logging),
            ("cdc_closesess", self.id),
        ]
        for function, *arguments in calls:
            try:
                self._call(str(function), *arguments)
            except CaptureError as failure:
                yield failure
        self._session = None
        self._captured.clear()
        self._logged.clear()

    def _call(self, function: str, *arguments: object) -> int:
        """Return the result of a function of the capture API; a negative one is an error."""
        marks = ", ".join([self._placeholder] * len(arguments))
        try:
            result = self._fetch(f"execute function {self._owner}.{function}({marks})", arguments)
        except CaptureError:
            raise
        except Exception as fault:  # each driver has errors of its own
            is_missing = function == "cdc_opensess" and _ABSENT.search(str(fault))
            raise (MissingCatalogue if is_missing else CaptureError)(function, str(fault)) from fault
        if result == _NO_CATALOGUE:
            raise MissingCatalogue(function, error_name(result), result)
        if result < 0:
            raise CaptureError(function, error_name(result), result)
        return result

    def _fetch(self, statement: str, arguments: tuple[object, ...]) -> int:
        cursor = self._connection.cursor()
        try:
            cursor.execute(statement, arguments)
            row = cursor.fetchone()
        finally:
            cursor.close()
        if row is None or not isinstance(row[0], int):
            raise CaptureError(statement, "it returned no number")
        return row[0]
