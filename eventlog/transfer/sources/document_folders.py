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
    again. Unless `reads_again`, the state ends after the last delivery, and each is handed out once.
    """

    blocks, ended, tables = False, False, None

    def __init__(
        self, name: str, limits: Limits, read: Read, state: str | None, *, reads_again: bool = True
    ) -> None:
        self._limits = limits
        self._reads_again = reads_again
        self._read = read  # the changes of documents
        self._folder = Path(name).resolve()
        self._safe, self._handed_out = _load(self._folder, state)
        self._reached = self._safe.number
        self._is_whole = True

    @property
    def state(self) -> str | None:
        """Return the state after the files that were handed out."""
        file = self._safe
        handed_out = {"handed_out": self._handed_out} if self._handed_out and not self._reads_again else {}
        return json.dumps(
            {"folder": str(self._folder), "number": file.number, "name": file.stem, **handed_out}
        )

    def round(self, follow: bool = False) -> Iterator[Delivery | Refused]:
        """Yield the changes of the files that are there by now."""
        for file in placed_files(self._folder, self._reached):
            passed, self._handed_out = self._handed_out, 0
            for item in by_transaction(self._changes(file)):
                if isinstance(item, Refused):
                    self._is_whole = self._is_whole and not item.fault
                else:
                    self._handed_out += 1
                    if self._handed_out <= passed:
                        continue
                yield item
            self._reached, self._handed_out = file.number, 0
            if self._is_whole or not self._reads_again:
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


def _load(folder: Path, state: str | None) -> tuple[PlacedFile, int]:
    """Return the last file that was read of a folder, and how many deliveries of the next one were handed
    out; the state of another folder is passed over.
    """
    beginning = PlacedFile(BEGINNING, Path())
    if state is None:
        return beginning, 0
    try:
        fields = json.loads(state)
        name, number, stem = str(fields["folder"]), int(fields["number"]), str(fields["name"])
        handed_out = int(fields.get("handed_out", 0))
    except (ValueError, KeyError, TypeError):
        raise InvalidValue(state[:40], "the state of a folder") from None
    if name != str(folder):
        return beginning, 0
    if number <= 0 or not is_continued(folder, number, stem):
        return beginning, handed_out if number == BEGINNING else 0
    return PlacedFile(number, folder / f"{stem}.xml"), handed_out
