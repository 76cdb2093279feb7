"""Messages of a task, as Qlik Replicate writes them, and their places in its topics."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eventlog.core import tablesfile

TABLES = tablesfile.read("""\
[tables.account]
key = ["id"]
columns = { id = "integer", owner = "varchar(64)", amount = "integer" }

[tables.entry]
key = ["id"]
columns = { id = "integer", account = "integer", amount = "integer" }
""")


def sequence(number: int, second: int = 0) -> str:
    """Return a change_seq."""
    return f"20250101{second:08}{number:019}"


def message(
    table: str,
    operation: str,
    data: Mapping[str, Any],
    number: int,
    transaction: int,
    counter: int | None = None,
    last: bool = False,
    before: Mapping[str, Any] | None = None,
) -> bytes:
    """Return one change of a row."""
    reported = (1 << len(data)) - 1
    headers = {
        "operation": operation,
        "changeSequence": sequence(number),
        "timestamp": "2025-01-01T00:00:00.000",
        "streamPosition": str(number),
        "transactionId": f"{transaction:032X}",
        "changeMask": f"{reported:02X}",
        "columnMask": f"{reported:02X}",
        "transactionEventCounter": counter,
        "transactionLastEvent": None if counter is None else last,
    }
    body = {"table": table, "data": data, "beforeData": before, "headers": headers}
    envelope = {
        "magic": "atMSG",
        "type": "DT",
        "headers": None,
        "messageSchemaId": None,
        "messageSchema": None,
    }
    return json.dumps(envelope | {"message": body}).encode()


def deliver(folder: Path, name: str, messages: Sequence[tuple[str, int, int, bytes]]) -> None:
    """Return messages of a file stream in the columns of Kafka's, with files in the order of their times."""
    lines = [
        json.dumps({"topic": topic, "partition": partition, "offset": offset, "value": value.decode()})
        for topic, partition, offset, value in messages
    ]
    hidden = folder / f".{name}"
    hidden.write_text("".join(f"{line}\n" for line in lines))
    time = 1_700_000_000 + sum(1 for _ in folder.iterdir())
    os.utime(hidden, (time, time))
    hidden.rename(folder / f"{name}.json")


def stream(spark: Any, folder: Path, most: int = 1) -> Any:
    """Return the stream of a folder, with so many files in each batch."""
    schema = "topic string, partition int, offset long, value string"
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", most).json(str(folder))
