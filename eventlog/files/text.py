"""Small files of text: settings, tables, rules."""

from __future__ import annotations

from pathlib import Path

from eventlog.core import tablesfile
from eventlog.core.errors import InvalidDocument, InvalidTables
from eventlog.core.tables import Tables

LONGEST = 64 << 20  # bytes; a device has no end


def read_text(path: Path, longest: int = LONGEST) -> str:
    """Return the text of a file in UTF-8; raise InvalidDocument for other bytes, or for too many."""
    with path.open("rb") as file:
        data = file.read(longest + 1)
    if len(data) > longest:
        raise InvalidDocument(f"{path}: a file of this kind has at most {longest} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        byte = f"byte {fault.start + 1} is 0x{data[fault.start]:02X}"
        raise InvalidDocument(f"{path}: {byte}, not UTF-8") from None


def read_tables_file(path: Path) -> Tables:
    """Return the tables of a tables file; errors name the file."""
    text = read_text(path)
    try:
        return tablesfile.read(text)
    except InvalidTables as fault:
        raise InvalidTables(f"{path}: {fault.args[0]}") from None
