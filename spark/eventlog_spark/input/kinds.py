"""What a row in the shuffle is: an event type 1 to 8, a current row, or one that only counts."""

from __future__ import annotations

from eventlog.fold import Fate

CURRENT = 0
UNREADABLE = -1
NOT_NEW = 11
LOOPBACK = 12
FUTURE = 13

FATES = {NOT_NEW: Fate.NOT_NEW, LOOPBACK: Fate.LOOPBACK, FUTURE: Fate.FUTURE}
