"""Receivers that cost little: each document is answered with a success for each of its event-ids.

python bench/_receiver.py SECONDS    by HTTP, so many seconds after the document; prints its port
python bench/_receiver.py lines      a document on each line of standard input
"""

from __future__ import annotations

import asyncio
import re
import socket
import sys

EVENT_ID = re.compile(rb'event-id="([^"]+)"')
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
HEAD_END = b"\r\n\r\n"
STATUS = b'<status level="success" event-id="%s"/>'


def answer(document: bytes) -> bytes:
    """Return the answer to a document."""
    statuses = b"".join(STATUS % event_id for event_id in EVENT_ID.findall(document))
    return b"<nds><output>" + statuses + b"</output></nds>"


class Connection(asyncio.Protocol):
    """A connection of HTTP/1.1 that stays open."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        self._unread += data
        while (head_size := self._unread.find(HEAD_END) + len(HEAD_END)) >= len(HEAD_END):
            length = LENGTH.search(self._unread[:head_size])
            size = head_size + (int(length[1]) if length else 0)
            if len(self._unread) < size:
                return
            document, self._unread = self._unread[head_size:size], self._unread[size:]
            self._answer(answer(document))

    def _answer(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/xml\r\ncontent-length: %d\r\n\r\n" % len(body)
        asyncio.get_running_loop().call_later(self._seconds, self._transport.write, head + body)


async def serve(seconds: float) -> None:
    """Answer on a free port until the process ends."""
    server = await asyncio.get_running_loop().create_server(lambda: Connection(seconds), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def answer_lines() -> None:
    """Answer each line of standard input until it ends."""
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(answer(line) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    if sys.argv[1] == "lines":
        answer_lines()
    else:
        asyncio.run(serve(float(sys.argv[1])))
