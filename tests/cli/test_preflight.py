"""What `run` refuses before it publishes, and `check` names: contradictions of settings and tables."""

from __future__ import annotations

import pytest

from tests.kit.commands import Shell
from tests.kit.databases import Database
from tests.kit.statements import run_statements, select_rows

pytestmark = pytest.mark.quick

HTTP = ("--sink", "http", "--http-url", "http://127.0.0.1:1/")
CONTRADICTIONS = [
    (
        ("--sink", "files", "--document", "cloudevents-binary"),
        {},
        "--document is a setting of sink http, which takes no part here; what does: the sink, sink files",
    ),
    (
        ("--http-url", "http://127.0.0.1:1/"),
        {},
        "--http-url is a setting of sink http, which takes no part here; what does: the sink, sink stdout",
    ),
    (
        (),
        {"EVENTLOG_HTTP_URL": "http://127.0.0.1:1/"},
        "http-url is set and sink is not, so documents go to stdout: set sink to http, or to stdout",
    ),
    (
        ("--sink", "files"),
        {"EVENTLOG_DOCUMENT": "debezium"},
        "document is debezium, and the sink files sends XDS alone: leave it out, or set another sink",
    ),
    (
        (*HTTP, "--http-token", "t", "--http-user", "u", "--http-password", "p"),
        {},
        "http-user and http-token are two ways to log in: give one",
    ),
    ((*HTTP, "--http-user", "u"), {}, "http-user has no http-password: set it, "),
    (
        (*HTTP, "--http-password", "p"),
        {},
        "http-password has no http-user: set it, or leave",
    ),
    (
        (*HTTP, "--http-ca", "ca.pem"),
        {},
        "http-ca takes part with https alone, and http-url begins with http: change the address, or leave",
    ),
    (
        ("--startup-option", "future"),
        {},
        "--startup-option takes no part with publication-mode trigger: set another mode, or leave it out",
    ),
    (
        ("--time-of-day", "08:30:00", "--polling-interval", "7"),
        {},
        "time-of-day and polling-interval both name the times of cycles: leave one of them out",
    ),
    (
        (),
        {"EVENTLOG_MONITOR_TOKEN": "correct horse battery"},
        "monitor-token is set, and without monitor-port there is no page: set monitor-port, or leave",
    ),
    (
        ("--monitor-port", "0"),
        {"EVENTLOG_MONITOR_TOKEN": "hush!"},
        "EVENTLOG_MONITOR_TOKEN: a token of 5 characters can be guessed: give it 16 or more",
    ),
]


@pytest.mark.parametrize(("words", "variables", "reported"), CONTRADICTIONS)
def test_run_refuses_settings_that_contradict_each_other(
    shell: Shell, words: tuple[str, ...], variables: dict[str, str], reported: str
) -> None:
    done = shell.run("run", "--once", "--url", "postgresql://127.0.0.1:1/x", *words, **variables)
    assert (done.code, reported in done.stderr) == (2, True), done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_check_names_settings_that_contradict_each_other(shell: Shell, postgres: Database) -> None:
    settings = (
        f'url = "{postgres.address}"',
        'http-url = "http://127.0.0.1:1/"',
        'http-user = "u"',
        'time-of-day = "08:30:00"',
        "polling-interval = 7",
        'monitor-token = "correct horse battery"',
    )
    shell.with_files({"eventlog.toml": "\n".join(settings)})
    assert shell.run("install").code == 0
    done = shell.run("check")
    assert done.code == 1
    for words in (
        "http-url is set and sink is not, so documents go to stdout",
        "time-of-day and polling-interval both name the times of cycles",
        "monitor-token is set, and without monitor-port there is no page",
    ):
        assert words in done.stdout, done
    assert "http-user has no http-password" in shell.run("check", "--sink", "http").stdout
    refused = shell.run("check", "--compare-memory", "4")
    assert (refused.code, "--compare-memory takes no part with" in refused.stderr) == (2, True)
    refused = shell.run("check", "--files-folder", "documents")
    assert (refused.code, "--files-folder is a setting of sink files" in refused.stderr) == (2, True)


@pytest.mark.slow("it runs nine commands")
def test_a_table_that_triggers_log_is_not_compared(database: Database, shell: Shell) -> None:
    engine = database.engine()
    run_statements(engine, "create table usr (idu integer primary key, fname varchar(9))")
    shell.with_files({"eventlog.toml": f'url = "{database.address}"\nallow-loopback = true\n'})
    assert shell.run("install").code == 0
    assert shell.run("track", "usr").code == 0
    run_statements(engine, "insert into usr values (1, 'Jack')")

    refused = shell.run("run", "--once", "--mode", "compare")
    assert (refused.code, refused.stdout) == (2, "")
    assert "usr, and a publisher that compares would send each of them again" in refused.stderr
    assert [*select_rows(engine, "select count(*) from eventlog")] == [(1,)]
    done = shell.run("check", "--mode", "compare")
    assert (done.code, "would send each of them again" in done.stdout) == (1, True), done
    assert "  eventlog untrack " in done.stdout

    assert shell.run("run", "--once").stdout.count("<input>") == 1
    assert shell.run("untrack", "usr").code == 0
    compared = ("--mode", "compare", "--sync-tables", "usr", "--startup-option", "future")
    assert shell.run("run", "--once", *compared).code == 0
    assert "would send each of them again" not in shell.run("check", *compared).stdout


@pytest.mark.parametrize("mode", ["trigger", "compare"])
def test_a_schema_without_tables_is_named(postgres: Database, shell: Shell, mode: str) -> None:
    run_statements(postgres.engine(), "create table usr (idu integer primary key)")
    shell.with_files(
        {"eventlog.toml": f'url = "{postgres.address}"\npublication-mode = "{mode}"\nsync-tables = "usr"\n'}
    )
    assert shell.run("install").code == 0
    for words in (("--sync-schema", "hr"), ("--sync-schema", "public", "--include-table-filter", "no")):
        reported = f"sync-schema {words[1]} has no table or view that is published"
        for command in (("run", "--once"), ("check",)):
            done = shell.run(*command, *words)
            assert (done.code, reported in done.stdout + done.stderr) == (1, True), done
    assert shell.run("run", "--once", "--sync-schema", "public").code == 0
