"""What a file is that is no text, by how it begins: people give files the wrong names."""

from __future__ import annotations

import re

_KINDS = {
    rb"\x1f\x8b": "packed with gzip: its name must end with .gz",
    rb"\x28\xb5\x2f\xfd": "packed with Zstandard: unpack it first",
    rb"BZh[1-9]1AY&SY": "packed with bzip2: unpack it first",
    rb"\xfd7zXZ\0": "packed with xz: unpack it first",
    rb"PK\x03\x04": "a ZIP file, as workbooks (.xlsx) are too: export it as text",
    rb"PAR1\x15": "Parquet: name it .parquet",
    rb"Obj\x01": "an Avro file",
    rb"\xff\xfe|\xfe\xff|.?\0": "UTF-16, or no text at all: write it as UTF-8",
}
_BEGINNINGS = {re.compile(beginning, re.DOTALL): kind for beginning, kind in _KINDS.items()}


def seems(beginning: bytes) -> str:
    """Return what a file with this beginning is, and what to do; empty if it may be text in UTF-8."""
    kinds = (kind for pattern, kind in _BEGINNINGS.items() if pattern.match(beginning))
    return next((f"this is {kind}" for kind in kinds), "")
