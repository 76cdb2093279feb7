"""The metadata next to files of a change table: `.dfm`, JSON that describes file, format and columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from eventlog.core.errors import EventlogError
from eventlog.core.formats import Layout
from eventlog.qlik import headers
from eventlog.qlik.structure import MAX_COLUMNS, DataColumn, Structure
from eventlog.qlik.types import DATA_TYPES, Spec

_HEADER_TYPES = {"text": "STRING", "bytes": "BYTES", "timestamp": "DATETIME"}
_MAX_TEXT = 4_000_000


class InvalidDfm(EventlogError):
    """dfm: {0}"""


class Lineage(NamedTuple):
    """The facts of a .dfm besides the structure."""

    name: str  # of the file, without folder and extension
    extension: str = "csv"
    server: str = ""
    task: str = ""
    target_schema: str = ""
    version: int = 1
    records: int = 0


def read(text: str, prefix: str = "header__") -> Structure:
    """Return the structure of the data columns that the text describes."""
    if len(text) > _MAX_TEXT:
        raise InvalidDfm(f"{len(text)} characters: at most {_MAX_TEXT} are read")
    try:
        info = json.loads(text)["dataInfo"]
        columns = sorted(info["columns"], key=lambda column: int(column["ordinal"]))
        known = {(prefix + name).lower() for name in headers.NAMES}
        data = [c for c in columns if str(c["name"]).lower() not in known]
        if len(data) > MAX_COLUMNS:
            raise InvalidDfm(f"{len(data)} columns: at most {MAX_COLUMNS} are read")
        return Structure(
            str(info["sourceSchema"]) or None, str(info["sourceTable"]), tuple(_read_column(c) for c in data)
        )
    except KeyError as fault:
        raise InvalidDfm(f"{fault} is missing") from fault
    except (TypeError, ValueError, ArithmeticError, RecursionError) as fault:
        raise InvalidDfm(f"it has not the form of one: {fault}") from fault


_TAB = {"\\t": "\t", "\\n": "\n", "\\r\\n": "\r\n"}  # as some versions spell them
_LINE_ENDS = ("\n", "\r\n")


def layout(text: str) -> Layout:
    """Return the layout of the described file: its columns, delimiters, quotes and nulls."""
    read(text)  # faults in it are reported there
    document = json.loads(text)
    info, form = document["dataInfo"], document.get("formatInfo") or {}
    options = form.get("options") if isinstance(form, dict) else None
    options_of_file = (
        {str(name): str(value) for name, value in (options or {}).items()}
        if isinstance(options, dict)
        else {}
    )
    delimiter = _mark(options_of_file.get("fieldDelimiter", ","))
    if not delimiter or _mark(options_of_file.get("recordDelimiter", "\n")) not in _LINE_ENDS:
        raise InvalidDfm(
            "formatInfo: rows that do not end with their line, or have no delimiter, are not read"
        )
    quote, escape = options_of_file.get("quoteChar", '"'), options_of_file.get("escapeChar", "")
    if len(quote) > 1 or len(escape) > 1:
        raise InvalidDfm("formatInfo: quoteChar and escapeChar are one character, or none")
    columns = sorted(info["columns"], key=lambda column: int(column["ordinal"]))
    schema, table = str(info["sourceSchema"]), str(info["sourceTable"])
    stem = f"{schema}.{table}" if schema else table
    names = tuple(str(column["name"]) for column in columns)
    return Layout(stem, names, delimiter, quote, escape or quote, options_of_file.get("nullValue", ""))


def _mark(text: str) -> str:
    return _TAB.get(text, text)


def _read_column(column: Mapping[str, Any]) -> DataColumn:
    name = str(column["type"])
    sizes = (int(column.get(size) or 0) for size in ("length", "precision", "scale"))
    spec = Spec(name, *sizes) if name in DATA_TYPES else None
    position = int(column.get("primaryKeyPos") or 0)
    return DataColumn(str(column["name"]), spec, position, nullable=not position, declared=True)


def write(structure: Structure, names: tuple[str, ...], prefix: str, lineage: Lineage) -> str:
    """Return the .dfm of a file of a change table with these header columns."""
    document = {
        "dfmVersion": "1.1",
        "taskInfo": {
            "name": lineage.task,
            "replicationServer": lineage.server,
            "operation": "changeProcessing",
        },
        "fileInfo": {
            "name": lineage.name,
            "extension": lineage.extension,
            "content": "changes",
            "recordCount": lineage.records,
            "errorCount": 0,
        },
        "formatInfo": {
            "format": "delimited",
            "options": {"fieldDelimiter": ",", "recordDelimiter": "\n", "nullValue": "", "quoteChar": '"'},
        },
        "dataInfo": {
            "sourceSchema": structure.schema or "",
            "sourceTable": structure.table,
            "targetSchema": lineage.target_schema,
            "targetTable": structure.table,
            "tableVersion": lineage.version,
            "columns": _columns(structure, names, prefix),
        },
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _columns(structure: Structure, names: tuple[str, ...], prefix: str) -> list[dict[str, Any]]:
    """Return the columns; ordinals count from one and include the headers, so a mask's bit is one less."""
    own = [h for h in headers.HEADERS if h.name in names]
    all_columns = [
        *((prefix + h.name, Spec(_HEADER_TYPES[h.type], h.width), 0) for h in own),
        *((c.name, c.spec or Spec("STRING"), c.key_position) for c in structure.columns),
    ]
    return [
        {
            "ordinal": ordinal,
            "name": name,
            "type": spec.name,
            "length": spec.length,
            "precision": spec.precision,
            "scale": spec.scale,
            "primaryKeyPos": position,
        }
        for ordinal, (name, spec, position) in enumerate(all_columns, 1)
    ]
