"""The progress of change tables: of each a window of the changes that were delivered last.

Rows up to its low end are not read again. Later ones are, and those in `seen` were delivered. A row that is
new, and not after all that was delivered of its table, became visible late.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Final

from eventlog.core.errors import EventlogError, InvalidValue
from eventlog.qlik import sequence

Row = tuple[str, str]  # a table, and a change_seq
MOST: Final = 10_000  # changes in a window; of more, the older half is left out


class Changed(EventlogError):
    """{0}; --since SEQ starts after a position of your choice, whatever was delivered"""


class VisibleLate(EventlogError):
    """{0}: change_seq {1} became visible late, {2} was delivered before: --accept-late delivers such rows \
now, --since SEQ starts after a position of your choice, whatever was delivered"""


@dataclass(slots=True)
class Loaded:
    """The rows without a change_seq that one source gave."""

    count: int = 0
    digest: str = ""

    def add(self, row: str) -> None:
        """One more row."""
        self.count += 1
        self.digest = hashlib.blake2b((self.digest + row).encode(), digest_size=16).hexdigest()


@dataclass(slots=True)
class Window:
    """The changes of one table that were delivered last."""

    low: str = ""  # the time part up to which no row is read again
    last: str = ""  # the greatest change_seq
    seen: dict[str, str] = field(default_factory=dict)  # the letters of rows by change_seq

    def new_letters(self, seq: str, letters: str) -> str:
        """Return those of some letters whose rows were not delivered."""
        known = letters if seq[: sequence.TIME] <= self.low else self.seen.get(seq, "")
        return "".join(letter for letter in letters if letter not in known)

    def deliver(self, seq: str, letters: str) -> None:
        """Note the rows of a change_seq."""
        self.seen[seq] = "".join(sorted({*self.seen.get(seq, ""), *letters}))
        self.last = max(self.last, seq)

    def close(self, time: str) -> None:
        """Read no row again up to a time."""
        if time > self.low:
            self.low = time
            self.seen = {seq: letters for seq, letters in self.seen.items() if seq[: sequence.TIME] > time}

    def shorten(self, time: str) -> None:
        """Leave the older half out of too many changes; everything up to a time was delivered."""
        if len(self.seen) > MOST:
            times = sorted(seq[: sequence.TIME] for seq in self.seen)
            self.close(min(times[-MOST // 2], time))


@dataclass(slots=True)
class Progress:
    """The progress of a task: what of it was delivered."""

    since: str = ""  # everything up to here is left out
    tables: dict[str, Window] = field(default_factory=dict)
    loaded: dict[str, Loaded] = field(default_factory=dict)  # by the names of the sources

    def start(self, since: str) -> None:
        """Start after a position: what is known of changes and of full loads is forgotten."""
        if since and since != self.since:
            self.since = since
            self.tables.clear()
            self.loaded.clear()

    def window(self, table: str) -> Window:
        """Return the window of a table."""
        return self.tables.setdefault(table, Window())

    def dump(self) -> dict[str, Any]:
        """Return the progress as JSON holds it."""
        tables = {
            table: (window.low, window.last, [seq + letters for seq, letters in window.seen.items()])
            for table, window in self.tables.items()
        }
        loaded = {source: (known.count, known.digest) for source, known in self.loaded.items()}
        return {"since": self.since, "tables": tables, "loaded": loaded}


def load_progress(found: Any) -> Progress:
    """Return the progress that JSON holds; raise InvalidValue if it is none."""
    try:
        tables = {}
        for table, (low, last, rows) in found["tables"].items():
            seen = {row[: sequence.LENGTH]: row[sequence.LENGTH :] for row in map(_text, rows)}
            tables[_text(table)] = Window(_text(low), _text(last), seen)
        loaded = {
            source: Loaded(int(count), _text(digest)) for source, (count, digest) in found["loaded"].items()
        }
        return Progress(_text(found["since"]), tables, loaded)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidValue(str(found)[:40], "the state of change tables") from None


def _text(found: Any) -> str:
    if not isinstance(found, str):
        raise TypeError
    return found
