"""Our decoder of capture streams compared with the vendor's own, on the same bytes.

    python -m tests.formats.gbase.vendor [--seed 1] [--rows 400]

IBM publishes its JDBC driver and its client of change streams on Maven Central; they are fetched into the
folder that EVENTLOG_PEERS names. Each value that the tests know, the records that were captured from a
server, and random rows of all operations are decoded by both. The last line begins with RUN or SKIPPED.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.peers.installing import Skipped, jars
from eventlog.core.change import Change
from eventlog.core.tables import Tables
from eventlog.formats.gbase.address import VENDORS
from eventlog.formats.gbase.changes import StreamReader
from eventlog.formats.gbase.columns import Text
from eventlog.formats.gbase.records import (
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
from eventlog.formats.gbase.schema import read_schema
from eventlog.formats.gbase.writer import write_head, write_row, write_schema
from eventlog.transfer.sources import jdbc

# Known differences from the vendor's client, and why ours stays as it is.
KNOWN_DIFFERENCES = {
    "boolean": "it reads the second byte alone, and not the null flag that captured bytes have before it",
    "interval": "it decodes no interval",
    "nchar": "it reads the driver's default code set, for the connection here has none",
    "varchar": "it reads the driver's default code set, for the connection here has none",
    "datetime": "it fills the units that a partial DATETIME lacks",
}
TESTED = Path(__file__).parent
FACTS, CAPTURED = TESTED / "values.json", TESTED / "captured.json"
WIDE = {
    "a": "integer",
    "b": "bigint",
    "c": "smallint",
    "d": "decimal(10,2)",
    "e": "date",
    "f": "datetime year to second",
    "g": "float",
    "h": "char(8)",
    "i": "int8",
    "j": "varchar(40,0)",  # the last, as in every stream
}
HEADS = (
    BeginTx(11 << 32 | 24, 5, 1_750_000_000, 2005),
    CommTx(12, 5, 1_750_000_001),
    RbTx(13, 5),
    Discard(14, 5),
    Truncate(15, 5, 7),
    Timeout(16),
    Error(1, -83790),
)


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
        """Return the vendor's record of these bytes."""
        return self._builder.buildRecord(self._java.JArray(self._java.JByte)(record))

    def rows(self, stream: bytes) -> list[dict[str, str | None]]:
        """Return the rows of a stream, the values as texts."""
        built = [self.build(record) for record in records(stream)]
        return [_row(record.getData()) for record in built if record.hasOperationData()]

    def value(self, stream: bytes) -> str | None:
        """Return the value of the only column of the only row in a stream, as text."""
        ((value,),) = (row.values() for row in self.rows(stream))
        return value


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


def _row(data: Any) -> dict[str, str | None]:
    return {str(name): None if data[name].isNull() else _text(data[name]) for name in data.keySet()}


def _text(vendor_value: Any) -> str:
    java_value = vendor_value.toObject()
    plain = java_value.toPlainString() if hasattr(java_value, "toPlainString") else java_value.toString()
    return str(plain)


def records(stream: bytes) -> Iterator[bytes]:
    """Yield a stream cut into its records."""
    at = 0
    while at < len(stream):
        header, payload, _, _ = COMMON.unpack_from(stream, at)
        yield stream[at : at + header + payload]
        at += header + payload


def stream_of(declared: str, value: Any) -> bytes:
    """Return a stream of one row with this value."""
    schema = read_schema(f"c {declared}", Text())
    row = write_row(Number.INSERT, RowHead(2, 1, 7, 0), schema.write((value,), "big"))
    return write_schema(7, schema) + write_head(BeginTx(1, 1, 1, 1)) + row + write_head(CommTx(3, 1, 1))


def ours(stream: bytes) -> Any:
    """Return the result of our reader."""
    (change,) = [answer for answer in StreamReader(Tables()).feed(stream) if isinstance(answer, Change)]
    return change.after["c"]


def our_rows(stream: bytes) -> list[dict[str, Any]]:
    """Return the row of each record of a row, as our reader has them: of an update two."""
    rows: list[dict[str, Any]] = []
    for change in StreamReader(Tables()).feed(stream):
        if isinstance(change, Change):
            rows += [dict(side) for side in (change.before, change.after) if side]
    return rows


def random_stream(dice: random.Random, rows: int) -> bytes:
    """Return a transaction of inserts, updates and deletes of rows of many types, nulls among them."""
    schema = read_schema(", ".join(f"{name} {kind}" for name, kind in WIDE.items()), Text())
    parts = [write_schema(7, schema), write_head(BeginTx(1, 1, 1_750_000_000, 1001))]
    sequence = 1
    for _ in range(rows):
        numbers = dice.choice(((Number.INSERT,), (Number.DELETE,), (Number.UPDBEF, Number.UPDAFT)))
        for number in numbers:
            sequence += 1
            image = schema.write(_random_row(dice), "big")
            parts.append(write_row(number, RowHead(sequence, 1, 7, 0), image))
    return b"".join([*parts, write_head(CommTx(sequence + 1, 1, 1_750_000_001))])


def _random_row(dice: random.Random) -> tuple[Any, ...]:
    date = f"{dice.randint(1900, 2100)}-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}"
    values = (
        dice.randint(1 - 2**31, 2**31 - 1),
        dice.randint(1 - 2**63, 2**63 - 1),
        dice.randint(1 - 2**15, 2**15 - 1),
        f"{dice.randint(-99_999_999, 99_999_999)}.{dice.randint(0, 99):02}",
        date,
        f"{date}T{dice.randint(0, 23):02}:{dice.randint(0, 59):02}:{dice.randint(0, 59):02}",
        dice.uniform(-1e12, 1e12),
        "".join(dice.choices("abc XYZ", k=dice.randint(0, 8))),
        dice.randint(1 - 2**63, 2**63 - 1),
        "".join(dice.choices("abc XYZ'\\\"", k=dice.randint(1, 40))),
    )
    return tuple(None if dice.random() < 0.15 else value for value in values)


def compare_rows(vendor: Vendor, stream: bytes, kinds: dict[str, str]) -> tuple[int, list[str]]:
    """Return how many values of a stream's rows both decode alike, and the differences."""
    mine, theirs = our_rows(stream), vendor.rows(stream)
    if len(mine) != len(theirs):
        return 0, [f"a stream has {len(mine)} rows of ours, {len(theirs)} of theirs"]
    same, differ = 0, list[str]()
    for at, (our_row, their_row) in enumerate(zip(mine, theirs, strict=True)):
        for name, kind in kinds.items():
            if means_same(kind, our_row[name], their_row[name]):
                same += 1
            else:
                differ.append(f"row {at}, {kind}: ours {our_row[name]!r}, theirs {their_row[name]!r}")
    return same, differ


def captured() -> bytes:
    """Return the records that were captured from a server, as one stream."""
    return b"".join(bytes.fromhex(record["hex"]) for record in json.loads(CAPTURED.read_text("utf-8")))


def means_same(declared: str, mine: Any, theirs: str | None) -> bool:
    """Return whether both mean the same; texts of times differ in form only."""
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
    """Return how many values and records both understand alike, and the differences."""
    same, differ = 0, list[str]()
    facts = [(declared, value) for declared, _, value in json.loads(FACTS.read_text("utf-8"))]
    for declared, value in [*facts, *((name, None) for name in dict.fromkeys(name for name, _ in facts))]:
        stream = stream_of(declared, value)
        mine = ours(stream)
        try:
            theirs = vendor.value(stream)
        except Exception as fault:  # an exception of Java is its result for the value
            differ.append(f"{declared}: ours {mine!r}, theirs fails: {_cause(fault)}")
            continue
        if means_same(declared, mine, theirs):
            same += 1
        else:
            differ.append(f"{declared}: ours {mine!r}, theirs {theirs!r}")
    for head in HEADS:
        header = str(vendor.build(write_head(head)).toString())
        names = ("sequence", "transaction", "code", "flags")
        numbers = [getattr(head, name) for name in names if hasattr(head, name)]
        if all(f"[{number}]" in header for number in numbers):
            same += 1
        else:
            differ.append(f"{type(head).__name__}: ours {head}, theirs {header}")
    return same, differ


def _cause(fault: Any) -> str:
    while getattr(fault, "__cause__", None) is not None:
        fault = fault.__cause__
    return str(fault)[:100]


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.formats.gbase.vendor", description="The vendor beside us.")
    parser.add_argument("--seed", type=int, default=1, help="of the random rows (1)")
    parser.add_argument("--rows", type=int, default=400, help="how many of them (400)")
    arguments = parser.parse_args()
    if find_spec("jpype") is None:
        print("SKIPPED: the extra informix (jpype1) is not installed")
        return
    import jpype

    try:
        driver_jars = jars("informix")
    except Skipped as reason:
        print(f"SKIPPED: {reason}")
        return
    jdbc._start(jpype, driver_jars)
    names = VENDORS["informix"]
    read = jpype.JClass(names.smart_blob).class_.getMethod(
        "IfxLoRead", jpype.JInt.class_, jpype.JArray(jpype.JByte).class_, jpype.JInt.class_
    )
    taken = jpype.JClass(names.driver)().acceptsURL(f"{names.url}h:1/d:{names.server}=s")
    print(f"{names.driver} {'takes' if taken else 'REFUSES'} our addresses; {read}")
    vendor = Vendor(jpype)
    same, differ = compare(vendor)
    streams = (
        (captured(), {"c1": "integer"}),  # c2: it reads no size whose low byte comes first, as GBase has them
        (random_stream(random.Random(arguments.seed), arguments.rows), WIDE),
    )
    new = 0
    for line in differ:
        why = KNOWN_DIFFERENCES.get(re.split("[ (:]", line)[0], "")
        new += not why
        print(f"  {line}{why and f' ({why})'}")
    explained = len(differ) - new
    for stream, kinds in streams:
        same_in_stream, unlike = compare_rows(vendor, stream, kinds)
        same, new = same + same_in_stream, new + len(unlike)
        for line in unlike[:20]:
            print(f"  {line}")
    print(f"RUN: {same} values and records alike, {explained} known to differ, {new} not explained")


if __name__ == "__main__":
    main()
