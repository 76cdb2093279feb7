"""Changes, written in either format and read again, are the same changes."""

from __future__ import annotations

import itertools
import json
from operator import itemgetter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.errors import Refused
from eventlog.core.formats import SheetRow
from tests.formats.qlik.helpers import (
    as_sources,
    as_text,
    change,
    read_messages,
    read_rows,
    seq,
    write_messages,
    write_rows,
)
from tests.formats.qlik.strategies import LOBS, TYPES, Case, cases, tables
from tests.kit.tiers import drawn

pytestmark = pytest.mark.quick

HEADER_COUNT = 7


@settings(max_examples=drawn(80))
@given(cases(tabular=True), st.sampled_from(["little", "big"]), st.booleans())
def test_change_table(case: Case, order: str, csv: bool) -> None:
    written = write_rows(case.changes, case.tables, mask_order=order, no_op_updates="write")
    again = read_rows(*as_sources(written, csv=csv), tables=case.tables, mask_order=order)
    assert list(map(as_text, again)) == [as_text(_without_nulls(change)) for change in case.changes]


def _without_nulls(change: Change) -> Change:
    """Return a null that did not change is read as not captured, except in a key."""
    if change.op is not Op.UPDATE:
        return change
    key = dict(change.key)
    captured_fields = (f for f in change.fields if f.column in key or (f.before, f.after) != (None, None))
    return change._replace(fields=tuple(captured_fields))


@settings(max_examples=drawn(80))
@given(
    cases(tabular=False), st.sampled_from(["auto", "little", "big"]), st.sampled_from(["message", "headers"])
)
def test_json_messages(case: Case, order: str, names: str) -> None:
    written = json.loads(
        json.dumps(write_messages(case.changes, case.tables, mask_order=order, table_names=names))
    )
    again = read_messages(written, mask_order="big" if order == "auto" else order)
    assert list(map(as_text, _changes(again))) == list(map(as_text, _by_sequence(case.changes)))


def _by_sequence(changes: list[Change]) -> list[Change]:
    """Return changes as messages have them: one without a change_seq follows the greatest before it."""
    places = itertools.accumulate((c.position or "" for c in changes), max)
    numbered = [(c.position or place, c) for place, c in zip(places, changes, strict=True)]
    return [c for _, c in sorted(numbered, key=itemgetter(0))]


def _changes(answers: list[Change | Refused]) -> list[Change | Refused]:
    """Return what was read, without notices."""
    return [item for item in answers if not isinstance(item, Refused) or item.fault]


@settings(max_examples=drawn(80))
@given(cases(tabular=False, exact_lacks=False), st.booleans())
def test_avro_messages(case: Case, logical: bool) -> None:
    written = write_messages(case.changes, case.tables, encoding="avro", logical_types=logical)
    again = _changes(read_messages(written, mask_order="big"))
    assert list(map(as_text, again)) == list(map(as_text, _by_sequence(case.changes)))


@pytest.mark.parametrize("sides", [(0.0, -0.0), (-0.0, 0.0)])
def test_a_zero_that_loses_its_sign_is_a_change_and_what_stays_no_number_is_none(
    sides: tuple[float, float],
) -> None:
    columns = '{ k = "integer", r = "real", n = "real" }'
    known = tablesfile.read(f'[tables.t]\nkey = ["k"]\ncolumns = {columns}\n')
    fields = (Field("k", 1, 1), Field("r", *sides), Field("n", "NaN", "NaN"))
    changes = [Change(Op.UPDATE, None, "t", (("k", 1),), fields, seq(1))]
    read = (
        read_rows(*as_sources(write_rows(changes, known)), tables=known),
        read_messages(write_messages(changes, known)),
        read_messages(write_messages(changes, known, encoding="avro")),
    )
    assert [list(map(as_text, again)) for again in read] == [list(map(as_text, changes))] * 3


@settings(max_examples=drawn(60))
@given(cases(tabular=False))
def test_json_messages_without_a_tables_file(case: Case) -> None:
    """Read the same values again with types guessed from them."""
    again = _changes(read_messages(write_messages(case.changes), mask_order="big"))
    assert list(map(_sorted, again)) == list(map(_sorted, _by_sequence(case.changes)))


def _sorted(item: Change | Refused) -> str:
    """Sort columns, which come in the order in which they were first met."""
    read_change = change(item)
    return as_text(read_change._replace(fields=tuple(sorted(read_change.fields, key=lambda f: f.column))))


@settings(max_examples=drawn(20))
@given(st.integers(1, 1024 - HEADER_COUNT), st.data(), st.sampled_from(["little", "big"]))
def test_wide_tables(count: int, data: st.DataObject, order: str) -> None:
    names = [f"c{i}" for i in range(count)]
    columns = ", ".join(f'{name} = "integer"' for name in names)
    known = tablesfile.read(f'[tables.t]\nkey = ["c0"]\ncolumns = {{ {columns} }}\n')
    moved = data.draw(st.sets(st.integers(0, count - 1), max_size=20))
    fields = tuple(Field(n, i, -1 - i if i in moved else i) for i, n in enumerate(names))
    lacking = tuple(
        Field(n, ABSENT, None if i % 3 else i) for i, n in enumerate(names) if i not in moved or i == 0
    )
    changes = [
        Change(Op.UPDATE, None, "t", (("c0", fields[0].after),), fields, seq(1)),  # type: ignore[arg-type]
        Change(Op.INSERT, None, "t", (("c0", 0),), lacking, seq(2)),
    ]
    sources = as_sources(write_rows(changes, known, mask_order=order, no_op_updates="write"))
    assert read_rows(*sources, tables=known, mask_order=order) == changes
    written = write_messages(changes, known, mask_order=order)
    assert read_messages(written, mask_order=order) == changes


@settings(max_examples=drawn(60))
@given(cases(tabular=True))
def test_the_mask_of_a_u_row_is_what_differs_from_its_b_row(case: Case) -> None:
    rows = [r.cells for r in write_rows(case.changes, case.tables) if isinstance(r, SheetRow)]
    for image, row in itertools.pairwise(rows):
        if image[1] == "B":
            pairs = zip(image[HEADER_COUNT:], row[HEADER_COUNT:], strict=True)
            differing = {i + HEADER_COUNT for i, (b, u) in enumerate(pairs) if repr(b) != repr(u)}
            bits = int.from_bytes(row[2], "little")
            assert {i for i in range(len(row)) if bits >> i & 1} == differing


@settings(max_examples=drawn(60))
@given(cases(tabular=False, exact_lacks=False))
def test_the_change_mask_of_an_update_is_what_differs_but_for_lobs(case: Case) -> None:
    for envelope in write_messages(case.changes, case.tables):
        message = envelope["message"]
        if envelope["type"] == "DT" and message["beforeData"] and message["headers"]["operation"] == "UPDATE":
            data, before = message["data"], message["beforeData"]
            bits = int(message["headers"]["changeMask"], 16)
            captured = int(message["headers"]["columnMask"], 16)
            changed = {n for i, n in enumerate(data) if bits >> i & 1}
            assert changed == {
                n
                for i, n in enumerate(data)
                if captured >> i & 1
                and n not in LOBS
                and (n not in before or repr(data[n]) != repr(before[n]))
            }


@pytest.mark.parametrize("name", sorted(TYPES))
def test_the_tables_file_covers_every_data_type(name: str) -> None:
    known = tables(["c_int4", name] if name != "c_int4" else [name])
    metadata = write_messages([Change(Op.INSERT, "app", "usr", (("c_int4", 1),))], known)[0]
    columns = metadata["message"]["tableStructure"]["tableColumns"]
    assert columns[name]["type"] == TYPES[name][1].replace("WSTRING", "STRING")  # as Kafka shows it
