"""Changes become rows on every database, held against a reference that goes one by one."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.engine import Engine

from eventlog.core.change import Change, Op
from tests.kit.tiers import drawn
from tests.targets.model import COLUMNS, Model, changed, transactions
from tests.targets.support import apply, places, rows, run

pytestmark = pytest.mark.quick

_SOURCES = count()


def rows_by_key(engine: Engine) -> dict[Any, dict[str, Any]]:
    """Return the rows of usr by key."""
    records = rows(engine, f"select {', '.join(COLUMNS)} from usr")
    return {row[0]: dict(zip(COLUMNS, row, strict=True)) for row in records}


@pytest.mark.parametrize("missing_rows", ["refuse", "insert", "ignore"])
def test_any_changes_in_any_groups_give_what_one_by_one_gives(engine: Engine, missing_rows: str) -> None:
    apply(engine, [changed(Op.INSERT, 0, fname=None, lname=None, n=None)])

    @settings(max_examples=drawn(15))
    @given(transactions(), st.sampled_from((1, 3, 100)))
    def check(changes: list[Change], group: int) -> None:
        run(engine, "delete from usr")
        given: dict[str, Any] = {"missing_rows": missing_rows, "group": group}
        tally, refused = apply(engine, changes, source=f"s{next(_SOURCES)}", **given)
        expected = Model(missing_rows).apply(changes)
        assert rows_by_key(engine) == expected.rows
        assert places(refused) == [f"usr:{change.position}" for change in expected.refused]
        assert tally.refused == len(refused)

    check()
