"""A server before an S3 server, which counts the bytes that it serves of each object."""

from __future__ import annotations

import http.client
import re
import threading
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from tests.kit.support import patient

_TIME = "Sun, 23 Mar 2025 10:57:19 GMT"
_OF_CONNECTION = {"connection", "transfer-encoding", "keep-alive"}


class MadeObject(NamedTuple):
    """An object whose rows, each of so many bytes, are made when they are asked for: it needs no disk."""

    head: bytes
    width: int
    rows: int
    row: Callable[[int], bytes]

    @property
    def size(self) -> int:
        return len(self.head) + self.width * self.rows

    def part(self, begin: int, end: int) -> bytes:
        """Return the bytes from a place up to another."""
        first, last = (max(0, at - len(self.head)) // self.width for at in (begin, end + self.width))
        data = (b"" if first else self.head) + b"".join(map(self.row, range(first, min(last, self.rows))))
        start = begin - (len(self.head) + first * self.width if first else 0)
        return data[start : start + end - begin]


class CountingProxy(ThreadingHTTPServer):
    """The server; `before` is called with the path of each object before its bytes are asked for."""

    daemon_threads = True

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = urllib.parse.urlsplit(upstream).netloc
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.bytes: Counter[str] = Counter()
        self.before: Callable[[str], None] = lambda path: None
        self.objects: dict[str, MadeObject] = {}  # by path; these are not asked for upstream


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: CountingProxy

    def _forward(self) -> None:
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        if self.command == "GET":
            self.server.before(path)
        if path in self.server.objects:
            self._make(self.server.objects[path], path)
            return
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        upstream = http.client.HTTPConnection(self.server.upstream, timeout=patient(60))
        upstream.request(self.command, self.path, sent, dict(self.headers.items()))
        answer = upstream.getresponse()
        body = answer.read()
        upstream.close()
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in _OF_CONNECTION and (
                name.lower() != "content-length" or self.command == "HEAD"
            ):
                self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        if self.command == "GET":
            self.server.bytes[path] += len(body)

    def _make(self, object_: MadeObject, path: str) -> None:
        limits = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        begin = int(limits[1]) if limits else 0
        end = min(int(limits[2]) + 1, object_.size) if limits and limits[2] else object_.size
        self.send_response_only(206 if limits else 200)
        if limits:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{object_.size}")
        headers = {"Content-Length": str(end - begin), "ETag": '"made"', "Last-Modified": _TIME}
        for name, value in (headers | {"Content-Type": "text/csv", "Accept-Ranges": "bytes"}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(object_.part(begin, end))
            self.server.bytes[path] += end - begin

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _forward  # noqa: N815 - names of http.server

    def log_message(self, format: str, *arguments: object) -> None:
        """Write nothing."""


@contextmanager
def counting_proxy(upstream: str) -> Iterator[CountingProxy]:
    """A proxy that runs before a server of this address."""
    proxy = CountingProxy(upstream)
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()
