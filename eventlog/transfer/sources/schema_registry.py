"""A schema registry of Confluent's kind, by its HTTP interface: schemas by id, ids for schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote

from eventlog.clients.http_client import HttpClient, NoResponse, tls_context
from eventlog.core.errors import EventlogError
from eventlog.core.redaction import http_address

_TYPE = "application/vnd.schemaregistry.v1+json"
_MAX_ANSWER = 8_000_000
_SECONDS = 30.0  # for all of a question and its answer


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
        address = http_address(url)
        is_plain = address.scheme == "http"
        context = None if is_plain else tls_context("registry", access.ca or None, access.cert or None)
        self._path = address.path.rstrip("/")
        self._headers = {"Content-Type": _TYPE, "Accept": _TYPE, **access.headers}
        self._client = HttpClient(address, seconds, _MAX_ANSWER, context)

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
        method = "GET" if body is None else "POST"
        try:
            with closing(self._client) as client:
                answer = client.request(method, self._path + path, body, self._headers)
            if not 200 <= answer.status < 300:
                raise RegistryFault(f"{path}: it answers {answer.status} {answer.reason}")
            content = json.loads(answer.body) if len(answer.body) <= _MAX_ANSWER else None
        except (NoResponse, ValueError, RecursionError) as fault:
            raise RegistryFault(f"{path}: {fault}") from fault
        if not isinstance(content, dict):
            raise RegistryFault(f"{path}: the answer is no object of at most {_MAX_ANSWER} bytes")
        return content
