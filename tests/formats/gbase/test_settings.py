"""The settings of the format, and what its writer refuses."""

from __future__ import annotations

import pytest

from eventlog.core.change import ABSENT, Change, Field, Op, Raw
from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Source
from eventlog.core.tables import Tables
from eventlog.core.tablesfile import read as read_tables
from eventlog.formats.gbase.format import FORMAT
from eventlog.formats.gbase.gbase_settings import GbaseSettings
from tests.formats.gbase.helpers import T1, StreamBuilder, changes_of, read_all, write_changes

pytestmark = pytest.mark.quick

TABLES = read_tables(
    """
    [tables.t1]
    key = ["c1"]
    number = 7
    columns = { c2 = "varchar(20)", c1 = "integer" }
    [tables.odd]
    number = 8
    columns = { c1 = "text" }
    """
)
ROW = (Field("c1", ABSENT, 1), Field("c2", ABSENT, "x"))


def test_an_unknown_code_set_is_misuse() -> None:
    with pytest.raises(Misuse):
        read_all([b""], settings=GbaseSettings(code_set="klingon"))


def test_the_fault_of_a_container_passes_through() -> None:
    fault = Refused("x", "gzip: unexpected end")
    for framed in (False, True):
        source = Source("x", "x", (), [fault])
        assert list(FORMAT.read([source], Tables(), GbaseSettings(framed=framed))) == [fault]


def test_each_source_stands_for_itself() -> None:
    built = StreamBuilder().table(7, T1)
    start = len(built.data)
    built.begin(1, 1).commit(2, 1)
    sources = [
        Source(name, name, (), [data]) for name, data in (("a", built.data), ("b", built.data[start + 5 :]))
    ]
    (refused,) = FORMAT.read(sources, Tables(), GbaseSettings())
    assert isinstance(refused, Refused)
    assert refused.where.startswith("b:0")


def test_columns_and_number_may_come_from_the_tables_file() -> None:
    change = Change(Op.INSERT, None, "t1", (("c1", 1),), ROW)
    (back,) = changes_of(read_all([write_changes([change], TABLES)], TABLES))
    assert (back.op, back.table, back.key, back.after) == (
        Op.INSERT,
        "t1",
        (("c1", 1),),
        {"c1": 1, "c2": "x"},
    )
    assert back.fact("columns") == "c1 integer, c2 varchar(20)"  # fixed columns first


def test_changes_without_a_transaction_are_each_their_own() -> None:
    changes = [Change(Op.SNAPSHOT, None, "t1", (), ROW), Change(Op.TRUNCATE, None, "t1")]
    back = changes_of(read_all([write_changes(changes, TABLES)], TABLES))
    assert [change.op for change in back] == [Op.INSERT, Op.TRUNCATE]
    assert len({change.transaction for change in back}) == 2


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (Change(Op.INSERT, None, "t9", (), ROW), "table t9 has no number: state `number` in the tables file"),
        (Change(Op.INSERT, None, "table_9", (), ROW), "the columns of table_9 are not known"),
        (Change(Op.INSERT, None, "odd", (), ROW), "'text' is not a type that a stream carries"),
        (Change(Op.INSERT, None, "t1", (), ROW[:1]), "column c2 is not captured after the change"),
        (Change(Op.INSERT, None, "t1", (), (*ROW, Field("c3", ABSENT, 1))), "column c3 is not in"),
        (Change(Op.INSERT, None, "t1"), "insert without values"),
        (Change(Op.DELETE, None, "t1", (), ROW), "delete has values after it"),
        (Change(Op.INSERT, None, "t1", (), (ROW[0], Field("c2", ABSENT, 5))), "column c2: 5 is not text"),
        (Change(Op.INSERT, None, "t1", (), (ROW[0], Field("c2", ABSENT, ("a", "b")))), "multi-valued"),
        (Change(Op.INSERT, None, "t1", (), ROW, position=str(1 << 64)), "not a number of 64 bits"),
        (Change(Op.INSERT, None, "t1", (), ROW, time="yesterday"), "'yesterday' is not a time"),
        (Change(Op.INSERT, None, "t1", raw=Raw(None, b"x"), extra=(("sizes-after", "zz"),)), "sizes-after"),
    ],
)
def test_what_a_stream_cannot_hold_is_refused(change: Change, reason: str) -> None:
    (refused,) = FORMAT.write([change], TABLES, GbaseSettings())
    assert isinstance(refused, Refused)
    assert reason in refused.reason


def test_a_refused_change_costs_itself_and_not_its_transaction() -> None:
    good = Change(Op.INSERT, None, "t1", (("c1", 1),), ROW, transaction="5@9")
    parts = list(FORMAT.write([good, good._replace(fields=ROW[:1]), good], TABLES, GbaseSettings()))
    stream = b"".join(part for part in parts if isinstance(part, bytes))
    assert [change.transaction for change in changes_of(read_all([stream], TABLES))] == ["5@9", "5@9"]
    assert sum(isinstance(part, Refused) for part in parts) == 1
