"""Rows that later ones undo, found by the last row of each object and column."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.sql.log.overtaken import OvertakingRow, Published

pytestmark = pytest.mark.quick

ROWS = st.builds(
    OvertakingRow,
    st.integers(1, 9),
    st.one_of(st.integers(1, 8), st.sampled_from([None, 9, "x"])),
    st.sampled_from([("usr", "idu=1"), ("usr", "idu=2")]),
    st.sampled_from([None, "", "fname", "lname"]),
)


def undoes(later: OvertakingRow, row: OvertakingRow) -> bool:
    """Return the rule, for two rows."""
    if later.object != row.object or later.record_id <= row.record_id:
        return False
    if row.event_type == 4:
        return True
    of_column = later.column_name is not None and later.column_name == row.column_name
    return row.event_type in (1, 2, 3, 7, 8) and (later.event_type in (4, 5, 6) or of_column)


@given(st.lists(ROWS, max_size=12), ROWS)
def test_the_last_rows_tell_as_much_as_all_of_them(
    published: list[OvertakingRow], row: OvertakingRow
) -> None:
    assert Published(published).overtook(row) == any(undoes(later, row) for later in published)
