"""MariaDB as a dialect: MySQL with other collations, texts of numbers and trigger names."""

from __future__ import annotations

import re
from dataclasses import replace

from eventlog.sql.common.dialect import TimeLimits, TriggerWriter, as_it_is
from eventlog.sql.mysql import MYSQL, collated
from eventlog.sql.mysql.column_types import MARIADB_EXPRESSIONS


def _load_triggers() -> TriggerWriter:
    from eventlog.sql.mysql.triggers import MARIADB_TRIGGERS

    return MARIADB_TRIGGERS


_LIMITED = re.compile(r"(?:\s|--.*\n)*(?:select|with|insert|update|delete)\b")
_SHOWS_HOLDERS = "`install soname 'metadata_lock_info'` and `grant process on *.* to USER`"


def _limit(statement: str, limits: TimeLimits) -> str:
    """Return a statement with settings of its own that limit it."""
    if _LIMITED.match(statement) is None:
        return statement
    settings = f"lock_wait_timeout = {limits.lock}, innodb_lock_wait_timeout = {limits.lock}"
    if limits.statement is not None:
        settings += f", max_statement_time = {limits.statement}"
    return f"set statement {settings} for {statement}"


MARIADB = collated(
    "utf8mb4_nopad_bin",
    replace(
        MYSQL,
        name="mariadb",
        title="MariaDB",
        folders=("mariadb", "mysql", "common"),
        sessions=replace(
            MYSQL.sessions,
            driver="mariadb+pymysql",
            limit=_limit,
            slow=frozenset(("1969",)),
            shows_holders=_SHOWS_HOLDERS,
        ),
        values=replace(MYSQL.values, expressions=MARIADB_EXPRESSIONS),
        load_triggers=_load_triggers,
        schema=replace(
            MYSQL.schema, words={**MYSQL.schema.words, "guard_ids": "set insert_id = 0;"}, ddl=as_it_is
        ),
        server_attribute="is_mariadb",
    ),
)
