"""What earlier runs came to, a line of JSON each, so that a run can be compared with the last one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from eventlog.core.errors import EventlogError
from eventlog.web.words import count, duration


@dataclass(frozen=True)
class BacklogRun:
    """The result of one run."""

    ended: str
    source: str
    target: str
    rows: int
    refused: int
    seconds: float
    phases: Mapping[str, float]

    @property
    def speed(self) -> float:
        """Return rows a second."""
        return self.rows / max(self.seconds, 0.001)


class NotARun(EventlogError):
    """--history: line {1} of {0} is no run of a backlog"""


def last(path: Path, source: str, target: str) -> BacklogRun | None:
    """Return the last run between these formats, or None if there is none, or no file yet."""
    if not path.exists():
        return None
    found = None
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            run = _read(path, number, line)
            if (run.source, run.target) == (source, target):
                found = run
    return found


def _read(path: Path, number: int, line: str) -> BacklogRun:
    try:
        run = BacklogRun(**json.loads(line))
        phases = {str(name): float(seconds) for name, seconds in run.phases.items()}
        facts = str(run.ended), str(run.source), str(run.target), int(run.rows), int(run.refused)
        return BacklogRun(*facts, float(run.seconds), phases)
    except (ValueError, TypeError, AttributeError, RecursionError) as fault:
        raise NotARun(path, number) from fault


def note(path: Path, run: BacklogRun) -> None:
    """Keep what this run came to."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(run)) + "\n")


def compared(now: BacklogRun, before: BacklogRun) -> list[str]:
    """Return how this run differs from the last one, as a sentence."""
    rows = f"{count(before.rows)} rows in {duration(before.seconds)}, {count(round(before.speed))} rows/s"
    lines = [f"the last run ({before.ended}): {rows}; this one is {_faster(now.speed, before.speed)}"]
    if now.refused != before.refused:
        more = "more" if now.refused > before.refused else "fewer"
        lines.append(f"{count(abs(now.refused - before.refused))} {more} left out than in the last run")
    slower = [
        f"{name} took {duration(seconds)}, in the last run {duration(before.phases[name])}"
        for name, seconds in now.phases.items()
        if name in before.phases and seconds > 1.5 * before.phases[name] and seconds > before.phases[name] + 5
    ]
    return lines + slower


def _faster(now: float, before: float) -> str:
    if not before or not now:
        return "not to be compared"
    percent = round(100 * (now / before - 1))
    return "as fast" if not percent else f"{abs(percent)} % {'faster' if percent > 0 else 'slower'}"
