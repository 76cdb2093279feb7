"""One file per document or per batch, each exactly once, even after kill -9 or if files are moved away.

A document is written to `.eventlog` in the folder, then its number and its name are recorded there, and then
it gets its place. A recorded document is out, or gets its place at the next start.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from eventlog.core.errors import EventlogError
from eventlog.core.plurals import quantity
from eventlog.core.settings import setting
from eventlog.core.state_versions import FILES
from eventlog.core.tables import Tables
from eventlog.files.document_folder import (
    ASIDE,
    EARLIER_RECORD,
    NUMBER,
    RECORD,
    SUFFIX,
    RecordedFile,
    highest_number,
    read_earlier_record,
    read_record,
    unnumbered,
    without_order,
)
from eventlog.files.durable import sync, sync_names, write_all, write_whole
from eventlog.sinks.sink import (
    ACCEPTED,
    UNSENT,
    Flaw,
    OutgoingDocument,
    Reply,
    Sink,
    SinkKind,
    Speedup,
    larger_documents,
    too_large,
    unreachable,
)

_OWN_FILES = (RECORD, EARLIER_RECORD, NUMBER)
_ROWS = re.compile(r"[0-9]{1,19}-([0-9]{1,19})(?![0-9])")  # how a document's name begins
_LONGEST_NAME = "9" * 80  # longer than any that we give
_TOO_LARGE = (errno.EFBIG, errno.ENAMETOOLONG)  # errors about one file, not about the file system
_FULL = (errno.ENOSPC, errno.EDQUOT)  # a smaller file may still fit
_TOO_MANY = (errno.EMFILE, errno.ENFILE, errno.EAGAIN)  # open files, or threads
_FEWER_MAY_DO = (*_TOO_LARGE, *_FULL, *_TOO_MANY)  # errors without which fewer documents may be written
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL  # EXCL opens no link
_RECORD_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
_LONGEST_RECORD = 1 << 20  # bytes; then it begins anew
_LOT = 64  # files that are brought to disk together
_THREADS = 32  # that do it: a file system commits what several ask for as one


class FolderFailed(EventlogError):
    """the folder {0} cannot be written: {1}"""


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
        self._pool = ThreadPoolExecutor(_THREADS)  # it starts threads as it needs them
        with ExitStack() as stack:
            try:
                self._record = _open_record(folder)
                stack.callback(os.close, self._record)
                self._lock()
                files = read_record(folder) or []
                self._recorded = {name for file in files for name in file.names}
                self._highest = highest(self._recorded)
                self._number = self._last_number(files)
                self._unnumbered = [file for file in files if file.number is None]
                self._unplaced = self._left_aside(files)
                self._put_in_place()
                if not files:
                    os.ftruncate(self._record, 0)  # what a crash left of a first line
                self._size = os.fstat(self._record).st_size
            except OSError as fault:
                raise FolderFailed(folder, fault.strerror) from fault
            stack.pop_all()

    def deliver(self, documents: Iterable[OutgoingDocument]) -> Iterator[Reply]:
        """Write all aside, put all on record, give each its place: three flushes for the lot."""
        batch = list(documents)
        together = self._per_batch and len(batch) > 1
        replies, files = (self._write_batch if together else self._write_each)(batch)
        taken, failed = self._put_out(files)
        replies = replies if failed is None else [*replies[:taken], failed]
        yield from replies
        yield from [UNSENT] * (len(batch) - len(replies))

    def knows(self, name: str) -> bool:
        """Return whether the document is out; a recorded document gets its place now if it has none."""
        if name not in self._recorded:
            return False
        try:
            self._put_in_place()
        except OSError as fault:
            raise FolderFailed(self._folder, fault.strerror) from fault
        return True

    def highest(self) -> int | None:
        """Return the highest record_id of a document on record."""
        return self._highest

    def close(self) -> None:
        self._pool.shutdown()
        os.close(self._record)

    def _write_each(self, documents: Sequence[OutgoingDocument]) -> tuple[list[Reply], list[RecordedFile]]:
        """Write documents aside, each into a file of its own, up to the first that is not taken.

        They are written lot after lot; from the first lot on that has no room, one by one. Return the
        replies, and the files.
        """
        files: list[RecordedFile] = []
        size = _LOT
        while lot := documents[len(files) : len(files) + size]:
            begun = self._number
            try:
                files += self._write_aside([[document] for document in lot])
            except OSError as fault:
                if size == 1 or fault.errno not in _FEWER_MAY_DO:
                    return [*[ACCEPTED] * len(files), self._not_written(lot[0], fault)], files
                size, self._number = 1, begun
        return [ACCEPTED] * len(files), files

    def _write_batch(self, documents: Sequence[OutgoingDocument]) -> tuple[list[Reply], list[RecordedFile]]:
        """Write documents aside into one file; if the file system has no room for that, each into its own.

        Return the replies, and the files.
        """
        try:
            files = self._write_aside([documents])
        except OSError as fault:
            if fault.errno in _FEWER_MAY_DO:
                return self._write_each(documents)
            return [self._not_written(documents[0], fault)], []
        return [ACCEPTED] * len(documents), files

    def _not_written(self, document: OutgoingDocument, fault: OSError) -> Reply:
        if fault.errno in _TOO_LARGE:
            return too_large(document, f"folder {self._folder}: {fault.strerror}")
        return self._refused(fault)

    def _put_out(self, files: Sequence[RecordedFile]) -> tuple[int, Reply | None]:
        """Put the files on record and in their places; how many of them, and the reply to the others."""
        try:
            recorded, failed = self._put_on_record(files)
            self._put_in_place()
        except OSError as fault:
            return 0, self._refused(fault)
        return recorded, failed

    def _refused(self, fault: OSError) -> Reply:
        return unreachable(f"folder {self._folder}: {fault.strerror}")

    def _lock(self) -> None:
        """One writer a folder, also where a former leader was only asleep."""
        try:
            fcntl.flock(self._record, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as fault:
            raise FolderFailed(self._folder, "another process writes there") from fault

    def _last_number(self, files: Sequence[RecordedFile]) -> int:
        """Return the highest number that was ever given here.

        The record has it, or the file that was written when the record began anew. Without both it is in the
        folder, because the record was lost.
        """
        try:
            begun = int((self._aside / NUMBER).read_text("ascii", "replace"))
        except FileNotFoundError:
            begun = 0 if files else highest_number(self._folder)
        except ValueError as fault:
            reason = f"{ASIDE}/{NUMBER} contains no number: remove it"
            raise FolderFailed(self._folder, reason) from fault
        return max(begun, *(file.number or 0 for file in files), 0)

    def _left_aside(self, files: Sequence[RecordedFile]) -> deque[str]:
        """Return files that have no place though they are on record; remove those that never were."""
        paths = {path.name: path for path in self._aside.iterdir() if path.name not in _OWN_FILES}
        unplaced = dict.fromkeys(file.stem for file in files if file.stem in paths)
        for name in paths.keys() - unplaced:
            paths[name].unlink()
        return deque(unplaced)

    def _put_in_place(self) -> None:
        """Give each file on record its place, in the order of the record."""
        if not self._unplaced:
            return
        while self._unplaced:
            stem = self._unplaced[0]
            os.rename(f"{self._aside}/{stem}", f"{self._folder}/{stem}{SUFFIX}")
            self._unplaced.popleft()
        sync(self._folder)

    def _write_aside(self, contents: Sequence[Sequence[OutgoingDocument]]) -> list[RecordedFile]:
        """Write files of documents under the next numbers. All are on disk then, or none is left."""
        files, descriptors = list[RecordedFile](), list[int]()
        with ExitStack() as opened, ExitStack() as written:
            for documents in contents:
                file = self._next_file(documents)
                path = f"{self._aside}/{file.stem}"
                descriptors.append(os.open(path, _NEW, 0o644))
                opened.callback(os.close, descriptors[-1])
                written.callback(_remove, path)  # room for the record of the others
                data = b"".join(part for document in documents for part in (document.data, b"\n"))
                write_all(descriptors[-1], data)
                files.append(file)
            self._sync_together(descriptors)
            written.pop_all()
        return files

    def _sync_together(self, descriptors: Sequence[int]) -> None:
        """Bring files to disk at the same time, because many take a file system about as long as one.

        Raise the error of one that failed, once all have ended. None may be synced again then, because a file
        system reports an error once.
        """
        if len(descriptors) == 1:
            os.fsync(*descriptors)
            return
        try:
            remaining = iter(descriptors)
            syncs = [self._pool.submit(_sync_remaining, remaining) for _ in descriptors[:_THREADS]]
        except RuntimeError as fault:  # no further thread can be started
            self._pool.shutdown()  # those that were started end first
            self._pool = ThreadPoolExecutor(_THREADS)
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from fault
        errors = [error for each in syncs if (error := each.exception()) is not None]
        if errors:
            raise errors[0]

    def _next_file(self, documents: Sequence[OutgoingDocument]) -> RecordedFile:
        """Return a file of documents under the next number; a number that is taken is passed over."""
        names = [document.name for document in documents]
        while True:
            self._number += 1
            file = RecordedFile(self._number, names)
            if not os.path.lexists(f"{self._folder}/{file.stem}{SUFFIX}"):
                return file

    def _put_on_record(self, files: Sequence[RecordedFile]) -> tuple[int, Reply | None]:
        """Put documents on record; those of one file in one line, which is there as a whole or not at all.

        Where that needs more room the later half of the files gives its own to the record of the others.
        Return how many files are on record, and the reply to the others.
        """
        documents = [name for file in files for name in file.names]
        lines = "".join(f"\n{file.line}\n" for file in files)
        try:
            sync(self._aside)
            if self._size > _LONGEST_RECORD or not self._recorded.isdisjoint(documents):
                self._begin_record()
            data = (lines if self._size else f"{FILES.head}\n{lines}").encode()
            write_all(self._record, data)
            os.fsync(self._record)
        except OSError as fault:
            half = len(files) // 2 if fault.errno in _FEWER_MAY_DO else 0
            self._take_back(files[half:])
            if not half:
                raise
            return self._put_on_record(files[:half])[0], self._refused(fault)
        self._size += len(data)
        self._recorded.update(documents)
        rows = (self._highest, highest(documents))
        self._highest = max((row for row in rows if row is not None), default=None)
        self._unplaced.extend(file.stem for file in files)
        return len(files), None

    def _take_back(self, files: Sequence[RecordedFile]) -> None:
        """Remove files that could not be recorded, to free their space.

        Raise FolderFailed if the record may have them: then only a new start shows that.
        """
        try:
            os.ftruncate(self._record, self._size)
            os.fsync(self._record)
        except OSError as fault:
            raise FolderFailed(self._folder, fault.strerror) from fault
        for file in files:
            (self._aside / file.stem).unlink()

    def _begin_record(self) -> None:
        """Begin a new record, once all files on the old one have their places; the number is kept, and the
        order of files without numbers.

        What was on it is settled by now, for another delivery has begun; or its names were those of another
        log's documents.
        """
        self._put_in_place()
        sync(self._folder)
        self._keep_order()
        write_whole(self._aside / NUMBER, f"{self._number}\n")
        os.ftruncate(self._record, 0)
        self._recorded.clear()
        self._highest = None
        self._size = 0

    def _keep_order(self) -> None:
        """Put the files without numbers on the earlier record, because nothing else has their order."""
        if self._unnumbered:
            lines = dict.fromkeys(
                file.line for file in (*read_earlier_record(self._folder), *self._unnumbered)
            )
            text = "".join(f"\n{line}\n" for line in lines)
            write_whole(self._aside / EARLIER_RECORD, f"{FILES.head}\n{text}")
            self._unnumbered = []


def _sync_remaining(descriptors: Iterator[int]) -> None:
    """Bring files to disk that no other thread has taken."""
    for descriptor in descriptors:
        os.fsync(descriptor)


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def highest(names: Iterable[str]) -> int | None:
    """Return the highest record_id in names of documents, which begin with the first and the last."""
    matches = (_ROWS.match(name) for name in names)
    return max((int(match[1]) for match in matches if match), default=None)


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
    """Raise why the folder cannot be written, without the lock that its writer holds."""
    folder = Path(settings.files_folder)
    try:
        os.close(_open_record(folder))
        read_record(folder)
    except OSError as fault:
        raise FolderFailed(settings.files_folder, fault.strerror) from fault


def _flaws(settings: FilesSettings, tables: Tables) -> Iterator[Flaw]:
    """Yield that files of 0.1.0 are in the folder, because a sort by name puts them after later ones."""
    folder = Path(settings.files_folder)
    if names := unnumbered(folder):
        have = quantity(len(names), "file has", "files have")
        problem = (
            f"{have} no number in the name, as {names[0]}: by name they do not come in the order in which"
            f" they left, and new files come before them"
        )
        if lost := without_order(folder, names):
            yield Flaw(
                f"{problem}; the record in {ASIDE} lacks the order of {len(lost)}",
                f"move those files, as {lost[0]}, to another folder: nothing shows when they left",
            )
            return
        yield Flaw(
            problem,
            f"read them with convert, apply, backlog or audit, which go by the record in {ASIDE}; then move"
            f" them to another folder, with a copy of {ASIDE}",
        )


def _remedy(settings: FilesSettings, fault: str) -> str:
    """Return what to do with a folder, by the error of the operating system."""
    if any(os.strerror(code) in fault for code in _FULL):
        return f"take documents that were read away from the full folder {settings.files_folder}"
    return f"mend the folder {settings.files_folder}"


def _speedups(settings: FilesSettings, batch_size: int) -> Iterator[Speedup]:
    """Yield what would make it faster. A file per batch is flushed once for up to 500 documents, next to the
    record and its folder.
    """
    yield from larger_documents(batch_size)
    if not settings.files_per_batch:
        yield Speedup("files-per-batch = true", 500 / 3, of_waiting=True)


KIND = SinkKind(
    FilesSettings,
    _open,
    keeps_record=True,
    check=_check,
    flaws=_flaws,
    place="files_folder",
    remedy=_remedy,
    speedups=_speedups,
)
