"""The commands that look after a live log, each through its door."""

from __future__ import annotations

import json
import re
import shlex
import signal
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from eventlog.core.errors import Misuse
from eventlog.operate.upkeep import NotInLog, read_age
from eventlog.sinks.files import FilesSink
from tests.kit.logs import Receiver, busy, fail, key
from tests.kit.statements import run_statements
from tests.kit.terminal import Terminal
from tests.world.world import World, call

pytestmark = pytest.mark.quick


def failed(world: World, **row: Any) -> None:
    """Give rows 1 and 2 the letter E."""
    world.user(1)
    world.user(2)
    world.write(key(1, **row), key(2, **row))
    world.cycle(Receiver(fail))


def test_errors_by_reason_have_totals_and_commands_for_all_of_one(world: World) -> None:
    failed(world)
    world.write(key(3, event_type=9))
    world.cycle(Receiver())
    listed = call(world, "errors", "--by-reason")
    first, second = (line.split(maxsplit=1) for line in listed.stdout.splitlines())
    assert (first, second[0]) == (["2", "no eventlog:#"], "1")
    assert listed.stderr.splitlines() == [
        "eventlog: 3 rows failed in all",
        "eventlog: to send all rows of a reason again: `eventlog redrive --reason REASON`",
        "eventlog: to give them up: `eventlog skip --reason REASON --because WHY`",
    ]
    groups = [json.loads(line) for line in call(world, "errors", "--by-reason", "--json").stdout.splitlines()]
    assert groups[0] == {"text": "no eventlog:#", "rows": 2}
    alone = call(world, "errors", "--by-reason", "--reason", "no eventlog:9").stderr
    command = re.findall("`eventlog (redrive .*)`", alone)[0]
    assert command == "redrive --reason 'no eventlog:#'"
    assert call(world, "skip", "3", "--reason", "no eventlog:#", "--because", "x").stderr.splitlines() == [
        "eventlog: 0 rows are skipped",
        "eventlog: row 3 stays: not a failed row with that reason",
    ]
    assert "2 rows are new again" in call(world, *shlex.split(command)).stderr
    assert "1 row is skipped" in call(world, "skip", "--reason", second[1], "--because", "a test").stderr
    assert "".join(world.letters().values()) == "NNW"


def test_errors_names_each_row_with_its_reason(world: World) -> None:
    failed(world)
    lines = call(world, "errors").output.splitlines()
    assert [(line.split()[0], line.rpartition("  ")[2]) for line in lines] == [
        ("1", "no eventlog:1"),
        ("2", "no eventlog:2"),
    ]
    one = json.loads(call(world, "errors", "--json", "2").output)
    assert (one["record_id"], one["event_id"], one["table_key"]) == (2, "eventlog:2", "idu=2")
    assert one["document"].startswith("<nds")
    assert call(world, "errors", "--because", "eventlog:2").output.startswith("       2")
    assert "<nds" in call(world, "errors", "--with-document").output


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("errors --table usr --because nothing", "no row of these has failed"),
        ("errors 3", "row 3 has not failed: its status is N"),
        ("errors 1 --because nothing", "no row of these has failed"),
        ("redrive --table usr --because nothing", "no row of these has failed"),
        ("errors --because eventlog_2", "no row of these has failed"),
    ],
)
def test_that_nothing_is_there_is_reported(words: str, sentence: str, world: World) -> None:
    failed(world)
    world.write(key(3))
    done = call(world, *words.split())
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.startswith(f"eventlog: {sentence}\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("errors 99999", "row 99999 is not in the log"),
        ("errors 1 99998 99999", "rows 99998, 99999 are not in the log"),
        ("explain 99999", "row 99999 is not in the log"),
        ("explain 1 99998 99999", "rows 99998, 99999 are not in the log"),
        ("errors --table usrr", "no row of the log is of a table usrr, .*; did you mean usr?"),
        ("redrive --table usrr", "no row of the log is of a table usrr, .*; did you mean usr?"),
    ],
)
def test_a_row_or_a_table_that_is_nowhere_is_an_error(words: str, sentence: str, world: World) -> None:
    failed(world)
    done = call(world, *words.split())
    assert re.match(sentence, str(done.exception))
    assert isinstance(done.exception, NotInLog)


@pytest.mark.parametrize("command", ["errors", "explain"])
def test_rows_that_are_there_are_listed_before_the_absent_are_named(world: World, command: str) -> None:
    failed(world)
    assert call(world, command, "1", "99999").stdout.startswith("       1  ")


def test_redrive_of_rows_that_are_nowhere_says_so(world: World) -> None:
    failed(world)
    world.write(key(3))
    done = call(world, "redrive", "3", "99999")
    assert done.exit_code == 1
    assert done.stderr.splitlines()[:3] == [
        "eventlog: 0 rows are new again",
        "eventlog: row 3 stays: it did not fail",
        "eventlog: row 99999 stays: not in the log",
    ]


def test_a_table_that_is_published_and_has_no_row_is_none(world: World) -> None:
    done = call(world, "errors", "--table", "usr")
    assert (done.exit_code, done.stderr) == (0, "eventlog: no row of these has failed\n")


def test_check_names_rows_that_failed_and_nothing_else(world: World) -> None:
    assert "failed" not in call(world, "check").output
    failed(world)
    assert "2 rows have failed and will not be sent again by themselves" in call(world, "check").output


@pytest.mark.parametrize(
    ("words", "letters"),
    [
        (["1"], "NE"),
        (["--all"], "NN"),
        (["--table", "usr"], "NN"),
        (["--because", "eventlog:2"], "EN"),
        (["--because", "eventlog_2"], "EE"),
    ],
)
def test_redrive_makes_failed_rows_new(world: World, words: list[str], letters: str) -> None:
    failed(world)
    assert call(world, "redrive", *words).exit_code == 0
    assert "".join(world.letters().values()) == letters


def test_redrive_wants_to_know_which(world: World) -> None:
    assert "which rows" in str(call(world, "redrive").exception)


def test_skip_gives_rows_up_and_keeps_why(world: World) -> None:
    failed(world)
    world.write(key(1))
    assert call(world, "skip", "1", "3", "--because", "test data").exit_code == 0
    assert world.letters() == {1: "W", 2: "E", 3: "W"}
    assert [failed.record_id for failed in world.failures()] == [2]
    with world.store.admin() as admin:
        assert (admin.notices()[0].record_ids, admin.notices()[0].words) == ((1, 3), "test data")
    status = call(world, "status").output
    assert "E error      1  (usr 1)\n" in status
    assert "W warning    2  (usr 2), those that `eventlog history` names were skipped\n" in status
    assert call(world, "skip", "99", "--because", "x").exit_code == 1
    assert call(world, "skip", "2").exit_code == 2


def test_status_counts_what_the_last_cycle_did(world: World) -> None:
    world.write(key(1, event_type=4))
    assert call(world, "run", "--once", "--sink", "stdout").exit_code == 0
    assert ": 1 row, 1 document, 1 event, 0 refused, in " in call(world, "status").output


def test_a_skipped_event_that_waited_frees_its_object_at_once(world: World) -> None:
    world.write(key(1, event_type=4))
    with world.publisher(Receiver(busy)) as publisher:
        publisher.cycle()
        world.write(key(1, event_type=4))
        publisher.cycle()
        assert world.letters() == {1: "N", 2: "N"}
        assert call(world, "skip", "1", "--because", "sent by hand").exit_code == 0
        publisher.cycle()
    assert world.letters() == {1: "W", 2: "N"}  # the second was sent, and waits for itself
    with world.store.admin() as admin:
        assert admin.backlog().waiting == 1


def test_retry_sends_waiting_events_now(world: World) -> None:
    world.write(*(key(number, event_type=4) for number in (1, 2, 3)))
    world.cycle(Receiver(busy))
    result = call(world, "retry", "1", "--by", "ada")
    no_one = "eventlog: nothing goes at present: no publisher leads, as far as the database shows\n"
    assert (result.exit_code, result.stderr) == (0, f"eventlog: 1 row goes again now\n{no_one}")
    assert world.cycle(Receiver()).events == 1
    assert call(world, "retry", "--all").stderr == f"eventlog: 2 rows go again now\n{no_one}"
    assert "ada" in call(world, "history").output
    world.cycle(Receiver())
    assert world.counts() == {"S": 3}
    assert call(world, "retry", "--all").stderr == (
        "eventlog: no event waits, and the receiver is not down: nothing was changed\n"
    )
    result = call(world, "retry", "2")
    assert (result.exit_code, result.stderr) == (1, "eventlog: row 2 does not wait: its status is S\n")
    assert str(call(world, "retry", "77", "78").exception) == "rows 77, 78 are not in the log"
    assert str(call(world, "retry").exception) == "which rows? name record_ids, or --all"


def test_status_has_an_exit_code_for_scripts(world: World) -> None:
    def code(**environment: str) -> int:
        return call(world, "status", "--exit-code", **environment).exit_code

    assert (code(), call(world, "status").exit_code) == (0, 0)
    world.write(key(1, event_type=4))
    assert code() == 1  # nothing publishes, and that may start soon
    with world.elect():
        assert code() == 0
        world.write(key(2, event_type=4, event_time="2025-03-23 10:57:19"))
        assert code() == 2  # it has been pending for too long
    failed(world)
    assert (code(), call(world, "status").exit_code) == (2, 0)
    report = json.loads(call(world, "status", "--json", "--exit-code").stdout)
    assert [state["state"] for state in report["states"]][-1] == "failed"
    assert report["log_bytes"] is None or report["log_bytes"] > 1000
    unseen = call(world, "status", "--exit-code", EVENTLOG_LOG_TABLE="nowhere")
    assert isinstance(unseen.exception, Misuse)


def test_status_begins_with_the_log_and_who_publishes_it(world: World) -> None:
    def first_lines() -> list[list[str]]:
        return [line.split(maxsplit=1) for line in call(world, "status").stdout.splitlines()[:3]]

    with world.elect():
        log, publisher, state = first_lines()
        report = json.loads(call(world, "status", "--json").stdout)
    url = world.engine.url
    assert log[1].startswith(f"{url.database}/eventlog on ")
    assert publisher[1].startswith("test, since ")
    assert state[0] == "state"
    assert [*report][:3] == ["log", "publisher", "states"]
    assert (report["log"]["database"], report["publisher"]) == (url.database, "test")
    (_, publisher, _), report = first_lines(), json.loads(call(world, "status", "--json").stdout)
    assert publisher[1].startswith("none; the last one was test, since ")
    assert report["publisher"] is None


def test_a_watch_shows_the_state_again_in_place(world: World, tmp_path: Path) -> None:
    terminal = Terminal(
        tmp_path, "status", "--watch", variables={"EVENTLOG_URL": world.url, "COLUMNS": "200"}
    )
    terminal.read_until(b"Idle")
    world.write(key(1, event_type=4))
    terminal.read_until(b"1 row is pending")
    terminal.process.send_signal(signal.SIGINT)
    terminal.read_until(None)
    assert terminal.close() == 0
    assert terminal.written.count(b"\x1b[2J") >= 2
    assert "--watch does not end" in str(call(world, "status", "--watch", "--exit-code").exception)


def test_pause_and_resume(world: World) -> None:
    call(world, "pause", "--because", "upgrade")
    assert "upgrade" in call(world, "status").output
    call(world, "resume")
    assert "upgrade" not in call(world, "status").output


def test_purge_deletes_only_what_is_handled_unless_reported_by_name(world: World) -> None:
    failed(world)
    world.write(*(key(2, event_type=4) for _ in range(3)))
    world.cycle(Receiver())
    world.write(key(1))
    assert world.counts() == {"E": 2, "S": 3, "N": 1}
    assert call(world, "purge", "--older-than", "1d").exit_code == 0
    assert world.counts() == {"E": 2, "S": 3, "N": 1}
    call(world, "purge", "--older-than", "0s", "--chunk", "2")
    assert world.counts() == {"E": 2, "N": 1}
    call(world, "purge", "--older-than", "0s", "--letters", "E")
    assert world.counts() == {"N": 1}
    assert world.failures() == []


def test_a_purge_goes_on_where_rows_of_a_chunk_stay(world: World) -> None:
    """Let a trigger keep a row, as if another purge had deleted it after the chunk was chosen."""
    if world.log.dialect.name != "postgresql":
        pytest.skip("no trigger keeps a row there")
    world.write(*(key(2, event_type=4) for _ in range(5)))
    world.cycle(Receiver())
    run_statements(
        world.engine,
        "create function stay() returns trigger language plpgsql as $$begin return null; end$$",
        f"create trigger stay before delete on {world.log.names()['log']} for each row"
        " when (old.record_id = 1) execute function stay()",
    )
    try:
        assert "4 rows" in call(world, "purge", "--older-than", "0s", "--chunk", "2").stderr
        assert world.letters() == {1: "S"}
    finally:
        run_statements(world.engine, "drop function stay cascade")


def test_an_age_is_a_span_or_a_time() -> None:
    now = datetime(2025, 3, 23, 10)
    assert read_age("30d", now) == datetime(2025, 2, 21, 10)
    assert read_age("2 h", now) == datetime(2025, 3, 23, 8)
    assert read_age("2025-01-01 00:00:00", now) == datetime(2025, 1, 1)
    assert read_age("2025-01-01T00:00:00+02:00", now) == datetime(2024, 12, 31, 22)
    assert read_age("2025-01-01 00:00:00Z", now) == datetime(2025, 1, 1)
    for wrong in ("30", "d", "99999999999d", "0001-01-01T00:00:00+02:00"):
        with pytest.raises(Misuse):
            read_age(wrong, now)


def test_status_tells_how_the_log_stands(world: World) -> None:
    failed(world)
    world.write(key(1))
    facts = json.loads(call(world, "status", "--json").output)
    assert (facts["pending"], facts["counts"]) == (1, {"E": {"usr": 2}, "N": {"usr": 1}})
    assert 0 <= facts["oldest_age"] < 60
    assert facts["leader"] == "test"
    assert "pending" in call(world, "status").output


def test_check_says_who_may_read_the_status_page(world: World) -> None:
    def reported(**environment: str) -> bool:
        return "may read the status page, without a token" in call(world, "check", **environment).output

    assert reported(EVENTLOG_MONITOR_PORT="9780", EVENTLOG_MONITOR_HOST="0.0.0.0")
    assert not reported(EVENTLOG_MONITOR_PORT="9780")
    assert not reported(EVENTLOG_MONITOR_HOST="0.0.0.0")


def test_check_takes_the_settings_of_run_for_what_rows_will_become(world: World) -> None:
    """A row of the connected user, one of idm, one of an unknown column, one of an unknown table."""
    user = str(world.engine.url.username)
    world.write(
        key(1, perpetrator=user),
        key(1, perpetrator="idm"),
        key(1, event_type=3, column_name="age", new_value="7"),
        {"event_type": 4, "table_name": "dept", "table_key": "id=1"},
        {"event_type": 6, "table_name": "dept", "table_key": "id=1"},
        {"event_type": 4, "table_key": "IDU=1"},
    )

    def reported(*words: str) -> list[str]:
        """Return what check reports of pending rows."""
        lines = call(world, "check", *words).stdout.splitlines()
        findings = (line.removeprefix("eventlog: ") for line in lines if line.startswith("eventlog: "))
        return [finding for finding in findings if " pending " in finding]

    of = "the work of {}, {}: such count as loopback and are not published"
    own = f"1 pending row is {of.format(user, 'as whom the publisher connects')}"
    named = f"1 pending row is {of.format('idm', 'whom driver-user names')}"
    column = "1 pending row names column 'age', which {}usr lacks: "
    is_sent = column + "values leave as strings, and types 7 and 8 bring none"
    dept = "{} dept, which is no table or view that is published"
    forms = "1 pending objects have two associations"
    everything = reported("--association", "as-logged")
    assert own in everything
    assert dept.format("2 pending rows name") in everything
    assert any(line.startswith(forms) for line in everything)
    place = next(line for line in everything if "'age'" in line).partition("which ")[2].partition("usr")[0]
    assert is_sent.format(place) in everything
    adapted = reported(
        *("--driver-user", "idm", "--unknown-columns", "refuse", "--unknown-tables", "string"),
        *("--association", "canonical"),
    )
    assert named in adapted
    assert dept.format("1 pending row names") in adapted
    assert column.format(place) + "they will get E" in adapted
    assert not any(line == own or line.startswith(forms) for line in adapted)
    assert not any("loopback" in line for line in reported("--allow-loopback"))
    assert any("loopback" in line for line in reported("--no-allow-loopback"))


@pytest.mark.parametrize("mode", ["compare", "slot"])
def test_check_takes_the_mode_of_run(world: World, mode: str) -> None:
    called = call(world, "check", "--mode", mode)
    assert called.output == call(world, "check", EVENTLOG_PUBLICATION_MODE=mode).output
    assert called.exit_code != 2


def test_check_warns_of_a_statement_that_names_the_log(world: World) -> None:
    def warns(statement: str) -> bool:
        return "names the log" in call(world, "check", EVENTLOG_POST_POLL_STMT=statement).output

    assert warns("call tidy(); truncate EVENTLOG")
    assert warns('delete from app."eventlog_retry"')
    assert not warns("insert into archive_of_eventlog values (1)")


def test_check_reports_a_sink_with_which_this_machine_could_not_take_over(
    world: World, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    for folder, code in (("out", 0), ("file/out", 1)):
        sink = {"EVENTLOG_SINK": "files", "EVENTLOG_FILES_FOLDER": str(tmp_path / folder)}
        checked = call(world, "check", **sink)
        assert ("sink files: it cannot be opened here" in checked.output) == bool(code), checked.output


def test_check_names_files_of_the_first_version_in_the_folder(world: World, tmp_path: Path) -> None:
    world.write(key(1, event_type=4), key(2, event_type=4))
    with closing(FilesSink(tmp_path / "out")) as sink:
        world.cycle(sink, batch_size=1)
    sink_settings = {"EVENTLOG_SINK": "files", "EVENTLOG_FILES_FOLDER": str(tmp_path / "out")}
    assert "sink files" not in call(world, "check", **sink_settings).output
    for path in sorted((tmp_path / "out").glob("*.xml")):
        path.rename(path.with_name(path.name.partition("-")[2]))
    (tmp_path / "out" / ".eventlog" / "record").write_text("\n1-1 out\n\n2-2 out\n")
    checked = call(world, "check", **sink_settings)
    assert checked.exit_code == 1
    words = " ".join(checked.output.split())
    assert "sink files: 2 files have no number in the name, as 1-1.xml: by name they do not come" in words
    assert "read them with convert, apply, backlog or audit, which go by the record in .eventlog" in words


def test_preview_prints_what_the_next_cycle_would_send_and_changes_nothing(world: World) -> None:
    world.user(1)
    world.write(key(1), key(1, event_type=9))
    result = call(world, "preview")
    assert result.exit_code == 1
    assert result.stdout.count("<nds") == 1
    assert 'event-id="eventlog:1"' in result.stdout
    assert "row 2 would get E" in result.stderr
    assert world.letters() == {1: "N", 2: "N"}
    assert "\n  <input>" in call(world, "preview", "--pretty").stdout


def test_explain_tells_what_becomes_of_each_row(world: World) -> None:
    world.user(1)
    world.write(key(1), key(1), key(2), {"table_key": "idu=3", "table_name": "secrets"})
    lines = call(world, "explain").stdout.splitlines()
    for words, line in zip(["pending", "superseded", "without effect", "refused"], lines, strict=True):
        assert words in line
    world.cycle(Receiver())
    line, *_ = call(world, "explain", "--table", "usr", "--key", "idu=1").output.splitlines()
    assert "sent in eventlog:1-2:17f8af97: document 1-2, answered at 20" in line


def test_every_fault_of_the_settings_is_named_at_once(world: World, tmp_path: Path) -> None:
    file = tmp_path / "eventlog.toml"
    file.write_text('polling-interval = 0\nno-such = 1\n[tables.usr]\nhide = ["x"]\n')
    result = call(
        world,
        "run",
        "--once",
        "--config",
        str(file),
        "--batch-size",
        "100001",
        EVENTLOG_TIME_OF_DAY="25:00:00",
    )
    reported = str(result.exception)
    for words in ("polling-interval", "no-such", "[tables.usr] hide", "--batch-size", "EVENTLOG_TIME_OF_DAY"):
        assert words in reported


def test_no_secret_is_reported(world: World) -> None:
    world.user(1)
    password = str(world.engine.url.password)
    for words in (["status"], ["status", "--json"], ["run", "--once", "-v"], ["errors"]):
        result = call(world, *words, "--log-table", "nowhere")
        assert password not in result.output + str(result.exception)
