"""The files that one attempt of a task writes: under names of its own, counted and summed as they grow."""

from __future__ import annotations

import hashlib
import io
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, Self, cast

from eventlog.core.change import Change
from eventlog.core.formats import Shape, Sheet, SheetColumn, SheetRow
from eventlog.files.outputs import ROW_WRITERS, WRITERS, Writer
from eventlog_spark.io.folder_files import Files

DOCUMENTS = Sheet(
    "documents",
    tuple(
        SheetColumn(name, "text")
        for name in ("record_ids", "schema_name", "table_name", "table_key", "event_id", "document")
    ),
)
EXTENSIONS = {"blob": "xml", "messages": "bin"}
WORK = "_work"  # files that only the job itself reads


@dataclass
class PartFile:
    """A file of a part, as the manifest describes it."""

    file: str  # where the attempt left it, in the folder of the job's attempts
    part: int
    number: int  # of the files of one part
    sheet: str
    extension: str
    records: int = 0
    size: int = 0
    sha256: str = ""

    @property
    def name(self) -> str:
        """The name in the output folder."""
        number = f"-{self.number:05d}" if self.number >= 0 else ""
        sheet = f"-{self.sheet}" if self.sheet else ""
        return f"part-{self.part:05d}{number}{sheet}.{self.extension}"


@dataclass(frozen=True)
class PartLayout:
    """The layout of the records of a format in files."""

    folder: Files
    shape: Shape
    container: str
    sheet: Sheet | None = None
    per_file: int = 0  # records in one file; 0 for all of a part

    @property
    def work(self) -> Files:
        """The folder of what only the job itself reads."""
        return self.folder.below(WORK)


class PartFiles:
    """The files of one attempt at one part."""

    def __init__(self, layout: PartLayout, part: int) -> None:
        self._layout = layout
        self._part = part
        self._attempt = uuid.uuid4().hex
        self._open: dict[str, _File] = {}
        self._number = 0 if layout.per_file else -1
        self.files: list[PartFile] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()

    def write(self, record: Any) -> None:
        """One record of the format."""
        sheet = record.sheet if isinstance(record, SheetRow) else self._layout.sheet
        file = self._file(sheet)
        file.writer.write(record.cells if isinstance(record, SheetRow) else record)
        file.written.records += 1
        if file.written.records == self._layout.per_file:
            self._next(sheet)

    def write_lines(self, lines: memoryview | bytes, records: int) -> None:
        """Write so many records that are lines already."""
        file = self._file(None)
        file.stream.write(lines)
        file.written.records += records

    def _file(self, sheet: Sheet | None) -> _File:
        name = sheet.name if sheet is not None else ""
        found = self._open.get(name)
        if found is None:
            found = self._open[name] = self._create(sheet)
        return found

    def _create(self, sheet: Sheet | None) -> _File:
        container = self._layout.container
        extension = EXTENSIONS.get(container, container)
        several = sheet is not None and sheet != self._layout.sheet
        name = sheet.name if sheet is not None and several else ""
        written = PartFile("", self._part, self._number, name, extension)
        written.file = f"{written.name.removesuffix(f'.{extension}')}-{self._attempt}.{extension}"
        self.files.append(written)
        return _File(Summed(self._layout.folder.create(written.file)), written, container, sheet)

    def _next(self, sheet: Sheet | None) -> None:
        """The next record begins another file."""
        self._open.pop(sheet.name if sheet is not None else "").close()
        self._number += 1


class _File:
    """A file that is summed while it is written, and in its place when it is closed."""

    def __init__(self, summed: Summed, written: PartFile, container: str, sheet: Sheet | None) -> None:
        self.written = written
        self.stream = summed
        stream = cast(IO[bytes], summed)
        self.writer: Writer = (
            WRITERS[container](stream) if sheet is None else ROW_WRITERS[container](stream, sheet.columns)
        )

    def close(self) -> None:
        self.writer.close()
        self.stream.close()
        self.written.size = self.stream.size
        self.written.sha256 = self.stream.sha256


class Summed(io.BufferedIOBase):
    """A file's bytes on their way, with their number and checksum."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self._digest = hashlib.sha256()
        self.size = 0

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._raw.write(data)
        self._digest.update(data)
        size = len(data) if isinstance(data, bytes) else memoryview(data).nbytes
        self.size += size
        return size

    def flush(self) -> None:
        if not self._raw.closed:
            self._raw.flush()

    def close(self) -> None:
        if not self._raw.closed:
            self._raw.close()
        super().close()


def document_rows(changes: Iterable[Change], write: Callable[[Change], Iterator[Any]]) -> Iterator[Any]:
    """Yield a row for each document of each change; the record ids are text, with commas."""
    for change in changes:
        ids = change.fact("record_ids")
        listed = ",".join(map(str, ids)) if isinstance(ids, tuple) else None
        named = (change.fact("table_key"), change.fact("event_id"))
        for record in write(change):
            if isinstance(record, bytes):
                text = record.decode().removesuffix("\n")
                yield SheetRow(DOCUMENTS, (listed, change.schema, change.table, *named, text))
            else:
                yield record
