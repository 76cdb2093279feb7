"""A transaction that comes late is applied where nothing later changed its rows, and else refused whole."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from eventlog.apply.database import Database
from eventlog.apply.later import Later
from eventlog.apply.run import Run
from eventlog.apply.settings import ApplySettings
from eventlog.core.change import Change, Op
from eventlog.core.errors import Refused
from eventlog.sql.connect import connect
from eventlog.streams.delivery import Delivery
from tests.apply.model import changed
from tests.apply.support import TABLES, rows, run
from tests.databases import Database as Placed

pytestmark = pytest.mark.quick


def at(place: int, op: Op, key: int, old: int | None = None, **after: Any) -> Change:
    return changed(op, key, old, **after)._replace(position=f"{place:035}", transaction=str(place))


TRUNCATE = Change(Op.TRUNCATE, "indirect", "usr", position=f"{5:035}")
LATE = [at(3, Op.UPDATE, 1, n=3), at(4, Op.UPDATE, 2, n=4)]


@pytest.mark.parametrize(
    ("later", "applied"),
    [
        ([at(9, Op.UPDATE, 3, n=9)], True),
        ([at(9, Op.UPDATE, 2, n=9)], False),
        ([at(9, Op.DELETE, 1)], False),
        ([at(9, Op.UPDATE, 7, 1, n=9)], False),
        ([TRUNCATE], False),
        ([at(2, Op.UPDATE, 2, n=9), at(9, Op.UPDATE, 3, n=9)], True),
    ],
)
def test_what_comes_late(postgres: Placed, later: list[Change], applied: bool) -> None:
    engine = connect(postgres.url)
    run(engine, "create table usr (idu integer primary key, fname text, lname text, n integer)")
    run(engine, "insert into usr values (1, '', '', 0), (2, '', '', 0), (3, '', '', 0)")
    refused: list[Refused] = []
    settings = ApplySettings()
    deliveries = [Delivery(later, "a"), Delivery(LATE, "b", late=True)]
    with closing(Database(engine, "s", TABLES, settings, refused.append)) as target:
        Run(target, "s", "qlik-message", settings, refused.append, kept=lambda: None).apply(deliveries)
    assert len(refused) == (0 if applied else 2)
    assert (rows(engine, "select n from usr where idu = 1 and n = 3") == [(3,)]) == applied
    assert (rows(engine, "select n from usr where idu = 2 and n = 4") == [(4,)]) == applied


def test_what_is_no_longer_remembered_is_refused() -> None:
    """Memory is bounded: where later rows were forgotten, what stands before them may have met them."""
    later = Later(most=3)
    later.note([at(place, Op.INSERT, place) for place in range(10, 13)])
    assert later.allow([at(5, Op.INSERT, 5)])
    assert not later.allow([at(5, Op.INSERT, 11)])
    later.note([at(13, Op.INSERT, 13)])
    assert not later.allow([at(5, Op.INSERT, 5)])
    assert later.allow([at(14, Op.INSERT, 5)])


def test_a_row_that_is_not_named_may_be_any() -> None:
    unnamed = at(3, Op.UPDATE, 1, n=1)._replace(key=())
    later = Later()
    later.note([at(9, Op.INSERT, 9)])
    assert not later.allow([unnamed])
    later.note([unnamed._replace(position=f"{9:035}")])
    assert not later.allow([at(3, Op.INSERT, 1)])
    assert later.allow([at(3, Op.INSERT, 1)._replace(table="other")])
