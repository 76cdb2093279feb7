"""Every column type that a stream carries, with values of each: the strategies of the tests."""

from __future__ import annotations

import datetime as dt

from hypothesis import strategies as st

from eventlog.core.change import Value
from eventlog.core.values import shortest_float32
from eventlog.formats.gbase.datetimes import UNITS

LIMITS = {"month": 11, "hour": 23, "minute": 59, "second": 59}
MARKS = {"month": "-", "day": "-", "hour": " ", "minute": ":", "second": ":"}
FIRSTS = ("year", "month", "day", "hour", "minute", "second", "fraction")

text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
integers = {bits: st.integers(1 - (1 << (bits - 1)), (1 << (bits - 1)) - 1) for bits in (16, 32, 64)}
floats = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(("NaN", "Infinity", "-Infinity"))
singles = st.floats(width=32, allow_nan=False, allow_infinity=False).map(shortest_float32)


def _decimal(digits: str, scale: int, negative: bool) -> str:
    digits = digits.rjust(scale + 1, "0")
    integer_digits = digits[: len(digits) - scale].lstrip("0") or "0"
    sign = "-" if negative and digits.strip("0") else ""
    return f"{sign}{integer_digits}.{digits[len(digits) - scale :]}" if scale else sign + integer_digits


def fixed_decimals(precision: int, scale: int) -> st.SearchStrategy[str]:
    """Draw texts of DECIMAL(p,s): all its digits, or few of them."""
    number = st.integers(0, 10**precision - 1) | st.integers(0, min(999, 10**precision - 1))
    number |= st.just(10**precision - 1)
    return st.builds(lambda n, negative: _decimal(str(n), scale, negative), number, st.booleans())


def floating_decimals(precision: int) -> st.SearchStrategy[str]:
    """Draw texts of DECIMAL(p): up to p digits with the point anywhere."""

    def build(digits: str, shift: int, negative: bool) -> str:
        digits = digits.strip("0")
        if not digits:
            return "0"
        if shift >= 0:
            return ("-" if negative else "") + digits + "0" * shift
        return _decimal(digits, -shift, negative)

    return st.builds(build, st.text("0123456789", max_size=precision), st.integers(-60, 60), st.booleans())


def datetimes(first: str, last: str, scale: int) -> st.SearchStrategy[str]:
    """Draw texts of a DATETIME qualifier."""
    units = UNITS[UNITS.index(first) : UNITS.index(last) + 1]

    def build(at: dt.datetime) -> str:
        if first != "year":
            at = at.replace(year=2000)
        if first not in ("year", "month"):
            at = at.replace(month=1)
        values = {
            "year": f"{at.year:04}",
            "month": f"{at.month:02}",
            "day": f"{at.day:02}",
            "hour": f"{at.hour:02}",
            "minute": f"{at.minute:02}",
            "second": f"{at.second:02}",
        }
        parts = []
        for unit in units:
            if unit == "fraction":
                parts.append("." + f"{at.microsecond:06}"[:scale])
            else:
                mark = "T" if unit == "hour" and first == "year" else MARKS.get(unit, "")
                parts.append(("" if unit == first else mark) + values[unit])
        return "".join(parts)

    edges = st.sampled_from((dt.datetime.min, dt.datetime.max, dt.datetime(2000, 2, 29)))
    return (st.datetimes() | edges).map(build)


def intervals(first: str, last: str, precision: int, scale: int) -> st.SearchStrategy[str]:
    """Draw texts of an INTERVAL qualifier."""
    units = UNITS[UNITS.index(first) : UNITS.index(last) + 1]
    parts: list[st.SearchStrategy[str]] = []
    for unit in units:
        if unit == "fraction":
            parts.append(st.integers(0, 10**scale - 1).map(lambda n: f".{n:0{scale}}"))
        elif unit == first:
            largest = 10**precision - 1
            parts.append((st.integers(0, largest) | st.just(largest)).map(str))
        else:
            mark = MARKS[unit]
            parts.append(st.integers(0, LIMITS[unit]).map(lambda n, mark=mark: f"{mark}{n:02}"))  # type: ignore[misc]

    def build(negative: bool, values: tuple[str, ...]) -> str:
        joined = "".join(values)
        return "-" + joined if negative and joined.strip("0:.- ") else joined

    return st.builds(build, st.booleans(), st.tuples(*parts))


def _qualifiers() -> dict[str, st.SearchStrategy[str]]:
    strategies: dict[str, st.SearchStrategy[str]] = {}
    for at, first in enumerate(FIRSTS):
        for last in UNITS[at:]:
            for scale in (1, 2, 3, 4, 5) if last == "fraction" else (0,):
                to = f"fraction({scale})" if last == "fraction" else last
                strategies[f"datetime {first} to {to}"] = datetimes(first, last, scale)
                if (first in ("year", "month")) != (last in ("year", "month")):
                    continue
                if first == "fraction":
                    strategies[f"interval fraction to {to}"] = intervals(first, last, 2, scale)
                    continue
                for precision in (1, 2, 3, 9):
                    name = f"interval {first}({precision}) to {to}"
                    strategies[name] = intervals(first, last, precision, scale)
    return strategies


QUALIFIED = _qualifiers()
DECIMALS: dict[str, st.SearchStrategy[str]] = {
    **{
        f"decimal({p},{s})": fixed_decimals(p, s)
        for p, s in ((1, 0), (1, 1), (2, 1), (5, 2), (12, 3), (32, 0), (32, 10), (32, 31), (32, 32))
    },
    **{f"decimal({p})": floating_decimals(p) for p in (1, 5, 10, 16, 31, 32)},
    "money(10,2)": fixed_decimals(10, 2),
    "money": fixed_decimals(16, 2),
}
PLAIN: dict[str, st.SearchStrategy[Value]] = {
    "smallint": integers[16],
    "integer": integers[32],
    "serial": integers[32],
    "bigint": integers[64],
    "bigserial": integers[64],
    "int8": integers[64],
    "date": st.dates().map(dt.date.isoformat),
    "float": floats,
    "smallfloat": singles,
    "boolean": st.booleans(),
    "char(48)": text.map(lambda value: value.rstrip(" ")),
    "nchar(48)": text.map(lambda value: value.rstrip(" ")),
    "blob": st.binary(min_size=72, max_size=72).filter(any).map(lambda locator: b"\0\0\0\1" + locator),
    "varchar(60,0)": text,
    "nvarchar(60,0)": text,
    "lvarchar(200)": text | st.text("x", min_size=300, max_size=300),
}
TYPES: dict[str, st.SearchStrategy[Value]] = {**PLAIN, **DECIMALS, **QUALIFIED}

names = st.text(
    st.characters(codec="utf-8", categories=("L", "Nd")), min_size=1, max_size=6
) | st.sampled_from(('a "b"', "a, b", "(", "order no"))


@st.composite
def tables(draw: st.DrawFn, max_columns: int = 6) -> tuple[str, list[st.SearchStrategy[Value]]]:
    """Return a schema text and the strategy of each of its columns' values, fixed columns first."""
    types = draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=max_columns))
    types.sort(key=lambda name: "varchar" in name)
    columns = draw(st.lists(names, min_size=len(types), max_size=len(types), unique=True))
    quoted = (name if name.isalnum() else '"' + name.replace('"', '""') + '"' for name in columns)
    declared = (f"{name} {type_name}" for name, type_name in zip(quoted, types, strict=True))
    return ", ".join(declared), [st.none() | TYPES[name] for name in types]
