"""The feed of a folder of the files sink: its documents after a number, in the order in which they left."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from eventlog.core.change import Change
from eventlog.core.errors import InvalidValue, Refused
from eventlog.core.formats import Shape, Source
from eventlog.files.document_folder import BEGINNING, PlacedFile, is_continued, placed_files
from eventlog.files.inputs import Input, open_inputs
from eventlog.files.limits import Limits
from eventlog.transactions.delivery import Delivery, by_transaction

Read = Callable[[Iterable[Source[Any]]], Iterator[Change | Refused]]


class DocumentFolder:
    """A source of the documents in one folder; each round reads those that came since.

    The state ends before the first file with a part that cannot be read, so that a later run reads that file
    again.
    """

    blocks, ended, tables = False, False, None

    def __init__(self, name: str, limits: Limits, read: Read, state: str | None) -> None:
        self._limits = limits
        self._read = read  # the changes of documents
        self._folder = Path(name).resolve()
        self._safe = _load(self._folder, state)
        self._reached = self._safe.number
        self._is_whole = True

    @property
    def state(self) -> str | None:
        """Return the state after the files that were handed out."""
        file = self._safe
        return json.dumps({"folder": str(self._folder), "number": file.number, "name": file.stem})

    def round(self, follow: bool = False) -> Iterator[Delivery | Refused]:
        """Yield the changes of the files that are there by now."""
        for file in placed_files(self._folder, self._reached):
            for item in by_transaction(self._changes(file)):
                self._is_whole = self._is_whole and not (isinstance(item, Refused) and item.fault)
                yield item
            self._reached = file.number
            if self._is_whole:
                self._safe = file
        self._reached = max(self._reached, 0)

    def commit(self) -> None:
        """Do nothing, because no one else keeps a copy of the state."""

    def close(self) -> None:
        """Do nothing, because each file is closed at its end."""

    def _changes(self, file: PlacedFile) -> Iterator[Change | Refused]:
        """Yield the changes of a file; nothing if a reader took it away by now."""
        if not file.path.exists():
            return
        for opened in open_inputs((Input(str(file.path), "blob"),), Shape.BYTES, limits=self._limits):
            if isinstance(opened, Refused):
                yield opened
            else:
                yield from self._read([opened])


def _load(folder: Path, state: str | None) -> PlacedFile:
    """Return the last file that was read of a folder; the state of another folder is passed over."""
    beginning = PlacedFile(BEGINNING, Path())
    if state is None:
        return beginning
    try:
        fields = json.loads(state)
        name, number, stem = str(fields["folder"]), int(fields["number"]), str(fields["name"])
    except (ValueError, KeyError, TypeError):
        raise InvalidValue(state[:40], "the state of a folder") from None
    if number <= 0 or name != str(folder) or not is_continued(folder, number, stem):
        return beginning
    return PlacedFile(number, folder / f"{stem}.xml")
