"""The Oracle package of one trigger.

It belongs to the log's owner, makes the texts and writes the rows. So the trigger is short, and the owner of
the table needs no right on the log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from eventlog.core.tables import Column
from eventlog.sql.common import templates
from eventlog.sql.common.expression import Expression, literal
from eventlog.sql.names import Log
from eventlog.sql.relation import qualified
from eventlog.sql.trigger_rows import indent

KeyParts = Sequence[tuple[str, Column]]  # the name that the key gives a value, and its column


def package_of(log: Log, schema: str | None, trigger: str) -> str:
    """Return the name of the package of a trigger; no one can choose two names that share one."""
    digest = hashlib.sha256(f"{schema}\0{trigger}".encode()).hexdigest()[:16]
    room = log.dialect.names.longest - len(digest) - 1
    return f"{trigger.encode()[:room].decode(errors='ignore')}${digest}"


class Package:
    """The package of one trigger; its types are those of its columns, each once."""

    def __init__(self, log: Log, name: str, table_text: str, key: KeyParts) -> None:
        self.log = log
        self.name = name
        self.quoted = qualified(log.dialect, log.place, name)
        self._expressions = log.dialect.values.expressions
        self._table_text = table_text
        self._key = key
        self._types: list[Expression] = []

    def number(self, column: Column) -> int:
        """Return the number by which the routines for a column's type are called."""
        expression = self._expressions.of(column.type)
        if expression not in self._types:
            self._types.append(expression)
        return self._types.index(expression) + 1

    def statements(self) -> tuple[str, ...]:
        """Return what makes the package: its head and its body."""
        parts = [self._routines(number, expression) for number, expression in enumerate(self._types, 1)]
        key = [
            (name, self._expressions.of(column.type), f"k{number}")
            for number, (name, column) in enumerate(self._key, 1)
        ]
        holes = self.log.names() | {
            "package": self.quoted,
            "switch": qualified(self.log.dialect, self.log.place, self.log.companion_name("switch")),
            "table_text": literal(self._table_text),
            "key_parameters": ", ".join(f"{value} {expression.parameter}" for _, expression, value in key),
            "key": self._expressions.key_of(key),
            "declared": "".join(f"{declared}\n" for declared, _ in parts).rstrip("\n"),
            "defined": "\n".join((*self._functions(), *(f"\n{defined}" for _, defined in parts))),
        }
        return tuple(templates.statements(self.log.dialect, "package", holes))

    def _functions(self) -> Iterator[str]:
        for name in self._expressions.called_by(expression.text for expression in self._types):
            yield "\n" + indent(templates.statement(self.log.dialect, name), 2)

    def _routines(self, number: int, expression: Expression) -> tuple[str, str]:
        """Return the routines for values of one type: what the package's head declares, and what its body
        has.
        """
        if expression.differs:
            differ = expression.differs.format(a="old_value", b="new_value")
        else:
            texts = {"a": f"text{number}(old_value)", "b": f"text{number}(new_value)"}
            differ = self._expressions.texts_differ.format(**texts)
        file = "made_by_query" if expression.in_query else "made"
        text = expression.text.format(x=f"text{number}.value" if expression.in_query else "value")
        text_routine = indent(templates.statement(self.log.dialect, file, text=text), 2)
        holes = {"number": str(number), "type": expression.parameter, "differ": differ, "made": text_routine}
        declared, defined = templates.statements(self.log.dialect, "package_type", holes)
        return declared, defined
