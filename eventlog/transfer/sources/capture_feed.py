"""A live capture session as a source: what the server hands out, piece by piece, and the state after each."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any, Final

from eventlog.core.change import Change
from eventlog.core.errors import Misuse, Refused
from eventlog.core.settings import build
from eventlog.core.tables import Tables
from eventlog.files.small_files import read_secret
from eventlog.formats.gbase.address import VENDORS, Address, read_address
from eventlog.formats.gbase.changes import ReadItem
from eventlog.formats.gbase.gbase_settings import GbaseSettings
from eventlog.formats.qlik.structure import structure_of
from eventlog.transactions.delivery import Delivery
from eventlog.transfer.sources.capture import Capture, Transport
from eventlog.transfer.sources.capture_settings import CaptureSettings
from eventlog.transfer.sources.jdbc import Jdbc

PASSWORD: Final = "EVENTLOG_PASSWORD"  # noqa: S105 - the name of a variable


def _jdbc(address: Address, settings: CaptureSettings) -> Transport:
    return Jdbc(address, password_of(settings), settings.jar)


# The way to a server, by the scheme of its address.
TRANSPORTS: dict[str, Callable[[Address, CaptureSettings], Transport]] = dict.fromkeys(VENDORS, _jdbc)


def password_of(settings: CaptureSettings) -> str:
    """Return the password, which is in no argument and in no message."""
    if settings.password_file:
        return read_secret(settings.password_file)
    return os.environ.get(PASSWORD, "")


class CaptureFeed:
    """One session, which stays open between rounds; it is stopped from outside, and waits by itself."""

    blocks = True

    def __init__(
        self,
        url: str,
        names: Sequence[str],
        tables: Tables,
        options: Mapping[str, Any],
        state: str | None,
        refuse: Callable[[Refused], None],
        inform: Callable[[str], None],
    ) -> None:
        if not names:
            raise Misuse(f"name the tables that are captured, as DB:OWNER.TABLE: {url.partition('?')[0]}")
        address = read_address(url, tuple(TRANSPORTS))
        settings = build(CaptureSettings, options)
        reading = build(GbaseSettings, options)
        self._refuse = refuse
        self._exit = ExitStack()
        with ExitStack() as stack:
            transport = stack.enter_context(closing(TRANSPORTS[address.scheme](address, settings)))
            self._capture = Capture(transport, address, names, tables, reading, settings, since=state)
            stack.enter_context(closing(self._capture))
            self._exit = stack.pop_all()
        self.tables = self._capture.tables
        for table, column in self._capture.uncarried_columns:
            inform(f"{table}: no stream carries its column {column}")
        self._pieces: Generator[Iterator[ReadItem]] | None = None
        self._state = state
        self.ended = False
        on_structure = options.get("on_structure")
        if on_structure is not None:
            for described in self.tables:
                on_structure(structure_of(described))

    @property
    def state(self) -> str | None:
        """The state after what was handed out."""
        self._state = self._capture.state or self._state
        return self._state

    def round(self, follow: bool = False) -> Iterator[Delivery | Refused]:
        """Return what the server hands out until it has nothing more."""
        if self._pieces is None:
            self._pieces = self._exit.enter_context(closing(self._capture.answers(once=not follow)))
        for answers in self._pieces:
            piece = _Piece(answers, self._refuse)
            yield Delivery(piece, may_wait=True)
            if follow and not piece.count:
                return
        self.ended = True

    def commit(self) -> None:
        """Do nothing, because no one else keeps a copy of the state."""

    def close(self) -> None:
        """End the session."""
        self._exit.close()


class _Piece:
    """The changes of a piece, which are counted as they are read."""

    def __init__(self, answers: Iterator[ReadItem], refuse: Callable[[Refused], None]) -> None:
        self._answers = answers
        self._refuse = refuse
        self.count = 0

    def __iter__(self) -> Iterator[Change]:
        for answer in self._answers:
            if isinstance(answer, Refused):
                self._refuse(answer)
            else:
                self.count += 1
                yield answer
