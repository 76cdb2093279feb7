"""MariaDB as a dialect: MySQL with other collations, texts of numbers and trigger names."""

from __future__ import annotations

from dataclasses import replace

from eventlog.sql.common.dialect import TriggerWriter, as_it_is
from eventlog.sql.mysql import MYSQL, collated
from eventlog.sql.mysql.column_types import MARIADB_EXPRESSIONS


def _load_triggers() -> TriggerWriter:
    from eventlog.sql.mysql.triggers import MARIADB_TRIGGERS

    return MARIADB_TRIGGERS


MARIADB = collated(
    "utf8mb4_nopad_bin",
    replace(
        MYSQL,
        name="mariadb",
        title="MariaDB",
        folders=("mariadb", "mysql", "common"),
        sessions=replace(MYSQL.sessions, driver="mariadb+pymysql"),
        values=replace(MYSQL.values, expressions=MARIADB_EXPRESSIONS),
        load_triggers=_load_triggers,
        schema=replace(
            MYSQL.schema, words={**MYSQL.schema.words, "guard_ids": "set insert_id = 0;"}, ddl=as_it_is
        ),
        server_attribute="is_mariadb",
    ),
)
