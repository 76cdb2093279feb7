"""Sessions of a SQL_ASCII database, which stores any bytes and converts none.

The server is told that we speak LATIN1, of which every byte is a letter, so it hands out what it stores
and takes what we send. We read the bytes as UTF-8; one that is none becomes a lone surrogate, which no
document can carry, and is written back as the byte that it was.
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
    """Have a new session exchange bytes, where its database is of that encoding."""
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
