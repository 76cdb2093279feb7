"""What a database can name and hold in the tables that are made in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eventlog.core.errors import EventlogError

_SHOWN = 60  # characters of a name in a message


class IllegalName(EventlogError):
    """{0!r} cannot name anything in {1}: {2}"""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The most that names, columns and digits can have."""

    title: str
    name: int  # the most bytes of a name in UTF-8, or characters
    columns: int  # of a table
    digits: int  # of a decimal with a declared size
    counts_characters: bool = False  # in the length of a name
    barred: str = ""  # characters that no name contains
    basic: bool = False  # names have no characters beyond U+FFFF
    trims: bool = False  # names do not end with a blank
    taken: frozenset[str] = frozenset()  # columns that every table has already, in lower case
    twins: bool = True  # the names of two columns may differ by case alone
    own_schemas: tuple[str, ...] = ()  # the beginnings of schemas of the database's own, in lower case
    # numbers of errors that concern a statement which makes a table or a column, and not the database itself
    unmade: frozenset[str] = frozenset()

    def check_name(self, name: str) -> None:
        """Raise IllegalName for a name that no table or column can have."""
        if reason := next(self._faults(name), None):
            raise IllegalName(name[:_SHOWN], self.title, reason)

    def check_column(self, name: str) -> None:
        """Raise IllegalName for a name that no further column can have."""
        self.check_name(name)
        if name.lower() in self.taken:
            raise IllegalName(name, self.title, "it names a column of the database's own in every table")

    def check_schema(self, name: str) -> None:
        """Raise IllegalName for a name that no schema of a user can have."""
        self.check_name(name)
        if name.lower().startswith(self.own_schemas):
            raise IllegalName(name, self.title, "it names a schema of the database's own")

    def same(self, name: str) -> str:
        """Return a text that is equal for all names of one column."""
        return name if self.twins else name.lower()

    def _faults(self, name: str) -> Iterator[str]:
        if not name or "\0" in name:
            yield "it is empty or contains a zero character"
        try:
            length = len(name.encode())
        except UnicodeEncodeError:
            yield "it is no text in UTF-8"
            return
        if (len(name) if self.counts_characters else length) > self.name:
            yield f"it is longer than {self.name} {'characters' if self.counts_characters else 'bytes'}"
        if not set(self.barred).isdisjoint(name):
            yield f"it contains one of {self.barred!r}"
        if self.basic and any(character > "\uffff" for character in name):
            yield "it contains a character beyond U+FFFF"
        if self.trims and name.endswith(" "):
            yield "it ends with a blank"


_MYSQL_UNMADE = (
    # names: too long, of a table, of a column, not in its character set; two alike
    "1059 1103 1166 1300 1050 1060 1061 1110"
    # definitions: a wrong type or default, too many digits, too long, too many columns or keys, keys of LOBs
    " 1063 1064 1067 1068 1069 1070 1071 1074 1075 1113 1117 1118 1163 1167 1170 1171 1425 1426 1427 1439"
)
_POSTGRESQL_UNMADE = (
    # syntax, names: invalid, too long, reserved; two alike; wrong definitions, unknown types; limits
    "42601 42602 42611 42622 42939 42701 42710 42P07 42P16 42P17 42703 42704 42804 42830"
    " 0A000 22001 22021 22023 22P05 54000 54001 54011 54023"
)

POSTGRESQL_CAPACITY = Capacity(
    title="PostgreSQL",
    name=63,
    columns=1_600,
    digits=1_000,
    taken=frozenset(("ctid", "xmin", "xmax", "cmin", "cmax", "tableoid")),
    own_schemas=("pg_", "information_schema"),
    unmade=frozenset(_POSTGRESQL_UNMADE.split()),
)

# names: invalid, too long, twice; definitions: a size, an invalid type, too many columns, a key of a LOB
_ORACLE_UNMADE = "902 903 904 907 910 911 955 957 972 1450 1727 1728 1792 2327 2329 3001"
ORACLE_CAPACITY = Capacity(
    title="Oracle",
    name=128,
    columns=1_000,
    digits=38,
    barred='"',
    taken=frozenset(("rowid",)),
    own_schemas=("sys", "xdb", "audsys", "mdsys", "ctxsys"),
    unmade=frozenset(_ORACLE_UNMADE.split()),
)

MYSQL_CAPACITY = Capacity(
    title="MySQL",
    name=64,
    columns=1_017,
    digits=65,
    counts_characters=True,
    basic=True,
    trims=True,
    taken=frozenset(("db_row_id", "db_trx_id", "db_roll_ptr", "fts_doc_id")),
    twins=False,
    own_schemas=("mysql", "sys", "information_schema", "performance_schema"),
    unmade=frozenset(_MYSQL_UNMADE.split()),
)
