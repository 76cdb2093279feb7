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
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from eventlog.core.change import Value
from eventlog.core.errors import InvalidTables, InvalidValue, NotExpressible
from eventlog.formats.linter.types import Form, ImageType, image_type

_CHOICES: Final = {
    "order": ("little", "big"),
    "nulls": ("none", "flag", "mask"),
    "varying": ("prefixed", "padded"),
    "decimals": ("raw", "bcd", "base100"),
}
_ENTRIES: Final = ("columns", "encoding", "nchar", *_CHOICES)
_PREFIX: Final = 2
_FLAGS: Final = {b"\0": False, b"\1": True}


class LayoutColumn(NamedTuple):
    name: str
    type: ImageType


class ImageLayout(NamedTuple):
    """The columns of a record in their order, and how it marks a null."""

    columns: tuple[LayoutColumn, ...]
    order: str
    nulls: str

    def read(self, image: bytes) -> dict[str, Value]:
        """Return the values in an image whose length matches the layout exactly; else raise InvalidValue."""
        mask, at = self._mask(image)
        values: dict[str, Value] = {}
        for index, (name, of_type) in enumerate(self.columns):
            null = bool(mask >> index & 1)
            if self.nulls == "flag":
                null, at = self._flag(image, at), at + 1
            start, at = self._place(image, at, of_type)
            data = image[start:at]
            values[name] = None if null else of_type.load(data)
        if at != len(image):
            raise InvalidValue(f"{len(image)} bytes", f"an image of the layout, which has {at}")
        return values

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

    def _flag(self, image: bytes, at: int) -> bool:
        flag = _FLAGS.get(image[at : at + 1])
        if flag is None:
            raise InvalidValue(image[at : at + 1].hex(), "the flag of a null: 00 or 01")
        return flag

    def _place(self, image: bytes, at: int, of_type: ImageType) -> tuple[int, int]:
        size = of_type.width.size
        if of_type.width.prefixed:
            length = int.from_bytes(image[at : at + _PREFIX], "little" if self.order == "little" else "big")
            if length > size:
                raise InvalidValue(length, f"a length of at most {size}")
            at, size = at + _PREFIX, length
        if at + size > len(image):
            raise InvalidValue(
                f"{len(image)} bytes", f"an image of the layout, which has at least {at + size}"
            )
        return at, at + size

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
    layout_columns = (LayoutColumn(str(name), image_type(str(text), form)) for name, text in columns.items())
    return ImageLayout(tuple(layout_columns), choices["order"], choices["nulls"])


def _choice(name: str, key: str, value: object, values: Sequence[str]) -> str:
    if value not in values:
        raise InvalidTables(f"tables.{name}.linter.{key} is {value!r}, not one of {', '.join(values)}")
    return str(value)


def _code_set(name: str, key: str, value: Any) -> str:
    try:
        return codecs.lookup(value).name
    except (LookupError, TypeError):
        raise InvalidTables(f"tables.{name}.linter.{key}: no code set {value!r}") from None
