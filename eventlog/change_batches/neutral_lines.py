"""A change as a line of JSON in the neutral format."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.change_batches import lines
from eventlog.change_batches.batch import OPS, BatchTable, ChangeBatch, ValueKind
from eventlog.change_batches.lines import AFTER, BEFORE, Constants, Pieces
from eventlog.change_batches.values import Texts
from eventlog.core.change import Change, Field, Op
from eventlog.fold.by_column.vectors import flags, suspects
from eventlog.formats import neutral

_ESCAPES = tuple((character, "") for character in '"\\\t')  # besides other controls
_NO_FIELD = neutral.dumps(Change(Op.INSERT, None, "", (), (Field(""),))).partition("[")[2].partition("]")[0]
_AROUND = {
    ValueKind.TEXT: ('"', '"'),
    ValueKind.BYTES: ('{"base64":"', '"}'),
}  # of a value's text; of others nothing


class NeutralLines:
    """The form of lines of JSON."""

    separator = ","

    def __init__(self, table: BatchTable) -> None:
        self._table = table
        self._heads = [self._learn_frame(op)[0] for op in OPS]
        self._texts = self._learn_frame(Op.INSERT)[1:]  # after each slot

    def may_lack_fields(self, op: Op) -> bool:
        """Return that a line may have no fields."""
        return True

    def constants(self, op: Op, field: Field) -> Constants | None:
        """Return what a field adds to the list of fields."""
        around = _AROUND.get(self._table.kinds[self._table.columns.index(field.column)], ("", ""))
        marked = field._replace(after=AFTER) if field.after == BEFORE else field  # each side has its value
        text = neutral.dumps(Change(op, None, "", (), (marked,)))
        text = text[text.index("[") + 1 : text.rindex("]")]
        for mark in (BEFORE, AFTER):
            text = text.replace(f'"{mark}"', mark.join(around))
        return lines.split(text)

    def texts(self, place: int, values: pa.Array) -> Texts:
        """Return the values of a column as JSON holds them, without what is around them."""
        texts = _escape(values) if self._table.kinds[place] is ValueKind.TEXT else values
        return Texts(texts, np.zeros(len(values), np.bool_))

    def frame(self, batch: ChangeBatch, body: Pieces) -> Texts:
        """Return the lines with these lists of fields."""
        kinds = [self._table.kinds[place] for place in self._table.key]
        key = [[_token(values, kind)] for values, kind in zip(batch.key, kinds, strict=True)]
        facts = [[_text_or_null(values)] for values in (batch.positions, batch.transactions, batch.times)]
        pieces: Pieces = [pa.array(self._heads, pa.string()).take(pa.array(batch.ops))]
        for slot, after in zip([*key, body, *facts], self._texts, strict=True):
            pieces += [*slot, after]
        return Texts(lines.join(*pieces, *_extra(batch), "}\n"), np.zeros(len(batch.ops), np.bool_))

    def _learn_frame(self, op: Op) -> list[str]:
        """Return the texts around the slots of a line: the values of its key, its fields, and three facts."""
        table = self._table
        key = tuple((table.columns[place], BEFORE) for place in table.key)
        text = neutral.dumps(Change(op, table.schema, table.name, key, (Field(""),), BEFORE, BEFORE, BEFORE))
        slot = json.dumps(BEFORE, ensure_ascii=False)
        return text.removesuffix("}").replace(_NO_FIELD, slot).split(slot)


def _token(values: pa.Array, kind: ValueKind) -> pa.Array:
    """Return values as JSON holds them."""
    before, after = _AROUND.get(kind, ("", ""))
    texts = _escape(values) if kind is ValueKind.TEXT else values
    return lines.join(before, texts, after) if before else texts


def _text_or_null(values: pa.Array) -> pa.Array:
    return _token(values, ValueKind.TEXT) if not values.null_count else _with_nulls(values)


def _with_nulls(values: pa.Array) -> pa.Array:
    quotes = pa.array(['"', ""], pa.string()).take(pa.array(values.is_null().cast(pa.int8())))
    return lines.join(quotes, _escape(values).fill_null("null"), quotes)


def _extra(batch: ChangeBatch) -> Pieces:
    """Return the facts of the changes that have some."""
    pieces: Pieces = []
    begun = np.zeros(len(batch.ops), np.bool_)
    for name, values in batch.facts.items():
        is_there = flags(values.is_valid())
        openings = ["", f',"extra":{{{json.dumps(name)}:', f",{json.dumps(name)}:"]
        pieces.append(pa.array(openings, pa.string()).take(pa.array(np.where(is_there, 1 + begun, 0))))
        kind = ValueKind.TEXT if pa.types.is_string(values.type) else ValueKind.INT
        pieces.append(pc.if_else(pa.array(is_there), _token(values.cast(pa.string()), kind), ""))
        begun |= is_there
    return [*pieces, pa.array(["", "}"], pa.string()).take(pa.array(begun.astype(np.int8)))] if pieces else []


def _escape(texts: pa.Array) -> pa.Array:
    """Return texts as JSON holds them between quotes."""
    at = suspects(texts, _ESCAPES)
    escaped = [json.dumps(text, ensure_ascii=False)[1:-1] for text in texts.take(pa.array(at)).to_pylist()]
    return lines.replace_at(texts, at, escaped)
