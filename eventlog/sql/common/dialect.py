"""What differs between databases and is a value or a function; a statement is in a .sql file.

No code asks for a dialect's name. A difference is a field of one of the six records of `Dialect`, or a
statement of the same name in the folder of the dialect. A field without a default must be given; a default is
what standard SQL has, or that there is no such thing. docs/contribute/dialects.md has the steps to a new
database.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from sqlalchemy import TextClause
from sqlalchemy.engine import Connection, Engine

from eventlog.core.tables import Column
from eventlog.sql.common.expression import Expressions
from eventlog.sql.common.key_types import KeyType, key_type_of
from eventlog.sql.common.naming import IllegalName, Names


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


class TimeLimits(NamedTuple):
    """The seconds that statements wait for a lock, and that they take; None: as long as they need."""

    lock: int
    statement: int | None = None


class RunCalls(Protocol):
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
    by_statement: bool = False  # with transition tables
    on_truncate: bool = False  # there are triggers for it
    are_hidden: bool = False  # from users without the right to make some on the table
    replaces_routines: bool = True  # keeping who may execute them; else they are dropped and made anew


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
class Sessions:
    """The way to the server, what its sessions can, and what its errors mean."""

    driver: str  # SQLAlchemy's name of dialect and driver
    port: int  # of a server, if its address names none
    extra: str | None = None  # what pip must install besides eventlog itself
    dial: Callable[[str, Callable[..., Any], Mapping[str, Any]], Any] = dial_plainly  # opens a connection
    begin: BeginSession = begin_plainly  # sets a connection of its own driver up
    listen: Callable[[Engine], None] | None = None  # adds what an engine does before statements
    cancel: Callable[[Engine, Any], None] | None = None  # ends what a session runs, if no interrupt does
    load_run_calls: Callable[[], RunCalls] | None = None  # if its driver can run several in one round trip
    options: Mapping[str, str] = field(default_factory=dict)  # for connections that begin by a statement
    label: str | None = None  # the driver's argument that names a session on the server
    end_session: str = ""  # the statement that ends a session by its {process}; empty if none does
    keeps_settings: str = "1"  # 0 in a session that a pooler reset or gave in place of ours
    limit: Callable[[str, TimeLimits], str] | None = None  # writes limits into a statement that can have some
    lock_number: str = ""  # of a session's lock, from the texts of its {schema} and {name}
    lock_is_transactional: bool = False  # the leader's lock is a transaction's, until its session has it
    wakes: bool = False  # sessions can be notified of work
    has_slots: bool = False  # its own log can be read, change by change
    advice: Mapping[int, str] = field(default_factory=dict)  # what to do, by the number of an error
    refusals: frozenset[str] = frozenset()  # numbers of further errors for which a row is to blame
    conflicts: frozenset[str] = frozenset()  # of those after which a transaction is to be done again
    table_changes: frozenset[str] = frozenset()  # of those where DDL changed a table under a snapshot
    wrong_definitions: frozenset[str] = frozenset()  # of those for which a new table or column is to blame
    lock_waits: frozenset[str] = frozenset()  # of those where a lock came too late
    slow: frozenset[str] = frozenset()  # of those where a statement took too long
    shows_holders: str = ""  # what lets our user see who holds a lock


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """The expressions that write, read and compare values; operands are in braces."""

    expressions: Expressions  # how values become texts
    key_types: Mapping[str, KeyType]  # how the text of a key finds its row, by the type's name
    text: str  # of any {column}, compared by case and by blanks
    time_text: str  # of a timestamp {column}, in ISO form
    utc_now: str  # the transaction's clock, in UTC
    local_now: str  # the transaction's clock, in the server's own zone
    local_as_utc: str  # {column}, which is in the server's own zone, in UTC
    storages: Mapping[str, Storage] = field(default_factory=dict)  # of a log's columns, by further types
    collation: str = ""  # compares text exactly, where columns of users do not unless they are declared so
    integer: str = "bigint"  # of 64 bits, to cast to
    quotient: str = "{column} / {by}"  # of integers, without its fraction
    octets: str = "octet_length({x})"  # of a text {x} in UTF-8
    digest: str = ""  # of a text {x}: SHA-256, cut to 128 bits, in hexadecimal digits; empty: it makes none
    escaped: str = ""  # of a text {x}: each comma as `,.`; empty: it makes no sums of segments
    fraction: int = 6  # digits after the second of a time type without a precision
    empty_is_null: bool = False  # '' is stored as null
    holds_zero: bool = True  # texts may hold the character U+0000


@dataclass(frozen=True, slots=True, eq=False)
class LogSchema:
    """The words that make tables, here and in scripts for the database's own client."""

    words: Mapping[str, str]  # fill the holes of the common schema
    max_columns: int  # of a table
    max_digits: int  # of a decimal with a declared size
    ddl: Callable[[str], Iterable[str]] = as_it_is  # writes `if exists` in the words of the database
    table_options: str = ""  # of tables whose texts compare exactly
    current: str = "current_schema"  # its name
    in_current: str = ""  # runs {statement}, with that schema for {schema}; empty: without need
    transactional: bool = False  # a failed migration leaves nothing
    sequence_hidden: bool = False  # a reader of the log does not see its sequence's value
    needs_usage: bool = False  # a right of its own, without which nothing in the schema is reached
    script_head: tuple[str, ...] = ()  # what a script for the database's own client opens with
    script_tail: tuple[str, ...] = ()  # what it ends with
    block_end: str = ";"  # what ends a statement that holds semicolons of its own
    block_mark: str | None = None  # announces such a statement's end to the client
    reads_lines: bool = False  # its client looks at each line for the end of a statement, even within names


@dataclass(frozen=True, slots=True, eq=False)
class Statements:
    """The words that the common statements lack, and the fastest ways for rows to reach them."""

    dual: str = ""  # what a select without a table is followed by
    share_lock: str = "for update"  # keeps a row from changing until our transaction ends
    unmerged: str = ""  # after a select that is evaluated once, not merged into the outer one
    force_index: str = ""  # written after a table, if the optimizer would rather sort
    stage_prefix: str = ""  # begins the names of tables that only our session sees
    chunk: int = 10_000  # ids or keys that one statement is sent
    updates_ranges: bool = True  # faster than by single ids
    rows_as_json: bool = False  # many rows go as one JSON text, because its driver sends them singly
    keys_by_column: bool = False  # many keys go as an array for each column, not as records
    copies: bool = False  # takes rows by `copy ... from stdin`
    measures_rows: bool = False  # current rows come with their bytes, and stop after so many
    packs_columns: bool = False  # puts a result together by column, where that is faster than rows are


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """One database product; `eventlog.sql.dialects` has each once, and pickles it by its name."""

    name: str
    title: str
    folders: tuple[str, ...]  # of its .sql files; the first that has a statement of a name wins
    sessions: Sessions
    names: Names
    values: Values
    load_triggers: Callable[[], TriggerWriter]  # its module takes a while to load, and few commands need it
    schema: LogSchema
    statements: Statements = Statements()
    aliases: tuple[str, ...] = ()  # further schemes of its URLs
    server_attribute: str = ""  # by which SQLAlchemy's dialect recognises the server

    @property
    def triggers(self) -> TriggerWriter:
        """Return the writer of its triggers."""
        return self.load_triggers()

    def why_no_key(self, column: Column) -> str:
        """Return why a column cannot be of a key by which rows are found again; empty if it can."""
        unreadable = self.values.expressions.of(column.type).unreadable
        key_type = key_type_of(self.values.key_types, column.type)
        why = f"which {unreadable}" if unreadable else "" if key_type is None else key_type.unfit
        return f"key column {column.name} is of type {column.type}, {why}" if why else ""

    def quote(self, name: str) -> str:
        """Return the name as a quoted identifier, whatever it contains."""
        if not name or "\0" in name:
            raise IllegalName(name, self.title, "it is empty or holds a zero character")
        mark = self.names.quote_mark
        return mark + name.replace(mark, mark * 2) + mark

    def fold(self, name: str) -> str:
        """Return the name as the catalogue keeps it; a name without capitals is one that was not quoted."""
        return name.upper() if self.names.plain == "upper" and name == name.lower() else name

    def index_hint(self, index: str) -> str:
        """Return what makes a statement read its table by that index, if the dialect needs it."""
        return self.statements.force_index.replace("{index}", index)

    def script(self, statements: Iterable[str]) -> str:
        """Return the statements as a file for the database's own client."""
        ended = (self._ended(statement) for statement in statements)
        return "\n".join((*self.schema.script_head, *ended, *self.schema.script_tail, ""))

    def _ended(self, statement: str) -> str:
        block_mark = self.schema.block_mark
        if ";" not in statement or block_mark is None:
            return f"{statement}{self.schema.block_end if ';' in statement else ';'}\n"
        return f"delimiter {block_mark}\n{statement}{block_mark}\ndelimiter ;\n"
