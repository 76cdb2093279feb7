"""The fate of each row of a change table that is read again: delivered before, new, or late."""

from __future__ import annotations

import pytest

from eventlog.formats.qlik import sequence
from eventlog.formats.qlik.table_progress import RowFate, TableProgress, load_table_progress
from tests.formats.qlik.helpers import seq

pytestmark = pytest.mark.quick

SETTLE = 60.0


def at(minute: int, number: int = 0) -> str:
    """Return a change_seq of a minute."""
    return f"2024010112{minute:02}0000{number:019}"


def after(*rows: tuple[str, str, str], settle: float = SETTLE) -> TableProgress:
    """Return the progress after a reading that delivered these rows, as the next run loads it."""
    progress = TableProgress()
    progress.start("")
    for row in rows:
        progress.add(*row)
    progress.end(settle)
    loaded = load_table_progress(progress.dump())
    loaded.start("")
    return loaded


DELIVERED = [
    ("usr", at(1), "U"),
    ("usr", at(10, 1), "U"),
    ("grp", at(10, 2), "BU"),
    ("usr", at(10, 3), "B"),
    ("grp", at(10, 9), "I"),
]


@pytest.mark.parametrize(
    ("row", "fate"),
    [
        (("usr", at(1), "U"), RowFate.SKIP),
        (("usr", at(5), "U"), RowFate.SKIP),  # before the window
        (("grp", at(10, 2), "BU"), RowFate.SKIP),
        (("usr", at(10, 1), "BU"), RowFate.LATE_IMAGE),
        (("usr", at(10, 3), "BU"), RowFate.LATE),  # its U row comes now
        (("usr", at(10, 2), "B"), RowFate.LATE),
        (("usr", at(10, 4), "B"), RowFate.LAGGING),
        (("usr", at(10, 4), "I"), RowFate.LAGGING),  # of the other table greater ones were delivered
        (("usr", at(11), "B"), RowFate.DELIVER),
        (("usr", at(11), "BU"), RowFate.DELIVER),
        (("new", at(5), "I"), RowFate.LAGGING),
        (("new", at(11), "I"), RowFate.DELIVER),
    ],
)
def test_a_row_that_is_read_again_has_its_fate(row: tuple[str, str, str], fate: RowFate) -> None:
    assert after(*DELIVERED).add(*row) is fate


def test_rows_of_the_time_at_the_low_end_are_read_no_more() -> None:
    progress = after(*DELIVERED)
    low = progress.tables["usr"].low
    assert at(1)[: sequence.TIME] < low < at(10)[: sequence.TIME]
    first_after = f"{int(low) + 1:0{sequence.TIME}}"
    for number in range(3):
        assert progress.add("usr", f"{low}{number:019}", "I") is RowFate.SKIP
        assert progress.add("usr", f"{first_after}{number:019}", "I") is RowFate.LATE
    assert seq(1)[: sequence.TIME] == at(0)[: sequence.TIME]
