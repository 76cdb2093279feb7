"""The manifest of a finished output folder; a reader of the folder reads the files that it names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from eventlog.core.errors import EventlogError, Misuse

SUCCESS, MANIFEST, MARKER = "_SUCCESS", "_manifest.json", "_job.json"

Text = Callable[[str], str | None]  # a small file of the folder, None where there is none


class ManifestDiffers(EventlogError):
    """{0} differs from the manifest: remove the folder and run again"""


class NotDone(Misuse):
    """{0} is of a backlog that is not done: run it again first"""


class ManifestChanged(EventlogError):
    """{0}/_manifest.json was cut off or changed, so the content of the folder is unknown; remove the \
folder"""


def seal(manifest: str) -> str:
    """Return the content of `_SUCCESS` for a manifest, if it has any."""
    return f"{hashlib.sha256(manifest.encode()).hexdigest()}\n"


def delivered(folder: str, text: Text, sizes: Mapping[str, int]) -> dict[str, Any] | None:
    """Return the manifest of a backlog's folder; None if it is not complete.

    `sizes` are those of the files in the folder.
    """
    success = text(SUCCESS)
    if success is None:
        return None
    return read(folder, text(MANIFEST), success.strip(), sizes)


def read(folder: str, text: str | None, sealed: str, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Return the manifest, if it is whole and the files agree with it."""
    if text is None or (sealed and seal(text).strip() != sealed):
        raise ManifestChanged(folder)
    try:
        facts: dict[str, Any] = json.loads(text)
        listed = [(part["name"], part["bytes"]) for part in [*facts["parts"], *facts.get("refused", ())]]
    except (ValueError, TypeError, KeyError) as fault:
        raise ManifestChanged(folder) from fault
    for name, size in listed:
        if sizes.get(name) != size:
            raise ManifestDiffers(f"{folder}/{name}")
    return facts


def inputs(folder: str, text: Text, sizes: Mapping[str, int]) -> Sequence[str] | None:
    """Return the files of a folder that count, if it is a backlog's, or None if it is any other."""
    if MARKER not in sizes:
        return None
    facts = delivered(folder, text, sizes)
    if facts is None:
        raise NotDone(folder)
    return [part["name"] for part in facts["parts"]]
