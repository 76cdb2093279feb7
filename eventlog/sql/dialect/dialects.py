"""What is different between the databases and is a value; what is a statement stands in a .sql file.

Nobody asks for a dialect's name: a difference is a field here, or a statement of the same name in the
folder of the dialect.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from eventlog.core.errors import Misuse
from eventlog.sql.dialect.capacity import (
    MYSQL_CAPACITY,
    ORACLE_CAPACITY,
    POSTGRESQL_CAPACITY,
    Capacity,
    IllegalName,
)


class UnknownDialect(Misuse):
    """{0!r} is no database that eventlog knows; it knows {1}"""


_TIME = "[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:]{8}([.][0-9]{1,6})?"  # as most texts of a time are


@dataclass(frozen=True, slots=True)
class Dialect:
    """One database product."""

    name: str
    title: str
    folders: tuple[str, ...]  # of its .sql files; the first that has a statement of a name wins
    driver: str  # SQLAlchemy's name of dialect and driver
    extra: str | None  # what pip must install besides eventlog itself
    quote_mark: str
    max_name: int  # of what we name, in UTF-8 bytes
    max_parameters: int  # of one statement
    plain_names: str  # the case in which names without quotes are kept: lower, upper or exact
    capacity: Capacity  # of tables that are made
    own_session: tuple[str, ...] = ()  # what begins our own sessions, and no trigger
    sees_all: tuple[str, ...] = ()  # makes an error of what would be hidden from a session of a log
    pinned_path: tuple[str, ...] = ()  # has such a session find only the server's own by bare names
    given_path: tuple[str, ...] = ()  # has a transaction find again what it would have found without that
    second_mark: str = ""  # quotes names that hold the first, where the session allows both
    quotes_by_session: bool = False  # a setting says what double quotes are
    session_name: str | None = None  # the driver's argument by which the server tells sessions apart
    dual: str = ""  # what a select without a table is followed by
    collation: str = ""  # compares text exactly, by case and by blanks
    current_schema: str = "current_schema()"
    compares_by_case: bool = True  # columns of users do, unless they say otherwise
    chunk: int = 10_000  # ids or keys that one statement is sent
    text_type: str = "text"  # of any length
    long_text: str = "text"  # of a column for texts that are long
    table_options: str = ""  # of tables whose texts compare exactly
    utc_now: str = ""  # the transaction's clock, in UTC
    local_now: str = ""  # the same in the server's own zone
    local_as_utc: str = ""  # {column}, which stands in the server's own zone, in UTC
    integer: str = "bigint"  # of 64 bits, to cast to
    timestamp: str = "timestamp"  # without a zone, to cast to
    text: str = "cast({column} as text)"  # of any {column}, compared by case and by blanks
    time_text: str = "cast({column} as text)"  # of a timestamp, in ISO form
    zoned_as_utc: str = "{column}"  # a timestamp with its zone, in UTC
    plain_time: str = f"regexp_like({{column}}, '^{_TIME}$')"  # whether a text is one
    quotient: str = "{column} / {by}"  # of integers, without its fraction
    digest: str = ""  # of a text {x}: SHA-256, cut to 128 bits, in hexadecimal digits; empty: it makes none
    joins_whole: str = ""  # from here on no row of one side of a join is looked for alone in the other
    joins_freely: str = ""  # ends that
    apart: str = ""  # behind a select that is to be made once, not woven into the one around it
    hashed_key: str = "h"  # the alias of the key's text where a comparison makes its digest
    octets: str = "octet_length({x})"  # of a text {x} in UTF-8
    number_of_text: str = ""  # the positive integer that a text {column} names, else null
    indexes_expressions: bool = False
    share_lock: str = ""  # keeps a row from changing until our transaction ends
    updates_ranges: bool = True  # faster than by single ids
    force_index: str = ""  # said behind a table, where the optimizer would rather sort
    lock_is_transactional: bool = False  # the leader's lock is a transaction's, until its session has it
    empty_is_null: bool = False  # '' is stored as null
    holds_zero: bool = True  # texts may hold the character U+0000
    fraction: int = 6  # digits behind the second of a time type that does not say how many
    stage_prefix: str = ""  # begins the names of tables that only our session sees
    rows_as_json: bool = (
        False  # many rows reach a statement as one JSON text, for its driver sends them singly
    )
    keys_by_column: bool = False  # many keys go as an array for each column, not as records
    copies: bool = False  # takes rows by `copy ... from stdin`
    refusals: frozenset[str] = frozenset()  # numbers of further errors for which a row is to blame
    conflicts: frozenset[str] = frozenset()  # numbers of errors after which a transaction is to be done again
    wakes: bool = False  # sessions can be told that there is work
    transactional_ddl: bool = False  # a failed migration leaves nothing
    shares_snapshots: bool = False  # other sessions can see what one of ours sees
    measures_rows: bool = False  # current rows come with their bytes, and none behind so many
    packs_columns: bool = False  # puts a result together by column, where that is faster than rows are
    statement_triggers: bool = False  # with transition tables
    truncate_triggers: bool = False
    sequence_hidden: bool = False  # who may read the log does not see where its sequence stands
    usage_of_schema: bool = False  # a right of its own, without which nothing in the schema is reached
    replaces_routines: bool = True  # keeping who may execute them; else they are dropped and made anew
    hides_triggers: bool = False  # from users without the right to make some on the table
    script_head: tuple[str, ...] = ()  # what a script for the database's own client opens with
    script_tail: tuple[str, ...] = ()
    block_end: str = ";"  # what ends a statement that holds semicolons of its own
    reads_lines: bool = False  # its client looks at each line for the end of a statement, even within names
    block_mark: str | None = None  # announces such a statement's end to the client

    def quote(self, name: str) -> str:
        """The name as an identifier, whatever stands in it."""
        if not name or "\0" in name:
            raise IllegalName(name, self.title, "it is empty or holds a zero character")
        if self.second_mark and self.quote_mark in name and self.second_mark not in name:
            return f"{self.second_mark}{name}{self.second_mark}"
        return self.quote_mark + name.replace(self.quote_mark, self.quote_mark * 2) + self.quote_mark

    def fold(self, name: str) -> str:
        """The name as the catalogue keeps it: one without capitals is one that nobody quoted."""
        return name.upper() if self.plain_names == "upper" and name == name.lower() else name

    def index_hint(self, index: str) -> str:
        """What makes a statement read its table by that index, where that must be said."""
        return self.force_index.replace("{index}", index)

    def script(self, statements: Iterable[str]) -> str:
        """The statements as a file for the database's own client."""
        ended = (self._ended(statement) for statement in statements)
        return "\n".join((*self.script_head, *ended, *self.script_tail, ""))

    def _ended(self, statement: str) -> str:
        if ";" not in statement or self.block_mark is None:
            return f"{statement}{self.block_end if ';' in statement else ';'}\n"
        return f"delimiter {self.block_mark}\n{statement}{self.block_mark}\ndelimiter ;\n"


def literal(text: str) -> str:
    """The text as a string constant of standard SQL; for names of ours, never for data."""
    return "'" + text.replace("'", "''") + "'"


_NUMBER = "'^ *[+]?0*[1-9][0-9]{0,18} *$'"
_NUMBER_IN_MYSQL = f"(case when {{column}} regexp {_NUMBER} then cast(trim({{column}}) as decimal(20)) end)"

# a row too large, a wrong moment, invalid characters, no default, no moment, no partition, a signal of a
# trigger, out of range, invalid JSON, a check
_MYSQL_REFUSALS = frozenset(
    ["1118", "1292", "1300", "1364", "1411", "1526", "1644", "1690", "3140", "3819", "4025"]
)

# A server may be set to cut results and to refuse statements that name no key, which keeps people from
# accidents, and to show what others may yet take back.
_MYSQL_SESSION = (
    "set sql_select_limit = 18446744073709551615, sql_safe_updates = 0, sql_big_selects = 1",
    "set session transaction isolation level repeatable read",
)

POSTGRESQL = Dialect(
    name="postgresql",
    title="PostgreSQL",
    own_session=("set jit to off",),  # compiling takes longer than what we ask for
    sees_all=("set row_security to off",),
    pinned_path=(
        "select pg_catalog.set_config('eventlog.path', pg_catalog.current_setting('search_path'), false)",
        "select pg_catalog.set_config('eventlog.places', pg_catalog.current_schemas(false)::text, false)",
        "set search_path to pg_catalog, pg_temp",
    ),
    given_path=(
        """select pg_catalog.set_config('search_path', path, true)
        from pg_catalog.current_setting('eventlog.path', true) as path where path is not null""",
    ),
    folders=("postgresql", "common"),
    driver="postgresql+psycopg",
    extra=None,
    quote_mark='"',
    max_name=63,
    max_parameters=65_535,
    plain_names="lower",
    capacity=POSTGRESQL_CAPACITY,
    session_name="fallback_application_name",
    utc_now="(now() at time zone 'UTC')",
    local_now="(now() at time zone (select reset_val from pg_settings where name = 'TimeZone'))",
    local_as_utc="({column} at time zone (select reset_val from pg_settings where name = 'TimeZone')"
    " at time zone 'UTC')",
    text='cast({column} as text) collate "C"',
    zoned_as_utc="({column} at time zone 'UTC')",
    plain_time=f"{{column}} ~ '^{_TIME}$'",
    number_of_text=f"(case when {{column}} ~ {_NUMBER} then cast({{column}} as numeric) end)",
    digest="pg_catalog.substr(pg_catalog.encode("
    "pg_catalog.sha256(pg_catalog.convert_to({x}, 'UTF8')), 'hex'), 1, 32)",
    joins_whole="set local enable_nestloop to off",
    joins_freely="set local enable_nestloop to default",
    apart=" offset 0",
    hashed_key="n",
    octets="pg_catalog.octet_length(pg_catalog.convert_to({x}, 'UTF8'))::pg_catalog.text",
    indexes_expressions=True,
    share_lock="for share",
    holds_zero=False,
    # a row met twice; a number that is always generated; a view's check; a row or a key that is too large;
    # raised by a trigger
    refusals=frozenset(("21000", "428C9", "44000", "54000", "P0001")),
    conflicts=frozenset(("40001", "40P01")),
    copies=True,
    rows_as_json=True,
    keys_by_column=True,
    wakes=True,
    measures_rows=True,
    packs_columns=True,
    shares_snapshots=True,
    transactional_ddl=True,
    statement_triggers=True,
    truncate_triggers=True,
    usage_of_schema=True,
    sequence_hidden=True,
    script_head=("\\set ON_ERROR_STOP on", "begin;", ""),
    script_tail=("commit;",),
)

ORACLE = Dialect(
    name="oracle",
    title="Oracle",
    folders=("oracle", "common"),
    driver="oracle+oracledb",
    extra="oracle",
    quote_mark='"',
    max_name=128,
    max_parameters=65_535,
    plain_names="upper",
    capacity=ORACLE_CAPACITY,
    dual=" from dual",
    chunk=1_000,
    text_type="varchar2(4000)",
    long_text="clob",
    stage_prefix="ORA$PTT_",
    # too long, too large, no number, no date; raised by triggers, as all from 20000 to 20999 are
    refusals=frozenset(
        ["1401", "1426", "1438", "1722", "1839", "1841", "1843", "1847", "1858", "1861", "12899"]
        + [str(number) for number in range(20_000, 21_000)]
    ),
    conflicts=frozenset(("60", "8177")),
    current_schema="sys_context('USERENV', 'CURRENT_SCHEMA')",
    utc_now="sys_extract_utc(systimestamp)",
    local_now="cast(systimestamp as timestamp)",
    local_as_utc="sys_extract_utc(from_tz(cast({column} as timestamp), to_char(systimestamp, 'TZR')))",
    integer="number(19)",
    text="rtrim({column})",
    time_text="to_char({column}, 'YYYY-MM-DD HH24:MI:SS.FF9')",
    zoned_as_utc="sys_extract_utc({column})",
    quotient="trunc({column} / {by})",
    number_of_text=f"(case when regexp_like({{column}}, {_NUMBER}) then to_number(trim({{column}})) end)",
    indexes_expressions=True,
    share_lock="for update",
    lock_is_transactional=True,
    shares_snapshots=True,
    empty_is_null=True,
    # a blank line would end a statement, an & ask for a value
    script_head=("set define off", "set sqlblanklines on", "whenever sqlerror exit failure", ""),
    block_end="\n/",
    reads_lines=True,
)

MYSQL = Dialect(
    name="mysql",
    title="MySQL",
    folders=("mysql", "common"),
    own_session=_MYSQL_SESSION,
    driver="mysql+pymysql",
    extra="mysql",
    quote_mark="`",
    max_name=64,
    max_parameters=65_535,
    plain_names="exact",
    capacity=MYSQL_CAPACITY,
    quotes_by_session=True,
    session_name="program_name",
    compares_by_case=False,
    text_type="longtext",
    long_text="longtext",
    table_options="character set utf8mb4 collate utf8mb4_0900_bin",
    fraction=0,
    refusals=_MYSQL_REFUSALS,
    conflicts=frozenset(("1020", "1205", "1213")),  # changed meanwhile, waited too long, a deadlock
    collation="utf8mb4_0900_bin",
    current_schema="database()",
    utc_now="utc_timestamp(6)",
    local_now="convert_tz(utc_timestamp(6), '+00:00', @@global.time_zone)",
    local_as_utc="convert_tz({column}, @@global.time_zone, '+00:00')",
    integer="signed",
    timestamp="datetime(6)",
    text="convert({column} using utf8mb4) collate utf8mb4_0900_bin",
    time_text="cast({column} as char)",
    plain_time=f"concat({{column}}, '|') regexp '^{_TIME}[|]$'",  # $ alone lets a line end follow
    quotient="{column} div {by}",
    digest="cast(substr(sha2({x}, 256), 1, 32) as char(32)) collate utf8mb4_0900_bin",
    number_of_text=_NUMBER_IN_MYSQL,
    share_lock="for update",  # one that is shared, and then written to, is a deadlock with who waits for it
    replaces_routines=False,
    hides_triggers=True,
    updates_ranges=False,  # 8.0 µs a row where ids take 6.2
    force_index="force index ({index})",
    block_mark="//",
)

MARIADB = Dialect(
    name="mariadb",
    title="MariaDB",
    folders=("mariadb", "mysql", "common"),
    own_session=_MYSQL_SESSION,
    driver="mariadb+pymysql",
    extra="mysql",
    quote_mark="`",
    max_name=64,
    max_parameters=65_535,
    plain_names="exact",
    capacity=replace(MYSQL_CAPACITY, title="MariaDB"),
    quotes_by_session=True,
    session_name="program_name",
    compares_by_case=False,
    text_type="longtext",
    long_text="longtext",
    table_options="character set utf8mb4 collate utf8mb4_nopad_bin",
    fraction=0,
    refusals=_MYSQL_REFUSALS,
    conflicts=frozenset(("1020", "1205", "1213")),  # changed meanwhile, waited too long, a deadlock
    collation="utf8mb4_nopad_bin",
    current_schema="database()",
    utc_now="utc_timestamp(6)",
    local_now="convert_tz(utc_timestamp(6), '+00:00', @@global.time_zone)",
    local_as_utc="convert_tz({column}, @@global.time_zone, '+00:00')",
    integer="signed",
    timestamp="datetime(6)",
    text="convert({column} using utf8mb4) collate utf8mb4_nopad_bin",
    time_text="cast({column} as char)",
    plain_time=f"concat({{column}}, '|') regexp '^{_TIME}[|]$'",  # $ alone lets a line end follow
    quotient="{column} div {by}",
    digest="cast(substr(sha2({x}, 256), 1, 32) as char(32)) collate utf8mb4_nopad_bin",
    number_of_text=_NUMBER_IN_MYSQL,
    share_lock="for update",  # one that is shared, and then written to, is a deadlock with who waits for it
    hides_triggers=True,
    updates_ranges=False,  # 8.0 µs a row where ids take 6.2
    force_index="force index ({index})",
    block_mark="//",
)

DIALECTS: dict[str, Dialect] = {d.name: d for d in (POSTGRESQL, ORACLE, MYSQL, MARIADB)}


def dialect_named(name: str) -> Dialect:
    """The dialect of that name."""
    try:
        return DIALECTS[name]
    except KeyError:
        raise UnknownDialect(name, ", ".join(DIALECTS)) from None


def dialect_of(engine: Any) -> Dialect:
    """The dialect of an engine or connection; MariaDB behind a mysql URL is known once connected."""
    found = engine.dialect
    return MARIADB if getattr(found, "is_mariadb", False) else dialect_named(found.name)
