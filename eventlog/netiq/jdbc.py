"""A JDBC URL as one of ours: the database and the user, never a password."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote


class JdbcAddress(NamedTuple):
    """The address in a JDBC URL, and the names of its other properties."""

    url: str
    left_out: tuple[str, ...] = ()


def read_jdbc(server: str, user: str) -> JdbcAddress | None:
    """Return the SQLAlchemy URL of a JDBC URL; None for a database that eventlog does not publish from."""
    for pattern, form in _FORMS:
        if match := pattern.fullmatch(server.strip()):
            fields = match.groupdict()
            who = user or fields.get("user") or ""
            port = f":{fields['port']}" if fields.get("port") else ""
            url = form.format(
                who=f"{quote(who, safe='')}@" if who else "",
                host=fields.get("host") or "localhost",
                port=port,
                name=quote(fields["name"], safe=""),
            )
            return JdbcAddress(url, tuple(_left_out(fields)))
    return None


def _left_out(fields: dict[str, str | None]) -> Iterator[str]:
    """Return the names of the properties, and a note if a password was among them."""
    if fields.get("word"):
        yield "password"
    for part in re.split("[?&;]", fields.get("properties") or ""):
        if name := part.partition("=")[0]:
            yield name


_HOST = r"(?P<host>[\w.-]+|\[[\da-fA-F:]+\])(?::(?P<port>\d{1,5}))?"
_WHO = r"(?:(?P<user>[^/:@\s]*)[/:](?P<word>[^@\s]*)@)?"
_ORACLE_WHO = r"(?:(?P<user>[^/@\s]+)/(?P<word>[^@\s]*))?"
_NAME = r"(?P<name>[\w.$#-]+)"
_PROPERTIES = r"(?P<properties>[?;].*)?"
_FORMS = tuple(
    (re.compile(pattern, re.ASCII), form)
    for pattern, form in (
        (
            rf"jdbc:oracle:(?:thin|oci8?):{_ORACLE_WHO}@(?:tcps?:)?//{_HOST}/{_NAME}{_PROPERTIES}",
            "oracle+oracledb://{who}{host}{port}/?service_name={name}",
        ),
        (
            rf"jdbc:oracle:(?:thin|oci8?):{_ORACLE_WHO}@{_HOST}/{_NAME}{_PROPERTIES}",
            "oracle+oracledb://{who}{host}{port}/?service_name={name}",
        ),
        (
            rf"jdbc:oracle:(?:thin|oci8?):{_ORACLE_WHO}@{_HOST}:{_NAME}{_PROPERTIES}",
            "oracle+oracledb://{who}{host}{port}/{name}",
        ),
        (
            rf"jdbc:postgresql:(?://{_HOST}/)?{_NAME}{_PROPERTIES}",
            "postgresql+psycopg://{who}{host}{port}/{name}",
        ),
        (rf"jdbc:mariadb://{_WHO}{_HOST}/{_NAME}{_PROPERTIES}", "mariadb+pymysql://{who}{host}{port}/{name}"),
        (rf"jdbc:mysql://{_WHO}{_HOST}/{_NAME}{_PROPERTIES}", "mysql+pymysql://{who}{host}{port}/{name}"),
    )
)
