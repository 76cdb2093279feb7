"""A lake in a store: two writers, and a store that goes away in the middle of a round."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from eventlog.core.change import Change, Op
from eventlog.transfer.job import Job
from eventlog.transfer.targets.lake.delta_table import DeltaPlace
from eventlog.transfer.targets.lake.lake_place import LakeFailed
from eventlog.transfer.targets.tables.outcomes import OtherApply
from tests.kit import storage
from tests.kit.lake import apply_place, at_each_commit, write_changes
from tests.transfer.lake.growing import JACK, JANE, TABLES
from tests.transfer.lake.test_lake_rounds import on_commit
from tests.transfer.targets.model import changed

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(
        not storage.ADDRESS, reason="EVENTLOG_TEST_S3 names no S3 server: .ci/storage starts one"
    ),
]

JOHN = changed(Op.UPDATE, 1, fname="John")


class Gate:
    """A way to the server that can be shut."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self._sockets = [self._server]
        threading.Thread(target=self._accept, daemon=True).start()

    def shut(self) -> None:
        """Cut every connection, and take no other."""
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        host, _, port = storage.ADDRESS.removeprefix("http://").partition(":")
        with suppress(OSError):
            while True:
                pair = self._server.accept()[0], socket.create_connection((host, int(port)))
                self._sockets += pair
                for reader, writer in (pair, pair[::-1]):
                    threading.Thread(target=_carry, args=(reader, writer), daemon=True).start()


def _carry(reader: socket.socket, writer: socket.socket) -> None:
    with suppress(OSError):
        while data := reader.recv(1 << 16):
            writer.sendall(data)
        writer.shutdown(socket.SHUT_WR)


class StoredLake:
    """A lake in a bucket of its own, and the file of changes that is applied to it."""

    def __init__(self, folder: Path) -> None:
        self.place = f"s3://{storage.bucket()}/lake"
        self._path = folder / "changes.jsonl"

    def apply(self, *changes: Change, lake_options: str = "") -> int:
        """Apply a file of these changes, and return how many were new."""
        write_changes(self._path, changes)
        job = Job("changes", "changes", (str(self._path),), tables=TABLES)
        tally = apply_place(f"delta:{self.place}", job, lake_options=lake_options).tally
        return len(changes) - tally.skipped

    def rows(self) -> list[dict[str, Any]]:
        snapshot = DeltaPlace(self.place, {}).open("usr")
        assert snapshot is not None
        rows: list[dict[str, Any]] = snapshot.rows(["idu", "fname"]).sort_by("idu").to_pylist()
        return rows


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoredLake:
    for name, value in storage.variables().items():
        monkeypatch.setenv(name, value)
    return StoredLake(tmp_path)


def test_two_writers_of_a_store_are_kept_apart(lake: StoredLake, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lake.apply(JACK, JANE) == 2
    other = on_commit(2, lambda: lake.apply(JACK, JANE, JOHN))
    with pytest.raises(OtherApply), at_each_commit(monkeypatch, other):
        lake.apply(JACK, JANE, JOHN)
    assert lake.apply(JACK, JANE, JOHN) == 0
    assert [row["fname"] for row in lake.rows()] == ["John", "Jane"]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_store_that_goes_away_is_one_sentence_and_the_round_is_ended_later(
    lake: StoredLake, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    lake.apply(JACK, JANE)
    gate = Gate()
    with monkeypatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", gate.address)
        quick = "max_retries=1,retry_timeout=2s"
        with at_each_commit(monkeypatch, on_commit(number, gate.shut)), pytest.raises(LakeFailed) as failed:
            lake.apply(JACK, JANE, JOHN, lake_options=quick)
    assert "\n" not in str(failed.value)
    assert lake.apply(JACK, JANE, JOHN) == (0 if number == 3 else 1)
    assert [row["fname"] for row in lake.rows()] == ["John", "Jane"]
