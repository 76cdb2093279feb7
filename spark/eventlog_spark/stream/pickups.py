"""Pick-ups of a followed log by number, in the log, in a folder, and in Spark's checkpoint.

A pick-up is frozen in the folder, remembered in the log, then given to Spark, which keeps its number as an
offset. Spark asks for the next one only when it is out; then its rows are finished. So at most one pick-up is
on its way, and a checkpoint is at the last one or the one before.
"""

from __future__ import annotations

import os
import time
import uuid
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from eventlog.core.errors import EventlogError
from eventlog.publisher.config import Config
from eventlog.publisher.confirmed_pickups import PickUps, Taken
from eventlog.publisher.open_log import opened
from eventlog.publisher.session import make_reader
from eventlog.publisher.settings import PublisherSettings
from eventlog.sql.log.leader import Leader
from eventlog.sql.log.store import Store
from eventlog_spark.stream.pickup_folder import FolderState, FrozenPickUp, StreamFolder

Offset = dict[str, str | int]

PATIENCE = 10.0  # seconds in which a server notices that a leader was killed
_LOOK = 0.1  # seconds between two looks
_STREAM, _PICK_UP = "stream", "pick-up"


class LogTaken(EventlogError):
    """another stream or a publisher is at work on this log ({0}): one at a time"""


class NoFolder(EventlogError):
    """{0}, where this stream freezes its pick-ups, is empty: give the stream its own folder. If that folder \
is lost, start again with a new checkpoint; unfinished rows are sent again under their event-ids"""


class OtherStream(EventlogError):
    """{0} is the folder of another stream than the checkpoint's: give each stream a folder of its own"""


class NoCheckpoint(EventlogError):
    """the stream of {0} is at pick-up {1}, but this checkpoint is new. Continue with the checkpoint \
of the stream, or start again with an empty folder and a new checkpoint; unfinished rows are sent again \
under their event-ids"""


class OldCheckpoint(EventlogError):
    """the checkpoint continues after pick-up {1}, but {0} records that pick-up {2} was delivered: the \
checkpoint is an older copy. Find the newer one, or start again with an empty folder and a new \
checkpoint"""


class OldFolder(EventlogError):
    """the checkpoint contains pick-up {1}, but {0} ends with {2}: the folder is an older copy. Find the \
newer one, or start again with an empty folder and a new checkpoint"""


class OtherLog(EventlogError):
    """this log has had fewer leaders than {0} records ({1} of {2}): it is another log, or an older copy. \
Start again with an empty folder and a new checkpoint"""


class SettledElsewhere(EventlogError):
    """pick-up {0} was unfinished when this stream stopped, and another publisher has finished it since, \
under the same event-ids. Start again with an empty folder and a new checkpoint to continue with the \
pending rows"""


class Following:
    """One stream over one log, while its process lives; it leads from the first question on."""

    def __init__(self, config: Config, folder: StreamFolder, patience: float = PATIENCE) -> None:
        self._config = config
        self._folder = folder
        self._patience = patience
        self._until: int | None = None  # no pick-up begins after this record_id
        self._finished = -1  # the last pick-up whose rows this process has finished
        self._checked = 0  # the last pick-up that is known to be remembered
        self._stack = ExitStack()
        self._at_work: tuple[Store, Leader, PickUps] | None = None

    def begin(self) -> Offset:
        """Begin a new stream, which owns the folder from now on."""
        self._lead()
        state = self._folder.state()
        if state is None:
            state = FolderState(uuid.uuid4().hex, self._epoch())
            self._folder.put(state)
        elif state.done:
            raise NoCheckpoint(self._folder.name, state.taken)
        return {_STREAM: state.stream, _PICK_UP: 0}

    def end_with_what_is_there(self) -> None:
        """Take what is pending now, but nothing that comes later."""
        with opened(self._config) as store:
            self._until = store.newest()

    def latest(self, start: Offset) -> Offset:
        """Return the next pick-up; the same offset where there is none. What is up to `start` is out."""
        _, leader, pickups = self._lead()
        number, state = self._at(start)
        if number == state.taken:
            self._finish(number, state)
        elif state.last is not None and pickups.remembers(state.last.marks):
            return self._again(start, state.last)
        is_remembered = False
        while not is_remembered:
            taken = None if leader.is_paused() or self._exhausted(pickups) else pickups.take()
            if taken is None:
                return start
            self._freeze(number + 1, taken)
            is_remembered = pickups.remember()
        self._checked = number + 1
        return {**start, _PICK_UP: number + 1}

    def frozen(self, start: Offset, end: Offset) -> FrozenPickUp | None:
        """Return the pick-up between two offsets; None where they are the same."""
        self._lead()
        number, state = self._at(start)
        wanted = int(end[_PICK_UP])
        if wanted == number:
            return None
        if state.last is None or wanted != state.taken:
            raise OldFolder(self._folder.name, wanted, state.taken)
        self._again(start, state.last)
        return state.last

    def done(self, end: Offset) -> None:
        """Finish the rows of what Spark reports as out."""
        self._lead()
        number, state = self._at(end)
        if number == state.taken:
            self._finish(number, state)

    def close(self) -> None:
        """Let somebody else lead."""
        self._at_work = None
        self._stack.close()

    def _lead(self) -> tuple[Store, Leader, PickUps]:
        """Return the log; another leader is logged if it does not stop."""
        if self._at_work is not None:
            return self._at_work
        with ExitStack() as stack:
            store = stack.enter_context(opened(self._config))
            leader = stack.enter_context(self._elected(store))
            settings = self._config.build(PublisherSettings)
            make = partial(make_reader, self._config, store)
            pickups = PickUps(store, make, leader.epoch, settings)
            state = self._folder.state()
            if state is not None:
                if leader.epoch <= state.epoch:
                    raise OtherLog(self._folder.name, leader.epoch - 1, state.epoch)
                self._folder.put(replace(state, epoch=leader.epoch))
            self._at_work = store, leader, pickups
            self._stack = stack.pop_all()
        return self._at_work

    def _elected(self, store: Store) -> Leader:
        deadline = time.monotonic() + self._patience
        while (leader := store.lead(f"stream {os.getpid()}")) is None:
            if time.monotonic() >= deadline:
                raise LogTaken(str(store.holder() or "by whom is not ours to see"))
            time.sleep(_LOOK)
        return leader

    def _epoch(self) -> int:
        _, leader, _ = self._lead()
        return leader.epoch

    def _at(self, offset: Offset) -> tuple[int, FolderState]:
        """Return the number of an offset that the folder can be at, and how far the stream is."""
        state = self._folder.state()
        if state is None:
            raise NoFolder(self._folder.name)
        if offset.get(_STREAM) != state.stream:
            raise OtherStream(self._folder.name)
        number = int(offset[_PICK_UP])
        if number < state.done:
            raise OldCheckpoint(self._folder.name, number, state.done)
        if number > state.taken:
            raise OldFolder(self._folder.name, number, state.taken)
        return number, state

    def _finish(self, number: int, state: FolderState) -> None:
        """Keep that a pick-up is out, then finish its rows."""
        if state.last is None or number <= self._finished:
            return
        _, _, pickups = self._lead()
        if state.done < number:
            self._folder.put(replace(state, done=number))
        pickups.finish(state.last.marks, state.last.objects)
        self._finished = number

    def _again(self, start: Offset, last: FrozenPickUp) -> Offset:
        """Give out a pick-up once more, if it is on its way still."""
        if last.number > self._checked:
            _, _, pickups = self._lead()
            if not pickups.remembers(last.marks):
                raise SettledElsewhere(last.number)
            self._checked = last.number
        return {**start, _PICK_UP: last.number}

    def _exhausted(self, pickups: PickUps) -> bool:
        """Return whether everything was taken that was there when the end was set."""
        return self._until is not None and (not pickups.full or pickups.first > self._until)

    def _freeze(self, number: int, taken: Taken) -> None:
        """Freeze a pick-up, before it is remembered."""
        state = self._folder.state()
        assert state is not None
        self._folder.put(replace(state, last=self._folder.freeze(number, taken)))
