"""Data messages and their changes, in both directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from eventlog.core.change import ABSENT, Change, Facts, Field, Key, Op, Side, Value
from eventlog.formats.qlik import avro, row_plans, sequence, sides
from eventlog.formats.qlik.envelope import Body, InvalidMessage
from eventlog.formats.qlik.headers import ISO, read_header_time, utc
from eventlog.formats.qlik.mask import (
    InvalidMask,
    MaskEvidence,
    MaskLayout,
    MaskOrder,
    WrongMaskOrder,
    join,
    load,
    orders_of,
    padded,
)
from eventlog.formats.qlik.mask import read as read_mask
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.formats.qlik.metadata import Metadata
from eventlog.formats.qlik.numbering import Numbered, stream_position
from eventlog.formats.qlik.row_headers import make_change
from eventlog.formats.qlik.row_plans import differing, row_sides, unequal_places
from eventlog.formats.qlik.sides import Masks, Readings
from eventlog.formats.qlik.structure import Structure, observe

OPS_BY_NAME = {
    "INSERT": Op.INSERT,
    "UPDATE": Op.UPDATE,
    "DELETE": Op.DELETE,
    "REFRESH": Op.SNAPSHOT,
    "READ": Op.SNAPSHOT,
}
_NAMES = {op: name for name, op in OPS_BY_NAME.items() if name != "READ"}
_HEADERS = (
    "operation",
    "changeSequence",
    "timestamp",
    "streamPosition",
    "transactionId",
    "changeMask",
    "columnMask",
    "transactionEventCounter",
    "transactionLastEvent",
)
_MAX_CACHED = 10_000
BY_KEYS = (
    "no metadata message that was read describes its messages, so the bits of their masks are taken for the"
    " keys of data in their order. If one is in another topic or file, read that first"
)


class RecordReader:
    """Reads the data messages that hold the same columns in the same order."""

    def __init__(
        self,
        structure: Structure,
        message_structure: Structure,
        names: tuple[str, ...],
        order: MaskOrder | None,
        evidence: MaskEvidence,
        time_form: str = ISO,
        row: Sequence[str] | None = None,
        orders: Sequence[Structure] = (),
        *,
        by_keys: bool = False,
        lack: str = "",
    ) -> None:
        """Take `names`, the keys of the messages, and `row`, the columns of data if beforeData has more.

        `orders` are orders of the table's columns, and data lack some of them. `by_keys` means that no
        metadata have the ordinals of the table. `lack` is why those that were read are of another structure:
        then each columnMask must prove that data have all columns.
        """
        self.structure = structure  # of the table, whose ordinals are the bits
        self.names = names
        self.message_structure = message_structure
        self.plan = row_plans.loading(message_structure.columns)
        self._order = order
        self.evidence = evidence
        self.time_form = time_form
        columns = message_structure.names
        places = tuple(structure.index[name] for name in columns)
        self._own_layout = ColumnLayout(MaskLayout(0, len(structure.columns)), places)
        own_columns = columns if row is None else row
        layouts = [_layout_of_table(ordered, columns, own_columns) for ordered in orders]
        self._layouts = [self._own_layout, *layouts] if row is None else [*layouts, self._own_layout]
        self._widest = MaskLayout(0, max(layout.mask.columns for layout in self._layouts))
        self.doubts: list[str] = []  # about the masks that were read, to be reported
        self._by_keys = by_keys
        self._lack = lack
        self._masks_read: dict[tuple[object, object], Readings] = {}

    def change(self, body: Body) -> Change:
        """Return the change that a message states."""
        headers = body.headers
        op = OPS_BY_NAME.get(headers["operation"])
        if op is None:
            raise InvalidMessage(
                f"operation {str(headers['operation'])[:40]!r} is none of {', '.join(OPS_BY_NAME)}"
            )
        readings = self._masks_of(headers.get("changeMask"), headers.get("columnMask"))
        if len(readings.masks) > 1:
            return self._proven_change(op, body, readings)
        self.evidence.add(readings.proven)
        return self._change(op, body, readings.masks[0])

    def _proven_change(self, op: Op, body: Body, readings: Readings) -> Change:
        """Return the change that masks state in the only byte order that the values allow, or in both."""
        changes: dict[str, Change] = {}
        possible: list[MaskOrder] = []
        for order, masks in zip(readings.orders, readings.masks, strict=True):
            with suppress(InvalidMask):
                self._check_absent(body, masks)
                change = self._change(op, body, masks)
                changes[repr(change)] = change
                possible.append(order)
        if len(changes) > 1:
            get = body.headers.get
            raise WrongMaskOrder(
                f"changeMask {get('changeMask')} and columnMask {get('columnMask')} mark other columns in"
                f" each byte order, and no beforeData prove one{self.evidence.remedy()}"
            )
        self.evidence.add(possible[0] if len(possible) == 1 else None)
        return changes.popitem()[1] if changes else self._change(op, body, readings.masks[-1])

    def _check_absent(self, body: Body, masks: Masks) -> None:
        """Raise InvalidMask if a column that was not captured has a value."""
        data = body.data or body.before or {}
        for name in (self.names[i] for i in masks.absent):
            if data.get(name) is not None:
                raise InvalidMask(f"columnMask leaves out {name}, which has a value")

    def _change(self, op: Op, body: Body, masks: Masks) -> Change:
        headers, data = body.headers, body.data
        if op is Op.DELETE:
            parts = sides.delete(
                self.message_structure, self._values(data or body.before), masks, masks.absent
            )
        elif not data:
            raise InvalidMessage(f"{headers['operation']} without data")
        elif len(data) < len(self.names):
            parts = self._shorter_update(data, masks, body.before)
        elif op is Op.UPDATE:
            cells = tuple(data.values())
            parts = self._update(cells, self.plan(cells), masks, body.before)
        else:
            parts = sides.insert(self.message_structure, self.plan(tuple(data.values())), masks.absent)
        return self._make_change(op, *parts, headers)

    def _values(self, row: Mapping[str, Any] | None) -> Sequence[Value]:
        if row is None:
            raise InvalidMessage("neither data nor beforeData holds the row")
        return self.plan(tuple(row.values()))

    def _update(
        self, cells: Sequence[Any], values: Sequence[Value], masks: Masks, image: Mapping[str, Any] | None
    ) -> sides.Parts:
        structure = self.message_structure
        in_image: Sequence[bool] = ()
        if image is None:
            before = sides.unchanged(values, masks, structure.lobs)
        else:
            if tuple(image) != self.names:
                in_image = [name in image for name in self.names]
            old_cells = tuple(map(image.get, self.names))
            differing_places = unequal_places(old_cells, cells)
            before = self.plan.convert_similar(old_cells, values, differing_places)
            self._check_mask(masks, differing_places, old_cells, cells, in_image)
        if in_image:
            by_mask = sides.unchanged(values, masks, structure.lobs)
            for i in (i for i, is_there in enumerate(in_image) if not is_there):
                before[i] = ABSENT if i in masks.absent else by_mask[i]
        return sides.update(structure, values, masks.places, masks.absent, before, image is not None)

    def _check_mask(
        self,
        masks: Masks,
        differing_places: Sequence[int],
        old_cells: Sequence[Any],
        cells: Sequence[Any],
        in_image: Sequence[bool],
    ) -> None:
        """Raise InvalidMask if changeMask contradicts beforeData."""
        if masks.changed is None:
            return
        if tuple(differing_places) == masks.places:  # nearly always
            return
        for i in sorted({*differing_places} ^ {*masks.places}):
            if i not in masks.absent and (not in_image or in_image[i]):
                self._check_bit(i, masks.changed[i], old_cells[i], cells[i])

    def _check_bit(self, place: int, bit: bool, old_cell: Any, cell: Any) -> None:
        """Raise InvalidMask for the bit of a column, unless the column is a LOB or may be one."""
        if bit:
            if cell is not None:  # else its earlier value was not captured
                raise self._contradiction(place, "changed, and its value is the same in beforeData")
            return
        cells = {type(old_cell), type(cell)} - {type(None)}
        column = self.message_structure.columns[place]
        if not self.message_structure.lobs[place] and (column.spec is not None or cells != {str}):
            raise self._contradiction(place, "unchanged, and beforeData has another value")

    def _contradiction(self, place: int, words: str) -> InvalidMask:
        return InvalidMask(
            f"changeMask marks column {self.names[place]} as {words}: if its bits are in another order, set"
            " mask-order, or read the metadata message of its table first"
        )

    def _shorter_update(
        self, data: Mapping[str, Any], masks: Masks, image: Mapping[str, Any] | None
    ) -> sides.Parts:
        """Return an update without the new values of some columns, which only beforeData has."""
        absent = {*masks.absent, *(i for i, name in enumerate(self.names) if name not in data)}
        cells = tuple(data.get(name) for name in self.names)
        return self._update(cells, self.plan(cells), masks._replace(absent=sorted(absent)), image)

    def certain_masks(self, change_mask: Any, column_mask: Any) -> Readings | None:
        """Return the meaning of masks; None if it must be reported with a message."""
        try:
            readings = self._masks_of(change_mask, column_mask)
            if not self.doubts:
                return readings
            del self._masks_read[change_mask, column_mask]
            return None
        finally:
            self.doubts.clear()

    def _masks_of(self, change_mask: Any, column_mask: Any) -> Readings:
        masks = self._masks_read.get((change_mask, column_mask))
        if masks is None:
            masks = self._read_masks(change_mask, column_mask)
            if len(self._masks_read) >= _MAX_CACHED:
                self._masks_read.clear()
            self._masks_read[change_mask, column_mask] = masks
        return masks

    def _read_masks(self, change_mask: Any, column_mask: Any) -> Readings:
        """Return the masks in the orders that are possible for both."""
        column_data, change_data = (
            load(mask, self._widest, self._order) if mask not in (None, "") else None
            for mask in (column_mask, change_mask)
        )
        if self._lack and (change_data is not None or column_data is not None):
            self._check_all_columns(column_data)
        layout = self._layout_of(column_data)
        of_columns, of_change = (
            orders_of(data or b"", layout.mask, self._order) for data in (column_data, change_data)
        )
        is_unproven = self._order is None and column_data is None
        is_assumed = is_unproven and self._may_be_wider(change_data, of_change)
        if is_assumed:
            of_change = (MaskOrder.BIG,)
        shared = tuple(order for order in of_columns if order in of_change)
        masks = (self._flags(change_data, column_data, order, layout) for order in shared or of_columns[-1:])
        return Readings(tuple(dict.fromkeys(masks)), () if self._order or is_assumed else shared)

    def _may_be_wider(self, change_data: bytes | None, orders: Sequence[MaskOrder]) -> bool:
        """Return whether a mask would be possible in big order if data lacked columns of the table."""
        if MaskOrder.BIG in orders or change_data is None:
            return False
        bits = read_mask(change_data, MaskOrder.BIG)
        return any(layout.mask.fault(bits) is None for layout in self._layouts)

    def _check_all_columns(self, column_data: bytes | None) -> None:
        """Raise InvalidMask unless a columnMask has the bits of all columns of the message, and no others."""
        orders = MaskOrder if self._order is None else (self._order,)
        all_bits = self.message_structure.all_bits
        if column_data is None or all(read_mask(column_data, order) != all_bits for order in orders):
            shown = "null" if column_data is None else column_data.hex().upper()
            raise InvalidMask(
                f"{self._lack}, and columnMask {shown} does not prove that all columns are there: read the"
                " metadata message of its structure first"
            )

    def _flags(
        self, change_data: bytes | None, column_data: bytes | None, order: MaskOrder, layout: ColumnLayout
    ) -> Masks:
        changed = _flags_of("changeMask", change_data, order, *layout)
        captured = _flags_of("columnMask", column_data, order, *layout)
        if self._by_keys:
            self._doubt(BY_KEYS, any(len({*flags}) > 1 for flags in (changed, captured) if flags))
        changed_places = tuple(i for i, bit in enumerate(changed or ()) if bit)
        return Masks(changed, changed_places, tuple(i for i, bit in enumerate(captured or ()) if not bit))

    def _doubt(self, sentence: str, applies: bool) -> None:
        if applies and sentence not in self.doubts:
            self.doubts.append(sentence)

    def _layout_of(self, column_data: bytes | None) -> ColumnLayout:
        """Return the columns that explain columnMask: those of the message, else those of the table."""
        if column_data and len(self._layouts) > 1:
            for order in (MaskOrder.BIG, MaskOrder.LITTLE) if self._order is None else (self._order,):
                bits = read_mask(column_data, order)
                for column_layout in self._layouts:
                    if column_layout.mask.fault(bits) is None:
                        return column_layout
        return self._own_layout

    def _make_change(self, op: Op, key: Key, fields: tuple[Field, ...], headers: Mapping[str, Any]) -> Change:
        get = headers.get
        position = get("changeSequence") or None
        if position is not None:
            sequence.check(position)
        structure = self.structure
        return make_change(
            op,
            structure.schema,
            structure.table,
            key,
            fields,
            position,
            _text(headers, "transactionId"),
            self.read_time(headers.get("timestamp")),
            _facts(headers),
        )

    def read_time(self, time: Any) -> str | None:
        """Return the time of a change, which may be a number in the forms since 1970."""
        if not time:
            return None
        if type(time) not in ((str, int, float) if self.time_form != ISO else (str,)):
            raise InvalidMessage(f"timestamp {str(time)[:40]!r} is no text")
        return read_header_time(str(time), self.time_form)


def _flags_of(
    name: str, data: bytes | None, order: MaskOrder, layout: MaskLayout, places: Sequence[int]
) -> tuple[bool, ...] | None:
    """Return whether the bits of these places are set; None if there is no mask."""
    if data is None:
        return None
    bits = read_mask(data, order)
    if fault := layout.fault(bits):
        raise InvalidMask(f"{name} {data.hex().upper()} in {order} byte order: {fault}")
    return tuple([bits >> place & 1 == 1 for place in places])


class ColumnLayout(NamedTuple):
    """The columns whose ordinals are the bits of a mask, and the places of a message's columns in them."""

    mask: MaskLayout
    places: tuple[int, ...]


def _layout_of_table(structure: Structure, names: Sequence[str], row: Sequence[str]) -> ColumnLayout:
    """Return the columns of a table, if data have only those of `row`: the bits of all others are clear."""
    places = tuple(structure.index[name] for name in names)
    absent_bits = structure.all_bits & ~join(structure.index[name] for name in row)
    return ColumnLayout(
        MaskLayout(absent_bits, len(structure.columns), "a column that the message lacks"), places
    )


def _text(headers: Mapping[str, Any], name: str) -> str | None:
    """Return a header that is text, or a number in its place; None if there is none."""
    value = headers.get(name)
    if value is None or type(value) is str:
        return value or None
    if type(value) is int:
        return str(value)
    raise InvalidMessage(f"{name} {str(value)[:40]!r} is no text")


def _facts(headers: Mapping[str, Any]) -> Facts:
    external = headers.get("externalSchemaId")
    if external is not None:
        other_headers = {name: value for name, value in headers.items() if name != "externalSchemaId"}
        return (*_facts(other_headers), ("external_schema_id", str(external)))
    stream, counter = _text(headers, "streamPosition"), headers.get("transactionEventCounter")
    last = headers.get("transactionLastEvent")
    if counter is None and last is None:
        return (("stream_position", stream),) if stream else ()
    if type(counter) is not int or type(last) is not bool:
        raise InvalidMessage(f"transactionEventCounter {counter!r}, transactionLastEvent {last!r}")
    facts: Facts = (("event_counter", counter), ("last_event", last))
    return (("stream_position", stream), *facts) if stream else facts


class RecordWriter:
    """Writes the changes of one structure of one table as the payloads of data messages."""

    def __init__(self, structure: Structure, metadata: Metadata | None, settings: MessageSettings) -> None:
        self.structure = structure
        self.metadata = metadata
        self._avro = settings.encoding == "avro"
        self._images = settings.before_images
        self._order = MaskOrder.BIG if settings.mask_order == "auto" else MaskOrder(settings.mask_order)
        columns = structure.columns
        self._columns = frozenset(structure.names)
        self._declared = all(c.declared for c in columns)
        self._dump = (
            row_plans.dumping_avro(columns, settings.logical_types)
            if self._avro
            else row_plans.dumping(columns)
        )
        self._names_first, self._fields = _message_fields(metadata, settings)
        self._plain = self._fields == _HEADERS
        self._counted = "transactionEventCounter" in self._fields  # in no schema of 2018
        self._table_headers = {"schema": structure.schema or "", "table": structure.table}
        self._masks: dict[int, Any] = {}

    def holds(self, change: Change) -> bool:
        """Return whether the structure has a place for all of a change."""
        return (self._declared and self._columns.issuperset([f[0] for f in change.fields])) or (
            observe(self.structure, change) is self.structure
        )

    def draft(self, change: Change) -> dict[str, Any]:
        """Return the payload of a data message, to be filled with its numbers."""
        before, after = row_sides(self.structure, change)
        if change.op is Op.DELETE:
            after = before
        row = self._dump(after)
        image = None
        captured = self.structure.all_bits if ABSENT not in after else _bits(after)
        if change.op is Op.UPDATE:
            image_row = self._dump.convert_similar(before, row, unequal_places(before, after))
            changed = join(differing(before, after, image_row, row)) & ~self.structure.lob_bits
            image = self._image(before, after, image_row, changed)
        elif change.op is Op.DELETE:
            changed = self.structure.bits_of_key(change.key)
        else:
            changed = captured & ~self.structure.lob_bits
        payload = {"data": dict(zip(self.structure.names, row, strict=True)), "beforeData": image}
        payload["headers"] = self._headers(change, changed, captured)
        return {**self._table_headers, **payload} if self._names_first else payload

    def _image(
        self, before: Sequence[Side], after: Sequence[Side], image_row: Sequence[Any], changed: int
    ) -> dict[str, Any] | None:
        """Return beforeData: in JSON only captured columns; Avro has null for a column without a value."""
        if not self._images:
            return None
        names = self.structure.names
        if not self._avro:
            if ABSENT not in before:
                return dict(zip(names, image_row, strict=True))
            cells = zip(names, before, image_row, strict=True)
            return {name: value for name, b, value in cells if b is not ABSENT} or None
        lobs = self.structure.lobs
        says_more = ABSENT not in before or any(
            b is not ABSENT and (changed >> i & 1 or lobs[i] or after[i] is ABSENT)
            for i, b in enumerate(before)
        )
        return dict(zip(names, image_row, strict=True)) if says_more else None

    def fill(self, message: dict[str, Any], numbered: Numbered) -> None:
        """Give the payload of a data message the numbers of its change."""
        change, seq, counter, last, transaction = numbered
        headers = message["headers"]
        headers["changeSequence"] = seq
        headers["transactionId"] = "" if change.op is Op.SNAPSHOT else transaction
        if self._counted:
            headers["transactionEventCounter"] = counter
            headers["transactionLastEvent"] = last

    def _headers(self, change: Change, changed: int, captured: int) -> dict[str, Any]:
        refresh = change.op is Op.SNAPSHOT
        partial = captured != self.structure.all_bits
        headers = {
            "operation": _NAMES[change.op],
            "changeSequence": "",
            "timestamp": "" if refresh or change.time is None else utc(change.time, 3),
            "streamPosition": "" if refresh else stream_position(change),
            "transactionId": "",
            "changeMask": None if refresh else self._mask(changed),
            "columnMask": self._mask(captured) if partial or not refresh else None,
            "transactionEventCounter": None,
            "transactionLastEvent": None,
        }
        external = change.fact("external_schema_id") if change.extra else None
        if self._plain and external is None:
            return headers
        headers |= self._table_headers
        schema_id = self.metadata.schema_id if self.metadata else None
        headers["externalSchemaId"] = schema_id if external is None else external
        written = external is not None and not self._avro  # a schema of Avro has the header or not
        return {name: headers[name] for name in (_with_external(self._fields) if written else self._fields)}

    def _mask(self, bits: int) -> Any:
        """Return a mask as this encoding has it; of the many messages few differ in theirs."""
        mask = self._masks.get(bits)
        if mask is None:
            data = padded(bits, len(self.structure.columns), self._order)
            mask = data if self._avro else data.hex().upper()
            if len(self._masks) >= _MAX_CACHED:
                self._masks.clear()
            self._masks[bits] = mask
        return mask


def _bits(row: Sequence[Side]) -> int:
    bits = 0
    for place, side in enumerate(row):
        if side is not ABSENT:
            bits |= 1 << place
    return bits


def _message_fields(metadata: Metadata | None, settings: MessageSettings) -> tuple[bool, tuple[str, ...]]:
    """Return whether schema and table come first, and the headers; an older schema may differ."""
    schema = (
        avro.data_schema((), settings.logical_types, settings.table_names, settings.external_schema_id)
        if metadata is None
        else avro.load_schema(metadata.data_schema)
    )
    try:
        fields = {f["name"]: f["type"] for f in schema["fields"]}
        names = [f["name"] for f in fields["headers"]["fields"]]
    except (LookupError, TypeError) as fault:
        raise InvalidMessage("the schema of its data messages states no headers") from fault
    return "table" in fields, _with_external(names) if settings.external_schema_id else tuple(names)


def _with_external(names: Sequence[str]) -> tuple[str, ...]:
    """Return the headers with externalSchemaId, which no schema of 2018 has, yet messages do."""
    if "externalSchemaId" in names:
        return tuple(names)
    at = list(names).index("columnMask") + 1
    return (*names[:at], "externalSchemaId", *names[at:])
