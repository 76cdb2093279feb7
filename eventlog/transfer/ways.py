"""The way of a job: by column where its files allow it, else row by row (decision 100)."""

from __future__ import annotations

import enum
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from eventlog.core.errors import EventlogError, Refused
from eventlog.core.formats import Row, Shape, Source
from eventlog.files import csv, parquet
from eventlog.files.inputs import BY_COLUMN, Input, container_of, open_input, stem_of
from eventlog.files.limits import Limits
from eventlog.formats.qlik.change_tables import table_part
from eventlog.formats.qlik.mask import MaskEvidence
from eventlog.formats.qlik.rows import TablePart
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transfer.connectors import Endpoint
from eventlog.transfer.job import Job

_FEW = 3_000  # records of text files that are converted before Arrow is loaded
_BEGINNING = 64 << 10  # bytes of a file, whose lines are counted
_MARKS = frozenset("\ue000\ue001\ue002")  # which learned lines have in place of values


_TEXT = ("string", "null")
_HEADER_TYPES = {
    "change_mask": (*_TEXT, "binary"),
    "timestamp": (*_TEXT, *(f"timestamp[{unit}]" for unit in ("s", "ms", "us", "ns"))),
}


class Way(enum.Enum):
    """A way of a job."""

    BY_ROW = "by row"
    LOG = "a log by column"
    CHANGES = "changes by column"


def way_of(job: Job, *, reads_on: bool) -> Way:
    """Return the way of a job; one that reads on, from a state or with --follow, goes by row."""
    source, target = job.source, job.target
    if target.place or source.place or "-" in source.names:
        return Way.BY_ROW
    if source.format.folded:
        return Way.LOG if _is_log_by_column(source, target) else Way.BY_ROW
    asks_for_rows = (
        reads_on or job.expand_truncate or job.current or not _are_changes_by_column(source, target)
    )
    return Way.BY_ROW if asks_for_rows else Way.CHANGES


def _is_log_by_column(source: Endpoint, target: Endpoint) -> bool:
    """Return whether a log becomes documents, and its files can be read by column."""
    if target.format.name != "xds" or source.settings.options.get("handle_future_events"):
        return False
    return _are_readable(source)


def _are_readable(source: Endpoint) -> bool:
    """Return whether files can be read by column, and are worth it."""
    if any(map(source.limits.csv_layout, source.names)):
        return False
    containers = {container for _, container in source.files}
    return containers <= {*BY_COLUMN} and not (containers == {"csv"} and _are_few(source.names))


def _are_few(names: Sequence[str]) -> bool:
    """Return whether files have few records together; what is no file, such as a pipe, may have many."""
    return all(map(os.path.isfile, names)) and sum(map(_lines_in, names)) <= _FEW


def _lines_in(name: str) -> float:
    """Return about how many lines a file has."""
    try:
        with open(name, "rb") as opened:
            beginning = opened.read(_BEGINNING)
            return (beginning.count(b"\n") + 1) * os.fstat(opened.fileno()).st_size / max(len(beginning), 1)
    except OSError:
        return 0  # the plain reader reports what is wrong


# --- change tables, and messages


def _are_changes_by_column(source: Endpoint, target: Endpoint) -> bool:
    """Return whether changes in files become lines, a change each."""
    if source.format.name not in _BY_COLUMN:
        return False
    stream, reading = source.settings(StreamSettings), source.of_format
    is_whole = not (stream.since or reading.until or getattr(reading, "whole_transactions", False))
    if not is_whole or source.tables.shut or not _has_lines(target):
        return False
    if not all(Path(name).is_file() and not name.endswith(".gz") for name in source.names):
        return False
    return _BY_COLUMN[source.format.name](source)


def _are_messages_readable(source: Endpoint) -> bool:
    """Return whether files have messages as lines of JSON, and are worth it."""
    return {container for _, container in source.files} == {"jsonl"} and not _are_few(source.names)


def _are_tables_readable(source: Endpoint) -> bool:
    """Return whether rows of change tables can be read by column, and are worth it."""
    if source.settings(StreamSettings).order == "as-is" and not _are_tables_apart(source):
        return False
    return _are_readable(source) and all(_has_certain_keys(source, file) for file in source.files)


def _are_tables_apart(source: Endpoint) -> bool:
    """Return whether each file is a table of its own: rows of two parts may belong together."""
    stems = [stem_of(name) for name in source.names]
    return len(stems) == 1 or (not source.of_format.table and len({*stems}) == len(stems))


def _has_lines(target: Endpoint) -> bool:
    """Return whether each change becomes a line of a file of its own form."""
    if target.format.name == "xds":
        return target.of_format.batch_size == 1 and not target.of_format.pretty
    try:
        container = container_of(target.only_name(), Shape.OBJECTS, target.container, "--output-as")
    except EventlogError:
        return False
    return target.format.name == "changes" and container == "jsonl"


def _has_certain_keys(source: Endpoint, file: Input) -> bool:
    """Return whether rows of a file have a change_seq, and a key that the tables file states."""
    try:
        types = _types_of(file, source.limits)
        of_file = Source[Row](file.name, stem_of(file.name), tuple(types), ())
        name = source.of_format.table or of_file.stem
        part = table_part(name, of_file, source.tables, source.of_format, MaskEvidence())
    except (EventlogError, OSError):
        return False  # the plain reader reports what is wrong
    return not isinstance(part, Refused) and is_certain(part, tuple(types.values()))


def is_certain(part: TablePart, types: Sequence[str]) -> bool:
    """Return whether rows of these types can be read by column: they have a change_seq, and a stated key."""
    names, headers = part.structure.names, part.heading.headers
    in_texts = all(types[headers[name]] in _HEADER_TYPES.get(name, _TEXT) for name in headers)
    is_plain = len({*names}) == len(names) and _MARKS.isdisjoint("".join((str(part.structure), *names)))
    return bool(part.structure.key) and part.heading.sequenced and in_texts and is_plain


def _types_of(file: Input, limits: Limits) -> Mapping[str, str]:
    """Return the columns of a file with their types."""
    with open_input(file.name) as opened:
        if file.container == "parquet":
            return parquet.plain_types(opened, file.name)
        return dict.fromkeys(csv.header(csv.Lines(opened, limits.max_record), file.name), "string")


_BY_COLUMN = {"qlik-table": _are_tables_readable, "qlik-message": _are_messages_readable}
