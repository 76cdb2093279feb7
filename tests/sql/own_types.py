"""Types of PostgreSQL with operators of their own, in a schema that our functions do not search.

`ext.nocase` compares like citext, and becomes a text by itself. `ext.path` does not, like ltree.
"""

from __future__ import annotations

from collections.abc import Iterator

OWN_TYPES = ("ext.nocase", "ext.path")
_COMPARISONS = {"<": 1, "<=": 2, "=": 3, ">=": 4, ">": 5}


def making_own_types() -> Iterator[str]:
    """Yield the statements that make them; a superuser runs them."""
    yield "create schema ext"
    for name in OWN_TYPES:
        yield from _making(name)
    yield "create cast (ext.nocase as text) without function as implicit"
    yield "create cast (text as ext.nocase) without function as assignment"


def _making(name: str) -> Iterator[str]:
    yield f"create type {name}"
    pairs = {"in": ("cstring", name), "out": (name, "cstring")}
    for way, (taken, returned) in pairs.items():
        yield (
            f"create function {name}_{way}({taken}) returns {returned}"
            f" language internal immutable strict as 'text{way}'"
        )
    yield f"create type {name} (input = {name}_in, output = {name}_out, like = text)"
    texts = [f"lower(textin({name}_out({parameter})))" for parameter in ("$1", "$2")]
    yield (
        f"create function {name}_cmp({name}, {name}) returns integer language sql immutable strict"
        f" as 'select bttextcmp({', '.join(texts)})'"
    )
    for symbol, number in _COMPARISONS.items():
        yield (
            f"create function {name}_{number}({name}, {name}) returns boolean language sql immutable strict"
            f" as 'select {name}_cmp($1, $2) {symbol} 0'"
        )
        operands = f"leftarg = {name}, rightarg = {name}"
        yield f"create operator ext.{symbol} ({operands}, function = {name}_{number})"
    operators = ", ".join(f"operator {number} ext.{symbol}" for symbol, number in _COMPARISONS.items())
    yield (
        f"create operator class {name}_ops default for type {name} using btree as"
        f" {operators}, function 1 {name}_cmp({name}, {name})"
    )
