"""Change tables in databases: SQLite, and the PostgreSQL of a wheel."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from sqlalchemy.schema import CreateTable

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op, Value
from eventlog.core.errors import Refused
from eventlog.core.tables import Tables
from eventlog.embedded import FAST, embedded_postgres
from eventlog.formats.qlik import change_tables, sequence
from eventlog.formats.qlik.change_tables import TableSettings
from eventlog.transfer.sources import change_tables as store
from tests.formats.qlik.helpers import as_text, read_store, seq
from tests.formats.qlik.strategies import KEY, TYPES
from tests.formats.qlik.strategies import tables as known_tables
from tests.kit.statements import run_statements

pytestmark = pytest.mark.quick

VALUES: dict[str, tuple[Value, Value]] = {
    "c_boolean": (True, False),
    "c_bytes": (b"\x00\xff", b""),
    "c_blob": (b"\x01", None),
    "c_date": ("2024-02-29", "0001-01-01"),
    "c_time": ("12:34:56.789", "00:00:00.000"),
    "c_datetime": ("2024-02-29T12:34:56.123456", "9999-12-31T23:59:59.000000"),
    "c_int1": (-128, 127),
    "c_int2": (-(2**15), 1),
    "c_int4": (1, 2),
    "c_int8": (-(2**63), 2**63 - 1),
    "c_uint1": (0, 255),
    "c_uint2": (0, 2**16 - 1),
    "c_uint4": (0, 2**32 - 1),
    "c_uint8": (0, 2**64 - 1),
    "c_real4": (0.1, -2.5),
    "c_real8": (0.1, 1e300),
    "c_money": ("1.50", "-0.01"),
    "c_whole": (0, -(10**11)),
    "c_string": ("", "a'b"),
    "c_wstring": ("ü", "中"),
    "c_clob": ("x", None),
    "c_nclob": (None, "y"),
}


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with embedded_postgres(settings=FAST) as server:
        yield server.url


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> Iterator[sa.Engine]:
    url = "sqlite://" if request.param == "sqlite" else request.getfixturevalue("postgres")
    own_engine = sa.create_engine(url)
    yield own_engine
    with own_engine.begin() as connection:
        metadata = sa.MetaData()
        metadata.reflect(connection)
        metadata.drop_all(connection)
    own_engine.dispose()


def every_type() -> tuple[Tables, list[Change]]:
    names = sorted(VALUES)
    first = tuple(Field(n, ABSENT, VALUES[n][0]) for n in names)
    both = tuple(Field(n, *VALUES[n]) for n in names)
    deleted_fields = tuple(Field(n, VALUES[n][1]) for n in names)
    time = "2024-01-01T12:00:00.25Z"
    return known_tables(names), [
        Change(
            Op.INSERT,
            "app",
            "usr",
            ((KEY, 1),),
            first,
            seq(1),
            f"{0xAB:032X}",
            time,
            extra=(("stream_position", "7"),),
        ),
        Change(Op.UPDATE, "app", "usr", ((KEY, 2),), both, seq(2), f"{0xAB:032X}", time),
        Change(Op.DELETE, "app", "usr", ((KEY, 2),), deleted_fields, seq(3), f"{0xAC:032X}"),
        Change(Op.TRUNCATE, "app", "usr", (), (), seq(4)),
    ]


def test_every_type_comes_back(engine: sa.Engine) -> None:
    assert VALUES.keys() == TYPES.keys()
    known, changes = every_type()
    assert list(store.write(changes, known, TableSettings(), engine)) == []
    again = list(read_store(engine, ["usr__ct"], known, TableSettings()))
    assert list(map(as_text, again)) == list(map(as_text, changes))


@pytest.mark.parametrize(("column", "last"), [("HEADER__CHANGE_SEQ", seq(7)), ("other", sequence.START)])
def test_the_sequence_of_tables_that_others_made(engine: sa.Engine, column: str, last: str) -> None:
    run_statements(
        engine, f'create table usr__ct ("{column}" varchar(35))', f"insert into usr__ct values ('{seq(7)}')"
    )
    assert store.last_sequence(engine, ["usr__ct"]) == last


def test_tables_are_read_at_one_moment(postgres: str) -> None:
    """A transaction of two tables that comes while one of them is read is there, or is not; never half."""
    columns = 'key = ["k"]\ncolumns = { k = "integer" }\n'
    known = tablesfile.read(f"[tables.a]\n{columns}[tables.b]\n{columns}")
    engine, other = sa.create_engine(postgres), sa.create_engine(postgres)

    def write(number: int) -> None:
        rows = [
            Change(
                Op.INSERT, None, name, (("k", number),), (Field("k", ABSENT, number),), seq(2 * number + n)
            )
            for n, name in enumerate("ab")
        ]
        assert not list(store.write(rows, known, TableSettings(), other))

    write(1)
    more = iter([2])

    @sa.event.listens_for(engine, "after_cursor_execute")
    def comes_between(_: sa.Connection, cursor: object, statement: str, *more_of_it: object) -> None:
        if "FROM a__ct" in statement:
            for number in more:
                write(number)

    found = read_store(engine, ["a__ct", "b__ct"], known, TableSettings())
    assert [item.position for item in found if isinstance(item, Change)] == [seq(2), seq(3)]
    assert next(more, None) is None
    for one in (engine, other):
        run_statements(one, "drop table if exists a__ct, b__ct")
        one.dispose()


def test_the_sequence_goes_on_behind_what_stands(engine: sa.Engine) -> None:
    known, changes = every_type()
    list(store.write(changes, known, TableSettings(), engine))
    last = store.last_sequence(engine, ["usr__ct", "none__ct"])
    assert last == seq(4)
    more = [changes[0]._replace(position=None, time="2020-01-01T00:00:00Z")]
    list(store.write(more, known, TableSettings(last_sequence=last), engine))
    assert store.last_sequence(engine, ["usr__ct"]) == seq(5)


def test_a_row_that_the_database_refuses_costs_itself_alone(engine: sa.Engine) -> None:
    known = tablesfile.read('[tables.t]\nkey = ["id"]\ncolumns = { id = "integer", at = "timestamp" }\n')
    good, bad = (
        Change(Op.INSERT, None, "t", (("id", i),), (Field("id", ABSENT, i), Field("at", ABSENT, at)), seq(i))
        for i, at in ((1, "2024-01-01T00:00:00"), (2, "2024-13-01T00:00:00"))
    )
    refused = list(store.write([bad, good], known, TableSettings(), engine))
    assert [(r.where, "no date or time" in r.reason) for r in refused] == [(f"t__ct:{seq(2)}", True)]
    assert len(list(read_store(engine, ["t__ct"], known, TableSettings()))) == 1


def test_a_number_that_postgresql_refuses_costs_itself_alone(postgres: str) -> None:
    engine = sa.create_engine(postgres)
    known = tablesfile.read('[tables.n]\nkey = ["id"]\ncolumns = { id = "integer" }\n')
    changes = [
        Change(Op.INSERT, None, "n", (("id", i),), (Field("id", ABSENT, i),), seq(s))
        for s, i in ((1, 2**40), (2, 5))
    ]
    refused = list(store.write(changes, known, TableSettings(), engine))
    assert [r.where for r in refused] == [f"n__ct:{seq(1)}"]
    (kept,) = read_store(engine, ["n__ct"], known, TableSettings())
    assert isinstance(kept, Change)
    assert kept.key == (("id", 5),)
    engine.dispose()


def test_a_table_that_stands_with_other_columns_is_left_alone(engine: sa.Engine) -> None:
    run_statements(engine, "create table usr__ct (a integer)")
    known, changes = every_type()
    with pytest.raises(store.StoreFault, match="masks would mark wrong columns"):
        list(store.write(changes, known, TableSettings(), engine))


def test_what_stands_twice_comes_out_once_and_is_counted(engine: sa.Engine) -> None:
    known, changes = every_type()
    for _ in range(2):
        list(store.write(changes, known, TableSettings(), engine))
    again = list(read_store(engine, ["usr__ct"], known, TableSettings()))
    found = [item for item in again if isinstance(item, Change)]
    assert list(map(as_text, found)) == list(map(as_text, changes))
    said = [item.reason for item in again if isinstance(item, Refused) and not item.grouped]
    assert [reason.split(",")[0] for reason in said] == ["5 repeated records are left out"]


def test_reading_a_table_that_is_not_there(engine: sa.Engine) -> None:
    with pytest.raises(store.StoreFault, match="cannot be read"):
        list(read_store(engine, ["none__ct"], Tables(), TableSettings()))


TYPES_OF_HEADERS = {
    "sqlite": ("VARCHAR(35)", "BLOB", "DATETIME"),
    "postgresql": ("VARCHAR(35)", "BYTEA", "TIMESTAMP WITHOUT TIME ZONE"),
    "mysql": ("VARCHAR(35)", "VARBINARY(128)", "DATETIME(6)"),
    "mssql": ("VARCHAR(35)", "VARBINARY(128)", "DATETIME2(6)"),
    "oracle": ("VARCHAR2(35 CHAR)", "RAW(128)", "TIMESTAMP"),
}


@pytest.mark.parametrize("dialect", sorted(TYPES_OF_HEADERS))
def test_header_columns_have_the_types_of_the_dialect(dialect: str) -> None:
    known, changes = every_type()
    made = change_tables.change_table(changes[0], known, TableSettings())
    table = store.table_of(made, TableSettings())
    ddl = str(CreateTable(table).compile(dialect=sa.make_url(f"{dialect}://").get_dialect()()))
    lines = {
        line.split()[0]: line.strip().rstrip(",").split(None, 1)[1]
        for line in ddl.splitlines()
        if " " in line
    }
    found = tuple(
        lines[f"header__{name}"].removesuffix(" NULL") for name in ("change_seq", "change_mask", "timestamp")
    )
    assert found == TYPES_OF_HEADERS[dialect]
    lengths = {"change_oper": 1, "stream_position": 128, "operation": 12, "transaction_id": 32}
    texts = {name: lines[f"header__{name}"].removesuffix(" NULL") for name in lengths}
    assert texts == {name: found[0].replace("35", str(length)) for name, length in lengths.items()}


def test_masks_in_columns_of_sqlite_that_are_declared_as_the_manual_has_them() -> None:
    engine = sa.create_engine("sqlite://")
    with engine.begin() as connection:
        names = ("change_seq varchar(35)", "change_oper varchar(1)", "change_mask varbinary(128)")
        columns = ", ".join([*(f"header__{name}" for name in names), "idu integer", "price decimal(9, 2)"])
        connection.execute(sa.text(f"create table usr__ct ({columns})"))
        row = sa.text("insert into usr__ct values (:seq, 'I', :mask, 1, 1.5)")
        connection.execute(row, {"seq": seq(1), "mask": b"\x18"})
        connection.execute(row, {"seq": seq(2), "mask": 12})
    refused, good = read_store(engine, ["usr__ct"], Tables(), TableSettings())
    assert isinstance(good, Change)
    assert {f.column: f.after for f in good.fields} == {"idu": 1, "price": 1.5}
    assert isinstance(refused, Refused)
    assert "a mask is bytes or hexadecimal text, not int" in refused.reason
    engine.dispose()
