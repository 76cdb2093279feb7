"""What a document is: XDS, or another form of the same events. A new kind is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from eventlog.core.settings import setting
from eventlog.core.tables import Tables
from eventlog.fold.plain_events import EventTexts
from eventlog.sinks.sink import Item

_MODULES = {
    "cloudevents-binary": "eventlog.sinks.cloud_events",
    "cloudevents-structured": "eventlog.sinks.cloud_events",
    "debezium": "eventlog.sinks.debezium_documents",
    "entra-bulk": "eventlog.sinks.entra_bulk",
}
_HELP = (
    "what is sent: XDS; CloudEvents with XDS as their data, with attributes in headers or in JSON; Debezium's"
    " messages with present rows; or uploads of users for Microsoft Entra"
)


class TextWriter(EventTexts, Protocol):
    """Writes the texts of the events of documents."""

    @property
    def around(self) -> tuple[str, str]:
        """The texts around the events of a document."""


class KafkaRecord(NamedTuple):
    """A message of Kafka; one without a value is a tombstone."""

    key: bytes
    value: bytes | None
    headers: Mapping[str, str]
    topic: str = ""  # what follows the sink's topic in the name of its own


class DocumentKind(NamedTuple):
    """A form of documents other than XDS."""

    request: Callable[[Sequence[Item]], tuple[dict[str, str], bytes]]  # its headers and body over HTTP
    records: Callable[[Item], Sequence[KafkaRecord]] | None  # of an event; None if it is for http alone
    max_events: int = 1  # of a request
    answers_xds: bool = False  # else a status of HTTP is the answer
    taken: Container[int] = range(200, 300)  # the statuses that accept a request
    # Writes events from their whole present rows, by the tables and all settings; None if events are XDS.
    # The setting `tables` has the sections [tables.NAME].
    writer: Callable[[Tables, Mapping[str, Any]], TextWriter] | None = None


def document_setting() -> str:
    """Return the declaration of the setting that chooses the kind of documents."""
    chosen: str = setting("xds", _HELP, choices=("xds", *_MODULES))
    return chosen


def document_kind(name: str) -> DocumentKind | None:
    """Return the kind of that name, None for XDS; its module is imported when it is asked for."""
    if name not in _MODULES:
        return None
    kind: DocumentKind = import_module(_MODULES[name]).KINDS[name]
    return kind
