"""The law of resuming: a run that was stopped anywhere and begins anew gives what an unstopped one gives.

A trial is a small world with a program that keeps a state. Its input grows in stages, each after a round.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from eventlog.core.errors import Refused
from eventlog.files.durable import open_to_append
from eventlog.transfer.loop import RunLength
from eventlog.transfer.report import Report
from tests.laws.resume.stops import How, Meter, MeteredReport, Stop, stop_at, stops


class Document(NamedTuple):
    """A document that came out: the object, the name of the change, and the text."""

    of: str
    name: str
    text: str


class Trial(Protocol):
    """A program that keeps a state, with its input and its output."""

    folder: Path
    stages: int  # in which its input grows
    idle: int  # rounds that a run makes after its input has grown for the last time
    repeats: bool  # whether a run repeats what came out after the last state

    def add(self, stage: int) -> None:
        """Add a stage to the input."""

    def metered(self, meter: Meter) -> AbstractContextManager[object]:
        """Count the durable steps of the program inside the block."""

    def run(self, report: Report, length: RunLength) -> None:
        """Run the program from the state that it kept."""

    def documents(self) -> list[Document]:
        """Return what came out."""


class Result(NamedTuple):
    """The documents of a trial, and the reasons of what was refused."""

    documents: Sequence[Document]
    refused: frozenset[str]
    rejects: frozenset[bytes]  # lines of the file of refused records


def run_once(trial: Trial, meter: Meter) -> None:
    """Run the program until its input grows no more, or the meter stops it."""

    idle = iter(range(trial.idle))

    def wait(seconds: float) -> bool:
        with meter.paused():
            return _grow(trial) or next(idle, None) is not None

    def show(refused: Refused) -> None:
        if refused.fault:
            with (trial.folder / "shown").open("a") as file:
                file.write(f"{refused.reason}\n")

    with trial.metered(meter), open_to_append(trial.folder / "rejects") as rejects:
        trial.run(MeteredReport(meter, show, rejects), RunLength(True, wait, lambda: meter.is_ended))


def _grow(trial: Trial) -> bool:
    """Add the next stage of the input, if there is one."""
    counter = trial.folder / "stage"
    stage = int(counter.read_text()) if counter.exists() else 0
    if stage == trial.stages:
        return False
    trial.add(stage)
    counter.write_text(str(stage + 1))
    return True


def _result(trial: Trial) -> Result:
    shown = (trial.folder / "shown").read_text().replace(str(trial.folder), "").splitlines()
    rejects = (trial.folder / "rejects").read_bytes().splitlines()
    return Result(trial.documents(), frozenset(shown), frozenset(rejects))


class Reference:
    """An unstopped run of a trial: what came out, and every point at which it can be stopped."""

    def __init__(self, make: Callable[[Path], Trial], folder: Path) -> None:
        self._make = make
        self._folder = folder
        self._count = 0
        trial, meter = self._begin(), Meter()
        run_once(trial, meter)
        self.meter = meter
        self.expected = _result(trial)
        assert self.expected.documents, "the trial gives nothing"

    def _begin(self) -> Trial:
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        trial = self._make(folder)
        (folder / "shown").touch()
        _grow(trial)
        return trial

    def stops(self, hows: Sequence[How] = tuple(How)) -> Iterator[Stop]:
        """Yield each point at which a run can be stopped."""
        yield from stops(self.meter, hows)

    def describe(self, stop: Stop) -> str:
        """Return a stop with the name of its step."""
        return str(stop) if stop.when is None else f"{stop} {self.meter.steps[stop.number].name}"

    def check(self, *points: Stop) -> None:
        """Stop runs at these points, one after the other, run to the end, and compare.

        A run that goes on from a stop may end before it reaches the next one.
        """
        trial = self._begin()
        for number, point in enumerate(points):
            stop_at(lambda meter: run_once(trial, meter), point, is_certain=number == 0)
            gc.collect()  # a session whose run was interrupted ends, as that of a process does
        run_once(trial, Meter())
        result = _result(trial)
        if trial.repeats:
            check_repeats(result.documents, self.expected.documents)
        else:
            right = self.expected.documents
            assert result.documents == right, f"documents: {result.documents}, and not {right}"
        refused = result.refused ^ self.expected.refused
        assert not refused, f"refused records that differ: {refused}"
        missing = self.expected.rejects - result.rejects
        assert not missing, f"rejects that are missing: {missing}"
        run_once(trial, Meter())
        assert _result(trial).documents == result.documents, "a run without anything new writes nothing"


def check_repeats(documents: Sequence[Document], expected: Sequence[Document]) -> None:
    """Raise AssertionError unless each object's documents are the expected ones, some of them repeated.

    A repetition begins at some document and contains all that follow.
    """
    expected_of, documents_of = _by_object(expected), _by_object(documents)
    assert documents_of.keys() == expected_of.keys()
    for of, right in expected_of.items():
        places = {document: number for number, document in enumerate(right)}
        following = 0
        for document in documents_of[of]:
            assert document in places, f"{document} never came out of an unstopped run"
            assert places[document] <= following, f"{document} came out before those that precede it"
            following = places[document] + 1
        assert following == len(right), f"the last of {of} are missing: {right[following:]}"


def _by_object(documents: Sequence[Document]) -> dict[str, list[Document]]:
    by_object: dict[str, list[Document]] = defaultdict(list)
    for document in documents:
        by_object[document.of].append(document)
    return by_object
