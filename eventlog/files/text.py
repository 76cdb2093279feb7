"""Small files of text: settings, tables, rules."""

from __future__ import annotations

from pathlib import Path

from eventlog.core.errors import InvalidDocument


def read_text(path: Path) -> str:
    """The text of a file in UTF-8; InvalidDocument says which byte is not."""
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        byte = f"byte {fault.start + 1} is 0x{data[fault.start]:02X}"
        raise InvalidDocument(f"{path}: {byte}, not UTF-8") from None
