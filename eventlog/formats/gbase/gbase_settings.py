"""The settings of captures, without what reads or writes one, so that a command starts fast."""

from __future__ import annotations

import codecs
import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from eventlog.core.errors import Misuse
from eventlog.core.settings import setting

if TYPE_CHECKING:
    from eventlog.formats.gbase.columns import Text
    from eventlog.transactions.open_transactions import Spool

MAX_RECORD: Final = 64 << 20
MAX_OPEN: Final = 1 << 30
MAX_STORED: Final = 10 << 30


class Lock(enum.StrEnum):
    """The way in which a table is kept still while it is read."""

    SHARE = "share"  # it is locked against writers meanwhile
    REPEATABLE = "repeatable-read"  # the rows that were read are
    NONE = "none"  # no snapshot is taken


@dataclass(frozen=True, slots=True)
class GbaseSettings:
    """The settings of captures."""

    framed: bool = setting(
        False, "The input is a hex dump: a read of the stream a line, lines of xxd, or typed out with notes."
    )
    code_set: str = setting(
        "utf-8", "Code set of the database (DB_LOCALE), as Python names it.", metavar="NAME"
    )
    trim_char: bool = setting(True, "Take from CHAR values the blanks that pad them.")
    max_record: int = setting(MAX_RECORD, "The longest record in bytes; a longer length counts as corrupt.")
    max_open: int = setting(MAX_OPEN, "Bytes that unfinished transactions may take in memory together.")
    open_bytes: int = setting(
        MAX_STORED, "Bytes of unfinished transactions that may wait on disk.", metavar="BYTES"
    )
    size_order: str | None = setting(
        None,
        "Byte order in which the sizes of variable columns are written; without it as they were read, else "
        "big.",
        choices=("big", "little"),
    )
    varchar_prefix: int | None = setting(
        None,
        "Bytes of the length before a VARCHAR that is written: 1 Informix, 2 GBase 8s; without it as it was "
        "read, else 1.",
    )

    spool: Callable[[], Spool] | None = None  # makes the place on disk

    @property
    def text(self) -> Text:
        """Return the settings for reading and writing character columns."""
        from eventlog.formats.gbase.columns import Text

        try:
            "".encode(codecs.lookup(self.code_set).name)
        except LookupError:
            raise Misuse(
                f"unknown code set {self.code_set!r}: name it as Python does, such as gb18030"
            ) from None
        if self.varchar_prefix not in (None, 1, 2):
            raise Misuse(f"varchar-prefix is {self.varchar_prefix}, not 1 or 2")
        return Text(self.code_set, self.trim_char)
