"""The address of a server of change data capture: `informix://user@host:port/database?server=NAME`."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from eventlog.core.errors import Misuse


class Vendor(NamedTuple):
    """The differences between the vendors' drivers."""

    driver: str  # classes of Java
    smart_blob: str
    url: str
    server: str  # the property that names the server
    owner: str  # of the capture functions and the catalogue


VENDORS: Final = {
    "informix": Vendor(
        "com.informix.jdbc.IfxDriver",
        "com.informix.jdbc.IfxSmartBlob",
        "jdbc:informix-sqli://",
        "INFORMIXSERVER",
        "informix",
    ),
    "gbase": Vendor(
        "com.gbasedbt.jdbc.Driver",
        "com.gbasedbt.jdbc.IfxSmartBlob",
        "jdbc:gbasedbt-sqli://",
        "GBASEDBTSERVER",
        "gbasedbt",
    ),
}
_FORM: Final = "scheme://user@host:port/database?server=NAME"


def is_live(url: str | None) -> bool:
    """Return whether an address is that of a server whose changes are captured."""
    return url is not None and url.partition("://")[0] in VENDORS


class Address(NamedTuple):
    """A database of Informix or GBase, as a URL names it."""

    scheme: str
    user: str
    host: str
    port: int
    database: str  # of tables that name none; may be empty
    server: str
    properties: tuple[tuple[str, str], ...] = ()  # further ones of the driver, such as DB_LOCALE

    @property
    def vendor(self) -> Vendor:
        """Return the vendor of its driver."""
        return VENDORS[self.scheme]

    def jdbc(self, database: str) -> str:
        """Return the address of a database as the driver takes it; user and password are no part of it."""
        properties = ((self.vendor.server, self.server), *self.properties)
        listed = ";".join(f"{name}={value}" for name, value in properties)
        return f"{self.vendor.url}{self.host}:{self.port}/{database}:{listed}"


def read_address(text: str, schemes: tuple[str, ...] = tuple(VENDORS)) -> Address:
    """Return the parts of an address.

    Raise Misuse with the expected form; the error repeats nothing that may be secret.
    """
    try:
        parts = urlsplit(text)
        host, port, password = parts.hostname, parts.port, parts.password
        query = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        raise Misuse(f"the address is not {_FORM}") from None
    if parts.scheme not in schemes:
        raise Misuse(f"the address must begin with {' or '.join(f'{scheme}://' for scheme in schemes)}")
    if password is not None:
        raise Misuse("the address must not contain a password: give password-file or EVENTLOG_PASSWORD")
    server = query.pop("server", "")
    if not (host and port and parts.username and server):
        raise Misuse(f"the address is not {_FORM}")
    for name, value in (("server", server), *query.items()):
        if not name.isidentifier() or not value.isprintable() or any(mark in value for mark in ";:/ "):
            raise Misuse(f"{name!r} in the address has a value that cannot be handed to the driver")
        if name.lower() in ("user", "password"):
            raise Misuse("the address must not contain a password: give password-file or EVENTLOG_PASSWORD")
    database = unquote(parts.path.strip("/"))
    return Address(parts.scheme, unquote(parts.username), host, port, database, server, tuple(query.items()))
