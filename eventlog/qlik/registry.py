"""A schema registry of Confluent's kind, by its HTTP interface: schemas by id, ids for schemas."""

from __future__ import annotations

import http.client
import json
import urllib.parse
import urllib.request
from typing import Any

from eventlog.address import http_address
from eventlog.errors import EventlogError

_TYPE = "application/vnd.schemaregistry.v1+json"
_MAX_ANSWER = 8_000_000
_SECONDS = 30


class RegistryFault(EventlogError):
    """schema registry: {0}"""


class Registry:
    """Its two methods fit `MessageSettings.schema_of` and `.register`."""

    def __init__(self, url: str) -> None:
        self._url = http_address(url).geturl().rstrip("/")

    def schema_of(self, number: int) -> str:
        """The schema under an id."""
        return str(self._call(f"/schemas/ids/{number}").get("schema"))

    def register(self, table: str, schema: str) -> int:
        """The id of the schema of a table's messages, which is put there if it is new."""
        subject = urllib.parse.quote(f"{table}-value", safe="")
        answer = self._call(f"/subjects/{subject}/versions", json.dumps({"schema": schema}).encode())
        if not isinstance(answer.get("id"), int):
            raise RegistryFault(f"no id in the answer for {table}")
        return int(answer["id"])

    def _call(self, path: str, body: bytes | None = None) -> dict[str, Any]:
        request = urllib.request.Request(self._url + path, body, {"Content-Type": _TYPE, "Accept": _TYPE})  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
                text = answer.read(_MAX_ANSWER + 1)
            found = json.loads(text) if len(text) <= _MAX_ANSWER else None
        except (OSError, ValueError, RecursionError, http.client.HTTPException) as fault:
            raise RegistryFault(f"{path}: {str(fault) or type(fault).__name__}") from fault
        if not isinstance(found, dict):
            raise RegistryFault(f"{path}: the answer is no object of at most {_MAX_ANSWER} bytes")
        return found
