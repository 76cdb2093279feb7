"""Our decoder of capture streams beside the vendor's own, on the same bytes: `python bench/vendor.py`.

IBM publishes its JDBC driver and its client of change streams on Maven Central. They are fetched into a
folder (`--jars`, kept for the next time), and each value that the tests know is decoded by both. The last
line begins with RUN or SKIPPED. No test needs this; no server does it need.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from eventlog.core.change import Change
from eventlog.core.tables import Tables
from eventlog.gbase.address import VENDORS
from eventlog.gbase.changes import StreamReader
from eventlog.gbase.columns import Text
from eventlog.gbase.records import (
    COMMON,
    BeginTx,
    CommTx,
    Discard,
    Error,
    Number,
    RbTx,
    RowHead,
    Timeout,
    Truncate,
)
from eventlog.gbase.schema import read_schema
from eventlog.gbase.writer import write_head, write_row, write_schema
from eventlog.places import jdbc

CENTRAL = "https://repo1.maven.org/maven2"
JARS = (
    "com/ibm/informix/jdbc/4.50.13.1/jdbc-4.50.13.1.jar",
    "com/ibm/informix/ifx-changestream-client/1.1.5/ifx-changestream-client-1.1.5.jar",
    "org/mongodb/bson/3.8.0/bson-3.8.0.jar",
    "org/slf4j/slf4j-api/2.0.16/slf4j-api-2.0.16.jar",
    "org/slf4j/slf4j-nop/2.0.16/slf4j-nop-2.0.16.jar",
)
# Where the vendor's client is known to say something else, and why ours stays as it is.
KNOWN = {
    "boolean": "it reads the second byte alone, and not the null flag that captured bytes have before it",
    "interval": "it decodes no interval",
    "nchar": "it reads the driver's default code set, for the connection here has none",
    "varchar": "it reads the driver's default code set, for the connection here has none",
    "datetime": "it fills the units that a partial DATETIME lacks",
}
FACTS = Path(__file__).parents[1] / "tests" / "gbase" / "values.json"
HEADS = (
    BeginTx(11 << 32 | 24, 5, 1_750_000_000, 2005),
    CommTx(12, 5, 1_750_000_001),
    RbTx(13, 5),
    Discard(14, 5),
    Truncate(15, 5, 7),
    Timeout(16),
    Error(1, -83790),
)


def fetch(folder: Path) -> list[str]:
    """The jars, fetched once; each is held against the checksum beside it."""
    found = []
    for name in JARS:
        path = folder / Path(name).name
        if not path.is_file():
            data = _get(name)
            stated = _get(name + ".sha1").decode().split()[0]
            if hashlib.sha1(data).hexdigest() != stated:
                raise OSError(f"{path.name}: the checksum is another one")
            path.write_bytes(data)
        found.append(str(path))
    return found


def _get(name: str) -> bytes:
    with urllib.request.urlopen(f"{CENTRAL}/{name}", timeout=60) as answer:
        content: bytes = answer.read()
    return content


class Vendor:
    """The vendor's builder of records, over a connection that is connected to nothing."""

    def __init__(self, java: Any) -> None:
        self._java = java
        unsafe = java.JClass("sun.misc.Unsafe").class_.getDeclaredField("theUnsafe")
        unsafe.setAccessible(True)
        connection = unsafe.get(None).allocateInstance(java.JClass("com.informix.jdbc.IfxSqliConnect").class_)
        features = java.JClass("java.util.BitSet")(64)
        features.set(java.JInt(0), java.JInt(64))
        _put(connection, "dbVersion", features)
        self._builder = java.JClass("com.informix.stream.cdc.IfxCDCRecordBuilder")(connection)

    def build(self, record: bytes) -> Any:
        """The vendor's record of these bytes."""
        return self._builder.buildRecord(self._java.JArray(self._java.JByte)(record))

    def value(self, stream: bytes) -> str | None:
        """The value of the only column of the only row in a stream, as text."""
        built = [self.build(record) for record in records(stream)]
        (row,) = [record for record in built if record.hasOperationData()]
        (held,) = row.getData().values()
        return None if held.isNull() else _text(held)


def _put(of: Any, name: str, value: Any) -> None:
    kind = of.getClass()
    while kind is not None:
        for field in kind.getDeclaredFields():
            if str(field.getName()) == name:
                field.setAccessible(True)
                field.set(of, value)
                return
        kind = kind.getSuperclass()
    raise LookupError(f"{name} is no field of the driver's connection any more")


def _text(held: Any) -> str:
    found = held.toObject()
    plain = found.toPlainString() if hasattr(found, "toPlainString") else found.toString()
    return str(plain)


def records(stream: bytes) -> Iterator[bytes]:
    """A stream cut into its records."""
    at = 0
    while at < len(stream):
        header, payload, _, _ = COMMON.unpack_from(stream, at)
        yield stream[at : at + header + payload]
        at += header + payload


def stream_of(declared: str, value: Any) -> bytes:
    """A stream of one row with this value."""
    schema = read_schema(f"c {declared}", Text())
    row = write_row(Number.INSERT, RowHead(2, 1, 7, 0), schema.write((value,), "big"))
    return write_schema(7, schema) + write_head(BeginTx(1, 1, 1, 1)) + row + write_head(CommTx(3, 1, 1))


def ours(stream: bytes) -> Any:
    """What our reader makes of it."""
    (change,) = [found for found in StreamReader(Tables()).feed(stream) if isinstance(found, Change)]
    return change.after["c"]


def alike(declared: str, mine: Any, theirs: str | None) -> bool:
    """Whether both mean the same; texts of times differ in form only."""
    if mine is None or theirs is None:
        return mine is theirs
    if isinstance(mine, bool):
        return str(mine).lower() == theirs
    if isinstance(mine, int | float):
        return float(theirs) == float(mine) and (isinstance(mine, float) or int(theirs) == mine)
    if declared.startswith(("decimal", "money")):
        return float(theirs) == float(mine) and theirs.rstrip("0").rstrip(".") == mine.rstrip("0").rstrip(".")
    if declared.startswith(("datetime", "interval")):
        return _digits(theirs).rstrip("0") == _digits(str(mine)).rstrip("0")
    return theirs.rstrip() == str(mine).rstrip()


def _digits(text: str) -> str:
    return "".join(c for c in text if c.isdigit() or (c == "-" and text.strip().startswith("-"))).lstrip("0")


def compare(vendor: Vendor) -> tuple[int, list[str]]:
    """How many values and records both understand alike, and what they do not."""
    same, differ = 0, list[str]()
    facts = [(declared, value) for declared, _, value in json.loads(FACTS.read_text("utf-8"))]
    for declared, value in [*facts, *((name, None) for name in dict.fromkeys(name for name, _ in facts))]:
        stream = stream_of(declared, value)
        mine = ours(stream)
        try:
            theirs = vendor.value(stream)
        except Exception as fault:  # whatever Java throws is what it says of the value
            differ.append(f"{declared}: ours {mine!r}, theirs fails: {_cause(fault)}")
            continue
        if alike(declared, mine, theirs):
            same += 1
        else:
            differ.append(f"{declared}: ours {mine!r}, theirs {theirs!r}")
    for head in HEADS:
        told = str(vendor.build(write_head(head)).toString())
        names = ("sequence", "transaction", "code", "flags")
        numbers = [getattr(head, name) for name in names if hasattr(head, name)]
        if all(f"[{number}]" in told for number in numbers):
            same += 1
        else:
            differ.append(f"{type(head).__name__}: ours {head}, theirs {told}")
    return same, differ


def _cause(fault: Any) -> str:
    while getattr(fault, "__cause__", None) is not None:
        fault = fault.__cause__
    return str(fault)[:100]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jars", type=Path, help="the folder that keeps the jars")
    folder: Path | None = parser.parse_args().jars
    if find_spec("jpype") is None:
        print("SKIPPED: the extra informix (jpype1) is not installed")
        return
    import jpype

    with tempfile.TemporaryDirectory() as made:
        try:
            jars = fetch(folder or Path(made))
        except (OSError, urllib.error.URLError) as fault:
            print(f"SKIPPED: the jars cannot be fetched: {fault}")
            return
        jdbc._start(jpype, jars)
        names = VENDORS["informix"]
        read = jpype.JClass(names.smart_blob).class_.getMethod(
            "IfxLoRead", jpype.JInt.class_, jpype.JArray(jpype.JByte).class_, jpype.JInt.class_
        )
        taken = jpype.JClass(names.driver)().acceptsURL(f"{names.url}h:1/d:{names.server}=s")
        print(f"{names.driver} {'takes' if taken else 'REFUSES'} our addresses; {read}")
        same, differ = compare(Vendor(jpype))
        known = {line: KNOWN.get(re.split("[ (:]", line)[0], "") for line in differ}
        for line, reason in known.items():
            print(f"  {line}{reason and f' ({reason})'}")
        new = list(known.values()).count("")
        print(
            f"RUN: {same} values and records alike, {len(differ) - new} known to differ, {new} not explained"
        )


if __name__ == "__main__":
    main()
