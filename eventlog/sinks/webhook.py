"""Signed documents by Standard Webhooks 1.0.0: an id, a time and HMAC-SHA256 signatures as headers.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Sequence
from urllib.parse import quote

from eventlog.core.errors import Misuse
from eventlog.files.small_files import read_secrets
from eventlog.sinks.sink import OutgoingDocument

_PREFIX = "whsec_"
_SECRET_BYTES = range(24, 64 + 1)  # "Random. Between 24 bytes (192 bits) and 64 bytes (512 bits)"
_MAX_EVENT_ID = 200  # characters


def read_signing_file(name: str) -> list[bytes]:
    """Return the secrets of a file, one a line; Misuse names the line, never its content."""
    secrets = [_read_secret(line, f"{name} line {n}") for n, line in read_secrets(name)]
    if not secrets:
        raise Misuse(f"http-signing-file {name}: it has no secret")
    return secrets


def _read_secret(line: str, place: str) -> bytes:
    text = line.removeprefix(_PREFIX)
    try:
        secret = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        secret = b""
    if text == line or len(secret) not in _SECRET_BYTES:
        raise Misuse(f"http-signing-file {place}: expected {_PREFIX} and 24 to 64 bytes in base64")
    return secret


def signed(document: OutgoingDocument, body: bytes, secrets: Sequence[bytes]) -> dict[str, str]:
    """Return the headers of a document that is sent now, with a signature by each secret."""
    name, seconds = webhook_id(document), str(int(time.time()))
    content = f"{name}.{seconds}.".encode() + body  # "msg_id.timestamp.payload"
    digests = (hmac.digest(secret, content, "sha256") for secret in secrets)
    signatures = " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)
    return {"webhook-id": name, "webhook-timestamp": seconds, "webhook-signature": signatures}


def webhook_id(document: OutgoingDocument) -> str:
    """Return the event-id of the only event, or a digest of all event-ids in their order.

    So an id repeats only with the same events, and a receiver that drops repeats loses none. The
    specification allows no full stop in it.
    """
    event_ids = [*document.event_ids] or [document.name]
    if len(event_ids) == 1 and 0 < len(event_ids[0]) <= _MAX_EVENT_ID:
        return quote(event_ids[0], safe=":").replace(".", "%2E")
    return hashlib.sha256("\n".join(event_ids).encode()).hexdigest()
