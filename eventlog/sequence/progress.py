"""The progress of change tables: how far a task was handed out, and whether that part is unchanged."""

from __future__ import annotations

import base64
import hashlib
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final

from eventlog.core.errors import InvalidValue
from eventlog.qlik import sequence

Key = tuple[str, ...]
MINUTE: Final = 12  # digits of a change_seq
_MOST: Final = 96  # stretches that are kept of a table
_LOOK_BACK: Final = 3  # stretches that a database is asked for again
_MASK: Final = (1 << 64) - 1
_BYTES: Final = 6  # of the digest of one change
SINGLE: Final = 25_000  # changes of a task that a state keeps one by one


@dataclass(slots=True)
class HandedOut:
    """The changes of one table that were handed out between two times; the later time is included."""

    until: str
    count: int = 0
    total: int = 0  # of the hashes of its sequences, whatever their order
    single: dict[bytes, None] | None = field(default=None, compare=False)  # the changes, if kept one by one

    def add(self, seq: str) -> None:
        """Add one sequence."""
        digest = _digest(seq)
        self.count += 1
        self.total = (self.total + int.from_bytes(digest)) & _MASK
        if self.single is not None:
            self.single[digest[:_BYTES]] = None

    def holds(self, seq: str) -> bool:
        """Return whether a sequence is in it, which must keep its changes one by one."""
        return self.single is not None and _digest(seq)[:_BYTES] in self.single

    def remove(self, seq: str) -> None:
        """Take one sequence out, if it is in it."""
        if self.single is not None and self.holds(seq):
            digest = _digest(seq)
            self.count -= 1
            self.total = (self.total - int.from_bytes(digest)) & _MASK
            del self.single[digest[:_BYTES]]

    def join(self, other: HandedOut) -> HandedOut:
        """Return both as one."""
        both = self.single is not None and other.single is not None
        single = {**self.single, **other.single} if both else None  # type: ignore[dict-item]
        return HandedOut(other.until, self.count + other.count, (self.total + other.total) & _MASK, single)

    def dump(self) -> list[Any]:
        """Return it as JSON holds it."""
        known: list[Any] = [self.until, self.count, self.total]
        return known if self.single is None else [*known, base64.b64encode(b"".join(self.single)).decode()]


def _digest(seq: str) -> bytes:
    return hashlib.blake2b(seq.encode(), digest_size=8).digest()


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
class Progress:
    """The progress of a task: everything up to a time was handed out, and some transactions after it.

    For the part that was handed out, each table keeps its number of changes minute by minute, in fewer and
    longer intervals as they age. The newest changes are kept one by one, so that a late change shows.
    """

    done: str = ""  # the time part of change_seq
    ahead: dict[str, dict[Key, int]] = field(default_factory=dict)  # by time; how many changes, or 0
    tables: dict[str, list[HandedOut]] = field(default_factory=dict)
    loaded: dict[str, Loaded] = field(default_factory=dict)
    last: dict[str, str] = field(default_factory=dict)  # the greatest change_seq of each table
    since: str | None = ""  # everything up to here is left out; None in states of older versions
    _met: deque[tuple[str, str]] = field(default_factory=deque)
    _single: int = 0  # changes that are kept one by one

    # --- what is handed out

    def meet(self, table: str, seq: str) -> None:
        """Note a change of a table after the completed time; changes come in order, with the letters of their
        rows.
        """
        self._met.append((table, seq))

    def hand_out(self, key: Key, changes: int) -> None:
        """Note a transaction whose time is not closed, and how many changes it has."""
        self.ahead.setdefault(_time_of(key), {})[key] = changes

    def handed_out(self, key: Key) -> int | None:
        """Return how many changes of a transaction were handed out before its time was closed, if it was."""
        return self.ahead.get(_time_of(key), {}).get(key)

    def close(self, time: str) -> None:
        """Mark everything up to a time as handed out."""
        while self._met and self._met[0][1][: sequence.TIME] <= time:
            self._note(*self._met.popleft())
        for closed in [closed for closed in self.ahead if closed <= time]:
            del self.ahead[closed]
        self.done = max(self.done, time)

    def close_all(self) -> None:
        """Mark everything that was noted as handed out."""
        if self._met:
            self.close(self._met[-1][1][: sequence.TIME])

    def restart(self, since: str) -> None:
        """Start after a position: what is known of changes and of full loads is forgotten."""
        self.done, self.since, self._single = "", since, 0
        for known in (self.ahead, self.tables, self.loaded, self.last):
            known.clear()

    def starts_after(self, since: str) -> bool:
        """Return whether everything that is known was handed out after this position.

        A state of an older version does not contain the position; then its intervals decide.
        """
        if self.since is not None:
            return since == self.since
        return all(s.until >= since[:MINUTE] for known in self.tables.values() for s in known)

    def _note(self, table: str, seq: str) -> None:
        """Add a change to the stretch of its table that its minute lies in."""
        stretches = self.tables.setdefault(table, [])
        until = seq[:MINUTE]
        if not stretches or stretches[-1].until < until:
            stretches.append(HandedOut(until, single={}))
            if len(stretches) > _MOST:
                stretches[: _MOST // 2] = [_joined(stretches[: _MOST // 2])]
        stretch = stretches[bisect_left(stretches, until, key=_until)]
        if seq[: sequence.LENGTH] <= self.last.get(table, ""):
            for part in parts_of(seq):
                stretch.remove(part)
        stretch.add(seq)
        self.last[table] = max(self.last.get(table, ""), seq[: sequence.LENGTH])
        self._single += stretch.single is not None
        if self._single > 2 * SINGLE:
            self._keep_fewer()

    def _keep_fewer(self) -> None:
        """Keep the newest changes alone one by one."""
        stretches = sorted((s for known in self.tables.values() for s in known), key=_until, reverse=True)
        self._single = 0
        for stretch in stretches:
            if stretch.single is not None and self._single + len(stretch.single) > SINGLE:
                stretch.single = None
            self._single += len(stretch.single or ())

    # --- what is met again

    def low(self, table: str) -> str:
        """Return the minute after which a table is read so that late changes show; empty for all of the
        table.
        """
        stretches = self.tables.get(table, [])
        return stretches[-_LOOK_BACK - 1].until if len(stretches) > _LOOK_BACK else ""

    def last_of(self, table: str) -> str:
        """Return up to where a table was handed out; in states of older versions to the end of a minute."""
        known = self.tables.get(table)
        if not known:
            return ""
        end = known[-1].until.ljust(sequence.LENGTH, "9")
        return self.last.get(table) or min(end, self.done.ljust(sequence.LENGTH, "9"))

    # --- as text

    def dump(self) -> dict[str, Any]:
        """Return the progress as JSON holds it."""
        known = {
            "done": self.done,
            "ahead": sorted((*key, count) for keys in self.ahead.values() for key, count in keys.items()),
            "tables": {table: [s.dump() for s in stretches] for table, stretches in self.tables.items()},
            "loaded": {s: (known.count, known.digest) for s, known in self.loaded.items()},
            "last": self.last,
        }
        return known if self.since is None else {**known, "since": self.since}


def _time_of(key: Key) -> str:
    """Return the time part of the sequences of what is handed out together."""
    return key[1][: sequence.TIME]


def _until(stretch: HandedOut) -> str:
    return stretch.until


def parts_of(seq: str) -> list[str]:
    """Return what may have been noted of a change_seq when fewer of its rows were visible."""
    letters = seq[sequence.LENGTH :]
    fewer = [some for n in range(1, len(letters)) for some in combinations(letters, n)]
    return [seq[: sequence.LENGTH] + "".join(some) for some in fewer]


def load_progress(found: Any) -> Progress:
    """Return the progress that JSON holds, of older versions too. Raise InvalidValue if it is none."""
    try:
        ahead: dict[str, dict[Key, int]] = {}
        for name, time, *changes in found["ahead"]:
            key = _text(name), _text(time)
            ahead.setdefault(_time_of(key), {})[key] = _number(*changes or (0,))
        tables = {
            table: [_handed_out(*kept) for kept in stretches] for table, stretches in found["tables"].items()
        }
        loaded = {
            source: Loaded(_number(count), _text(digest))
            for source, (count, digest) in found["loaded"].items()
        }
        last = {table: _text(seq) for table, seq in found.get("last", {}).items()}
        since = _text(found["since"]) if "since" in found else None
        single = sum(len(s.single or ()) for stretches in tables.values() for s in stretches)
        return Progress(_text(found["done"]), ahead, tables, loaded, last, since, _single=single)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        raise InvalidValue(str(found)[:40], "the state of change tables") from None


def _handed_out(until: Any, count: Any, total: Any, single: str | None = None) -> HandedOut:
    """Return a stretch as JSON holds it."""
    made = HandedOut(_text(until), _number(count), _number(total))
    if single is not None:
        digests = base64.b64decode(_text(single), validate=True)
        made.single = {digests[i : i + _BYTES]: None for i in range(0, len(digests), _BYTES)}
    return made


def _text(found: Any) -> str:
    if not isinstance(found, str):
        raise TypeError
    return found


def _number(found: Any) -> int:
    if type(found) is not int:
        raise TypeError
    return found


def _joined(stretches: list[HandedOut]) -> HandedOut:
    whole = stretches[0]
    for one in stretches[1:]:
        whole = whole.join(one)
    return whole
