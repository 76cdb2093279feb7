"""What the JDBC transport makes of Java's values and errors, run in a process of its own: a JVM starts once.

The driver is played by objects of ours, for the real one is not ours to ship: `vendor` takes that.
"""

from __future__ import annotations

import sys
import zipfile
from typing import Any

import jpype

from eventlog.core.errors import EventlogError
from eventlog.formats.gbase.address import read_address
from eventlog.transfer.sources import jdbc

ADDRESS = read_address("informix://cdc@localhost:1/shop?server=ol1")


class Result:
    def __init__(self, rows: list[list[Any]]) -> None:
        self.rows, self.at = rows, -1

    def next(self) -> bool:
        self.at += 1
        return self.at < len(self.rows)

    def getObject(self, place: int) -> Any:  # noqa: N802
        return self.rows[self.at][place - 1]

    def getMetaData(self) -> Any:  # noqa: N802
        return Named(getColumnCount=lambda: len(self.rows[0]))


class Named:
    def __init__(self, **methods: Any) -> None:
        self.__dict__.update(methods)


def fail(*ignored: object) -> Any:
    raise jpype.JClass("java.sql.SQLException")("user cdc, password geheim: no", "IX000", -951)


def main(jar: str) -> None:
    with zipfile.ZipFile(jar, "w") as empty:
        empty.writestr("nothing.txt", "")
    for jars in ([], ["none.jar"], [jar]):
        try:
            jdbc.Jdbc(ADDRESS, "geheim", jars)
        except EventlogError as fault:
            print(type(fault).__name__, " ".join(str(fault).split())[:60])
    of = jpype.JClass
    row = [
        None,
        of("java.lang.Integer")(7),
        of("java.lang.Long")(1 << 40),
        of("java.lang.Boolean")(True),
        of("java.lang.Double")(0.5),
        of("java.math.BigDecimal")("1E+3"),
        of("java.math.BigDecimal")("-0.500"),
        of("java.lang.String")("größe"),
        of("java.sql.Date").valueOf("2024-03-15"),
    ]
    bound: list[tuple[str, int, Any]] = []
    statement = Named(
        setString=lambda at, value: bound.append(("string", int(at), str(value))),
        setInt=lambda at, value: bound.append(("int", int(at), int(value))),
        setLong=lambda at, value: bound.append(("long", int(at), int(value))),
        execute=lambda: True,
        getResultSet=lambda: Result([row]),
        close=lambda: None,
    )
    connection = Named(prepareStatement=lambda text: statement, commit=fail)
    transport = object.__new__(jdbc.Jdbc)
    transport._jpype, transport._password = jpype, "geheim"
    link = jdbc._Connection(connection, transport._call_driver)
    cursor = link.cursor()
    cursor.execute("execute function f(?, ?, ?)", ("a", 1, 1 << 40))
    print(bound)
    print(cursor.fetchone(), cursor.fetchone())
    cursor.close()
    try:
        link.commit()
    except EventlogError as fault:
        print(type(fault).__name__, fault)
    buffer = jpype.JArray(jpype.JByte)(4)

    def load(session: int, into: Any, size: int) -> int:
        into[0:3] = [1, -1, 127]
        return 3

    link.blob, link.buffer = Named(IfxLoRead=load), buffer
    print(transport.read(link, 41, 4).hex())


main(sys.argv[1])
