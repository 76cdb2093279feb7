"""How far the change tables of a task were handed out, and whether what lies behind is still what it was."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from eventlog.core.amount import amount
from eventlog.core.errors import EventlogError, InvalidValue, Misuse
from eventlog.qlik import sequence

Key = tuple[str, ...]
_MINUTE: Final = 12  # digits of a change_seq
_MOST: Final = 96  # stretches that are kept of a table
_LOOK_BACK: Final = 3  # stretches that a database is asked for again
_MASK: Final = (1 << 64) - 1


class Changed(EventlogError):
    """{0}; --since leaves out what is known to be delivered"""


@dataclass(slots=True)
class HandedOut:
    """What was handed out of one table between the stretch before and a time, which is in it."""

    until: str
    count: int = 0
    total: int = 0  # of the hashes of its sequences, whatever their order

    def add(self, seq: str) -> None:
        """One more sequence."""
        self.count += 1
        digest = hashlib.blake2b(seq.encode(), digest_size=8).digest()
        self.total = (self.total + int.from_bytes(digest)) & _MASK

    def join(self, other: HandedOut) -> HandedOut:
        """Both as one."""
        return HandedOut(other.until, self.count + other.count, (self.total + other.total) & _MASK)


@dataclass(slots=True)
class Loaded:
    """The rows without a change_seq that one source gave."""

    count: int = 0
    digest: str = ""
    table: str = field(default="", compare=False)  # empty in states of older versions

    def add(self, row: str) -> None:
        """One more row."""
        self.count += 1
        self.digest = hashlib.blake2b((self.digest + row).encode(), digest_size=16).hexdigest()


@dataclass(slots=True)
class Progress:
    """Everything up to a time was handed out, and some transactions of the time that comes next.

    Of what lies behind, each table keeps how many changes it had, minute by minute, in fewer and
    longer stretches as it ages: a change that turns up there later shows.
    """

    done: str = ""  # the time part of change_seq
    ahead: set[Key] = field(default_factory=set)
    tables: dict[str, list[HandedOut]] = field(default_factory=dict)
    loaded: dict[str, Loaded] = field(default_factory=dict)
    _met: deque[tuple[str, str]] = field(default_factory=deque)

    # --- what is handed out

    def meet(self, table: str, seq: str) -> None:
        """A change of a table that is behind what is done, its change_seq with the letters of its rows; they
        come in their order."""
        self._met.append((table, seq))

    def hand_out(self, key: Key) -> None:
        """A transaction of the time that comes next."""
        self.ahead.add(key)

    def close(self, time: str) -> None:
        """Everything up to a time was handed out."""
        while self._met and self._met[0][1][: sequence.TIME] <= time:
            table, seq = self._met.popleft()
            stretches = self.tables.setdefault(table, [])
            until = seq[:_MINUTE]
            if not stretches or stretches[-1].until < until:
                stretches.append(HandedOut(until))
                if len(stretches) > _MOST:
                    stretches[: _MOST // 2] = [_joined(stretches[: _MOST // 2])]
            stretches[-1].add(seq)
        if time > self.done:
            self.done = time
            self.ahead.clear()

    def close_all(self) -> None:
        """Everything that was met was handed out."""
        if self._met:
            self.close(self._met[-1][1][: sequence.TIME])

    # --- what is met again

    def low(self, table: str) -> str:
        """The minute behind which a table is to be read, so that late changes show; empty for all of it."""
        stretches = self.tables.get(table, [])
        return stretches[-_LOOK_BACK - 1].until if len(stretches) > _LOOK_BACK else ""

    @property
    def known_tables(self) -> list[str]:
        """The tables of which something was handed out."""
        return list(dict.fromkeys((*self.tables, *(one.table for one in self.loaded.values() if one.table))))

    def again(self) -> Again:
        """What checks the changes that are met although everything there was handed out."""
        return Again(self)

    # --- as text

    def dump(self) -> dict[str, Any]:
        """The progress as JSON holds it."""
        return {
            "done": self.done,
            "ahead": sorted(self.ahead),
            "tables": {t: [(s.until, s.count, s.total) for s in found] for t, found in self.tables.items()},
            "loaded": {s: (known.count, known.digest, known.table) for s, known in self.loaded.items()},
        }


def take_over(known: dict[str, Progress], name: str, tables: Sequence[str]) -> None:
    """Let the progress of a task be there: its own, that of the task whose its tables were, or a new one.

    A task may be renamed, or be told apart from others only now. Misuse where its tables come from several.
    """
    own = {task: [t for t in kept.known_tables if _among(t, tables)] for task, kept in known.items()}
    others = [task for task, found in own.items() if found and task != name]
    if not others:
        known.setdefault(name, Progress())
        return
    if len(others) > 1 or own.get(name):
        said = ", ".join(f"{own[task][0]} of {task or 'one without a name'}" for task in others)
        raise Misuse(f"the state has {said}, which are of {name or 'one task'} now: name each with --task")
    (other,) = others
    kept = known[other]
    moved = {table: kept.tables.pop(table) for table in own[other] if table in kept.tables}
    loaded = {source: one for source, one in kept.loaded.items() if not one.table or one.table in own[other]}
    kept.loaded = {source: one for source, one in kept.loaded.items() if one.table not in own[other]}
    known[name] = Progress(kept.done, set(kept.ahead), moved, loaded)
    if not kept.known_tables:
        del known[other]


def _among(table: str, tables: Sequence[str]) -> bool:
    """Whether a table is one of these, of which some have no schema told."""
    return table in tables or table.rpartition(".")[2] in tables


class Again:
    """Changes of what lies behind, which come in their order: they must be those that were handed out."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._known = {table: deque(stretches) for table, stretches in progress.tables.items()}
        self._now: dict[str, tuple[HandedOut, str]] = {}

    def meet(self, table: str, seq: str) -> None:
        """One more; Changed where those before it are not what was handed out."""
        now = self._now.get(table)
        if now is None or now[0].until < seq[:_MINUTE]:
            if now is not None:
                self._compare(table, *now)
            known = self._known.get(table, deque())
            while known and known[0].until < seq[:_MINUTE]:
                known.popleft()
            now = self._now[table] = (
                HandedOut(known[0].until if known else self._progress.done),
                seq[: sequence.LENGTH],
            )
        now[0].add(seq)

    def close(self) -> None:
        """Compare what was met last."""
        for table, now in self._now.items():
            self._compare(table, *now)
        self._now.clear()

    def _compare(self, table: str, now: HandedOut, first: str) -> None:
        known = self._known.get(table)
        told = known[0] if known and known[0].until == now.until else HandedOut(now.until)
        if now != told:
            stand = amount(now.count, "change stands", "changes stand")
            raise Changed(
                f"{table}: {stand} from {first} on up to {now.until}, where {told.count}"
                f" were delivered, and everything up to {self._progress.done} was: some became visible late,"
                " or are gone"
            )


def load_progress(found: Any) -> Progress:
    """The progress that was kept; InvalidValue if it is none."""
    try:
        return Progress(
            _text(found["done"]),
            {tuple(map(_text, key)) for key in found["ahead"]},
            {
                table: [
                    HandedOut(_text(until), _number(count), _number(total)) for until, count, total in kept
                ]
                for table, kept in found["tables"].items()
            },
            {
                source: Loaded(_number(count), _text(digest), *map(_text, table))
                for source, (count, digest, *table) in found["loaded"].items()
            },
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidValue(str(found)[:40], "the state of change tables") from None


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
