"""eventlog from Python: rows in, documents and changes out, without a command.

Each function is available in `eventlog` itself. Rows are dictionaries, or anything that supports Arrow, as
frames do. Settings are those of the command line, under their names. A record that cannot be understood
raises `RecordRefused`. If the caller passes `refused`, that function gets each such record instead.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import Field as SettingField
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from eventlog.core import settings, tablekey, tablesfile
from eventlog.core.change import Change
from eventlog.core.entry import PlacedEntry
from eventlog.core.errors import EventlogError, InvalidDocument, InvalidTables, Misuse, Refused
from eventlog.core.formats import Format, Object, Row, Shape, SheetRow, Source
from eventlog.core.tables import Tables
from eventlog.core.values import plain_text
from eventlog.files.current_files import CurrentFiles, keyed
from eventlog.files.inputs import open_sources
from eventlog.files.jsonlines import named_rows
from eventlog.files.outputs import Output
from eventlog.files.parquet import PlacedBatch, rows_of
from eventlog.files.small_files import read_tables_file
from eventlog.fold import Event, Fate, Outcome, Rules
from eventlog.formats.log import LogSettings
from eventlog.formats.neutral import refuse
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transfer.format_registry import format_named
from eventlog.transfer.job_output import write_records
from eventlog.transfer.opening import changes_in_sources, pick_up
from eventlog.transfer.report import Report, before_writing
from eventlog.transfer.settings_by_name import SettingsByName
from eventlog.xds.documents import document, finish
from eventlog.xds.write import EventWriter
from eventlog.xds.xds_settings import XdsSettings

Rows = Any  # an iterable of mappings, or what has __arrow_c_stream__
OnRefused = Callable[[Refused], object]
FileName = str | os.PathLike[str]
Description = Tables | FileName | Mapping[str, Any]  # tables, or what describes them


class RecordRefused(EventlogError):
    """{0}: {1}"""


class Document(NamedTuple):
    """An nds document of one event, and the facts of the event."""

    text: str
    event_id: str
    op: str
    table: str
    key: str  # the table_key
    rows: tuple[int, ...]  # the record_ids whose fate its answer decides


class Explained(NamedTuple):
    """The fate of a row of a log."""

    where: str
    record_id: int | None  # None if the row cannot be understood at all
    fate: Fate
    reason: str
    event_id: str | None  # the event that contains the row, or is settled with it
    by: int | None  # the row that superseded it


class Record(NamedTuple):
    """A record of a format: a dictionary, bytes, or whatever JSON can hold."""

    table: str  # of change tables the name of the one it belongs to
    value: Any


class Setting(NamedTuple):
    """A setting that a function takes by name."""

    default: Any
    help: str
    choices: tuple[str, ...]


def tables(source: FileName | Mapping[str, Any], dialect: str | None = None) -> Tables:
    """Return the tables of a tables file, or of a mapping with the content of `[tables.NAME]` for each.

    Other functions take such a name or mapping as `tables`, too.

    >>> import eventlog
    >>> usr = eventlog.tables({"usr": {"key": ["idu"], "columns": {"idu": "int", "fname": "text"}}})
    >>> [column.name for column in usr.get("usr").data]
    ['fname']
    """
    if isinstance(source, Mapping):
        return tablesfile.described({"tables": dict(source)} | ({"dialect": dialect} if dialect else {}))
    if dialect:
        raise Misuse("a tables file names its dialect itself")
    if not isinstance(source, str | os.PathLike):
        raise Misuse(
            f"tables: this is a {type(source).__name__}; write the name of a tables file, or a mapping, "
            'for example {"usr": {"key": ["idu"], "columns": {"idu": "integer"}}}'
        )
    try:
        return read_tables_file(Path(source))
    except OSError as fault:
        raise InvalidTables(f"{source}: {fault}") from None
    except InvalidDocument as fault:
        raise InvalidTables(str(fault)) from None


def tables_of(description: Description | None) -> Tables:
    """Return tables as they are, or those that are described; no tables for None."""
    if description is None or isinstance(description, Tables):
        return description or Tables()
    return tables(description)


def documents(
    rows: Rows,
    tables: Description | None = None,
    *,
    current: Mapping[str, Rows] | None = None,
    refused: OnRefused | None = None,
    **options: Any,
) -> Iterator[Document]:
    """Yield the documents of the rows of a log, which are one pick-up, in the order in which they leave.

    >>> import eventlog
    >>> usr = eventlog.tables({"usr": {"key": ["idu"], "columns": {"idu": "int", "fname": "text"}}})
    >>> row = {"record_id": 7, "event_type": 2, "table_name": "usr", "table_key": "idu=1",
    ...        "column_name": "fname", "old_value": "Jack", "new_value": "John"}
    >>> for sent in eventlog.documents([row], usr):
    ...     print(sent.event_id, sent.op, sent.key, sent.rows)
    eventlog:7 update idu=1 (7,)
    """
    if "batch_size" in options:
        raise Misuse("batch_size: a document has one event here")
    settings_by_name = parse_settings(options, Rules, LogSettings, XdsSettings)
    writing = settings.build(XdsSettings, settings_by_name)
    report = _report(refused)
    tables = tables_of(tables)
    writer = EventWriter(tables, writing)
    with _current(current, tables) as loaded:
        rules = SettingsByName(settings_by_name, clock_of(settings_by_name))
        for event in pick_up(tables, rules, loaded, report).events(_sources(rows, "rows")):
            yield from report.accepted(document_of(event, writer, writing))


def changes(
    records: Rows,
    source: str = "log",
    *,
    tables: Description | None = None,
    current: Mapping[str, Rows] | None = None,
    refused: OnRefused | None = None,
    name: str = "records",
    **options: Any,
) -> Iterator[Change]:
    """Yield the changes in records of any format; the rows of a log are folded.

    `name` is the name of the records in messages; the name of a change table is taken from it.

    >>> import eventlog
    >>> row = {"header__change_seq": "20250323105719000000000000000000001", "header__change_oper": "I",
    ...        "header__change_mask": "08", "idu": 1}
    >>> usr = eventlog.tables({"usr": {"key": ["idu"], "columns": {"idu": "integer"}}})
    >>> found = eventlog.changes([row], "qlik-table", tables=usr, name="usr__ct")
    >>> [(change.op.value, change.key) for change in found]
    [('insert', (('idu', 1),))]
    """
    form = format_named(source)
    settings_by_name = parse_settings(options, Rules, form.settings)
    read_from = _opened(records, form, name)
    yield from _changes(form, read_from, tables_of(tables), current, _report(refused), settings_by_name)


def read(
    inputs: FileName | Iterable[FileName],
    source: str,
    *,
    tables: Description | None = None,
    current: Mapping[str, Rows] | None = None,
    refused: OnRefused | None = None,
    container: str | None = None,
    **options: Any,
) -> Iterator[Change]:
    """Return the changes in files; all files of a log are one pick-up."""
    form = format_named(source)
    settings_by_name = parse_settings(options, Rules, form.settings, StreamSettings)
    names = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    report = _report(refused)
    opened = report.accepted(open_sources([os.fspath(name) for name in names], form.shape, container))
    yield from _changes(form, opened, tables_of(tables), current, report, settings_by_name)


def records(
    changes: Iterable[Change],
    target: str,
    *,
    tables: Description | None = None,
    refused: OnRefused | None = None,
    **options: Any,
) -> Iterator[Record]:
    """Yield the records of a format for the changes.

    >>> import eventlog
    >>> name = eventlog.Field("fname", after="Jack")
    >>> jack = eventlog.Change(eventlog.Op.INSERT, None, "usr", (("idu", 1),), (name,))
    >>> usr = eventlog.tables({"usr": {"key": ["idu"], "columns": {"idu": "int", "fname": "text"}}})
    >>> [record.value["new_value"] for record in eventlog.records([jack], "log", tables=usr)]
    ['Jack']
    """
    form = format_named(target)
    writing = SettingsByName(parse_settings(options, form.settings))(form.settings)
    for record in _report(refused).accepted(form.write(changes, tables_of(tables), writing)):
        if isinstance(record, SheetRow):
            names = (column.name for column in record.sheet.columns)
            yield Record(record.sheet.name, dict(zip(names, record.cells, strict=True)))
        else:
            yield Record("", record)


def write(
    changes: Iterable[Change],
    output: FileName,
    target: str,
    *,
    tables: Description | None = None,
    refused: OnRefused | None = None,
    container: str | None = None,
    **options: Any,
) -> int:
    """Write the changes to a file of a format, which appears when it is complete. Return how many records."""
    form = format_named(target)
    writing = SettingsByName(parse_settings(options, form.settings))(form.settings)
    with Output(os.fspath(output), form.shape, container) as out:
        if form.sheet is not None:
            out.sheet(form.sheet)
        records = form.write(changes, tables_of(tables), writing)
        return write_records(records, out, _report(refused))


def explain(
    rows: Rows,
    tables: Description | None = None,
    *,
    current: Mapping[str, Rows] | None = None,
    **options: Any,
) -> Iterator[Explained]:
    """Yield the fate of each row of a log, including rows that cannot be understood.

    >>> import eventlog
    >>> usr = eventlog.tables({"usr": {"key": ["idu"], "columns": {"idu": "int", "fname": "text"}}})
    >>> rows = [{"record_id": 1, "event_type": 3, "table_name": "usr", "table_key": "idu=1",
    ...          "column_name": "fname", "old_value": None, "new_value": "Jack"},
    ...         {"record_id": 2, "event_type": 9, "table_name": "usr", "table_key": "idu=1"}]
    >>> [(row.record_id, row.fate.value) for row in eventlog.explain(rows, usr)]
    [(None, 'refused'), (1, 'sent')]
    """
    settings_by_name = parse_settings(options, Rules, LogSettings)
    tables = tables_of(tables)
    explanations: list[Explained] = []

    def add_refused(refused_row: Refused) -> None:
        explanations.append(Explained(refused_row.where, None, Fate.REFUSED, refused_row.reason, None, None))

    def add_outcome(row: PlacedEntry, outcome: Outcome) -> None:
        if outcome.fate is Fate.REFUSED:
            explanations.pop()  # the same row, with fewer facts
        explanations.append(Explained(row.where, row.entry.record_id, *outcome))

    with _current(current, tables) as loaded:
        rules, report = SettingsByName(settings_by_name, clock_of(settings_by_name)), Report(add_refused)
        for _ in pick_up(tables, rules, loaded, report, add_outcome).events(_sources(rows, "rows")):
            yield from explanations
            explanations.clear()
    yield from explanations


def table_key(values: Mapping[str, str | int]) -> str:
    """Return the table_key of these columns and their values, quoted where it must be.

    >>> import eventlog
    >>> eventlog.table_key({"idu": 1, "name": "a+b"})
    'idu=1+name="a+b"'
    """
    for column, value in values.items():
        if not isinstance(value, str | int):
            raise Misuse(f"{column} is {value!r}: write its text as the log has it, for example '1'")
    return tablekey.write((column, plain_text(value)) for column, value in values.items())


def read_table_key(text: str) -> dict[str, str]:
    """Return the columns and values of a table_key.

    >>> import eventlog
    >>> eventlog.read_table_key('idu=1+name="a+b"')
    {'idu': '1', 'name': 'a+b'}
    """
    return dict(tablekey.read(text))


def settings_of(name: str) -> dict[str, Setting]:
    """Return the settings of a format, and those of what folds a log for `log`.

    >>> import eventlog
    >>> eventlog.settings_of("xds")["time_syntax"].choices
    ('1', '2', '3')
    """
    form = format_named(name)
    declaring = [Rules, form.settings] if form.folded else [form.settings]
    return {
        field.name: Setting(field.default, field.metadata["help"], field.metadata["choices"])
        for declared in declaring
        for field in settings.declared(declared)
    }


def _changes(
    form: Format,
    sources: Iterable[Source[Any]],
    tables: Tables,
    current: Mapping[str, Rows] | None,
    report: Report,
    settings_by_name: Mapping[str, Any],
) -> Iterator[Change]:
    clock = clock_of(settings_by_name)
    with _current(current, tables) as loaded:
        complete_settings = SettingsByName({"now": clock} | dict(settings_by_name), clock)
        read_in_order = changes_in_sources(form, sources, tables, complete_settings, loaded, report)
        yield from before_writing(form, tables, report)(read_in_order)


def document_of(event: Event, writer: EventWriter, writing: XdsSettings) -> Iterator[Document | Refused]:
    """Yield the document of one event; none if it is empty, Refused if XDS cannot express it."""
    try:
        text = writer.write(event.change, event.event_id)
    except EventlogError as fault:
        yield refuse(event.change, fault)
        return
    if text:
        nds_document = finish(document([text]), writing).decode().rstrip("\n")
        yield Document(nds_document, event.event_id, event.change.op, *event.object, event.rows)


def changes_of(
    form: Format,
    sources: Iterable[Source[Any]],
    tables: Tables,
    refused: OnRefused,
    options: Mapping[str, Any],
) -> Iterator[Change]:
    """Yield the changes of sources of a format that is not folded, without the records that are refused."""
    yield from _changes(form, sources, tables, None, _report(refused), options)


def parse_settings(options: Mapping[str, Any], *declaring: type) -> dict[str, Any]:
    """Return the settings that were given, read; Misuse for one that none of these declares."""
    fields = {field.name: field for declared in declaring for field in settings.declared(declared)}
    for name in options:
        if name not in fields:
            raise Misuse(f"unknown setting {name!r}; known are {', '.join(sorted(fields))}")
    return {name: _read(fields[name], value) for name, value in options.items() if value is not None}


def _read(field: SettingField[Any], value: Any) -> Any:
    """Return the value of a setting; raise Misuse, with its name, for a value that is not legal."""
    try:
        return settings.read_value(field, list(value) if isinstance(value, tuple | set) else value)
    except EventlogError as fault:
        raise Misuse(f"{field.name}: {fault}") from None


def clock_of(settings_by_name: Mapping[str, Any]) -> str:
    """Return the time of rows without one: as given, else now."""
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    return settings_by_name.get("now") or now.isoformat(" ", "microseconds")


def _report(refused: OnRefused | None) -> Report:
    def show(record: Refused) -> None:
        if refused is not None:
            refused(record)
        elif record.fault:
            raise RecordRefused(record.where, record.reason)

    return Report(show)


def _current(current: Mapping[str, Rows] | None, tables: Tables) -> CurrentFiles:
    """Return the current rows of the tables that are named."""
    with ExitStack() as stack:
        loaded = stack.enter_context(CurrentFiles())
        for name, rows in (current or {}).items():
            table = keyed(tables, name)
            no_rows: list[Source[Row]] = [Source(name, name, tuple(table.columns), ())]
            for source in _sources(rows, f"current {name}") or no_rows:
                loaded.add(table, source)
        stack.pop_all()
    return loaded


def _opened(records: Any, form: Format, name: str) -> list[Source[Any]]:
    """Return records as a source of that format; no source for no rows."""
    if form.shape is Shape.ROWS:
        return _sources(records, name)
    if not isinstance(records, Iterable):
        raise Misuse(f"{name}: {form.name} is read from an iterable; this is a {type(records).__name__}")
    if form.shape is Shape.BYTES:
        chunks = [bytes(records)] if isinstance(records, bytes | bytearray | memoryview) else records
        return [Source(name, name, (), chunks)]
    return [Source(name, name, (), (Object(number, value) for number, value in enumerate(records, 1)))]


def _sources(rows: Rows, name: str) -> list[Source[Row]]:
    """Return rows as a source; no source for an empty poll, which has no columns."""
    source = _source(rows, name)
    records = iter(source.records)
    first = [] if source.columns else list(islice(records, 1))
    return [source._replace(records=chain(first, records))] if source.columns or first else []


def _source(rows: Rows, name: str) -> Source[Row]:
    """Return rows as a source with columns."""
    if hasattr(rows, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(rows)
        return Source(name, name, tuple(reader.schema.names), _arrow_rows(reader))
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise Misuse(
            f"{name}: rows must be an iterable of mappings, or support Arrow; this is a {type(rows).__name__}"
        )
    objects = (Object(number, _mapping(row)) for number, row in enumerate(rows, 1))
    return Source(name, name, *named_rows(objects, name))


def _mapping(row: object) -> object:
    return dict(row) if isinstance(row, Mapping) else row


def _arrow_rows(reader: pa.RecordBatchReader) -> Iterator[Row]:
    first = 0
    for batch in reader:
        yield from rows_of(PlacedBatch(first, batch))
        first += batch.num_rows
