"""Changes as Qlik can state them, over a table that has a column of every data type."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import NamedTuple

from hypothesis import strategies as st

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op, Side, Value
from eventlog.core.tables import Tables
from eventlog.core.values import shortest_float32

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def _ints(low: int, high: int) -> st.SearchStrategy[Value]:
    return st.integers(low, high)


def _cents(number: int) -> str:
    return f"{'-' if number < 0 else ''}{abs(number) // 100}.{abs(number) % 100:02}"


singles = st.floats(width=32, allow_nan=False, allow_infinity=False).map(shortest_float32)
doubles = st.floats(allow_nan=False, allow_infinity=False)
moments = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31))

# the SQL type of a column, its data type, and values of it
TYPES: dict[str, tuple[str, str, st.SearchStrategy[Value]]] = {
    "c_boolean": ("boolean", "BOOLEAN", st.booleans()),
    "c_bytes": ("varbinary(16)", "BYTES", st.binary(max_size=6)),
    "c_blob": ("blob", "BLOB", st.binary(max_size=6)),
    "c_date": ("date", "DATE", st.dates().map(str)),
    "c_time": ("time(3)", "TIME", st.times().map(lambda t: t.isoformat("milliseconds"))),
    "c_datetime": ("timestamp(6)", "DATETIME", moments.map(lambda t: t.isoformat(timespec="microseconds"))),
    "c_int1": ("tinyint", "INT1", _ints(-(2**7), 2**7 - 1)),
    "c_int2": ("smallint", "INT2", _ints(-(2**15), 2**15 - 1)),
    "c_int4": ("integer", "INT4", _ints(-(2**31), 2**31 - 1)),
    "c_int8": ("bigint", "INT8", _ints(-(2**63), 2**63 - 1)),
    "c_uint1": ("tinyint unsigned", "UINT1", _ints(0, 2**8 - 1)),
    "c_uint2": ("smallint unsigned", "UINT2", _ints(0, 2**16 - 1)),
    "c_uint4": ("integer unsigned", "UINT4", _ints(0, 2**32 - 1)),
    "c_uint8": ("bigint unsigned", "UINT8", _ints(0, 2**64 - 1)),
    "c_real4": ("real", "REAL4", st.one_of(singles, st.sampled_from(["NaN", "-Infinity"]))),
    "c_real8": ("double precision", "REAL8", st.one_of(doubles, st.just("Infinity"))),
    "c_money": ("numeric(10,2)", "NUMERIC", _ints(-(10**9), 10**9).map(lambda n: _cents(int(str(n))))),
    "c_whole": ("numeric(12)", "NUMERIC", _ints(-(10**11), 10**11)),
    "c_string": ("varchar(40)", "STRING", text),
    "c_wstring": ("nvarchar(40)", "WSTRING", text),
    "c_clob": ("clob", "CLOB", text),
    "c_nclob": ("nclob", "NCLOB", text),
}
LOBS = frozenset(name for name, (_, data_type, _) in TYPES.items() if data_type.endswith("LOB"))
KEY = "c_int4"


def tables(names: list[str]) -> Tables:
    """Return a tables file with these columns of `TYPES`, one of them the key."""
    columns = ", ".join(f'{name} = "{TYPES[name][0]}"' for name in names)
    return tablesfile.read(f'[tables.usr]\nschema = "app"\nkey = ["{KEY}"]\ncolumns = {{ {columns} }}\n')


class Case(NamedTuple):
    tables: Tables
    changes: list[Change]


# one column's sides in a change, from a value and another
Sides = Callable[[st.DataObject, str], tuple[Side, Side]]

stamps = st.datetimes(dt.datetime(1971, 1, 1), dt.datetime(2100, 1, 1)).map(
    lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)
)
transactions = st.none() | st.integers(0, 2**128 - 1).map(lambda n: f"{n:032X}")


@st.composite
def cases(draw: st.DrawFn, *, tabular: bool, exact_lacks: bool = True) -> Case:
    """Draw changes of one table: `tabular` as change tables contain them, else as messages do.

    Without `exact_lacks`, an update lacks values of its row before only if it lacks all.
    """
    other_names = draw(
        st.lists(st.sampled_from(sorted(set(TYPES) - {KEY})), unique=True, min_size=1, max_size=12)
    )
    names = draw(st.permutations([KEY, *other_names]))
    count = draw(st.integers(1, 4))
    makers = [_insert, _full, _after_only, _delete]
    makers += [_truncate] if tabular else [_snapshot, _partial_delete]
    if not tabular and exact_lacks:
        makers.append(_mixed)
    seq = draw(st.integers(0, 10**6))
    changes = []
    for _ in range(count):
        op, fields = draw(st.sampled_from(makers))(draw, names, tabular)
        seq += draw(st.integers(1, 5))
        changes.append(_change(draw, op, fields, seq))
    return Case(tables(names), changes)


def _change(draw: st.DrawFn, op: Op, fields: list[Field], seq: int) -> Change:
    key = next((f.before if op is Op.DELETE else f.after for f in fields if f.column == KEY), None)
    at = draw(stamps)
    reported = () if op is Op.TRUNCATE else ((KEY, key),)
    if op is Op.SNAPSHOT:
        return Change(op, "app", "usr", reported, tuple(fields))  # type: ignore[arg-type]
    return Change(
        op,
        "app",
        "usr",
        reported,  # type: ignore[arg-type]
        tuple(fields),
        f"{at:%Y%m%d%H%M%S}{at.microsecond // 10000:02}{seq:019}",
        draw(transactions),
        draw(st.none() | stamps.map(_zulu)),
        extra=draw(st.sampled_from([(), (("stream_position", "0003;4"),)])),
    )


def _zulu(at: dt.datetime) -> str:
    text = at.isoformat()
    return (text.rstrip("0") if at.microsecond else text) + "Z"


def _value(draw: st.DrawFn, name: str) -> Value:
    return draw(TYPES[name][2])


def _maybe(draw: st.DrawFn, name: str) -> Value:
    return _value(draw, name) if name == KEY or draw(st.booleans()) else None


def _insert(draw: st.DrawFn, names: list[str], tabular: bool) -> tuple[Op, list[Field]]:
    captured_names = [n for n in names if n == KEY or draw(st.integers(0, 3))]
    return Op.INSERT, [Field(n, ABSENT, _maybe(draw, n)) for n in captured_names]


def _snapshot(draw: st.DrawFn, names: list[str], tabular: bool) -> tuple[Op, list[Field]]:
    return Op.SNAPSHOT, _insert(draw, names, tabular)[1]


def _full(draw: st.DrawFn, names: list[str], tabular: bool) -> tuple[Op, list[Field]]:
    """Return both images whole, the key moved or not."""
    fields = []
    for name in names:
        before = _maybe(draw, name)
        fields.append(Field(name, before, _maybe(draw, name) if draw(st.booleans()) else before))
    return Op.UPDATE, fields


def _after_only(draw: st.DrawFn, names: list[str], tabular: bool) -> tuple[Op, list[Field]]:
    """Return no image of the row before: what is unchanged is known to be, what is changed is not."""
    fields = []
    for name in names:
        kind = "same" if name == KEY else draw(st.sampled_from(["same", "new", "lacks"]))
        value = _value(draw, name)
        if kind == "same" and (tabular or name not in LOBS):
            fields.append(Field(name, value, value))
        elif kind == "new":
            fields.append(Field(name, ABSENT, _maybe(draw, name)))
    return Op.UPDATE, fields


def _mixed(draw: st.DrawFn, names: list[str], tabular: bool) -> tuple[Op, list[Field]]:
    """Draw anything a JSON message can contain for a column."""
    fields = []
    for name in names:
        before, after = _maybe(draw, name), _maybe(draw, name)
        kind = draw(st.sampled_from(["both", "after", "before", "lacks"]))
        if kind == "both" or name == KEY:
            fields.append(Field(name, before, after))
        elif kind == "after":
            fields.append(Field(name, ABSENT, after))
        elif kind == "before" and before is not None:
            fields.append(Field(name, before, ABSENT))
    return Op.UPDATE, fields


def _delete(draw: st.DrawFn, names: list[str], tabular: bool) -> tuple[Op, list[Field]]:
    """Draw the whole row with a non-null value outside the key, or the key alone."""
    if draw(st.booleans()):
        return Op.DELETE, [Field(KEY, _value(draw, KEY))]
    reported = next(n for n in names if n != KEY)
    return Op.DELETE, [Field(n, _value(draw, n) if n == reported else _maybe(draw, n)) for n in names]


def _partial_delete(draw: st.DrawFn, names: list[str], tabular: bool) -> tuple[Op, list[Field]]:
    captured_names = [n for n in names if n == KEY or draw(st.booleans())]
    return Op.DELETE, [Field(n, _maybe(draw, n)) for n in captured_names]


def _truncate(draw: st.DrawFn, names: list[str], tabular: bool) -> tuple[Op, list[Field]]:
    return Op.TRUNCATE, []
