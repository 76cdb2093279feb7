"""eventlog capture: the command over a server of ours, its settings, its ends."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from eventlog.core.settings import build
from eventlog.transfer.sources import capture_feed
from eventlog.transfer.sources.capture_settings import CaptureSettings
from tests.formats.gbase.live import ADDRESS, Live
from tests.kit.commands import Shell

pytestmark = pytest.mark.quick


def keys(text: str) -> list[tuple[str, int]]:
    return [(change["op"], change["key"]["k"]) for change in map(json.loads, text.splitlines())]


def test_a_second_run_goes_on_in_the_same_file(live: Live, tmp_path: Path) -> None:
    live.insert(1)
    words = ("--once", "--state", str(tmp_path / "state"), "-o", str(tmp_path / "out.jsonl"))
    assert live.capture(*words) == (0, "", "")
    live.insert(2)
    assert live.capture(*words) == (0, "", "")
    assert live.capture(*words) == (0, "", "")
    assert keys((tmp_path / "out.jsonl").read_text()) == [("snapshot", 1), ("insert", 2)]


def test_a_change_that_the_snapshot_shows_too_comes_again_marked(live: Live) -> None:
    live.world.server.full_rows.add("shop:own.t1")
    live.insert(1)  # in the log that the stream begins with, and in the snapshot
    code, out, _ = live.capture("--once")
    assert (code, keys(out)) == (0, [("snapshot", 1), ("insert", 1)])
    assert [line["extra"].get("overlap") for line in map(json.loads, out.splitlines())] == [None, True]


def test_what_is_refused_is_out_before_the_state_passes_it_over(live: Live, tmp_path: Path) -> None:
    """Keep what is refused when the next run goes on."""
    tables, bad = tmp_path / "tables.toml", tmp_path / "bad"
    tables.write_text(
        '[tables.t1]\nschema = "own"\nkey = ["z"]\ncolumns = { k = "integer", z = "integer" }\n'
    )
    words = ("--to", "xds", "--tables", str(tables), "--state", str(tmp_path / "state"))
    reported = ("--once", "--refused", str(bad), "-o", str(tmp_path / "out.xml"))
    reads = live.world.server.read
    seen: list[int] = []

    def read(session: int, size: int) -> bytes:
        seen.append(bad.read_bytes().count(b"\n"))
        return reads(session, size)

    live.world.server.read = read  # type: ignore[method-assign]
    assert live.capture(*words, *reported)[0] == 0
    for key in (1, 2):
        live.insert(key)
        assert live.capture(*words, *reported)[0] == 1
        assert seen[-1] == key  # before the stream is read on
    rows = map(json.loads, bad.read_text().splitlines())
    assert [row["fields"][0]["after"] for row in rows] == [1, 2]


def test_a_capture_goes_into_parquet_by_one_command(live: Live, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    words = ("--to", "qlik-table", "--output-as", "parquet", "-o", f"{folder}/")
    for key in (1, 2):
        live.insert(key)
        assert live.capture(*words, "--once", "--state", str(tmp_path / "state")) == (0, "", "")
    tables = [pq.read_table(path) for path in sorted(folder.glob("part-*/*.parquet"))]
    assert [table.column("k").to_pylist() for table in tables] == [[1], [2]]


def test_sigterm_ends_it_with_the_session_closed(live: Live) -> None:
    live.insert(1)
    reads = live.world.server.read

    def end(session: int, size: int) -> bytes:
        os.kill(os.getpid(), signal.SIGTERM)
        return reads(session, size)

    live.world.server.read = end  # type: ignore[method-assign]
    code, out, err = live.capture()
    assert (code, keys(out), err) == (0, [("snapshot", 1)], "")
    assert live.world.server.session is None
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_an_error_of_the_server_ends_it_with_one(live: Live) -> None:
    del live.world.server.schemas["shop:own.t1"]
    code, out, err = live.capture("--once")
    assert (code, out) == (1, "")
    assert "CDC_E_NOTAB" in err


def test_without_a_jar_it_says_where_one_is(shell: Shell) -> None:
    done = shell.run("capture", ADDRESS, "--table", "own.t1")
    assert done.code == 2
    assert "--jar" in done.stderr or "eventlog-publisher[informix]" in done.stderr


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("informix://cdc:geheim@localhost:9088/shop?server=ol1",), "password-file"),
        ((ADDRESS.replace("informix", "oracle"),), "informix:// or gbase://"),
        ((ADDRESS, "--password-file", "none"), "the secret in none"),
        ((ADDRESS, "--password-file", "/dev/zero"), "the secret in /dev/zero: it has more than 65536 bytes"),
        ((ADDRESS, "--snapshot-lock", "dirty"), "share"),
        ((ADDRESS, "--server-timeout", "0"), "between 1 and 3600"),
        ((ADDRESS, "--framed"), "No such option"),
        ((ADDRESS, "--to", "gbase"), "'changes'"),
    ],
)
def test_misuse_is_reported_and_no_password(shell: Shell, words: tuple[str, ...], reported: str) -> None:
    done = shell.run("capture", "--table", "own.t1", *words)
    assert done.code == 2
    assert reported in done.stderr
    assert "geheim" not in done.stderr + done.stdout


def test_the_password_is_of_a_file_or_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENTLOG_PASSWORD", "of the environment")
    (tmp_path / "secret").write_text("of the file\n")
    assert capture_feed.password_of(build(CaptureSettings, {})) == "of the environment"
    given = build(CaptureSettings, {"password_file": str(tmp_path / "secret")})
    assert capture_feed.password_of(given) == "of the file"
    assert "of the" not in repr(given)


def test_the_password_may_come_through_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("of the pipe\n",))
    writer.start()
    assert capture_feed.password_of(build(CaptureSettings, {"password_file": str(pipe)})) == "of the pipe"
    writer.join()
