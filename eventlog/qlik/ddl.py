"""attrep_ddl_history: how the structure of a table changed, and the places of the bits in its older masks.

"DDL history": a row for one or more statements, whose DETAILS are JSON that names each column and its action.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from eventlog.core.errors import EventlogError
from eventlog.qlik import mask, sequence
from eventlog.qlik.headers import Heading
from eventlog.qlik.mask import MaskLayout
from eventlog.qlik.structure import MAX_COLUMNS, DataColumn, Structure
from eventlog.qlik.types import DATA_TYPES, Spec

_MAX_TEXT: Final = 4_000_000
_ACTIONS: Final = ("ADD", "DROP", "ALTER")


class InvalidDdl(EventlogError):
    """attrep_ddl_history: {0}"""


class AlteredColumn(NamedTuple):
    """The change of one column."""

    action: str
    name: str  # before
    column: DataColumn  # as it is then
    ordinal: int  # from 1; 0: unknown


class Ddl(NamedTuple):
    """One change of a table's structure; it counts from a change_seq on."""

    seq: str
    version: int
    columns: tuple[AlteredColumn, ...]
    of_change_table: bool = False  # whose ordinals count the header columns too


class Era(NamedTuple):
    """The positions of the data columns in masks of changes before a change_seq."""

    until: str
    places: tuple[int, ...]
    layout: MaskLayout


def read_ddl(cells: Mapping[str, Any]) -> Ddl:
    """Return the change that a row of the history states; raise InvalidDdl if it is none."""
    details = cells.get("DETAILS")
    try:
        seq = str(cells.get("CHANGE_SEQ") or "")
        version = int(cells.get("TABLE_VERSION") or 0)
        return Ddl(sequence.check(seq) if seq else "", version, tuple(_columns(details)))
    except (TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as fault:
        raise InvalidDdl(f"DETAILS or TABLE_VERSION has not the form of one: {fault}") from fault


def _columns(details: Any) -> Iterator[AlteredColumn]:
    if details is None or details == "":
        return
    if len(details) > _MAX_TEXT:
        raise InvalidDdl(f"DETAILS of {len(details)} characters: at most {_MAX_TEXT} are read")
    found = json.loads(details).get("columns") or {}
    if len(found) > MAX_COLUMNS:
        raise InvalidDdl(f"{len(found)} columns: at most {MAX_COLUMNS} are read")
    for name, described in found.items():
        action = str(described.get("action")).upper()
        if action not in _ACTIONS:
            raise InvalidDdl(f"action {action[:20]!r} of column {name!r} is none of {', '.join(_ACTIONS)}")
        kind = str(described.get("type")).strip()
        sizes = (int(described.get(size) or 0) for size in ("length", "precision", "scale"))
        spec = Spec(kind, *sizes) if kind in DATA_TYPES else None
        position = int(described.get("primaryKeyPosition") or 0)
        column = DataColumn(
            str(described.get("columnNewName") or name), spec, position, not position, declared=True
        )
        yield AlteredColumn(action, str(name), column, int(described.get("ordinal") or 0))


def structure_of_history(
    schema: str | None, table: str, names: Sequence[str], history: Sequence[Ddl]
) -> Structure | None:
    """Return the structure that the history leads to, of the columns with these names, or None if it names
    none.
    """
    known: dict[str, DataColumn] = {}
    for ddl in history:
        for action, name, column, _ in ddl.columns:
            known.pop(name, None)
            if action != "DROP":
                known[column.name] = column
    if not known.keys() & set(names):
        return None
    return Structure(schema, table, tuple(known.get(name, DataColumn(name)) for name in names))


def version_of(history: Sequence[Ddl], seq: str) -> int:
    """Return the version of the table when a change was made; 0 if the history does not contain it."""
    return max((ddl.version for ddl in history if ddl.seq <= seq), default=0)


def eras(heading: Heading, history: Sequence[Ddl]) -> list[Era]:
    """Return the positions of bits before columns were dropped that the change table no longer has, oldest
    first.

    An added column is the last one, so it moves no bits.
    """
    columns: list[int | None] = list(range(heading.columns))
    first = min(heading.places, default=heading.columns)
    names = set(heading.data)
    found: list[Era] = []
    for ddl in reversed(history):
        gone = [a for a in ddl.columns if a.action == "DROP" and a.name not in names and a.ordinal]
        if not gone or not ddl.seq:
            continue
        for altered in sorted(gone, key=lambda a: a.ordinal):
            columns.insert((0 if ddl.of_change_table else first) + altered.ordinal - 1, None)
        if len(columns) > MAX_COLUMNS:
            break  # a mask holds no more
        at = {column: place for place, column in enumerate(columns) if column is not None}
        headers = mask.join(at[place] for place in heading.headers.values())
        layout = MaskLayout(headers, len(columns))
        found.append(Era(ddl.seq, tuple(at[place] for place in heading.places), layout))
    return found[::-1]
