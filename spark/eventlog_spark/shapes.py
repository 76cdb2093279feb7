"""What one attempt knows of names, columns and shapes: each is understood once, not in every batch."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from eventlog.core.errors import EventlogError
from eventlog.core.tables import Table
from eventlog_spark.keys import PLAIN_KEY, key_form, named_form
from eventlog_spark.names import Name
from eventlog_spark.task import Task
from eventlog_spark.templates import Body, Compiler, RowShape, Template, Treatment, treatment
from eventlog_spark.texts import ColumnTexts
from eventlog_spark.vectors import Ints

_MOST_SHAPES = 20_000


class Shapes:
    """Numbers for what rows name, and the templates of shapes."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._compiler = Compiler(task)
        self._templates: dict[bytes, Template | None] = {}
        self._seen: set[bytes] = set()
        self._bodies: dict[tuple[int, int], Body | None] = {}
        self._pairs: dict[Name, int] = {}
        self.named: list[Name] = []
        self._columns: dict[int, ColumnTexts | None] = {}
        self._key_forms: dict[str, str | None] = {}
        self._named_forms: dict[str, str | None] = {}

    @property
    def many(self) -> bool:
        """Whether so much is known that it is time to begin anew."""
        known = len(self._templates), len(self._seen) // 10, len(self.named), len(self._bodies)
        return max(known) > _MOST_SHAPES

    def pair(self, name: Name) -> int:
        """The number of a table and a column."""
        found = self._pairs.get(name)
        if found is None:
            found = self._pairs[name] = len(self.named)
            self.named.append(name)
        return found

    def table(self, name: str) -> Table | None:
        """The table of that name, None for one that is not known or may be any of several."""
        try:
            return self._task.tables.find(name)
        except EventlogError:
            return None

    def column(self, pair: int) -> ColumnTexts | None:
        """The treatment of a column's texts; None for plain text."""
        if pair not in self._columns:
            table = self.table(self.named[pair].table)
            name = self.named[pair].column
            column = None if table is None or name is None else table.column(name)
            self._columns[pair] = self.treated(column)
        return self._columns[pair]

    def treated(self, column: Any) -> ColumnTexts | None:
        if column is None or treatment(column) is Treatment.TEXT:
            return None
        return ColumnTexts(column, self._task.tables, self._task.target_settings.time_syntax)

    def key_form(self, name: str) -> str | None:
        """The pattern of keys that surely name a row; None where no pattern can tell."""
        if name not in self._key_forms:
            table = self.table(name)
            self._key_forms[name] = None if table is None or _refers_jointly(table) else key_form(table)
        return self._key_forms[name]

    def named_form(self, name: str) -> str | None:
        """The pattern of keys that name exactly the key columns of a table, where these are known; None for
        a table whose values cannot be written one by one."""
        if name not in self._named_forms:
            table = self.table(name)
            form = named_form(table) if table is not None and table.key else PLAIN_KEY
            self._named_forms[name] = None if table is not None and _refers_jointly(table) else form
        return self._named_forms[name]

    @property
    def limit(self) -> int:
        """A size that no table finds too large."""
        limits = [t.max_value for t in self._task.tables if t.max_value is not None]
        return min([self._task.rules.max_value, *limits])

    def template(
        self, shape: bytes, alone: bool, pairs: Ints, facts: Ints, current: list[bool] | None
    ) -> Template | None:
        """The template of a shape that several lives have; None for one that goes the plain way."""
        found = self._templates.get(shape)
        if found is not None or shape in self._templates:
            return found
        if alone and shape not in self._seen:
            self._seen.add(shape)
            return None
        rows = [self._row(*facts_of) for facts_of in zip(pairs.tolist(), facts.tolist(), strict=True)]
        try:
            made = self._compiler.compile(self.named[int(pairs[0])].table, rows, current)
        except EventlogError:
            made = None
        self._templates[shape] = made
        return made

    def body(self, pair: int, fact: int) -> Body | None:
        """What one update adds to a document of its life; None if that is not certain."""
        if (pair, fact) not in self._bodies:
            made = None
            with suppress(EventlogError):
                made = self._compiler.body(self.named[pair].table, self._row(pair, fact))
            self._bodies[pair, fact] = made
        return self._bodies[pair, fact]

    def _row(self, pair: int, fact: int) -> RowShape:
        return RowShape(fact >> 4, self.named[pair].column, bool(fact & 1), bool(fact & 2), bool(fact & 4))

    @property
    def constants(self) -> list[str]:
        return self._compiler.constants


def _refers_jointly(table: Table) -> bool:
    """Whether columns of the table refer together: what a value says depends on those beside it."""
    return any(len(column.by) > 1 for column in table.columns.values())
