"""Change data partitions: stretches of time that a header names and a control table lists."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from eventlog.core.errors import InvalidValue, NotExpressible, Refused
from eventlog.core.formats import Row, Sheet, SheetColumn, Source

TABLE = "attrep_cdc_partitions"
_NAME = re.compile(r"(\d{8}T\d{6})_(\d{8}T\d{6})", re.ASCII)
_FORM = "%Y%m%dT%H%M%S"
_DAY_ONE = dt.datetime(1, 1, 1)

# "Change Data Partitioning": one row for each table and partition; the times are UTC
SHEET = Sheet(
    TABLE,
    (
        SheetColumn("SERVER_NAME", "text"),
        SheetColumn("TASK_NAME", "text"),
        SheetColumn("PARTITION_NAME", "text"),
        SheetColumn("PARTITION_START_TIME", "timestamp"),
        SheetColumn("PARTITION_END_TIME", "timestamp"),
        SheetColumn("TABLE_OWNER", "text"),
        SheetColumn("TABLE_NAME", "text"),
    ),
)


class Partition(NamedTuple):
    server: str
    task: str
    start: dt.datetime
    end: dt.datetime
    schema: str | None
    table: str

    @property
    def name(self) -> str:
        return write_name(self.start, self.end)

    @property
    def cells(self) -> tuple[Any, ...]:
        start, end = (f"{t.isoformat(' ')}.000" for t in (self.start, self.end))
        return (self.server, self.task, self.name, start, end, self.schema or "", self.table)


def write_name(start: dt.datetime, end: dt.datetime) -> str:
    """Return the name of a partition, as in `20170313T123000_20170313T170000`."""
    return "_".join(f"{time:{_FORM}}".zfill(15) for time in (start, end))


def read_name(name: str) -> tuple[dt.datetime, dt.datetime]:
    """Return the start and end that the name of a partition holds."""
    match = _NAME.fullmatch(name)
    try:
        start, end = (dt.datetime.strptime(t, _FORM) for t in match.groups()) if match else (None, None)
    except ValueError:
        start = end = None
    if start is None or end is None or end < start:
        raise InvalidValue(name[:60], "a partition name (yyyymmddThhmmss_yyyymmddThhmmss)")
    return start, end


def partition_of(
    seq: str, length: dt.timedelta, server: str, task: str, schema: str | None, table: str
) -> Partition:
    """Return the partition in which a change falls; partitions count from midnight of year one."""
    try:
        at = dt.datetime.strptime(seq[:14], "%Y%m%d%H%M%S")
        start = _DAY_ONE + (at - _DAY_ONE) // length * length
        return Partition(server, task, start, start + length, schema, table)
    except (ValueError, OverflowError) as fault:
        raise NotExpressible(f"change_seq {seq} names no time of a partition: {fault}") from fault


def read(columns: tuple[str, ...], cells: tuple[Any, ...]) -> Partition:
    """Return the partition that a row of the control table lists."""
    named = {name.upper(): cell for name, cell in zip(columns, cells, strict=False)}
    start, end = read_name(str(named.get("PARTITION_NAME")))
    words = [str(named.get(c) or "") for c in ("SERVER_NAME", "TASK_NAME", "TABLE_OWNER", "TABLE_NAME")]
    return Partition(words[0], words[1], start, end, words[2] or None, words[3])


def check(sources: Iterable[Source[Row]]) -> Iterator[Refused]:
    """Yield the rows of the control table that name no partition; the others hold no changes."""
    for source in sources:
        for record in source.records:
            if isinstance(record, Refused):
                yield record
                continue
            try:
                read(source.columns, record.cells)
            except InvalidValue as fault:
                yield Refused(source.at(record.where), str(fault), record.raw)
