"""Publishers to one folder are killed at random instants under load: it has each event once.

EVENTLOG_PROOF_SECONDS, _KILLS and _SEED make it longer, or another. No process is killed before a document
has arrived since the last kill, because a starting process loses nothing.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from eventlog.files.document_folder import in_order
from tests.kit.commands import Shell
from tests.kit.databases import Database
from tests.kit.support import until
from tests.world.rig import KILLS, PATIENCE, SECONDS, Rig, events_of

UPDATE, DELETE = False, True  # handled rows
PAUSE = SECONDS / KILLS / 3  # the longest time between something that comes and a kill
SMALL = ("--batch-size", "3", "--query-limit", "20")  # so that cycles are full


def await_one_more(folder: Path) -> None:
    """Wait until one more document has arrived than now."""
    before = len(list(folder.glob("*.xml")))
    until(lambda: len(list(folder.glob("*.xml"))) > before, PATIENCE)


def kill_and_restart(rig: Rig, folder: Path, *words: str) -> None:
    """Run two publishers under load; one is killed and started anew at random instants."""
    for _ in range(2):
        rig.start(*words)
    with rig.writing():
        for _ in range(KILLS):
            await_one_more(folder)
            time.sleep(rig.random.random() * PAUSE)
            rig.kill_one()
            rig.start(*words)
    rig.drain()


@pytest.mark.one_database
@pytest.mark.long  # it starts a dozen publishers, and kills six of them
@pytest.mark.parametrize(("deletes", "more"), [(UPDATE, ()), (DELETE, ()), (DELETE, ("--files-per-batch",))])
def test_a_folder_has_every_event_once(
    database: Database, tmp_path: Path, deletes: bool, more: tuple[str, ...]
) -> None:
    rig = Rig(database, tmp_path)
    rig.delete_from_log = deletes
    folder = tmp_path / "out"
    try:
        kill_and_restart(rig, folder, "--sink", "files", "--files-folder", "out", *more, *SMALL)
    finally:
        rig.close()
    documents = [line for path in folder.glob("*.xml") for line in path.read_text().splitlines()]
    names = [event.get("event-id") for document in documents for event in events_of(document)]
    assert len(set(names)) == len(names) > 0
    paths = sorted(map(str, folder.glob("*.xml")))
    assert in_order(paths) == paths  # that of the record
    numbers = [Path(path).name.partition("-")[0] for path in paths]
    assert len(set(numbers)) == len(numbers)
    audited = Shell(tmp_path).run(
        *("audit", "--delivered", "out", "--state", "--allow-loopback"), EVENTLOG_URL=rig.url
    )
    assert audited.code == 0, audited
