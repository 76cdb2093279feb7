"""The settings of captures, without what reads or writes one, so that a command starts fast."""

from __future__ import annotations

import codecs
import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eventlog.core.errors import Misuse
from eventlog.core.settings import setting
from eventlog.core.shared_settings import (
    max_open_setting,
    max_record_setting,
    open_bytes_setting,
    trim_char_setting,
)

if TYPE_CHECKING:
    from eventlog.formats.gbase.columns import Text
    from eventlog.transactions.open_transactions import Spool


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
    trim_char: bool = trim_char_setting()
    max_record: int = max_record_setting()
    max_open: int = max_open_setting()
    open_bytes: int = open_bytes_setting()
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
        return Text(self.code_set, self.trim_char)
