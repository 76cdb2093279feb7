"""Written records become files, which appear only when they are complete."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self

from eventlog.core.errors import Misuse, NotExpressible
from eventlog.core.formats import Shape, Sheet, SheetColumn, SheetRow
from eventlog.files import blob, csv, jsonlines, messages, parquet
from eventlog.files.growing import GrowingFile
from eventlog.files.inputs import container_of
from eventlog.files.output_files import WritableFile, is_file_name, need_folder, one_file, place_at
from eventlog.files.standard_output import standard_output


class Writer(Protocol):
    def write(self, record: Any, /) -> None: ...
    def close(self) -> None: ...


def _names(columns: Sequence[SheetColumn]) -> list[str]:
    return [column.name for column in columns]


ROW_WRITERS: dict[str, Callable[[IO[bytes], Sequence[SheetColumn]], Writer]] = {
    "csv": lambda file, columns: csv.CsvWriter(file, _names(columns)),
    "jsonl": lambda file, columns: jsonlines.JsonRowWriter(file, _names(columns)),
    "parquet": parquet.ParquetWriter,
}
WRITERS: dict[str, Callable[[IO[bytes]], Writer]] = {
    "jsonl": jsonlines.JsonWriter,
    "messages": messages.FramedWriter,
    "blob": blob.BlobWriter,
}


class Output:
    """An output: standard output, a file, or a folder with one file for each sheet.

    A file appears when it is complete. A growing file is added to, and is as far as `flush` brought it. Files
    that are read are not replaced.
    """

    def __init__(
        self,
        name: str,
        shape: Shape,
        container: str | None,
        *,
        grows: bool = False,
        read: Iterable[str | Path] = (),
    ) -> None:
        self._grows = grows
        self._name = name
        self._shape = shape
        self._folder = name != "-" and (name.endswith("/") or Path(name).is_dir())
        if name != "-":
            need_folder(Path(os.path.realpath(name)), name)
        if self._folder and shape is Shape.ROWS:
            Path(name).mkdir(exist_ok=True)
        by_default = "csv" if self._folder and shape is Shape.ROWS else None
        self._container = container_of(name, shape, container or by_default, "--output-as")
        if grows and self._container == "parquet":
            raise Misuse(f"{name}: nothing is added to a file of Parquet: name a folder, -o DIR/, or CSV")
        self._sheets: dict[str, tuple[Sheet, Writer]] = {}
        self._writer: Writer | None = None
        self._files: list[WritableFile] = []
        self._read = {one_file(file) for file in read} - {None}
        self._growing: list[GrowingFile] = []
        self._standard: IO[bytes] | None = None

    def __enter__(self) -> Self:
        if self._shape is not Shape.ROWS:
            if self._folder:
                raise Misuse(f"{self._name} is a folder; this format writes one file")
            self._writer = WRITERS[self._container](self._open(self._name))
        return self

    def write(self, record: Any) -> None:
        """One record of the format; NotExpressible if there can be no file for it."""
        if isinstance(record, SheetRow):
            self.sheet(record.sheet).write(record.cells)
        else:
            assert self._writer is not None
            self._writer.write(record)

    def sheet(self, sheet: Sheet) -> Writer:
        """Return the writer of a sheet; a sheet without rows has its header alone."""
        sheet_writer = self._sheets.get(sheet.name)
        if sheet_writer is None:
            if self._sheets and not self._folder:
                names = ", ".join((*self._sheets, sheet.name))
                raise Misuse(f"the rows are of several tables ({names}): name a folder, -o DIR/")
            sheet_writer = sheet, self._table_writer(self._open(self._file_of(sheet)), sheet.columns)
            self._sheets[sheet.name] = sheet_writer
        if sheet_writer[0].columns != sheet.columns:
            raise Misuse(f"the columns of {sheet.name} change on the way: write it in parts")
        return sheet_writer[1]

    def _table_writer(self, file: IO[bytes], columns: Sequence[SheetColumn]) -> Writer:
        if self._growing and self._container == "csv":
            return csv.CsvWriter(file, _names(columns), self._growing[0].begin)
        return ROW_WRITERS[self._container](file, columns)

    def flush(self) -> None:
        """Bring what was written safely out."""
        for file in self._growing:
            file.flush()
        if self._standard is not None:
            self._standard.flush()

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                for writer in (self._writer, *(writer for _, writer in self._sheets.values())):
                    if writer is not None:
                        writer.close()
                for file in self._files:
                    file.complete()
                self.flush()
        finally:
            for file in self._files:
                file.discard()
            for grown in self._growing:
                grown.close()

    def _file_of(self, sheet: Sheet) -> str:
        if self._folder and not is_file_name(sheet.name):
            raise NotExpressible(f"{sheet.name!r} cannot name a file of the folder {self._name}")
        return str(Path(self._name) / f"{sheet.name}.{self._container}") if self._folder else self._name

    def _open(self, name: str) -> IO[bytes]:
        if name == "-":
            self._standard = standard_output()
            return self._standard
        if self._grows:
            self._growing = [GrowingFile(name, self._container)]
            return self._growing[0].stream
        return self._place(name).stream

    def _place(self, name: str) -> WritableFile:
        if one_file(name) in self._read:
            raise Misuse(f"{name} is read, and would be replaced: write to another folder")
        file = place_at(name)
        self._files.append(file)
        return file
