"""The disk is full: the daemon waits, and when there is room again every event is out, each once."""

from __future__ import annotations

import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.logs import events_of, key
from tests.kit.support import patient, until
from tests.world.world import World, call, publishing

pytestmark = pytest.mark.quick
EVENTS = 60
LONG = "x" * 8_000
ROOM = 200_000  # bytes: less than half of the events need


@contextmanager
def publishing_and_stopped(world: World, folder: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A publisher that writes files, and ends in order."""
    words = ("--reconnect", "1", "--batch-size", "2")
    with log.open("wb") as out, publishing(world, folder, *words, stderr=out) as process:
        yield process
        process.terminate()
        assert process.wait(patient(20)) == 0, log.read_text()


def fill(world: World) -> None:
    world.write(
        *(key(n, event_type=1, column_name="fname", new_value=f"{n} {LONG}") for n in range(1, EVENTS + 1))
    )


def event_ids(folder: Path) -> list[str]:
    """Return the event-ids of all documents; each document must be whole."""
    return sorted(
        str(event.get("event-id")) for path in folder.glob("*.xml") for event in events_of(path.read_text())
    )


EXPECTED = sorted(f"eventlog:{number}" for number in range(1, EVENTS + 1))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "eventlog-test", str(place)], capture_output=True
    )
    if mount.returncode:
        pytest.skip(f"no small file system can be mounted here: {mount.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.long
def test_a_full_disk_delays_and_loses_nothing(world: World, small_disk: Path, tmp_path: Path) -> None:
    fill(world)
    folder, taken, log = small_disk / "out", tmp_path / "taken", tmp_path / "log"
    taken.mkdir()

    def taken_all() -> bool:
        """Take files away, which makes room; return whether all rows are finished."""
        for path in folder.glob("*.xml"):
            shutil.move(path, taken / path.name)
        return world.counts() == {"S": EVENTS}

    with publishing_and_stopped(world, folder, log):
        until(lambda: "No space left" in log.read_text())
        assert world.counts()["N"] > 0
        remedy = (
            f"take documents that were read away from the full folder {folder}, then `eventlog retry --all`"
        )
        until(lambda: remedy in call(world, "status").output)
        until(taken_all)
    taken_all()
    assert event_ids(taken) == EXPECTED


def test_documents_that_are_too_large_for_the_file_system_are_divided(world: World, tmp_path: Path) -> None:
    """Divide documents if the file system takes no longer files, because waiting would not help."""
    folder, log = tmp_path / "out", tmp_path / "log"
    with publishing_and_stopped(world, folder, log) as process:
        until(lambda: (folder / ".eventlog" / "record").exists())
        may_grow(process, 10_000)
        fill(world)
        world.write(key(0, event_type=1, column_name="fname", new_value=LONG * 2))
        until(lambda: world.counts() == {"S": EVENTS, "E": 1})
    assert event_ids(folder) == EXPECTED
    assert [failed.reason for failed in world.failures()] == [f"folder {folder}: File too large"]


def may_grow(process: subprocess.Popen[bytes], max_bytes: int) -> None:
    """Limit how long a file the process may write."""
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (max_bytes, resource.RLIM_INFINITY))
