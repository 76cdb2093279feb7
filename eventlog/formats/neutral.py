"""The `changes` format: our own neutral JSON Lines, one change a line."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from eventlog.core import tablekey, values
from eventlog.core.change import (
    ABSENT,
    Change,
    Fact,
    Field,
    Key,
    Op,
    Raw,
    Scalar,
    Side,
    Undecoded,
    Value,
    position_text,
)
from eventlog.core.errors import EventlogError, InvalidBase64, Refused, WrongRow
from eventlog.core.formats import Format, Object, Shape, Source
from eventlog.core.tables import Tables

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class NeutralSettings:
    """The neutral format has nothing to set."""


def read(
    sources: Iterable[Source[Object]], tables: Tables, settings: NeutralSettings
) -> Iterator[Change | Refused]:
    """Yield the changes of JSON objects."""
    for source in sources:
        for record in source.records:
            if isinstance(record, Refused):
                yield record
                continue
            try:
                yield load(record.value)
            except EventlogError as fault:
                yield source.refuse(record, str(fault))


def write(changes: Iterable[Change], tables: Tables, settings: NeutralSettings) -> Iterator[Json | Refused]:
    """Yield the JSON objects of changes."""
    return map(dump, changes)


def refuse(change: Change, fault: EventlogError) -> Refused:
    """Return a change that a writer cannot express, kept in this format."""
    return Refused(position_text(change), str(fault), (dumps(change) + "\n").encode(errors="surrogatepass"))


def dumps(change: Change) -> str:
    """Return the change on one line."""
    return json.dumps(dump(change), ensure_ascii=False, separators=(",", ":"))


def dumps_side(value: Side) -> str:
    """Return one value as it is written on that line."""
    return json.dumps(_dump_side(value), ensure_ascii=False, separators=(",", ":"))


def dump(change: Change) -> Json:
    """Return the change as an object that JSON can hold."""
    line: Json = {
        "op": change.op.value,
        "schema": change.schema,
        "table": change.table,
        "key": {column: _dump_side(value) for column, value in change.key},
        "fields": [_dump_field(field) for field in change.fields],
        "position": change.position,
        "transaction": change.transaction,
        "time": change.time,
        "user": change.user,
    }
    if change.current:
        line["current"] = True
    if change.extra:
        line["extra"] = {name: _dump_fact(fact) for name, fact in change.extra}
    if change.raw is not None:
        line["decoded"] = False
        line["raw"] = {
            side: _dump_scalar(image)
            for side, image in zip(("before", "after"), change.raw, strict=True)
            if image is not None
        }
    return line


def load(line: object) -> Change:
    """Return the change of such an object; raise WrongRow with what is wrong."""
    if not isinstance(line, dict):
        raise WrongRow("a change must be a JSON object")
    if unknown := line.keys() - _MEMBERS:
        raise WrongRow(f"unknown member {sorted(unknown)[0]!r}")
    try:
        op = Op(str(line.get("op")))
    except ValueError:
        raise WrongRow(f"op is {line.get('op')!r}, not one of {', '.join(Op)}") from None
    table = _text(line, "table")
    if table is None:
        raise WrongRow("table is missing")
    return Change(
        op,
        _text(line, "schema"),
        table,
        _load_key(line.get("key", {})),
        tuple(_load_field(field) for field in _list(line, "fields")),
        _text(line, "position"),
        _text(line, "transaction"),
        _text(line, "time"),
        _text(line, "user"),
        line.get("current") is True,
        _load_extra(line.get("extra", {})),
        _load_raw(line.get("raw")),
    )


_MEMBERS = frozenset((*Change._fields, "decoded"))


_AS_IT_IS = frozenset((bool, int, float, str, type(None)))  # types that JSON has


def _dump_field(field: Field) -> Json:
    column, before, after = field
    line: Json = {"column": column}
    if before is not ABSENT:
        line["before"] = before if type(before) in _AS_IT_IS else _dump_side(before)
    if after is not ABSENT:
        line["after"] = after if type(after) in _AS_IT_IS else _dump_side(after)
    return line


def _dump_side(value: Value | Side) -> Any:
    if isinstance(value, tuple):
        return [_dump_scalar(scalar) for scalar in value]
    return None if value is None or value is ABSENT else _dump_scalar(value)


def _dump_scalar(value: Scalar) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, Undecoded):
        return {"bytes": base64.b64encode(value.data).decode("ascii")}
    return value


def _dump_fact(fact: Fact) -> Any:
    return [_dump_fact(item) for item in fact] if isinstance(fact, tuple) else fact


def _load_field(line: object) -> Field:
    if not isinstance(line, dict) or not isinstance(line.get("column"), str):
        raise WrongRow("a field must be an object with a column")
    if unknown := line.keys() - {"column", "before", "after"}:
        raise WrongRow(f"field {line['column']}: unknown member {sorted(unknown)[0]!r}")
    before, after = (_load_side(line[side]) if side in line else ABSENT for side in ("before", "after"))
    return Field(line["column"], before, after)


def _load_side(value: object) -> Value:
    if isinstance(value, list):
        return tuple(_load_scalar(item) for item in value)
    return None if value is None else _load_scalar(value)


def _load_scalar(value: object) -> Scalar:
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, dict) and len(value) == 1:
        ((kind, text),) = value.items()
        if kind == "base64":
            return _load_bytes(text)
        if kind == "bytes":
            return Undecoded(_load_bytes(text))
    raise WrongRow(f"{json.dumps(value)[:60]} is no value: it must be a scalar, a base64 or a bytes object")


def _load_bytes(text: object) -> bytes:
    if not isinstance(text, str):
        raise WrongRow("bytes must be Base64 text")
    try:
        return values.load_base64(text)
    except InvalidBase64 as fault:
        raise WrongRow(str(fault)) from fault


def _load_key(key: object) -> Key:
    if not isinstance(key, dict):
        raise WrongRow("key must be an object of columns and values")
    return tuple((column, _load_side(value)) for column, value in key.items())


def _load_extra(extra: object) -> tuple[tuple[str, Fact], ...]:
    if not isinstance(extra, dict):
        raise WrongRow("extra must be an object")
    if "table_key" in extra:
        tablekey.read(str(extra["table_key"]))
    return tuple((name, _load_fact(fact)) for name, fact in extra.items())


def _load_fact(fact: object) -> Fact:
    if isinstance(fact, list):
        return tuple(_load_fact(item) for item in fact)
    if fact is None or isinstance(fact, bool | int | float | str):
        return fact
    raise WrongRow("a fact of extra must be a scalar or a list of them")


def _load_raw(raw: object) -> Raw | None:
    if raw is None:
        return None
    if not isinstance(raw, dict) or raw.keys() - {"before", "after"}:
        raise WrongRow("raw must be an object with before and after")
    images = {side: _load_scalar(image) for side, image in raw.items()}
    if not all(isinstance(image, bytes) for image in images.values()):
        raise WrongRow("raw images must be base64 objects")
    return Raw(**images)  # type: ignore[arg-type]


def _text(line: Json, name: str) -> str | None:
    value = line.get(name)
    if value is None or isinstance(value, str):
        return value
    raise WrongRow(f"{name} must be text or null")


def _list(line: Json, name: str) -> list[object]:
    value = line.get(name, [])
    if isinstance(value, list):
        return value
    raise WrongRow(f"{name} must be a list")


FORMAT: Format = Format("changes", Shape.OBJECTS, NeutralSettings, read, write, takes_no_key=True)
