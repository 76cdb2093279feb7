"""Names of view columns: a view has no constraints, so prefixes mark keys, references and value counts.

NetIQ, Driver for JDBC, "View Column Meta-Identifiers":

    <view-column-name> ::= [<meta-info>] <column-name>
    <meta-info>        ::= <referential> | <non-referential>
    <non-referential>  ::= ["sv_" | "mv_"]
    <referential>      ::= <primary-key> | <foreign-key>
    <primary-key>      ::= "pk_" ["sv_"] [<column-group-id>] [<referenced-column-name>]
    <foreign-key>      ::= "fk_" [<non-referential>] [<column-group-id>] <referenced-column-name>
    <column-group-id>  ::= <non-negative-integer> "_"
    <referenced-column-name> ::= "_" <column-name> "__"

Two further forms are read. A foreign key may lack its referenced column, because its name is published that
way. A group of a foreign key may be no number.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

_REFERENCE = r"_(?P<column>.+?)__"
_KEY: Final = re.compile(
    rf"(?P<prefix>pk_)(?:sv_)?(?:(?P<group>\d+)_)?(?:{_REFERENCE})?(?P<name>.+)", re.IGNORECASE | re.DOTALL
)
_FOREIGN: Final = re.compile(
    rf"(?P<prefix>fk_)(?:(?P<number>[sm])v_)?(?:(?:(?P<group>[^_]+)_)?{_REFERENCE})?(?P<name>.+)",
    re.IGNORECASE | re.DOTALL,
)
_VALUED: Final = re.compile(r"(?P<prefix>)(?P<number>[sm])v_(?P<name>.+)", re.IGNORECASE | re.DOTALL)


class MetaName(NamedTuple):
    """The meaning of the name of a view's column."""

    name: str  # the effective name, under which all forms of it are equal
    prefix: str = ""  # pk_ or fk_, as it is written
    is_multivalued: bool = False  # it holds many values
    group: str | None = None  # columns of one group refer together
    column: str | None = None  # of the table to which it refers

    @property
    def published(self) -> str:
        """The name of the attribute: the schema mapping form, in which only pk_ and fk_ are left."""
        return self.prefix + self.name

    @property
    def is_key(self) -> bool:
        return self.prefix.lower() == "pk_"

    @property
    def is_foreign(self) -> bool:
        return self.prefix.lower() == "fk_"


@lru_cache(4096)  # rows may name whatever they like
def read_name(column: str) -> MetaName:
    """Return the meaning of a column's name; a name without a prefix only names itself."""
    for pattern in (_KEY, _FOREIGN, _VALUED):
        if match := pattern.fullmatch(column):
            parts = match.groupdict()
            is_multivalued = (parts.get("number") or "").lower() == "m"
            group, target = parts.get("group"), parts.get("column")
            return MetaName(parts["name"], parts["prefix"], is_multivalued, group, target)
    return MetaName(column)
