"""Events as CloudEvents 1.0: an event's document as the data, and the facts about it as attributes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.parse import quote

from eventlog.sinks.document_kinds import DocumentKind, KafkaRecord
from eventlog.sinks.sink import Item, xds_document

STRUCTURED = "application/cloudevents+json; charset=utf-8"
_PLAIN = "".join(map(chr, range(0x21, 0x7F))).translate(
    {ord('"'): None, ord("%"): None}
)  # in a header of HTTP


def attributes(item: Item) -> dict[str, str]:
    """Return the attributes of an event; its id and source are the same each time that it is sent."""
    named = {
        "specversion": "1.0",
        "id": item.event_id,
        "source": f"/eventlog/{quote(item.event_id.partition(':')[0])}",
        "type": f"eventlog.{item.element or 'event'}",
        "subject": item.association,
        "datacontenttype": "application/xml",
    }
    return {name: value for name, value in named.items() if value}


def _binary(items: Sequence[Item]) -> tuple[dict[str, str], bytes]:
    """Return the request of an event whose attributes are in headers."""
    (item,) = items
    named = attributes(item)
    del named["datacontenttype"]  # as every document
    headers = {f"ce-{name}": quote(value, safe=_PLAIN) for name, value in named.items()}
    return headers, xds_document([item]).encode()


def _structured(items: Sequence[Item]) -> tuple[dict[str, str], bytes]:
    """Return the request of an event with all its attributes as JSON."""
    (item,) = items
    event = {**attributes(item), "data": xds_document([item])}
    return {"Content-Type": STRUCTURED}, json.dumps(event, ensure_ascii=False).encode()


def _binary_records(item: Item) -> Sequence[KafkaRecord]:
    named = attributes(item)
    headers = {"content-type": named.pop("datacontenttype")}
    headers |= {f"ce_{name}": value for name, value in named.items()}
    return (KafkaRecord(item.association.encode(), xds_document([item]).encode(), headers),)


def _structured_records(item: Item) -> Sequence[KafkaRecord]:
    return (KafkaRecord(item.association.encode(), _structured([item])[1], {"content-type": STRUCTURED}),)


def document_of(body: bytes) -> bytes:
    """Return the document in a message: the data of a structured event, else the message itself."""
    if not body.startswith(b"{"):
        return body
    try:
        return str(json.loads(body)["data"]).encode()
    except (ValueError, KeyError, TypeError, RecursionError):
        return body


KINDS = {
    "cloudevents-binary": DocumentKind(_binary, _binary_records, answers_xds=True),
    "cloudevents-structured": DocumentKind(_structured, _structured_records, answers_xds=True),
}
