"""Written records become files, which appear only when they are complete; a folder may have parts."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Protocol, Self

from eventlog.core.errors import EventlogError, Misuse, NotExpressible
from eventlog.core.formats import Shape, Sheet, SheetColumn, SheetRow
from eventlog.files import csv, jsonlines, messages, parquet
from eventlog.files.durable import need_folder, sync, sync_names
from eventlog.files.inputs import container_of
from eventlog.files.output_files import GrowingFile, OutputFile, is_file_name, one_file


class Writer(Protocol):
    def write(self, record: Any, /) -> None: ...
    def close(self) -> None: ...


class BlobWriter:
    """A writer of bytes as they come."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, chunk: bytes) -> None:
        self._file.write(chunk)

    def close(self) -> None:
        """Do nothing, because nothing is held back."""


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
    "blob": BlobWriter,
}


class Output:
    """An output: standard output, a file, or a folder with one file for each sheet.

    A file appears when it is complete. A growing file is added to, and is as far as its last part brought it.
    Files that are read are not replaced.
    """

    last = None  # no part is recorded in a state: a part that a failure repeats is there twice

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
        self._folder = is_folder(name)
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
        self._files: list[OutputFile | GrowingFile] = []
        self._read = {one_file(file) for file in read} - {None}

    def __enter__(self) -> Self:
        if self._shape is not Shape.ROWS:
            if self._folder:
                raise Misuse(f"{self._name} is a folder; this format writes one file")
            self._writer = WRITERS[self._container](self._open(self._name).stream)
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

    def _table_writer(self, file: OutputFile | GrowingFile, columns: Sequence[SheetColumn]) -> Writer:
        if isinstance(file, GrowingFile) and self._container == "csv":
            return csv.CsvWriter(file.stream, _names(columns), file.begin)
        return ROW_WRITERS[self._container](file.stream, columns)

    @contextmanager
    def part(self) -> Iterator[Self]:
        """Bring what the block writes safely out."""
        yield self
        for file in self._files:
            file.flush()

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
        finally:
            for file in self._files:
                file.discard()

    def _file_of(self, sheet: Sheet) -> str:
        if self._folder and not is_file_name(sheet.name):
            raise NotExpressible(f"{sheet.name!r} cannot name a file of the folder {self._name}")
        return str(Path(self._name) / f"{sheet.name}.{self._container}") if self._folder else self._name

    def _open(self, name: str) -> OutputFile | GrowingFile:
        if one_file(name) in self._read:
            raise Misuse(f"{name} is read, and would be replaced: write to another folder")
        file = GrowingFile(name, self._container) if self._grows and name != "-" else OutputFile(name)
        self._files.append(file)
        return file


def is_folder(output: str) -> bool:
    """Return whether an output is a folder."""
    return output.endswith("/") or (output != "-" and Path(output).is_dir())


_PART: Final = re.compile(r"part-([0-9]{8})(?:\..*)?")
_UNFINISHED: Final = re.compile(rf"\.{_PART.pattern}\.part")
_EXTENSIONS: Final = {"blob": "bin", "messages": "bin"}
_PIECE: Final = 1 << 20

Part = Mapping[str, Any]  # its number, and the length and hash of each of its files


class Damaged(EventlogError):
    """{0} differs from what the state recorded: restore it, or start with another folder"""


class Parts:
    """The parts of a folder; the last one is known from the state that was written after it."""

    def __init__(
        self, folder: str, shape: Shape, container_name: str | None, extension: str, last: Part | None
    ) -> None:
        self._folder = Path(folder)
        self._shape = shape
        default_container = "csv" if container_name is None and shape is Shape.ROWS else container_name
        self._container = container_of("-", shape, default_container, "--output-as")
        self._extension = extension or _EXTENSIONS.get(self._container, self._container)
        if not self._folder.is_dir():
            self._folder.mkdir()
            sync_names(self._folder.parent)
        self.last: Part = last or {"number": 0, "files": {}}
        self._check()
        self._clear(new=last is None)

    @contextmanager
    def part(self) -> Iterator[Output]:
        """The output of the next part, which is on disk when the block ends."""
        number = int(self.last["number"]) + 1
        name = self._folder / f"part-{number:08}"
        place = f"{name}/" if self._shape is Shape.ROWS else f"{name}.{self._extension}"
        with Output(place, self._shape, self._container) as output:
            yield output
        path = Path(place)
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        sync(self._folder)  # which contains the file, or the new folder of files
        facts = {str(file.relative_to(self._folder)): _facts(file) for file in files}
        self.last = {"number": number, "files": facts}

    def _check(self) -> None:
        for name, facts in self.last["files"].items():
            path = self._folder / name
            if not path.is_file() or _facts(path) != list(facts):
                raise Damaged(path)

    def _clear(self, new: bool) -> None:
        """Remove files that follow the last part."""
        for path in self._folder.iterdir():
            part = _PART.fullmatch(path.name)
            if part and new:
                raise Misuse(f"{path} exists, but no state records it: name another folder, or its state")
            # a folder that is new to us may be shared
            match = part or (None if new else _UNFINISHED.fullmatch(path.name))
            if match and int(match[1]) > self.last["number"]:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _facts(path: Path) -> list[Any]:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return [path.stat().st_size, digest.hexdigest()]
