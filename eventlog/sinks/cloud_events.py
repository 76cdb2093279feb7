"""Events as CloudEvents 1.0: an event's document as the data, and the facts about it as attributes."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

from eventlog.core.settings import setting
from eventlog.sinks.sink import Item
from eventlog.xds.documents import document

STRUCTURED = "application/cloudevents+json; charset=utf-8"
_OPERATION = re.compile(r"<(\w+)")
_PLAIN = "".join(map(chr, range(0x21, 0x7F))).translate(
    {ord('"'): None, ord("%"): None}
)  # in a header of HTTP


def document_setting() -> str:
    """Return the declaration of the setting that chooses the form of a document."""
    words = "what is sent: XDS, or CloudEvents with XDS as their data, with attributes in headers or in JSON"
    chosen: str = setting("xds", words, choices=("xds", "cloudevents-binary", "cloudevents-structured"))
    return chosen


def attributes(item: Item) -> dict[str, str]:
    """Return the attributes of an event; its id and source are the same each time that it is sent."""
    operation = _OPERATION.match(item.text)
    named = {
        "specversion": "1.0",
        "id": item.event_id,
        "source": f"/eventlog/{quote(item.event_id.partition(':')[0])}",
        "type": f"eventlog.{operation[1] if operation else 'event'}",
        "subject": item.key,
        "datacontenttype": "application/xml",
    }
    return {name: value for name, value in named.items() if value}


def binary(item: Item, prefix: str) -> tuple[dict[str, str], bytes]:
    """Return the headers and the body of an event whose attributes are in headers of this prefix."""
    named = attributes(item)
    headers = {"content-type": named.pop("datacontenttype")}
    return headers | {prefix + name: value for name, value in named.items()}, document([item.text]).encode()


def structured(item: Item) -> bytes:
    """Return an event with all its attributes as JSON."""
    return json.dumps({**attributes(item), "data": document([item.text])}, ensure_ascii=False).encode()


def document_of(body: bytes) -> bytes:
    """Return the document in a message: the data of a structured event, else the message itself."""
    if not body.startswith(b"{"):
        return body
    try:
        return str(json.loads(body)["data"]).encode()
    except (ValueError, KeyError, TypeError, RecursionError):
        return body


def in_header(value: str) -> str:
    """Return a value as a header of HTTP may hold it."""
    return quote(value, safe=_PLAIN)
