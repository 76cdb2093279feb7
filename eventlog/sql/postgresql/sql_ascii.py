"""Sessions of a SQL_ASCII database, which stores any bytes and converts none.

We declare LATIN1 to the server, in which every byte is a letter. So it returns the bytes that it stores and
takes the bytes that we send. We read the bytes as UTF-8. A byte that is not UTF-8 becomes a lone surrogate,
which no document can carry, and is written back as the same byte.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import psycopg
from psycopg.abc import Buffer, Params, Query
from psycopg.types.string import StrDumper, StrDumperUnknown, TextLoader

_TYPES = (0, "text", "varchar", "bpchar", "name", '"char"')
_NAME = "SQL_ASCII"


def prepare(connection: psycopg.Connection[Any]) -> None:
    """Make a new session exchange bytes, if its database has that encoding."""
    if connection.info.parameter_status("server_encoding") != _NAME:
        return
    connection.execute("set client_encoding to 'LATIN1'")
    connection.commit()
    connection.cursor_factory = _Cursor
    for name in _TYPES:
        connection.adapters.register_loader(name, _Loader)
    connection.adapters.register_dumper(str, _TextDumper)
    connection.adapters.register_dumper(str, _Dumper)  # the last one is the default


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _query(query: Query) -> Any:
    return _bytes(query) if isinstance(query, str) else query


class _Loader(TextLoader):
    def load(self, data: Buffer) -> str:
        return bytes(data).decode("utf-8", "surrogateescape")


class _Dumper(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return _bytes(obj)


class _TextDumper(StrDumper):
    def dump(self, obj: str) -> Buffer | None:
        return _bytes(obj)


class _Cursor(psycopg.Cursor[Any]):
    """A cursor whose statements are sent in UTF-8."""

    def execute(self, query: Query, params: Params | None = None, **options: Any) -> _Cursor:
        return super().execute(_query(query), params, **options)

    def executemany(self, query: Query, params_seq: Iterable[Params], **options: Any) -> None:
        super().executemany(_query(query), params_seq, **options)
