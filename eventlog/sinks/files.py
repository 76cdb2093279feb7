"""One file per document or per batch, each exactly once, even after kill -9 or if files are moved away.

A document is written to `.eventlog` in the folder, then its name is recorded there, and then it gets its
place. A recorded document is out, or gets its place at the next start.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from eventlog.core.errors import EventlogError
from eventlog.core.settings import setting
from eventlog.files.durable import sync, sync_names, write_all
from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply, Sink, SinkKind, too_large, unreachable

SUFFIX = ".xml"
RECORD = "record"
ASIDE = ".eventlog"
_ROWS = re.compile(r"[0-9]{1,19}-([0-9]{1,19})(?![0-9])")  # how a document's name begins
_OUT = " out"  # ends a line of the record; a line that a crash cut has no such end
_AND = "/"  # between the names of documents in one file: none of them holds it
_LONGEST_NAME = "9" * 60  # longer than any that we give
_TOO_LARGE = (errno.EFBIG, errno.ENAMETOOLONG)  # errors about one file, not about the file system
_FULL = (errno.ENOSPC, errno.EDQUOT)  # a smaller file may still fit
_RECORD_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
_LONGEST_RECORD = 1 << 20  # bytes; then it starts anew with what may still be asked for


Names = Sequence[str]  # of the documents in one file


class FolderFailed(EventlogError):
    """the folder {0} cannot be written: {1}"""


class FileInTheWay(EventlogError):
    """{0} exists and is not on record as ours: move it away"""


@dataclass(frozen=True, slots=True)
class FilesSettings:
    files_folder: str = setting("documents", "where the files sink puts documents", metavar="FOLDER")
    files_per_batch: bool = setting(False, "put the documents of a batch into one file, a line each")


class FilesSink(Sink):
    """A folder of documents."""

    def __init__(self, folder: Path, *, per_batch: bool = False) -> None:
        self._folder = folder
        self._per_batch = per_batch
        self._aside = folder / ASIDE
        try:
            self._record = _open_record(folder)
            self._lock()
            self._recorded = set(names_on_record(folder))
            self._highest = highest(self._recorded)
            self._put_in_place()
        except OSError as fault:
            raise FolderFailed(folder, fault.strerror) from fault
        self._size = os.fstat(self._record).st_size

    def deliver(self, documents: Sequence[OutgoingDocument]) -> Iterator[Reply]:
        """Write all aside, put all on record, give each its place: three flushes for the lot."""
        if any(document.name in self._recorded for document in documents):
            self._begin_record()  # its names were those of another log's documents
        together = self._per_batch and len(documents) > 1
        replies, files = (self._write_batch if together else self._write_each)(documents)
        taken, failed = self._put_out(files)
        if failed is None:
            yield from replies
        else:
            yield from [*replies[:taken], failed]

    def knows(self, name: str) -> bool:
        """Return whether the document is out; a recorded document gets its place now if it has none."""
        if name not in self._recorded:
            return False
        try:
            if (self._aside / name).exists():
                self._place(name)
                sync(self._folder)
        except OSError as fault:
            raise FolderFailed(self._folder, fault.strerror) from fault
        return True

    def highest(self) -> int | None:
        """Return the highest record_id of a document on record."""
        return self._highest

    def close(self) -> None:
        os.close(self._record)

    def _write_each(self, documents: Sequence[OutgoingDocument]) -> tuple[list[Reply], list[Names]]:
        """Write documents aside, each into a file of its own, up to the first that is not taken.

        Return the replies, and the documents of each file.
        """
        replies: list[Reply] = []
        files: list[Names] = []
        for document in documents:
            try:
                self._write_aside([document])
            except (OSError, FileInTheWay) as fault:
                replies.append(self._not_written(document, fault))
                break
            replies.append(ACCEPTED)
            files.append([document.name])
        return replies, files

    def _write_batch(self, documents: Sequence[OutgoingDocument]) -> tuple[list[Reply], list[Names]]:
        """Write documents aside into one file; if the file system has no room for that, each into its own.

        Return the replies, and the documents of each file.
        """
        try:
            self._write_aside(documents)
        except (OSError, FileInTheWay) as fault:
            if isinstance(fault, OSError) and fault.errno in (*_TOO_LARGE, *_FULL):
                return self._write_each(documents)
            return [self._not_written(documents[0], fault)], []
        return [ACCEPTED] * len(documents), [[document.name for document in documents]]

    def _not_written(self, document: OutgoingDocument, fault: Exception) -> Reply:
        if isinstance(fault, OSError) and fault.errno in _TOO_LARGE:
            return too_large(document, f"folder {self._folder}: {fault.strerror}")
        return self._refused(fault)

    def _put_out(self, files: Sequence[Names]) -> tuple[int, Reply | None]:
        """Put the files on record and in their places; how many of them, and the reply to the others."""
        try:
            recorded, failed = self._put_on_record(files)
            for names in files[:recorded]:
                self._place(names[0])
            sync(self._folder)
        except OSError as fault:
            return 0, self._refused(fault)
        return recorded, failed

    def _refused(self, fault: Exception) -> Reply:
        reason = fault.strerror if isinstance(fault, OSError) else str(fault)
        return unreachable(f"folder {self._folder}: {reason}")

    def _lock(self) -> None:
        """One writer a folder, also where a former leader was only asleep."""
        try:
            fcntl.flock(self._record, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as fault:
            os.close(self._record)
            raise FolderFailed(self._folder, "another process writes there") from fault

    def _put_in_place(self) -> None:
        """Finish what a crash interrupted: on record, it gets its place; not on record, it never was."""
        for path in self._aside.iterdir():
            if path.name in self._recorded:
                self._place(path.name)
            elif path.name != RECORD:
                path.unlink()
        sync(self._folder)

    def _write_aside(self, documents: Sequence[OutgoingDocument]) -> None:
        """Write documents into one file, which has the name of the first."""
        name = documents[0].name
        if (self._folder / (name + SUFFIX)).exists():
            raise FileInTheWay(name + SUFFIX)
        unfinished = self._aside / f"unfinished-{secrets.token_hex(8)}"
        file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)  # EXCL opens no link
        try:
            write_all(file, b"".join(line for document in documents for line in (document.data, b"\n")))
            os.fsync(file)
            unfinished.rename(self._aside / name)
        except OSError:
            unfinished.unlink(missing_ok=True)  # room for the record of the others
            raise
        finally:
            os.close(file)

    def _put_on_record(self, files: Sequence[Names]) -> tuple[int, Reply | None]:
        """Put documents on record; those of one file in one line, which is there as a whole or not at all.
        Where that fails the later half of the files gives its room to the record of the others: how many
        files are on record, and the reply to the others."""
        sync(self._aside)
        if self._size > _LONGEST_RECORD:
            self._begin_record()
        lines = "".join(f"\n{_AND.join(names)}{_OUT}\n" for names in files).encode()
        try:
            write_all(self._record, lines)
            os.fsync(self._record)
        except OSError as fault:
            half = len(files) // 2
            self._take_back(files[half:])
            if not half:
                raise
            return self._put_on_record(files[:half])[0], self._refused(fault)
        self._size += len(lines)
        documents = [name for names in files for name in names]
        self._recorded.update(documents)
        rows = (self._highest, highest(documents))
        self._highest = max((row for row in rows if row is not None), default=None)
        return len(files), None

    def _take_back(self, files: Sequence[Names]) -> None:
        """Remove files that could not be recorded, to free their space."""
        os.ftruncate(self._record, self._size)
        os.fsync(self._record)
        for names in files:
            (self._aside / names[0]).unlink()

    def _begin_record(self) -> None:
        """A new record: what was on the old one is settled by now, for another delivery has begun."""
        os.ftruncate(self._record, 0)
        self._recorded.clear()
        self._highest = None
        self._size = 0

    def _place(self, name: str) -> None:
        (self._aside / name).rename(self._folder / (name + SUFFIX))


def highest(names: Iterable[str]) -> int | None:
    """Return the highest record_id in names of documents, which begin with the first and the last."""
    matches = (_ROWS.match(name) for name in names)
    return max((int(match[1]) for match in matches if match), default=None)


def names_on_record(folder: Path) -> list[str]:
    """Return the names of the documents on a folder's record, in the order in which they went out."""
    try:
        lines = (folder / ASIDE / RECORD).read_text("utf-8", "replace").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return []
    names_of_line = (line.removesuffix(_OUT).split(_AND) for line in lines if line.endswith(_OUT))
    return [name for names in names_of_line for name in names]


def _open_record(folder: Path) -> int:
    """Return the record of a folder, open; both are made if they do not exist."""
    aside, is_new = folder / ASIDE, not folder.is_dir()
    aside.mkdir(parents=True, exist_ok=True)
    if is_new:
        sync_names(folder.parent)
    (aside / _LONGEST_NAME).unlink(missing_ok=True)  # fails where the folder's own name is too long
    if not all(os.access(place, os.W_OK | os.X_OK) for place in (folder, aside)):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return os.open(aside / RECORD, _RECORD_FLAGS, 0o644)


def _open(settings: FilesSettings) -> FilesSink:
    return FilesSink(Path(settings.files_folder), per_batch=settings.files_per_batch)


def _check(settings: FilesSettings) -> None:
    """Raise FolderFailed if the folder cannot be written, without the lock that its writer holds."""
    try:
        os.close(_open_record(Path(settings.files_folder)))
    except OSError as fault:
        raise FolderFailed(settings.files_folder, fault.strerror) from fault


KIND = SinkKind(FilesSettings, _open, keeps_record=True, check=_check)
