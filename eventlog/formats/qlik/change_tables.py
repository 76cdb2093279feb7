"""Change tables: what Replicate stores next to a target table, one row for each image of a change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from eventlog.core.change import Change, check_decoded
from eventlog.core.errors import AmbiguousName, BadFile, EventlogError, Misuse, NotExpressible, Refused
from eventlog.core.formats import (
    Format,
    Row,
    Shape,
    Sheet,
    SheetColumn,
    SheetRow,
    Source,
    check_cells,
    check_text,
)
from eventlog.core.grouped_warnings import unchanged_updates
from eventlog.core.settings import setting
from eventlog.core.tables import Tables
from eventlog.formats.qlik import headers, row_plans, sequence
from eventlog.formats.qlik.headers import read_heading
from eventlog.formats.qlik.mask import MaskEvidence, MaskOrder, WrongMaskOrder
from eventlog.formats.qlik.numbering import load_memory, memory_of, number, without_no_ops
from eventlog.formats.qlik.qlik_settings import QlikSettings
from eventlog.formats.qlik.row_headers import HeaderReader, MaskReader
from eventlog.formats.qlik.row_writer import ChangeRowWriter, WrittenCells
from eventlog.formats.qlik.rows import ChangeRow, TablePart, read_row
from eventlog.formats.qlik.sequenced import pair, with_second_events
from eventlog.formats.qlik.structure import (
    DataColumn,
    Structure,
    check_width,
    keyed,
    observe,
    structure_of,
    with_key,
)

SUFFIX = "__ct"
_PARTITION = "partition_name"


@dataclass(frozen=True, slots=True)
class TableSettings(QlikSettings):
    """The settings of change tables."""

    header_prefix: str = setting("header__", "what the names of header columns begin with")
    suffix: str = setting(SUFFIX, "what the names of change tables end with, after that of their table")
    change_table_schema: str = setting(
        "",
        "the schema where a database's change tables are written; empty: the connection's, *: each table's",
        metavar="NAME",
    )
    header_columns: tuple[str, ...] = setting(
        headers.DEFAULT,
        "the header columns that are written; if none are named, also a partition_name that the source has",
        choices=headers.NAMES,
    )


def table_name(stem: str, tables: Tables, suffix: str = SUFFIX) -> tuple[str | None, str]:
    """Return the schema and name of the table whose change table has this name."""
    suffixed = len(stem) > len(suffix) > 0 and stem.lower().endswith(suffix.lower())
    name = stem[: -len(suffix)] if suffixed else stem
    table = tables.find(name)
    if table is not None:
        return table.schema, table.name
    schema, dot, bare_name = name.partition(".")
    return (schema, bare_name) if dot and schema and bare_name else (None, name)


def sheet_name(structure: Structure, tables: Tables, suffix: str = SUFFIX) -> str:
    """Return the name of a change table; it contains the schema only if the tables file does not know it."""
    bare = f"{structure.table}{suffix}"
    try:
        if table_name(bare, tables, suffix) == (structure.schema, structure.table):
            return bare
    except AmbiguousName:
        pass
    return f"{structure.schema or ''}.{bare}" if structure.schema else bare


# --- reading


def read(
    sources: Iterable[Source[Row]], tables: Tables, settings: TableSettings
) -> Iterator[Change | Refused]:
    """Yield the changes of change tables; sources of one table that follow each other are its parts."""
    if settings.until:
        sequence.check(settings.until)
    evidence = MaskEvidence()
    for name, parts in groupby(sources, lambda source: settings.table or source.stem):
        yield from with_second_events(changes_of(_parse(name, parts, tables, settings, evidence)))


def read_structure(
    schema: str | None, table: str, data: Sequence[str], tables: Tables, described: Structure | None = None
) -> Structure:
    """Return the structure of a change table's data columns, with the types that are described."""
    if described is not None and schema is None:
        schema = described.schema
    described_table = tables.of(schema, table)
    if described is not None:
        if not described.key and described_table is not None:
            described = keyed(described, described_table.key)
    elif described_table is not None:
        described = with_key(structure_of(described_table), described_table.key)
    if described is None:
        return Structure(schema, table, tuple(DataColumn(name) for name in data))
    described_columns = [_describe_column(described, name) for name in data]
    key = {c.key_position for c in described_columns}
    has_whole_key = all(described.columns[i].key_position in key for i in described.key)
    columns = described_columns if has_whole_key else [DataColumn(c.name, c.spec) for c in described_columns]
    return Structure(schema, table, tuple(columns))


def _describe_column(structure: Structure, name: str) -> DataColumn:
    """Return the description of a column: by its exact name, else by the only one that differs in case."""
    place = structure.index.get(name)
    if place is None:
        folded = [c for c in structure.columns if c.name.lower() == name.lower()]
        return folded[0] if len(folded) == 1 else DataColumn(name)
    return structure.columns[place]


def changes_of(rows: Iterable[ChangeRow | Refused]) -> Iterator[Change | Refused]:
    """Yield the changes in the rows of one table."""
    for item in pair(rows):
        if isinstance(item, Refused):
            yield item
            continue
        row, image = item
        if row.letter == "B":
            yield row.refused(f"B row of change_seq {row.seq} without its U row")
        else:
            yield row.change(image)


def _parse(
    name: str, parts: Iterable[Source[Row]], tables: Tables, settings: TableSettings, evidence: MaskEvidence
) -> Iterator[ChangeRow | Refused]:
    for source in parts:
        part = table_part(name, source, tables, settings, evidence)
        if isinstance(part, Refused):
            yield part
        else:
            yield from read_rows(part, source.records, settings.until)


def table_part(
    name: str, source: Source[Row], tables: Tables, settings: TableSettings, evidence: MaskEvidence
) -> TablePart | Refused:
    """Return a part of the change table of this name; Refused if its columns are unfit.

    The parts of a task share the evidence of its masks.
    """
    schema, table = table_name(name, tables, settings.suffix)
    try:
        heading = read_heading(source.columns, settings.header_prefix)
        structure = read_structure(schema, table, heading.data, tables)
        check_width(structure, len(heading.headers))
    except (Misuse, NotExpressible) as fault:
        return BadFile(source.at(1), str(fault))
    if settings.on_structure is not None:
        settings.on_structure(structure)
    plan = row_plans.loading(structure.columns)
    order = None if settings.mask_order == "auto" else MaskOrder(settings.mask_order)
    row_headers = HeaderReader(heading, settings.header_time_format)
    masks = MaskReader(heading, order, evidence)
    return TablePart(source, heading, structure, plan, row_headers, masks, heading.row())


def read_rows(
    part: TablePart, records: Iterable[Row | Refused], until: str = ""
) -> Iterator[ChangeRow | Refused]:
    """Yield the rows of a part of a change table, up to a change_seq."""
    source = part.source
    for record in records:
        if isinstance(record, Refused):
            yield record
            continue
        try:
            row = read_row(part, *record)
        except WrongMaskOrder as fault:
            raise WrongMaskOrder(f"{source.at(record.where)}: {fault}") from None
        except EventlogError as fault:
            yield Refused(source.at(record.where), str(fault), record.raw)
            continue
        if not until or (row.seq or "") <= until:
            yield row


# --- writing


@dataclass(frozen=True, slots=True)
class ChangeTable:
    """A change table that is written: its structure, its name and columns, and the writer of its rows."""

    structure: Structure
    headers: tuple[str, ...]  # names of its header columns, without the prefix
    sheet: Sheet
    writer: ChangeRowWriter


def write(changes: Iterable[Change], tables: Tables, settings: TableSettings) -> Iterator[SheetRow | Refused]:
    """Yield the rows of the change tables."""
    for item in write_rows(changes, tables, settings):
        if isinstance(item, Refused):
            yield item
        else:
            change_table, cells = item
            yield SheetRow(change_table.sheet, cells)


def write_rows(
    changes: Iterable[Change], tables: Tables, settings: TableSettings
) -> Iterator[tuple[ChangeTable, WrittenCells] | Refused]:
    """Yield each row with its change table."""
    change_tables: dict[tuple[str | None, str], ChangeTable] = {}
    header_names(settings)  # which raises Misuse before anything is written
    tally = unchanged_updates()
    if settings.no_op_updates != "write":
        changes = without_no_ops(changes, tables, tally)
    for numbered in number(changes, memory_of(settings), settings.now):
        if isinstance(numbered, Refused):
            yield numbered
            continue
        change = numbered.change
        try:
            check_decoded(change)
            target = change_tables.get((change.schema, change.table))
            if target is None:
                target = change_table(change, tables, settings)
                change_tables[change.schema, change.table] = target
            elif _lacks_partition(target, change, settings):
                raise NotExpressible(
                    "the first change of this table had no partition_name, so its change table has no column"
                    " for one: name all header-columns, with partition_name among them"
                )
            rows = target.writer.rows(numbered)
            for row in rows:
                check_cells(target.sheet.columns, row)
        except EventlogError as fault:
            yield Refused(f"{change.table}:{change.position or numbered.sequence}", str(fault))
            continue
        for row in rows:
            yield target, row
    yield from tally.warnings()


def _lacks_partition(target: ChangeTable, change: Change, settings: TableSettings) -> bool:
    is_chosen = settings.header_columns is not headers.DEFAULT
    return not is_chosen and _PARTITION not in target.headers and change.fact(_PARTITION) is not None


def change_table(change: Change, tables: Tables, settings: TableSettings) -> ChangeTable:
    """Return the change table of a change: as the tables file describes it, else as the change does."""
    names = header_names(settings)
    if settings.header_columns is headers.DEFAULT and change.fact(_PARTITION) is not None:
        names = (*names, _PARTITION)
    described = tables.of(change.schema, change.table)
    structure = structure_of(described) if described and described.columns else observe(None, change)
    structure = Structure(change.schema, change.table, structure.columns)
    if not structure.columns:
        raise NotExpressible(f"the columns of table {structure} are unknown: name them in the tables file")
    for name in structure.names:
        check_text(name)
    check_width(structure, len(names))
    columns = headers.sheet_columns(names, settings.header_prefix) + tuple(
        SheetColumn(c.name, _sheet_type(c)) for c in structure.columns
    )
    order = MaskOrder.LITTLE if settings.mask_order == "auto" else MaskOrder(settings.mask_order)
    writer = ChangeRowWriter(
        structure, row_plans.dumping_cells(structure.columns), names, order, settings.before_images
    )
    return ChangeTable(
        structure, names, Sheet(sheet_name(structure, tables, settings.suffix), columns), writer
    )


_SHEET_TYPES = {
    "BOOLEAN": "bool",
    "REAL4": "float",
    "REAL8": "float",
    "BYTES": "bytes",
    "BLOB": "bytes",
    **dict.fromkeys(("INT1", "INT2", "INT4", "INT8", "UINT1", "UINT2", "UINT4"), "int"),
}


def _sheet_type(column: DataColumn) -> str:
    """Return the type of a column in containers: decimals, dates and times are text, because no other type
    fits all.
    """
    return "text" if column.spec is None else _SHEET_TYPES.get(column.spec.name, "text")


def header_names(settings: TableSettings) -> tuple[str, ...]:
    """Return the header columns that are written, in their order."""
    if unknown := set(settings.header_columns) - set(headers.NAMES):
        raise Misuse(f"no header column {sorted(unknown)[0]!r}; there are {', '.join(headers.NAMES)}")
    return tuple(name for name in headers.NAMES if name in settings.header_columns)


FORMAT: Format = Format(
    name="qlik-table",
    shape=Shape.ROWS,
    settings=TableSettings,
    read=read,
    write=write,
    remember=load_memory,
    takes_no_key=True,
    writes_utc=True,
)
