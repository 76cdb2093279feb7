"""Row images by an explicit record layout; an image of another size stays raw.

[tables.usr.linter]
columns = { idu = "integer", fname = "char(20)", photo = "blob(24)" }
order = "little"        # big: byte order of the server's machine
nulls = "none"          # flag: a byte before each column, 1 for null; mask: a bit for each, before all
encoding = "cp1251"     # of CHAR and VARCHAR
nchar = "utf-16-le"     # of NCHAR and NVARCHAR
varying = "prefixed"    # padded: VARCHAR and its kin take their full width
decimals = "raw"        # bcd, base100
"""

from __future__ import annotations

import codecs
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from eventlog.core.change import Value
from eventlog.core.errors import InvalidTables, InvalidValue, NotExpressible
from eventlog.formats.linter.types import MARKS, Form, ImageType, image_type

_CHOICES: Final = {
    "order": ("little", "big"),
    "nulls": ("none", "flag", "mask"),
    "varying": ("prefixed", "padded"),
    "decimals": ("raw", "bcd", "base100"),
}
_ENTRIES: Final = ("columns", "encoding", "nchar", *_CHOICES)
_PREFIX: Final = 2


class LayoutColumn(NamedTuple):
    name: str
    type: ImageType


class _Run(NamedTuple):
    """A run of columns of fixed widths, then the length of a varying one, each with its flag."""

    packing: struct.Struct
    limit: int | None  # of the bytes of the varying column; None if none comes


class ImageLayout:
    """The columns of a record in their order, and how it marks a null."""

    def __init__(self, columns: Sequence[LayoutColumn], order: str, nulls: str) -> None:
        self.columns = columns
        self.names = tuple(name for name, _ in columns)
        self.order = order
        self.nulls = nulls
        self._runs = [(run.packing.unpack_from, run.packing.size, run.limit) for run in self._divide()]
        self._loads = [(at, of.load) for at, (_, of) in enumerate(columns) if of.load is not None]

    def read(self, image: bytes) -> list[Value]:
        """Return the values in an image whose length matches the layout exactly; else raise InvalidValue."""
        values = self._unpack(image)
        for at, load in self._loads:
            if (value := values[at]) is not None:
                values[at] = load(value)
        return values

    def read_sides(self, before: bytes | None, after: bytes | None) -> tuple[list[Value], list[Value]]:
        """Return the values in the images of a change, none where one is missing.

        Bytes that are in both are loaded once.
        """
        if before is None or after is None:
            return [] if before is None else self.read(before), [] if after is None else self.read(after)
        values_before, values_after = self._unpack(before), self._unpack(after)
        for at, load in self._loads:
            packed_before, packed = values_before[at], values_after[at]
            if packed_before is not None:
                values_before[at] = load(packed_before)
            if packed is not None:
                is_same = packed == packed_before and type(packed) is bytes  # both zeros of floats are equal
                values_after[at] = values_before[at] if is_same else load(packed)
        return values_before, values_after

    def _unpack(self, image: bytes) -> list[Any]:
        """Return what an image contains for each column: null, bytes, or a number."""
        mask, at = self._mask(image)
        values: list[Any] = []
        try:
            for unpack, size, limit in self._runs:
                values += unpack(image, at)
                at += size
                if limit is not None:
                    length = values[-1]
                    if length > limit:
                        raise InvalidValue(length, f"a length of at most {limit}")
                    values[-1] = image[at : at + length]
                    at += length
        except struct.error:
            raise InvalidValue(f"{len(image)} bytes", "an image of the layout, which has more") from None
        if at != len(image):
            raise InvalidValue(f"{len(image)} bytes", f"an image of the layout, which has {at}")
        if self.nulls == "flag":
            mask, values = _read_flags(values[::2]), values[1::2]
        while mask:
            last = mask.bit_length() - 1
            values[last] = None
            mask ^= 1 << last
        return values

    def _divide(self) -> Iterator[_Run]:
        flag = "B" if self.nulls == "flag" else ""
        codes = MARKS[self.order]
        for _, of_type in self.columns:
            codes += flag + ("H" if of_type.width.prefixed else of_type.code)
            if of_type.width.prefixed:
                yield _Run(struct.Struct(codes), of_type.width.size)
                codes = MARKS[self.order]
        if len(codes) > 1:
            yield _Run(struct.Struct(codes), None)

    def write(self, values: Mapping[str, Value]) -> bytes:
        """Return the image of a row."""
        parts = [b"".join(self._write(column, values)) for column in self.columns]
        if self.nulls != "mask":
            return b"".join(parts)
        mask = sum(1 << at for at, column in enumerate(self.columns) if values[column.name] is None)
        return mask.to_bytes((len(self.columns) + 7) // 8, "little") + b"".join(parts)

    def _mask(self, image: bytes) -> tuple[int, int]:
        if self.nulls != "mask":
            return 0, 0
        size = (len(self.columns) + 7) // 8
        mask = int.from_bytes(image[:size], "little")
        if len(image) < size or mask >> len(self.columns):
            raise InvalidValue(image[:size].hex(), f"a mask of {len(self.columns)} columns")
        return mask, size

    def _write(self, column: LayoutColumn, values: Mapping[str, Value]) -> Iterator[bytes]:
        name, of_type = column
        value = values[name]
        if value is None and self.nulls == "none":
            raise NotExpressible(f"column {name} is null, and the layout of the table names no null form")
        if isinstance(value, tuple):
            raise NotExpressible(f"column {name}: a multi-valued attribute has no place in a record")
        if self.nulls == "flag":
            yield bytes((value is None,))
        if value is None:
            data = b"" if of_type.width.prefixed else bytes(of_type.width.size)
        else:
            data = of_type.dump(value)
        if of_type.width.prefixed:
            yield len(data).to_bytes(_PREFIX, "little" if self.order == "little" else "big")
        yield data


def _read_flags(flags: Sequence[int]) -> int:
    """Return a mask with a bit for each null."""
    if max(flags) > 1:
        raise InvalidValue(bytes(flags).hex(), "flags of nulls: 00 or 01 each")
    return sum(flag << at for at, flag in enumerate(flags)) if any(flags) else 0


def read_layout(name: str, described: Mapping[str, object]) -> ImageLayout | None:
    """Return the layout that a table of the tables file states, None if it states none."""
    if not described:
        return None
    for key in described:
        if key not in _ENTRIES:
            entries = ", ".join(_ENTRIES)
            raise InvalidTables(f"tables.{name}.linter: unknown entry {key!r}; known are {entries}")
    choices = {
        key: _choice(name, key, described.get(key, values[0]), values) for key, values in _CHOICES.items()
    }
    form = Form(
        choices["order"],
        _code_set(name, "encoding", described.get("encoding", "utf-8")),
        _code_set(name, "nchar", described.get("nchar", "utf-16-le")),
        choices["varying"],
        choices["decimals"],
    )
    columns = described.get("columns")
    if not isinstance(columns, Mapping) or not columns:
        raise InvalidTables(f"tables.{name}.linter.columns must name the columns of a record and their types")
    layout_columns = [LayoutColumn(str(name), image_type(str(text), form)) for name, text in columns.items()]
    return ImageLayout(layout_columns, choices["order"], choices["nulls"])


def _choice(name: str, key: str, value: object, values: Sequence[str]) -> str:
    if value not in values:
        raise InvalidTables(f"tables.{name}.linter.{key} is {value!r}, not one of {', '.join(values)}")
    return str(value)


def _code_set(name: str, key: str, value: Any) -> str:
    try:
        return codecs.lookup(value).name
    except (LookupError, TypeError):
        raise InvalidTables(f"tables.{name}.linter.{key}: no code set {value!r}") from None
