"""MySQL as a dialect, from which MariaDB differs little."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy.engine import Engine

from eventlog.sql.common.dialect import (
    Dialect,
    LogSchema,
    Sessions,
    Statements,
    Storage,
    TimeLimits,
    TriggerWriter,
    Values,
)
from eventlog.sql.common.expression import literal
from eventlog.sql.common.naming import Names
from eventlog.sql.mysql.column_types import EXPRESSIONS, KEY_TYPES, USER

_COMMENTS = r"(?P<comments>(?:--.*\n)*)"
_INDEX = re.compile(
    _COMMENTS + r"create index if not exists \{(?P<name>\w+)\} on \{(?P<table>\w+)\} (?P<rest>.*)"
)
_COLUMN = re.compile(
    _COMMENTS + r"alter table \{(?P<table>\w+)\} add column if not exists (?P<column>\w+) (?P<rest>.*)"
)
_ROUTINE = re.compile(r"create or replace (procedure|function) (\{\w+\})(.*)", re.DOTALL)
_MISSING = """{comments}set @missing = (
  select count(*) = 0 from information_schema.statistics
  where table_schema = {{schema_text}} and table_name = {{{table}_text}} and index_name = {{{name}_text}})"""
_NO_COLUMN = """{comments}set @missing = (
  select count(*) = 0 from information_schema.columns
  where table_schema = {{schema_text}} and table_name = {{{table}_text}} and column_name = '{column}')"""
_RUN = (
    "prepare eventlog_statement from @statement",
    "execute eventlog_statement",
    "deallocate prepare eventlog_statement",
)

_ADDITIONS = (
    (_INDEX, _MISSING, "create index {{{name}}} on {{{table}}} {rest}"),
    (_COLUMN, _NO_COLUMN, "alter table {{{table}}} add column {column} {rest}"),
)


def conditional(statement: str) -> tuple[str, ...]:
    """Return statements of MySQL for one of the schema: `if not exists` and `or replace` are written out."""
    if routine := _ROUTINE.fullmatch(statement):
        kind, name, definition = routine.groups()
        return (f"drop {kind} if exists {name}", f"create {kind} {name}{definition}")
    for addition, missing, plain in _ADDITIONS:
        if match := addition.fullmatch(statement):
            question, text = (form.format(**match.groupdict()) for form in (missing, plain))
            return (question, f"set @statement = if(@missing, {literal(text)}, 'do 0')", *_RUN)
    return (statement,)


_TRUST = (
    "Let an administrator run `set persist log_bin_trust_function_creators = on` (MariaDB: set global, and"
    " the same in its configuration), or install and track as a user with SUPER"
)
_GREETING = 10.0  # seconds until a server that took a connection has sent its greeting


def _load_triggers() -> TriggerWriter:
    from eventlog.sql.mysql.triggers import TRIGGERS

    return TRIGGERS


def _cancel(engine: Engine, session: Any) -> None:
    """End a session whose connection its driver has given up."""
    with engine.connect() as connection:
        connection.exec_driver_sql(f"kill {int(session.thread_id())}")


def _dial(driver: str, connect: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Return a connection; give a server up that takes the connection and does not greet in time."""
    if driver != "pymysql" or "read_timeout" in arguments:
        return connect(**arguments)
    connection = connect(**arguments, read_timeout=arguments.get("connect_timeout", _GREETING))
    connection._read_timeout = None  # a statement may take any time; the driver has one limit for both
    return connection


_SELECT = re.compile(r"(?:\s|--.*\n)*select\b")


def _limit(statement: str, limits: TimeLimits) -> str:
    """Return a query with hints that limit it. What writes has no such hints."""
    begin = _SELECT.match(statement)
    if begin is None:
        return statement
    hints = f"set_var(lock_wait_timeout = {limits.lock})"
    if limits.statement is not None:
        hints += f" max_execution_time({1000 * limits.statement})"
    return f"{begin[0]} /*+ {hints} */{statement[begin.end() :]}"


def collated(collation: str, dialect: Dialect) -> Dialect:
    """Return the dialect with a collation that compares texts exactly."""
    values = replace(
        dialect.values,
        collation=collation,
        text=f"convert({{column}} using utf8mb4) collate {collation}",
        digest=f"cast(substr(sha2({{x}}, 256), 1, 32) as char(32)) collate {collation}",
    )
    schema = replace(dialect.schema, table_options=f"character set utf8mb4 collate {collation}")
    return replace(dialect, values=values, schema=schema)


_SCHEMA_WORDS = {
    "type_small": "smallint",
    "type_integer": "integer",
    "type_bigint": "bigint",
    "type_identity": "bigint not null auto_increment",
    "type_text": "text",
    "type_long": "longtext",
    "type_key": "longtext",
    "type_word": "varchar(9)",
    "type_table": "varchar(255)",
    "type_moment": "datetime(6)",
    "type_written_at": "datetime(6) not null default (utc_timestamp(6))",
    "type_written_by": f"text not null default ({USER})",
    # a session may choose the next number of a table, and so use up those of the log
    "guard_ids": "if @@session.insert_id <> 0 then\n"
    "    signal sqlstate '45000' set message_text ="
    " 'insert_id is set, from which the event log would number its rows';\n"
    "  end if;",
    "table_end": " engine = InnoDB character set utf8mb4 collate {collation}",
}

_WRONG_DEFINITIONS = (
    # names: too long, of a table, of a column, not in its character set; two alike
    "1059 1103 1166 1300 1050 1060 1061 1110"
    # definitions: a wrong type or default, too many digits, too long, too many columns or keys, keys of LOBs
    " 1063 1064 1067 1068 1069 1070 1071 1074 1075 1113 1117 1118 1163 1167 1170 1171 1425 1426 1427 1439"
)
_SESSIONS = Sessions(
    driver="mysql+pymysql",
    port=3306,
    extra="mysql",
    dial=_dial,
    cancel=_cancel,
    limit=_limit,
    label="program_name",
    end_session="kill {process}",
    advice={1418: _TRUST, 1419: _TRUST},
    # a row too large, a wrong moment, invalid characters, no default, no moment, no partition, a signal of a
    # trigger, out of range, invalid JSON, a check
    refusals=frozenset(
        ["1118", "1292", "1300", "1364", "1411", "1526", "1644", "1690", "3140", "3819", "4025"]
    ),
    conflicts=frozenset(("1020", "1205", "1213")),  # changed meanwhile, waited too long, a deadlock
    table_changes=frozenset(("1412",)),
    wrong_definitions=frozenset(_WRONG_DEFINITIONS.split()),
    lock_waits=frozenset(("1205",)),
    slow=frozenset(("3024",)),
    shows_holders="`grant select on performance_schema.* to USER`",
)
_NAMES = Names(
    plain="exact",
    longest=64,
    quote_mark="`",
    counts_characters=True,
    basic=True,
    trims=True,
    taken=frozenset(("db_row_id", "db_trx_id", "db_roll_ptr", "fts_doc_id")),
    twins=False,
    own_schemas=("mysql", "sys", "information_schema", "performance_schema"),
)
_VALUES = Values(
    expressions=EXPRESSIONS,
    key_types=KEY_TYPES,
    text="convert({column} using utf8mb4)",
    time_text="cast({column} as char)",
    utc_now="utc_timestamp(6)",
    local_now="convert_tz(utc_timestamp(6), '+00:00', @@global.time_zone)",
    local_as_utc="convert_tz({column}, @@global.time_zone, '+00:00')",
    storages={r"timestamp(\(\d+\))?": Storage.ZONED},
    integer="signed",
    quotient="{column} div {by}",
    escaped="replace({x}, ',', ',.')",
    fraction=0,
)
_SCHEMA = LogSchema(
    words=_SCHEMA_WORDS,
    max_columns=1_017,
    max_digits=65,
    ddl=conditional,
    current="database()",
    block_mark="//",
)
# `share_lock` has its default: a shared row that is written to later would deadlock with a session that
# waits for it.
_STATEMENTS = Statements(
    force_index="force index ({index})",
    updates_ranges=False,  # 8.0 µs a row where ids take 6.2
)

MYSQL = collated(
    "utf8mb4_0900_bin",
    Dialect(
        name="mysql",
        title="MySQL",
        folders=("mysql", "common"),
        sessions=_SESSIONS,
        names=_NAMES,
        values=_VALUES,
        load_triggers=_load_triggers,
        schema=_SCHEMA,
        statements=_STATEMENTS,
    ),
)
