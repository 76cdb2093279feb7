"""What differs between databases and is a value or a function; a statement is in a .sql file.

No code asks for a dialect's name: a difference is a field of `Dialect`, or a statement of the same name in
the folder of the dialect.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from sqlalchemy import TextClause
from sqlalchemy.engine import Connection, Engine

from eventlog.core.tables import Column
from eventlog.sql.common.capacity import Capacity, IllegalName
from eventlog.sql.common.expression import Expressions
from eventlog.sql.common.key_types import KeyType, key_type_of


class Storage(enum.Enum):
    """The meaning of the type of a log's column."""

    INTEGER = enum.auto()
    NUMERIC = enum.auto()  # without a fraction
    TEXT = enum.auto()
    PADDED = enum.auto()  # text with blanks up to a length
    TIMESTAMP = enum.auto()
    ZONED = enum.auto()  # a timestamp that comes in UTC
    DATE = enum.auto()  # with its time of day


class Call(NamedTuple):
    """A statement with its values, ready to run."""

    clause: TextClause
    values: Mapping[str, Any]


class Together(Protocol):
    """Runs statements in one round trip. Returns the rows of each, or how many it changed."""

    def __call__(self, connection: Connection, calls: Sequence[Call], *, commit: bool) -> list[Any]: ...


class TriggerWriter(NamedTuple):
    """The trigger writer of one database; `sql.trigger_rows` calls these functions and types them."""

    write: Callable[[Any], Iterator[Any]]  # from a Subject to its Triggers
    name: Callable[[Any, str, str, str | None], str]  # from a Log, a table, an event and a parent
    ways_round: tuple[tuple[str, str], ...]  # changes that no trigger sees, each with what to do
    cascades_fire: bool = True  # what a cascading foreign key changes fires triggers
    replicates: bool = False  # triggers can log what replication writes
    no_name_with: str = ""  # a name with this cannot be in a trigger
    reads_parent: bool = True  # a child's trigger may look for the parent's row while a cascade deletes it
    largest: int | None = None  # bytes of a trigger's text
    package: Callable[[Any, str | None, str], str] | None = None  # from a Log, a schema and a trigger


def as_it_is(statement: str) -> Iterable[str]:
    """Return a statement of the schema alone, unchanged."""
    return (statement,)


def dial_plainly(driver: str, connect: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Return a connection of the driver, with no more arguments than these."""
    return connect(**arguments)


BeginSession = Callable[[Any, Sequence[str], Sequence[str], Sequence[str]], None]


def begin_plainly(
    connection: Any, settings: Sequence[str], connection_init: Sequence[str], last_settings: Sequence[str]
) -> None:
    """Run what a session begins with, one statement after another."""
    cursor = connection.cursor()
    for statement in (*settings, *connection_init, *last_settings):
        cursor.execute(statement)
    cursor.close()
    connection.commit()


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """One database product; `eventlog.sql.dialects` has each once, and pickles it by its name."""

    name: str
    title: str
    folders: tuple[str, ...]  # of its .sql files; the first that has a statement of a name wins
    driver: str  # SQLAlchemy's name of dialect and driver
    extra: str | None  # what pip must install besides eventlog itself
    quote_mark: str
    max_name: int  # of what we name, in UTF-8 bytes
    plain_names: str  # the case in which names without quotes are kept: lower, upper or exact
    capacity: Capacity  # of tables that are made
    expressions: Expressions  # how values become texts
    key_types: Mapping[str, KeyType]  # how the text of a key finds its row, by the type's name
    triggers: TriggerWriter
    storages: Mapping[str, Storage] = field(default_factory=dict)  # of a log's columns, by further types
    aliases: tuple[str, ...] = ()  # further schemes of its URLs
    server_attribute: str = ""  # by which SQLAlchemy's dialect recognises the server
    listen: Callable[[Engine], None] | None = None  # adds what an engine does before statements
    dial: Callable[[str, Callable[..., Any], Mapping[str, Any]], Any] = dial_plainly  # opens a connection
    begin_session: BeginSession = begin_plainly  # sets a connection of its own driver up
    schema_words: Mapping[str, str] = field(default_factory=dict)  # fill the holes of the common schema
    ddl: Callable[[str], Iterable[str]] = as_it_is  # writes `if exists` in the words of the database
    sees_all: tuple[str, ...] = ()  # makes an error of what would be hidden from a session of a log
    pinned_path: tuple[str, ...] = ()  # has such a session find only the server's own by bare names
    given_path: tuple[str, ...] = ()  # has a transaction find again what it would have found without that
    session_name: str | None = None  # the driver's argument that names a session on the server
    dual: str = ""  # what a select without a table is followed by
    collation: str = ""  # compares text exactly, by case and by blanks
    current_schema: str = "current_schema()"
    in_current_schema: str = ""  # runs {statement}, with that schema for {schema}; empty: without need
    lock_number: str = ""  # of a session's lock, from the texts of its {schema} and {name}
    compares_by_case: bool = True  # columns of users do, unless they are declared otherwise
    chunk: int = 10_000  # ids or keys that one statement is sent
    text_type: str = "text"  # of any length
    long_text: str = "text"  # of a column for texts that are long
    table_options: str = ""  # of tables whose texts compare exactly
    utc_now: str = ""  # the transaction's clock, in UTC
    local_now: str = ""  # the transaction's clock, in the server's own zone
    local_as_utc: str = ""  # {column}, which is in the server's own zone, in UTC
    integer: str = "bigint"  # of 64 bits, to cast to
    text: str = "cast({column} as text)"  # of any {column}, compared by case and by blanks
    time_text: str = "cast({column} as text)"  # of a timestamp, in ISO form
    quotient: str = "{column} / {by}"  # of integers, without its fraction
    digest: str = ""  # of a text {x}: SHA-256, cut to 128 bits, in hexadecimal digits; empty: it makes none
    escaped: str = ""  # of a text {x}: each comma as `,.`; empty: it makes no sums of segments
    joins_whole: str = ""  # from here on no row of one side of a join is looked for alone in the other
    joins_by_row: str = ""  # from here on each row of one side of a join is looked for in the other
    joins_freely: str = ""  # ends both
    unmerged: str = ""  # after a select that is evaluated once, not merged into the outer one
    hashed_key: str = "h"  # the alias of the key's text where a comparison makes its digest
    octets: str = "octet_length({x})"  # of a text {x} in UTF-8
    keeps_settings: str = "1"  # 0 in a session that a pooler reset or gave in place of ours
    share_lock: str = ""  # keeps a row from changing until our transaction ends
    updates_ranges: bool = True  # faster than by single ids
    force_index: str = ""  # written after a table, if the optimizer would rather sort
    lock_is_transactional: bool = False  # the leader's lock is a transaction's, until its session has it
    empty_is_null: bool = False  # '' is stored as null
    holds_zero: bool = True  # texts may hold the character U+0000
    fraction: int = 6  # digits after the second of a time type without a precision
    stage_prefix: str = ""  # begins the names of tables that only our session sees
    advice: Mapping[int, str] = field(default_factory=dict)  # what to do, by the number of an error
    rows_as_json: bool = (
        False  # many rows reach a statement as one JSON text, for its driver sends them singly
    )
    keys_by_column: bool = False  # many keys go as an array for each column, not as records
    copies: bool = False  # takes rows by `copy ... from stdin`
    refusals: frozenset[str] = frozenset()  # numbers of further errors for which a row is to blame
    conflicts: frozenset[str] = frozenset()  # numbers of errors after which a transaction is to be done again
    table_changes: frozenset[str] = (
        frozenset()
    )  # numbers of errors where DDL changed a table under a snapshot
    cancel: Callable[[Engine, Any], None] | None = (
        None  # ends what a driver's session runs, if no interrupt does
    )
    load_together: Callable[[], Together] | None = None  # if its driver can run several in one round trip
    session_options: Mapping[str, str] = field(
        default_factory=dict
    )  # for connections that begin by a statement
    wakes: bool = False  # sessions can be notified of work
    transactional_ddl: bool = False  # a failed migration leaves nothing
    measures_rows: bool = False  # current rows come with their bytes, and stop after so many
    packs_columns: bool = False  # puts a result together by column, where that is faster than rows are
    statement_triggers: bool = False  # with transition tables
    truncate_triggers: bool = False
    has_slots: bool = False  # its own log can be read, change by change
    sequence_hidden: bool = False  # a reader of the log does not see its sequence's value
    usage_of_schema: bool = False  # a right of its own, without which nothing in the schema is reached
    replaces_routines: bool = True  # keeping who may execute them; else they are dropped and made anew
    hides_triggers: bool = False  # from users without the right to make some on the table
    script_head: tuple[str, ...] = ()  # what a script for the database's own client opens with
    script_tail: tuple[str, ...] = ()
    block_end: str = ";"  # what ends a statement that holds semicolons of its own
    reads_lines: bool = False  # its client looks at each line for the end of a statement, even within names
    block_mark: str | None = None  # announces such a statement's end to the client

    def why_no_key(self, column: Column) -> str:
        """Return why a column cannot be of a key by which rows are found again; empty if it can."""
        unreadable = self.expressions.of(column.type).unreadable
        key_type = key_type_of(self.key_types, column.type)
        why = f"which {unreadable}" if unreadable else "" if key_type is None else key_type.unfit
        return f"key column {column.name} is of type {column.type}, {why}" if why else ""

    def quote(self, name: str) -> str:
        """Return the name as a quoted identifier, whatever it contains."""
        if not name or "\0" in name:
            raise IllegalName(name, self.title, "it is empty or holds a zero character")
        return self.quote_mark + name.replace(self.quote_mark, self.quote_mark * 2) + self.quote_mark

    def fold(self, name: str) -> str:
        """Return the name as the catalogue keeps it; a name without capitals is one that was not quoted."""
        return name.upper() if self.plain_names == "upper" and name == name.lower() else name

    def index_hint(self, index: str) -> str:
        """Return what makes a statement read its table by that index, if the dialect needs it."""
        return self.force_index.replace("{index}", index)

    def script(self, statements: Iterable[str]) -> str:
        """Return the statements as a file for the database's own client."""
        ended = (self._ended(statement) for statement in statements)
        return "\n".join((*self.script_head, *ended, *self.script_tail, ""))

    def _ended(self, statement: str) -> str:
        if ";" not in statement or self.block_mark is None:
            return f"{statement}{self.block_end if ';' in statement else ';'}\n"
        return f"delimiter {self.block_mark}\n{statement}{self.block_mark}\ndelimiter ;\n"
