"""A schema registry of Confluent's kind, by its HTTP interface: schemas by id, ids for schemas."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping
from contextlib import closing
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote

from eventlog.core.errors import EventlogError
from eventlog.core.redaction import http_address
from eventlog.sinks.secured import tls_context
from eventlog.sinks.timed import TimedConnection

_TYPE = "application/vnd.schemaregistry.v1+json"
_MAX_ANSWER = 8_000_000
_SECONDS = 30.0  # for all of a question and its answer
_PIECE = 1 << 16


class RegistryFault(EventlogError):
    """schema registry: {0}"""


class RegistryAccess(NamedTuple):
    """The credentials for a registry."""

    headers: Mapping[str, str] = MappingProxyType({})
    ca: str = ""
    cert: str = ""


class Registry:
    """A schema registry; its methods fit `MessageSettings.schema_of` and `.register`."""

    def __init__(self, url: str, seconds: float = _SECONDS, access: RegistryAccess | None = None) -> None:
        access = access or RegistryAccess()
        self._arguments = url, seconds, access
        self._address = http_address(url)
        self._seconds = seconds
        self._headers = {"Content-Type": _TYPE, "Accept": _TYPE, **access.headers}
        encrypted = self._address.scheme == "https"
        self._context = tls_context("registry", access.ca or None, access.cert or None) if encrypted else None

    def __reduce__(self) -> Any:
        return Registry, self._arguments  # what is encrypted with is made anew in another process

    def schema_of(self, number: int) -> str:
        """Return the schema under an id."""
        return str(self._call(f"/schemas/ids/{number}").get("schema"))

    def register(self, table: str, schema: str) -> int:
        """Return the id of the schema of a table's messages, which is put there if it is new."""
        name = f"{table}-value"
        subject = quote(name, safe="")
        answer = self._call(f"/subjects/{subject}/versions", json.dumps({"schema": schema}).encode())
        if not isinstance(answer.get("id"), int):
            raise RegistryFault(f"no id in the answer for {name}")
        return int(answer["id"])

    def _call(self, path: str, body: bytes | None = None) -> dict[str, Any]:
        try:
            text = self._exchange("GET" if body is None else "POST", path, body)
            answer = json.loads(text) if len(text) <= _MAX_ANSWER else None
        except TimeoutError as fault:
            raise RegistryFault(f"{path}: no complete answer within {self._seconds:g} seconds") from fault
        except (OSError, ValueError, RecursionError, http.client.HTTPException) as fault:
            raise RegistryFault(f"{path}: {str(fault) or type(fault).__name__}") from fault
        if not isinstance(answer, dict):
            raise RegistryFault(f"{path}: the answer is no object of at most {_MAX_ANSWER} bytes")
        return answer

    def _exchange(self, method: str, path: str, body: bytes | None) -> bytes:
        """Return the body of the answer, up to a byte more than it may have."""
        address, until = self._address, time.monotonic() + self._seconds
        host = str(address.hostname)
        with closing(TimedConnection(host, address.port, self._context, until)) as connection:
            connection.request(method, address.path.rstrip("/") + path, body, self._headers)
            with closing(connection.getresponse()) as answer:
                if not 200 <= answer.status < 300:
                    raise RegistryFault(f"{path}: it answers {answer.status} {answer.reason}")
                text = bytearray()
                while len(text) <= _MAX_ANSWER and (piece := answer.read1(_PIECE)):
                    text += piece
                return bytes(text)
