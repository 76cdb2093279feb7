"""Messages of one layout as changes: lines of JSON with the same members in the same order.

A pattern proves that a line has the layout, and is read by Arrow as by the plain reader. No member is missing
or twice, each value has the type of its column, and each text can be held as UTF-8.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from eventlog.change_batches.batch import OPS, BatchTable, ChangeBatch, Sides, SideState
from eventlog.change_batches.masks import MaskTable, masks_of
from eventlog.change_batches.values import kind_of, load, texts_or_none, times
from eventlog.core.change import Op
from eventlog.fold.by_column.vectors import Flags, Ints, encode_texts, flags, number_distinct, offsets
from eventlog.formats.qlik import sequence
from eventlog.formats.qlik.envelope import Body
from eventlog.formats.qlik.headers import ISO
from eventlog.formats.qlik.records import OPS_BY_NAME, RecordReader
from eventlog.formats.qlik.structure import DataColumn

_HEX = "[0-9a-fA-F]"
_CODE = (  # of a character that is neither NUL nor half of a pair
    f"[1-9a-cefA-CEF]{_HEX}{{3}}|[dD][0-7]{_HEX}{{2}}"
    f"|0(?:[1-9a-fA-F]{_HEX}{{2}}|0(?:[1-9a-fA-F]{_HEX}|0[1-9a-fA-F]))"
)
_TEXT = rf'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u(?:{_CODE})))*"'
_TOKENS = {
    pa.string(): _TEXT,
    pa.int64(): "-?(?:0|[1-9][0-9]{0,17})",
    pa.float64(): r"-?(?:0|[1-9][0-9]{0,14})\.[0-9]{1,40}",
    pa.bool_(): "true|false",
}
_TYPES = {
    **dict.fromkeys(("INT1", "INT2", "INT4", "INT8", "UINT1", "UINT2", "UINT4"), pa.int64()),
    **dict.fromkeys(("REAL4", "REAL8"), pa.float64()),
    "BOOLEAN": pa.bool_(),
}
_HEADERS = {
    "operation": pa.string(),
    "changeSequence": pa.string(),
    "timestamp": pa.string(),
    "streamPosition": pa.string(),
    "transactionId": pa.string(),
    "changeMask": pa.string(),
    "columnMask": pa.string(),
    "transactionEventCounter": pa.int64(),
    "transactionLastEvent": pa.bool_(),
}
_SEQUENCE = f'"(?:{sequence.PATTERN})?"'
_UPDATE, _DELETE, _SNAPSHOT, _WRONG = *map(OPS.index, (Op.UPDATE, Op.DELETE, Op.SNAPSHOT)), len(OPS)
_MARKS = frozenset("\ue000\ue001\ue002")  # which learned lines have in place of values

Token = Callable[[str, Any], str]  # the pattern of a member, by its name and an example


class MessageChanges(NamedTuple):
    """The change of each message, and which messages are odd."""

    batch: ChangeBatch
    odd: Flags
    proven: Ints  # the byte order that its masks prove, by its number in `proven_order`


class _Rows(NamedTuple):
    """The two rows of messages."""

    ops: Ints
    has_data: Flags
    has_image: Flags
    odd: Flags


class _Cells(NamedTuple):
    """The cells of a column in both rows."""

    values: pa.Array  # their texts
    new_at: Ints  # where the value of the row is, in data or of a delete in beforeData
    old_at: Ints
    has_new: Flags
    has_old: Flags
    differ: Flags  # the cells as they came
    are_equal: Flags  # the values
    odd: Flags


class MessageLayout:
    """The members of messages, as one of them shows."""

    def __init__(self, message: Any, body: Body, reader: RecordReader, blank: str) -> None:
        """Take what is after colons and commas. Raise ValueError if such messages are read by row alone."""
        self.reader = reader
        self._blank = blank
        self._is_enveloped = "magic" in message
        content = message.get("message") if self._is_enveloped else message
        if type(content) is not dict or content.get("headers") is not body.headers:
            raise ValueError
        rows = [row for row in (content.get("data"), content.get("beforeData")) if row is not None]
        if not rows or any(not row or row.keys() - rows[0].keys() for row in rows):
            raise ValueError
        self._names = tuple(rows[0])
        self._image = tuple(rows[-1])
        structure = reader.message_structure
        self._types = list(map(_type_of, structure.columns))
        kinds = tuple(map(kind_of, (column.spec for column in structure.columns), self._types))
        self.table = BatchTable(
            reader.structure.schema, reader.structure.table, structure.names, kinds, structure.key
        )
        is_plain = _MARKS.isdisjoint("".join((str(self.table), *self._names)))
        if not (structure.key and is_plain and len({*structure.names}) == len(self._names) == len(kinds)):
            raise ValueError
        self._pattern = rf"\A{self._of_object(message, self._envelope)}[ \t\r]*\n?\z"
        self._pattern.encode()  # raises ValueError for half of a character
        self._schema = self._make_schema(content)
        self._constant_headers = {k: v for k, v in body.headers.items() if k not in _HEADERS}

    def match(self, lines: pa.Array) -> Flags:
        """Return which lines have this layout."""
        try:
            return flags(pc.match_substring_regex(lines, self._pattern))
        except pa.ArrowInvalid:  # too many columns for a pattern
            return np.zeros(len(lines), np.bool_)

    # --- the pattern

    def _of_object(self, members: Mapping[str, Any], token: Token) -> str:
        patterns = (f"{_quoted(name)}:{self._blank}{token(name, value)}" for name, value in members.items())
        return rf"\{{{f',{self._blank}'.join(patterns)}\}}"

    def _envelope(self, name: str, value: Any) -> str:
        if name == "message" and self._is_enveloped:
            return self._of_object(value, self._content)
        return self._constant(name, value) if self._is_enveloped else self._content(name, value)

    def _content(self, name: str, value: Any) -> str:
        if name == "headers":
            return self._of_object(value, self._header)
        if name in ("data", "beforeData"):
            names = self._names if name == "data" else self._image
            return f"(?:null|{self._of_object(dict.fromkeys(names), self._cell)})"
        return self._constant(name, value)

    def _header(self, name: str, value: Any) -> str:
        if name == "changeSequence":
            return f"(?:null|{_SEQUENCE})"
        return f"(?:null|{_TOKENS[_HEADERS[name]]})" if name in _HEADERS else self._constant(name, value)

    def _cell(self, name: str, value: Any) -> str:
        return f"(?:null|{_TOKENS[dict(zip(self._names, self._types, strict=True))[name]]})"

    def _constant(self, name: str, value: Any) -> str:
        if isinstance(value, dict):
            return self._of_object(value, self._constant)
        if isinstance(value, list):
            raise ValueError
        return _quoted(value)

    def _make_schema(self, content: Mapping[str, Any]) -> pa.Schema:
        types = dict(zip(self._names, self._types, strict=True))
        headers = [(name, _HEADERS[name]) for name in content["headers"] if name in _HEADERS]
        fields = [
            ("data", pa.struct([*types.items()])),
            ("beforeData", pa.struct([(name, types[name]) for name in self._image])),
            ("headers", pa.struct(headers)),
        ]
        return pa.schema([("message", pa.struct(fields))] if self._is_enveloped else fields)

    # --- the changes

    def changes(self, lines: pa.Array) -> MessageChanges:
        """Return the changes of lines with this layout."""
        content = self._parse(lines)
        headers = {name: _field(content["headers"], name, kind) for name, kind in _HEADERS.items()}
        ops = _ops(headers["operation"])
        rows = self._rows(content, ops)
        masks = self._masks(headers)
        sides, odd = [], rows.odd | masks.odd[masks.numbers]
        for place in range(len(self._types)):
            of_column, is_odd = self._sides(place, self._cells(place, content, rows), rows, masks)
            sides.append(of_column)
            odd |= is_odd
        is_iso = self.reader.time_form == ISO
        moments = times(headers["timestamp"], self.reader.read_time, pa.Array.to_pylist, is_iso=is_iso)
        positions = texts_or_none(headers["changeSequence"])
        counter, last = headers["transactionEventCounter"], headers["transactionLastEvent"]
        odd |= moments.odd | (flags(counter.is_null()) != flags(last.is_null()))
        odd |= flags(positions.is_null()) != (ops == _SNAPSHOT)
        facts = {"stream_position": texts_or_none(headers["streamPosition"])}
        facts |= {"event_counter": counter, "last_event": last, **self._external(len(ops))}
        key = [sides[place].values.take(pa.array(sides[place].new_at)) for place in self.table.key]
        transactions = texts_or_none(headers["transactionId"])
        batch = ChangeBatch(self.table, rows.ops, key, sides, positions, transactions, moments.texts, facts)
        return MessageChanges(batch, odd, masks.proven[masks.numbers])

    def _parse(self, lines: pa.Array) -> Mapping[str, pa.StructArray]:
        """Return the parts of messages."""
        at = offsets(lines)
        data = lines.buffers()[2].slice(int(at[0]), int(at[-1] - at[0]))
        table = pj.read_json(
            pa.BufferReader(data),
            pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
            pj.ParseOptions(explicit_schema=self._schema, unexpected_field_behavior="ignore"),
        )
        assert len(table) == len(lines)
        content = table["message"].chunk(0) if self._is_enveloped else table.to_struct_array().chunk(0)
        return {name: content.field(name) for name in ("data", "beforeData", "headers")}

    def _masks(self, headers: Mapping[str, pa.Array]) -> MaskTable:
        """Return the masks of messages."""
        (codes, texts), (column_codes, column_texts) = (
            encode_texts(headers[name]) for name in ("changeMask", "columnMask")
        )
        numbers, first = number_distinct(codes.astype(np.int64) * len(column_texts) + column_codes)
        pairs = [(texts[codes[at]], column_texts[column_codes[at]]) for at in first.tolist()]
        return masks_of(numbers, pairs, lambda pair: self.reader.certain_masks(*pair), len(self._types))

    def _external(self, count: int) -> Mapping[str, pa.Array]:
        external = self._constant_headers.get("externalSchemaId")
        return {} if external is None else {"external_schema_id": pa.repeat(str(external), count)}

    def _rows(self, content: Mapping[str, pa.StructArray], ops: Ints) -> _Rows:
        has_data, has_image = (flags(content[name].is_valid()) for name in ("data", "beforeData"))
        is_delete = (ops == _DELETE) & has_image & (self._image == self._names)
        odd = (ops == _WRONG) | ~(has_data | is_delete)
        return _Rows(np.where(odd, 0, ops), has_data, has_image & (ops == _UPDATE), odd)

    def _cells(self, place: int, content: Mapping[str, pa.StructArray], rows: _Rows) -> _Cells:
        """Return the cells of a column; those of beforeData are read only if they differ."""
        name, column = self._names[place], self.reader.message_structure.columns[place]
        cells = content["data"].field(name)
        before = _field(content["beforeData"], name, self._types[place])
        in_data, in_image = flags(cells.is_valid()), flags(before.is_valid())
        are_equal = flags(pc.equal(cells, before)) | ~(in_data | in_image)
        count, differ = len(cells), ~are_equal
        differing = np.flatnonzero(differ & in_image)
        both = pa.concat_arrays([cells, before.take(pa.array(differing))])
        convert = partial(self.reader.plan.convert_value, place)
        texts, is_odd = load(both, column.spec, self.table.kinds[place], convert, pa.Array.to_pylist)
        odd = is_odd[:count]
        odd[differing] |= is_odd[count:]
        are_equal[differing] = flags(pc.equal(texts.take(pa.array(differing)), texts[count:]))
        old_at = np.arange(count)
        old_at[differing] = count + np.arange(len(differing))
        new_at = np.where(rows.has_data, np.arange(count), old_at)
        has_new = np.where(rows.has_data, in_data, in_image)
        return _Cells(texts, new_at, old_at, has_new, in_image, differ, are_equal, odd)

    def _sides(self, place: int, cells: _Cells, rows: _Rows, masks: MaskTable) -> tuple[Sides, Flags]:
        """Return the sides of a column by the rules of `formats/qlik/sides`, and which of them are odd."""
        structure = self.reader.message_structure
        lob, is_described = structure.lobs[place], structure.columns[place].spec is not None
        is_update, is_delete = rows.ops == _UPDATE, rows.ops == _DELETE
        has_image = rows.has_image & (self._names[place] in self._image)
        bit, absent = masks.changed[masks.numbers, place], masks.absent[masks.numbers, place]
        is_stated = masks.are_stated[masks.numbers]
        new = np.where(absent, SideState.ABSENT, np.where(cells.has_new, SideState.VALUE, SideState.NULL))
        of_image = np.where(bit & ~cells.has_new | absent, SideState.ABSENT, SideState.NULL)
        of_image = np.where(cells.has_old, SideState.VALUE, of_image)
        by_mask = np.where(~is_stated | bit | lob, SideState.ABSENT, new)
        had = np.where(has_image, of_image, by_mask)
        had = np.where(is_update, had, np.where(is_delete, new, SideState.ABSENT))
        has = np.where(is_delete, SideState.ABSENT, new)
        same = is_update & (had == SideState.VALUE) & (has == SideState.VALUE)
        same &= cells.are_equal | ~has_image
        contradicts = np.where(cells.differ, ~bit & is_described & (not lob), bit & cells.has_new)
        odd = cells.odd | (has_image & is_stated & ~absent & contradicts)
        if place in self.table.key:
            odd |= (new != SideState.VALUE) | (is_update & (had != SideState.ABSENT) & ~same)
        old_at = np.where(has_image, cells.old_at, cells.new_at)
        return Sides(cells.values, old_at, cells.new_at, had, has, same), odd


def _type_of(column: DataColumn) -> pa.DataType:
    return _TYPES.get(column.spec.name if column.spec is not None else "", pa.string())


def _quoted(value: Any) -> str:
    return re.escape(json.dumps(value, ensure_ascii=False))


def _field(parts: pa.StructArray, name: str, kind: pa.DataType) -> pa.Array:
    return parts.field(name) if parts.type.get_field_index(name) >= 0 else pa.nulls(len(parts), kind)


def _ops(operations: pa.Array) -> Ints:
    codes, names = encode_texts(operations)
    ops = [OPS_BY_NAME.get(name or "") for name in names]
    return np.array([_WRONG if op is None else OPS.index(op) for op in ops])[codes]
