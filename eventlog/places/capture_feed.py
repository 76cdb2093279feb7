"""A live capture session as a feed: what the server hands out, piece by piece, with the state behind each."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, Final

from eventlog.core.change import Change
from eventlog.core.errors import Misuse, Refused
from eventlog.core.settings import build
from eventlog.core.tables import Tables
from eventlog.files.secret import read_secret
from eventlog.gbase.address import VENDORS, Address, read_address
from eventlog.gbase.changes import Answer
from eventlog.gbase.format import GbaseSettings
from eventlog.places.capture import Capture, CaptureSettings, Transport
from eventlog.places.jdbc import Jdbc
from eventlog.qlik.structure import structure_of
from eventlog.streams.delivery import Delivery

PASSWORD: Final = "EVENTLOG_PASSWORD"  # noqa: S105 - the name of a variable


def _jdbc(address: Address, settings: CaptureSettings) -> Transport:
    return Jdbc(address, password_of(settings), settings.jar)


# The way to a server, by the scheme of its address.
TRANSPORTS: dict[str, Callable[[Address, CaptureSettings], Transport]] = dict.fromkeys(VENDORS, _jdbc)


def is_live(url: str | None) -> bool:
    """Return whether an address is that of a server whose changes are captured."""
    return url is not None and url.partition("://")[0] in TRANSPORTS


def password_of(settings: CaptureSettings) -> str:
    """Return the password, which is in no argument and in no message."""
    if settings.password_file:
        return read_secret(settings.password_file)
    return os.environ.get(PASSWORD, "")


class CaptureFeed:
    """One session, which is opened by the first round and stays open between rounds."""

    def __init__(
        self, url: str, names: Sequence[str], tables: Tables, given: Mapping[str, Any], state: str | None
    ) -> None:
        if not names:
            raise Misuse(f"name the tables that are captured, as DB:OWNER.TABLE: {url.partition('?')[0]}")
        self._address = read_address(url, tuple(TRANSPORTS))
        self._names = names
        self._tables = tables
        self._given = given
        self._transport: Transport | None = None
        self._capture: Capture | None = None
        self._pieces: Generator[Iterator[Answer]] | None = None
        self.state = state
        self.ended = False

    def round(self, follow: bool = False) -> Iterator[Delivery | Refused]:
        """Return what the server hands out until it has nothing more."""
        if self._pieces is None:
            self._pieces = self._open().answers(once=not follow)
        for answers in self._pieces:
            changes: list[Change] = []
            for answer in answers:
                if isinstance(answer, Refused):
                    yield answer
                else:
                    changes.append(answer)
            self._advance()
            if changes:
                yield Delivery(tuple(changes), self.state)
            elif follow:
                yield Delivery((), self.state)
                return
        self._advance()
        self.ended = True
        yield Delivery((), self.state)  # the target keeps how far the log was read, also without changes

    def _advance(self) -> None:
        if self._capture is not None:
            self.state = self._capture.state or self.state

    def kept(self) -> None:
        """Nothing keeps a copy of the state."""

    def close(self) -> None:
        """End the session."""
        for opened in (self._pieces, self._capture, self._transport):
            if opened is not None:
                opened.close()

    def _open(self) -> Capture:
        settings = build(CaptureSettings, self._given)
        self._transport = TRANSPORTS[self._address.scheme](self._address, settings)
        self._capture = Capture(
            self._transport,
            self._address,
            self._names,
            self._tables,
            build(GbaseSettings, self._given),
            settings,
            since=self.state,
        )
        heard = self._given.get("heard")
        if heard is not None:
            for table in self._capture.tables:
                heard(structure_of(table))
        return self._capture
