"""Small files: settings, tables, rules, secrets."""

from __future__ import annotations

from pathlib import Path

from eventlog.core import tablesfile
from eventlog.core.errors import InvalidDocument, InvalidTables, Misuse
from eventlog.core.tables import Tables

_MAX_BYTES = 64 << 20  # a device has no end
_MAX_SECRET_BYTES = 64 << 10


def read_text(path: Path, longest: int = _MAX_BYTES) -> str:
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


def read_secret(name: str) -> str:
    """Return the only line of a file; Misuse names the file, never what is in it."""
    secret = _read_secret_text(name).rstrip("\r\n")
    if not secret.isprintable():
        raise Misuse(f"the secret in {name}: it is more than one line, or no text")
    return secret


def read_secrets(name: str) -> list[tuple[int, str]]:
    """Return the lines of a file that are not empty, with their numbers."""
    lines = ((number, line.strip()) for number, line in enumerate(_read_secret_text(name).split("\n"), 1))
    return [(number, line) for number, line in lines if line]


def _read_secret_text(name: str) -> str:
    try:
        with open(name, "rb") as file:
            data = file.read(_MAX_SECRET_BYTES + 1)
        if len(data) > _MAX_SECRET_BYTES:
            raise Misuse(f"the secret in {name}: it has more than {_MAX_SECRET_BYTES} bytes")
        return data.decode()
    except OSError as fault:
        raise Misuse(f"the secret in {name}: {fault.strerror}") from None
    except UnicodeDecodeError:
        raise Misuse(f"the secret in {name}: it is not UTF-8") from None
