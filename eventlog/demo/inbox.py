"""The receiver of `eventlog receive`, in this process: what came, and the page that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from lxml import etree

from eventlog.web.receiver.archive import Archive
from eventlog.web.receiver.receiver import Receiver
from eventlog.web.server import serve
from eventlog.xds.split import Broken, split

ARCHIVE = "received.sqlite"
HOST = "127.0.0.1"


class Inbox(Receiver):
    """The documents that the publisher sent."""

    def __init__(self, archive: Archive) -> None:
        super().__init__(archive)
        self._traps: dict[int, Callable[[], None]] = {}
        self.url = ""  # of the page, while it is open

    @property
    def total(self) -> int:
        """Return how many documents came."""
        return self._archive.total()

    def events(self, after: int) -> Iterator[str]:
        """Return the events of the documents after that one."""
        for number in range(after + 1, self.total + 1):
            document = self._archive.document(number)
            for part in split([document.body]) if document else ():
                if not isinstance(part, Broken):
                    yield etree.tostring(part.element, encoding="unicode", with_tail=False)

    def arrivals(self, after: int) -> tuple[int, int]:
        """Return how many events came in later documents, and how many different ones."""
        return self._archive.arrivals(after)

    def when(self, total: int, then: Callable[[], None]) -> None:
        """Call a function when that many documents are here, before the last one is answered."""
        self._traps[total] = then

    def receive(self, body: bytes) -> bytes:
        reply = super().receive(body)
        trap = self._traps.pop(self.total, None) if self._traps else None
        if trap is not None:
            trap()
        return reply


@contextmanager
def inbox(folder: Path) -> Iterator[Inbox]:
    """An inbox whose page is open while the block runs."""
    with closing(Archive(folder / ARCHIVE)) as archive:
        receiver = Inbox(archive)
        with serve(receiver.app(HOST), HOST, 0) as address:
            receiver.url = address.url
            yield receiver
