"""The number of columns that a mask holds, which writers and readers have as one limit."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.errors import Refused
from eventlog.formats.qlik.mask import MAX_COLUMNS
from tests.formats.qlik.helpers import (
    ct,
    read_messages,
    read_rows,
    reason,
    row,
    seq,
    source,
    write_messages,
    write_rows,
)

pytestmark = pytest.mark.quick


def wide(columns: int) -> Change:
    """Return an update of so many columns."""
    fields = tuple(Field(f"c{number}", number % 2, 0) for number in range(1, columns + 1))
    return Change(Op.UPDATE, "app", "usr", (("c1", 0),), fields, seq(1))


@pytest.mark.parametrize("encoding", ["json", "avro"])
@pytest.mark.parametrize("mask_order", ["auto", "little"])
def test_the_widest_table_is_written_and_read(encoding: str, mask_order: str) -> None:
    settings: dict[str, Any] = {"encoding": encoding, "mask_order": mask_order}
    (change,) = read_messages(write_messages([wide(MAX_COLUMNS)], **settings), **settings)
    assert isinstance(change, Change)
    assert change.fields == wide(MAX_COLUMNS).fields


@pytest.mark.parametrize("settings", [{}, {"metadata": False}, {"encoding": "avro"}])
def test_a_message_of_one_column_more_is_refused_by_its_name(settings: dict[str, Any]) -> None:
    (refused,) = write_messages([wide(MAX_COLUMNS + 1)], **settings)
    assert "table app.usr has 1025 columns, but a mask holds 1024: leave out 'c1025'" in reason(refused)


def test_a_change_table_counts_its_header_columns() -> None:
    assert len(write_rows([wide(MAX_COLUMNS - 7)])) == 2
    (refused,) = write_rows([wide(MAX_COLUMNS - 6)])
    assert isinstance(refused, Refused)
    assert "with 7 header columns, but a mask holds 1024: leave out 'c1018'" in refused.reason


def test_readers_refuse_one_column_more() -> None:
    metadata, message = write_messages([wide(MAX_COLUMNS)])
    wider = copy.deepcopy(message)
    wider["message"]["data"]["more"] = 1
    columns = metadata["message"]["tableStructure"]["tableColumns"]
    too_wide = copy.deepcopy(metadata)
    too_wide["message"]["tableStructure"]["tableColumns"] = columns | {
        "more": {**columns["c1"], "ordinal": 1025}
    }
    for inputs in ([too_wide], [metadata, wider], [wider]):
        assert "a mask holds 1024: leave out 'more'" in reason(read_messages(inputs)[0])
    names = tuple(f"c{number}" for number in range(1, MAX_COLUMNS - 5))
    (refused,) = read_rows(source(ct(*names), row(1, "I", None, *names)))
    assert "a mask holds 1024: leave out 'c1018'" in reason(refused)


def test_an_insert_of_the_widest_table_needs_a_mask_of_one_byte_more() -> None:
    fields = tuple(Field(f"c{number}", ABSENT, 1) for number in range(1, MAX_COLUMNS + 1))
    insert = Change(Op.INSERT, "app", "usr", (), fields, seq(1))
    _, message = write_messages([insert])
    assert message["message"]["headers"]["columnMask"] == "00" + "FF" * 128
