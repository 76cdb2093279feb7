"""Files of a store: their bytes in ranges, with the keys or the role of this machine.

Arrow takes endpoint, region and keys from the environment names of the store's own tools.
"""

from __future__ import annotations

import io
import os
import re
from collections import deque
from functools import cache
from typing import Any, NamedTuple

from eventlog.core.errors import EventlogError
from eventlog.files.file_names import in_store

BLOCK = 4 << 20  # bytes that are read together


class RemoteFault(EventlogError):
    """{0}"""


class NotReadable(RemoteFault):
    """{0}: the store does not give its bytes ({1})"""


class FileChanged(RemoteFault):
    """{0} changed after its name was listed: run the command again once no one writes it"""


class OtherServer(RemoteFault):
    """{0}: Hadoop's configuration and AWS_ENDPOINT_URL name different servers"""


class RemoteVersion(NamedTuple):
    """A file of a store as it was listed."""

    name: str
    size: int
    modified: int  # seconds
    etag: str = ""  # if it is known, it has priority over the time


class RemoteFile(io.RawIOBase):
    """A version of a file up to a place; its bytes are read in blocks, and so many are in memory.

    Raises FileChanged where the store has another version, also one that came meanwhile.
    """

    def __init__(self, version: RemoteVersion, end: int, block: int = BLOCK, blocks: int = 1) -> None:
        self._version = version
        self._end = end
        self._at = 0
        self._block = block
        self._blocks: deque[tuple[int, bytes]] = deque(maxlen=blocks)  # each with its place
        self._filesystem, self._path = _located(version.name)
        self._file = self._checked()

    @property
    def etag(self) -> str:
        """Return what the store calls this version; empty if it has no name."""
        return self._version.etag

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._end}[whence]
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, up to the end of a block."""
        if not size or self._at >= self._end:
            return b""
        begin, block = next(filter(self._is_here, self._blocks), None) or self._next_block()
        skipped = self._at - begin
        data = block[skipped:] if size < 0 else block[skipped : skipped + size]
        self._at += len(data)
        return data

    def readinto(self, buffer: Any, /) -> int:
        """Read the next bytes into a buffer."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _is_here(self, block: tuple[int, bytes]) -> bool:
        begin, data = block
        return begin <= self._at < begin + len(data)

    def _next_block(self) -> tuple[int, bytes]:
        """Return the bytes from here on, of this version."""
        size = min(self._block, self._end - self._at)
        try:
            data: bytes = self._file.read_at(size, self._at)
        except OSError as fault:
            raise _not_readable(self._version.name, fault) from None
        self._checked()
        if len(data) < size:
            raise FileChanged(self._version.name)
        self._blocks.append((self._at, data))
        return self._blocks[-1]

    def _checked(self) -> Any:
        """Return the file of Arrow; raise FileChanged if it is of another version."""
        name, size, modified, etag = self._version
        try:
            file = self._filesystem.open_input_file(self._path)
            etag_there = (file.metadata() or {}).get(b"ETag", b"").decode()
            if not etag:
                time_there = int(self._filesystem.get_file_info(self._path).mtime.timestamp())
        except (OSError, NotImplementedError) as fault:
            raise _not_readable(name, fault) from None
        if file.size() != size or (etag_there != etag if etag else time_there != modified):
            raise FileChanged(name)
        self._version = self._version._replace(etag=etag_there)
        return file


def demand_server(name: str, endpoint: str) -> None:
    """Raise OtherServer unless Arrow asks this server for a file of S3; that of Amazon has no name."""
    here = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    if in_store(name)[0].startswith("s3:") and _server(endpoint) != _server(here):
        raise OtherServer(name)


def _server(endpoint: str) -> str:
    server = endpoint.rpartition("://")[2].rstrip("/").lower()
    return "" if server.endswith("amazonaws.com") else server


class Excerpt(io.BytesIO):
    """The bytes of a file from a place on, each under its own place."""

    def __init__(self, content: Any, begin: int) -> None:
        super().__init__(content)
        self._begin = begin

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return super().seek(offset - self._begin if whence == io.SEEK_SET else offset, whence) + self._begin

    def tell(self) -> int:
        return super().tell() + self._begin


def _located(name: str) -> tuple[Any, str]:
    """Return the file system of Arrow in which a file of a store is, and its path there."""
    store, path = in_store(name)
    if not store:
        raise NotReadable(name, "Arrow has no client for it")
    try:
        filesystem, root = _filesystem(store)
    except (OSError, ValueError, NotImplementedError) as fault:
        raise _not_readable(name, fault) from None
    return filesystem, f"{root.rstrip('/')}/{path}"


@cache
def _filesystem(store: str) -> tuple[Any, str]:
    from pyarrow import fs

    pair: tuple[Any, str] = fs.FileSystem.from_uri(store)
    return pair


def _not_readable(name: str, fault: Exception) -> NotReadable:
    """Return the error with the kind of what happened; the text of a client may show an address or a key."""
    match = re.search(r"AWS Error (\w+)", str(fault))
    return NotReadable(name, match[1] if match else type(fault).__name__)
