"""A capture session: the calls of the vendor's nine steps, over any DB-API connection to syscdcv1.

Step 1, creating that database, is the administrator's; step 6, reading, is `changes.StreamReader`. The
bytes come from a function, because no DB-API can read the session's large object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from types import TracebackType
from typing import Final, Protocol, Self

from eventlog.core.errors import EventlogError
from eventlog.formats.gbase.faults import error_name

READ_SIZE: Final = 32_000  # servers before 12.10.xC4 never return more from one read (APAR IT00258)
_RECORDS: Final = 64  # of one read, at most; servers refuse more than 256
_VERSION: Final = (1, 1)  # of the stream
_NO_CATALOGUE: Final = -83701
# SQLCODEs of a server without the database (-329) or without the routine (-674)
_ABSENT = re.compile(r"-(?:329|674)\b|cdc_opensess|syscdcv1", re.IGNORECASE)


class ServerError(EventlogError):
    """{0}"""


class CaptureError(EventlogError):
    """{0} failed: {1}"""


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
) -> Generator[Sequence[object]]:
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


class Session:
    """A session that opens on entry; on exit it ends every capture and closes.

    Full-row logging stays on unless `keep_logging` is false. While it is off, changes are logged in part, and
    a later session would miss them.
    """

    def __init__(
        self,
        connection: Connection,
        read: Callable[[int, int], bytes],  # at most so many bytes of a session
        server: str,
        *,
        timeout: int = 5,
        owner: str = "informix",
        keep_logging: bool = True,
    ) -> None:
        self._connection = connection
        self._read = read
        self._opening = (server, 0, timeout, _RECORDS, *_VERSION)
        self._owner = owner
        self._keep_logging = keep_logging
        self._logged: list[str] = []
        self._captured: list[str] = []
        self._id = 0  # until it is open

    def __enter__(self) -> Self:
        self._id = self._call("cdc_opensess", *self._opening)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        failures = list(self._undo())
        if failures and error is None:
            raise failures[0]

    def capture(self, table: str, columns: Sequence[str], number: int) -> None:
        """Log full rows, and capture the changes of a table under a number (steps 3 and 4)."""
        self._call("cdc_set_fullrowlogging", table, 1)
        self._logged.append(table)
        self._call("cdc_startcapture", self._id, 0, table, ",".join(columns), number)
        self._captured.append(table)

    def activate(self, position: int = 0) -> None:
        """Begin the stream, from now or from a restart position (step 5)."""
        self._call("cdc_activatesess", self._id, position)

    def chunks(self, size: int = READ_SIZE) -> Iterator[bytes]:
        """Yield the stream; empty bytes if a read brought nothing, so that the caller can stop (step 6)."""
        while True:
            yield self._read(self._id, size)

    def _undo(self) -> Iterator[CaptureError]:
        """Undo steps 3 to 5 (steps 7 to 9); each is tried even if another fails."""
        calls: list[tuple[object, ...]] = [
            *(("cdc_endcapture", self._id, 0, name) for name in reversed(self._captured)),
            *(("cdc_set_fullrowlogging", name, 0) for name in self._logged if not self._keep_logging),
            ("cdc_closesess", self._id),
        ]
        for function, *arguments in calls:
            try:
                self._call(str(function), *arguments)
            except CaptureError as failure:
                yield failure

    def _call(self, function: str, *arguments: object) -> int:
        """Return the result of a function of the capture API; a negative one is an error."""
        marks = ", ".join("?" * len(arguments))
        statement = f"execute function {self._owner}.{function}({marks})"
        try:
            with closing(rows(self._connection, statement, arguments)) as answers:
                result = next(answers, [None])[0]
        except Exception as fault:  # each driver has errors of its own
            is_missing = function == "cdc_opensess" and _ABSENT.search(str(fault)) is not None
            raise (MissingCatalogue if is_missing else CaptureError)(function, str(fault)) from fault
        if not isinstance(result, int):
            raise CaptureError(function, "it returned no number")
        if result < 0:
            is_missing = result == _NO_CATALOGUE
            raise (MissingCatalogue if is_missing else CaptureError)(function, error_name(result))
        return result
