"""The event log's names in one database: the table, its ten columns, and our further tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from eventlog.core.entry import COLUMNS
from eventlog.core.errors import Misuse
from eventlog.sql import stored
from eventlog.sql.common.dialect import Dialect, Storage
from eventlog.sql.common.expression import literal
from eventlog.sql.common.naming import IllegalName
from eventlog.sql.stored import OURS, Stored

COMPANIONS = (
    *("state", "lock", "batch", "retry", "held", "failed", "resync", "notice", "tracked", "version"),
    "answer",  # of the receiver, that is not a first success
    "try",  # of each row, with its answer
    "sent",  # the highest record_id that went out
    "known",  # what the receiver has, of logs that are filled by comparing
    "slot",  # up to where a replication slot was read, of logs that one fills
)

_LEGAL = re.compile(
    r"[\w$# -]+"
)  # no quotes of any kind, because these names are also inside string constants


class UnknownLogColumn(Misuse):
    """[log.columns] names {0!r}; the columns of a log are {1}"""


@dataclass(frozen=True)
class Log:
    """An event log: where it is and what its columns are called there."""

    dialect: Dialect
    table: str = "eventlog"
    schema: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)  # ours to theirs, where they differ
    local_time: bool = False  # event_time is in the database's own zone, not in UTC
    stored: Mapping[str, Stored] = field(default_factory=lambda: OURS)  # how each column is kept
    keyed: bool = True  # its primary key begins with record_id
    unique: bool = True  # its record_id has a unique key of its own

    def __post_init__(self) -> None:
        if unknown := self.columns.keys() - set(COLUMNS):
            raise UnknownLogColumn(min(unknown), ", ".join(COLUMNS))
        longest = max(len(_joined_name(self.table, name).encode()) for name in _PARTS)
        for name in (self.schema or "public", self.table, *self.columns.values()):
            if not _LEGAL.fullmatch(name):
                raise IllegalName(name, "a log", "it may contain only letters, digits, blanks and _ - $ #")
        if longest > self.dialect.names.longest:
            spare = self.dialect.names.longest - longest + len(self.table.encode())
            raise IllegalName(self.table, self.dialect.title, f"a log's name may have {spare} bytes")

    def column(self, name: str) -> str:
        """Return the name of one of our ten columns in the log."""
        return self.columns.get(name) or self.dialect.fold(name)

    def names(self) -> dict[str, str]:
        """Return the names for the placeholders of a statement."""
        quote = self.dialect.quote
        table = self.dialect.fold(self.table)
        holes = {name: quote(self.column(name)) for name in COLUMNS}
        holes["utc_now"] = self.dialect.values.utc_now
        holes["share_lock"] = self.dialect.statements.share_lock
        holes["keeps_settings"] = self.dialect.sessions.keeps_settings
        holes["dual"] = self.dialect.statements.dual
        holes["log"] = self._qualified(table)
        holes["log_text"] = literal(table)
        holes["schema_text"] = literal(self.place) if self.place else self.dialect.schema.current
        holes["collation"] = self.dialect.values.collation
        for name in COMPANIONS:
            holes[name] = self._qualified(self.companion_name(name))
            holes[f"{name}_text"] = literal(self.companion_name(name))
        for name in _PARTS:
            holes[name] = quote(self.companion_name(name.removeprefix("log_")))
        holes["leadership"] = self._qualified(self.companion_name("leadership"))
        holes["lock_number"] = self.dialect.sessions.lock_number.format(
            schema=holes["schema_text"], name=holes["lock_text"]
        )
        holes["log_pending_text"] = literal(self.companion_name("pending"))
        holes["log_future_text"] = literal(self.companion_name("future"))
        holes["place"] = f"{quote(self.place)}." if self.place else ""
        holes["log_sequence"] = self._qualified(self.companion_name("sequence"))
        holes["indexed_status"] = stored.indexed_text(holes["status"], self.stored["status"])
        return holes

    def reading_names(self) -> dict[str, str]:
        """Return the names for a statement that reads or changes rows.

        The log is called r there. A column's name is replaced by what is read of it, and with raw_ by the
        column itself.
        """
        names = self.names()
        columns = {name: names[name] for name in COLUMNS}
        of_row = {name: f"r.{quoted}" for name, quoted in columns.items()}
        return (
            names
            | stored.readings(self.dialect, of_row, self.stored, local_time=self.local_time)
            | {f"raw_{name}": quoted for name, quoted in columns.items()}
            | {"by_key": self.dialect.index_hint("primary") if self.keyed else ""}
        )

    @property
    def ranged(self) -> bool:
        """Return whether a range of record_ids contains only the rows of its integers, one each."""
        return self.unique and self.stored["record_id"].storage is Storage.INTEGER

    @property
    def full_name(self) -> str:
        """The name for people, with the schema where it is known."""
        return f"{self.schema}.{self.table}" if self.schema else self.table

    @property
    def place(self) -> str | None:
        """The schema as the catalogue writes it, None for the session's own."""
        return None if self.schema is None else self.dialect.fold(self.schema)

    def companion_name(self, name: str) -> str:
        """Return the catalogue's name of something that belongs to the log."""
        table = self.dialect.fold(self.table)
        capitals = self.dialect.names.plain == "upper" and table == table.upper()
        return _joined_name(table, name.upper() if capitals else name)

    def reflected(self, name: str) -> str:
        """Return the catalogue's name as SQLAlchemy writes it: without capitals if it was not quoted."""
        return name.lower() if self.dialect.fold(name.lower()) == name else name

    def _qualified(self, name: str) -> str:
        quoted = self.dialect.quote(name)
        return quoted if self.place is None else f"{self.dialect.quote(self.place)}.{quoted}"


_PARTS = (  # indexes and constraints
    "log_key",
    "log_pending",
    "log_future",
    *(f"{name}_key" for name in COMPANIONS),
    "version_pkc",  # as Alembic calls it
    "state_one",
    "state_known",
    "known_way",
    "try_way",
)


def _joined_name(table: str, name: str) -> str:
    return f"{table}_{name}"


def log_named(dialect: Dialect, name: str, columns: Mapping[str, str] | None = None) -> Log:
    """Return the log of a setting: a table's name, optionally with its schema."""
    schema, dot, table = name.rpartition(".")
    return Log(dialect, table, schema if dot else None, columns or {})
