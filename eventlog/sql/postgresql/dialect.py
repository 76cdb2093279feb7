"""PostgreSQL as a dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from eventlog.sql.common.capacity import Capacity
from eventlog.sql.common.dialect import ISO_TIME, POSITIVE_INTEGER, Dialect
from eventlog.sql.postgresql.expressions import EXPRESSIONS
from eventlog.sql.postgresql.key_types import KEY_TYPES
from eventlog.sql.postgresql.triggers import TRIGGERS

_UNMADE = (
    # syntax, names: invalid, too long, reserved; two alike; wrong definitions, unknown types; limits
    "42601 42602 42611 42622 42939 42701 42710 42P07 42P16 42P17 42703 42704 42804 42830"
    " 0A000 22001 22021 22023 22P05 54000 54001 54011 54023"
)
_CAPACITY = Capacity(
    title="PostgreSQL",
    name=63,
    columns=1_600,
    digits=1_000,
    taken=frozenset(("ctid", "xmin", "xmax", "cmin", "cmax", "tableoid")),
    own_schemas=("pg_", "information_schema"),
    unmade=frozenset(_UNMADE.split()),
)


def _dial(driver: str, connect: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Return a connection that exchanges bytes if its database is of the encoding SQL_ASCII."""
    connection = connect(**arguments)
    if driver == "psycopg":
        from eventlog.sql.postgresql import sql_ascii  # it imports the driver

        sql_ascii.prepare(connection)
    return connection


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
    expressions=EXPRESSIONS,
    key_types=KEY_TYPES,
    triggers=TRIGGERS,
    aliases=("postgres",),  # the scheme that libpq and hosting services know too
    dial=_dial,
    driver="postgresql+psycopg",
    extra=None,
    quote_mark='"',
    max_name=63,
    max_parameters=65_535,
    plain_names="lower",
    capacity=_CAPACITY,
    session_name="fallback_application_name",
    utc_now="(now() at time zone 'UTC')",
    local_now="(now() at time zone (select reset_val from pg_settings where name = 'TimeZone'))",
    local_as_utc="({column} at time zone (select reset_val from pg_settings where name = 'TimeZone')"
    " at time zone 'UTC')",
    text='cast({column} as text) collate "C"',
    zoned_as_utc="({column} at time zone 'UTC')",
    plain_time=f"{{column}} ~ '^{ISO_TIME}$'",
    number_of_text=f"(case when {{column}} ~ {POSITIVE_INTEGER} then cast({{column}} as numeric) end)",
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
