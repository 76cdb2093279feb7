"""Random tables and random changes, through real triggers: the log alone gives the tables' content."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.engine import Connection

from eventlog.sql.common.dialect import Dialect
from eventlog.sql.connect import DatabaseFailed, execute_plain
from tests.kit.tiers import drawn
from tests.sql.columns import BOUND, COLUMNS, HOSTILE, Kind
from tests.sql.tracked import Tracked, check_texts, loaded, query_back, replay, replay_events

pytestmark = pytest.mark.quick

_NAMES = itertools.count()
_KEYS = ("k", "Key 1", "ä`key")
_DATA_NAMES = ("a", "select", "Ä \"'\\,", "d", "e", "f", "g")


class Changes:
    """The random changes of one table, in one session."""

    def __init__(
        self,
        data: st.DataObject,
        connection: Connection,
        dialect: Dialect,
        table: str,
        kinds: dict[str, Kind],
    ) -> None:
        self.data = data
        self.connection = connection
        self.dialect = dialect
        self.table = dialect.quote(table)
        self.kinds = kinds
        self.keys: list[dict[str, Any]] = []

    def change(self) -> None:
        making = st.sampled_from(
            (self.insert, self.insert, self.update, self.update_all, self.delete, self.move)
        )
        change = self.data.draw(making)
        # what the database refuses (a key that is there already) must leave nothing in the log either
        with contextlib.suppress(DatabaseFailed), self.connection.begin_nested():
            change()

    def insert(self) -> None:
        row = {name: self.value(name) for name in self.kinds}
        names = ", ".join(self.dialect.quote(name) for name in row)
        values = ", ".join(self.bound(name, f"v{i}") for i, name in enumerate(row))
        self.execute(f"insert into {self.table} ({names}) values ({values})", self.numbered("v", row))
        self.keys.append({name: row[name] for name in row if self.kinds[name].key})

    def update(self) -> None:
        self.set_some(self.where())

    def update_all(self) -> None:
        self.set_some(("1 = 1", {}))

    def move(self) -> None:
        condition, bound = self.where()
        row = {name: self.value(name) for name in self.kinds if self.kinds[name].key}
        self.set(row, condition, bound)
        self.keys.append(row)

    def delete(self) -> None:
        condition, bound = self.where()
        self.execute(f"delete from {self.table} where {condition}", bound)

    def set_some(self, where: tuple[str, dict[str, Any]]) -> None:
        names = [name for name, kind in self.kinds.items() if not kind.key]
        chosen = self.data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        self.set({name: self.value(name) for name in chosen}, *where)

    def set(self, row: dict[str, Any], condition: str, bound: dict[str, Any]) -> None:
        sets = ", ".join(
            f"{self.dialect.quote(name)} = {self.bound(name, f'v{i}')}" for i, name in enumerate(row)
        )
        self.execute(f"update {self.table} set {sets} where {condition}", self.numbered("v", row) | bound)

    def where(self) -> tuple[str, dict[str, Any]]:
        if not self.keys:
            return "1 = 0", {}
        key = self.data.draw(st.sampled_from(self.keys))
        condition = " and ".join(
            f"{self.dialect.quote(name)} = {self.bound(name, f'k{i}')}" for i, name in enumerate(key)
        )
        return condition, self.numbered("k", key)

    def value(self, name: str) -> Any:
        kind = self.kinds[name]
        return self.data.draw(kind.drawn if kind.key else st.none() | kind.drawn)

    def bound(self, name: str, parameter: str) -> str:
        return BOUND[self.dialect.name].format(p=f":{parameter}", type=self.kinds[name].type)

    def numbered(self, letter: str, row: dict[str, Any]) -> dict[str, Any]:
        return {f"{letter}{i}": value for i, value in enumerate(row.values())}

    def execute(self, statement: str, bound: dict[str, Any]) -> None:
        self.connection.execute(text(statement), bound)


@st.composite
def layouts(draw: st.DrawFn, dialect: str, refused: str = "") -> dict[str, Kind]:
    """Return the columns of a table, each with its type; keys need not come first.

    No name has what is refused in one.
    """
    kinds = COLUMNS[dialect]
    key_names = [name for name in _KEYS if not refused or refused not in name]
    keys = draw(st.lists(st.sampled_from([k for k in kinds if k.key]), min_size=1, max_size=3))
    data_kinds = draw(
        st.lists(st.sampled_from([k._replace(key=False) for k in kinds]), min_size=1, max_size=7)
    )
    layout = [*zip(key_names, keys, strict=False), *zip(_DATA_NAMES, data_kinds, strict=False)]
    return dict(draw(st.permutations(layout)))


def create(dialect: Dialect, table: str, kinds: dict[str, Kind]) -> str:
    columns = [f"{dialect.quote(name)} {kind.type}" for name, kind in kinds.items()]
    key = ", ".join(dialect.quote(name) for name in _KEYS if name in kinds)
    return f"create table {dialect.quote(table)} ({', '.join(columns)}, primary key ({key}))"


@settings(
    max_examples=drawn(12),
    phases=(Phase.generate,),  # each example makes a table: shrinking would take minutes,
)
@given(data=st.data())
def test_the_log_alone_gives_the_content(tracking: Tracked, data: st.DataObject) -> None:
    dialect = tracking.dialect
    kinds = data.draw(layouts(dialect.name, dialect.triggers.no_name_with), "table")
    table = f"Odd 'table {next(_NAMES)}"
    tracking.run(create(dialect, table, kinds))
    by_row = ("auto", "row") if dialect.triggers.by_statement else ("auto",)
    chosen = {"update": data.draw(st.sampled_from((2, 3))), "granularity": data.draw(st.sampled_from(by_row))}
    tracking.track(table, insert=1, **chosen)
    with tracking.engine.connect() as connection:
        for setting in HOSTILE[dialect.name]:
            execute_plain(connection, setting)
        connection.commit()
        changes = Changes(data, connection, dialect, table, kinds)
        for _ in range(data.draw(st.integers(1, 4), "transactions")):
            for _ in range(data.draw(st.integers(1, 6), "changes")):
                changes.change()
            connection.commit() if data.draw(st.booleans(), "commit") else connection.rollback()
    check(tracking, table)


def check(tracking: Tracked, table: str) -> None:
    described = tracking.described(table)
    columns = [name for name in described.columns if name not in described.key]
    rows = tracking.logged(table)
    content = replay(rows, columns)
    check_texts(described, content)
    published = replay_events(rows, described)
    assert {
        key: {name: value for name, value in fields.items() if value is not None}
        for key, fields in published.items()
    } == {
        key: {name: value for name, value in fields.items() if value is not None}
        for key, fields in loaded(described, content).items()
    }
    with tracking.engine.connect() as connection:
        assert content == query_back(connection, tracking.dialect, described)
