"""The databases that can hold a log: each is one line here, and a folder of its name."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from typing import Any

from eventlog.core.errors import Misuse
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.mariadb import MARIADB
from eventlog.sql.mysql import MYSQL
from eventlog.sql.names import log_named
from eventlog.sql.oracle import ORACLE
from eventlog.sql.postgresql import POSTGRESQL

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        POSTGRESQL,
        ORACLE,
        MYSQL,
        MARIADB,
    )
}
SCHEMES: dict[str, Dialect] = {
    scheme: dialect for dialect in DIALECTS.values() for scheme in (dialect.name, *dialect.aliases)
}
BY_ATTRIBUTE = {
    dialect.server_attribute: dialect for dialect in DIALECTS.values() if dialect.server_attribute
}


class UnknownDialect(Misuse):
    """{0!r} is not a supported database; supported are {1}"""


def _by_name(dialect: Dialect) -> tuple[Callable[[str], Dialect], tuple[str]]:
    return dialect_named, (dialect.name,)


copyreg.pickle(Dialect, _by_name)


def dialect_named(scheme: str) -> Dialect:
    """Return the dialect of a name, or of another scheme of its URLs."""
    try:
        return SCHEMES[scheme]
    except KeyError:
        raise UnknownDialect(scheme, ", ".join(DIALECTS)) from None


def dialect_of(engine: Any) -> Dialect:
    """Return the dialect of an engine; a connected server may differ from its URL."""
    for attribute, dialect in BY_ATTRIBUTE.items():
        if getattr(engine.dialect, attribute, False):
            return dialect
    return dialect_named(engine.dialect.name)


def check_log_name(name: str) -> None:
    """Raise IllegalName for the name of a log that no database could have."""
    roomiest = max(DIALECTS.values(), key=lambda dialect: dialect.names.longest)
    log_named(roomiest, name)
