"""The reports of commands whose words do not fit together: which word, why, and what would be right."""

from __future__ import annotations

import pytest

from tests.kit.commands import Shell
from tests.kit.databases import Database
from tests.kit.statements import run_statements

pytestmark = pytest.mark.quick

TABLES = '[tables.usr]\nkey = ["idu"]\ncolumns = { idu = "integer", fname = "varchar(64)" }\n'
LOG = (
    "record_id,status,event_type,event_time,perpetrator,table_name,table_key,column_name,old_value,new_value\n"
    "1,N,2,2025-01-01 00:00:00,x,usr,idu=1,fname,a,b\n"
)
FILES = {
    "usr.toml": TABLES,
    "log.csv": LOG,
    "unquoted.toml": "[tables.usr]\nschema = direct\n",
    "junk.csv.gz": "a\n",
    "notes.txt": "What came from the server:\n\n10 00 00 00\n",
}
HTTP = ("run", "--sink", "http", "--http-url", "https://127.0.0.1:1/")
FROM_LOG = ("convert", "--from", "log", "--to", "xds", "--tables", "usr.toml")


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (
            ("convert", "--from", "qlik-table", "--to", "xds", "--kafka", "changes", "usr__ct.csv"),
            "takes no part here; what does: the input, xds, qlik-table, a stream",
        ),
        (
            (*FROM_LOG, "--url", "postgresql://x/y", "log.csv"),
            "--url is no place for log or xds, only for qlik-table, linter, gbase",
        ),
        (
            (
                "apply",
                "--from",
                "debezium",
                "--to-url",
                "postgresql://x/y",
                "--url",
                "postgresql://x/z",
                "m.jsonl",
            ),
            "--url is no place for debezium, only for qlik-table, linter, gbase",
        ),
        ((*FROM_LOG, "--follow", "log.csv"), "--follow: files of log have no positions to continue from"),
        ((*FROM_LOG, "--state", "s", "log.csv"), "--state: files of log have no positions to continue from"),
        ((*FROM_LOG, "."), ". is a folder: name its files"),
        (
            ("convert", "--to", "changes", "--tables", "usr.toml", "-o", ".", "log.csv"),
            ". is a folder: name a file in it",
        ),
        (
            (*FROM_LOG, "--current", "nope=log.csv", "log.csv"),
            "--current nope: there is no such table in the tables file",
        ),
        (
            (*FROM_LOG, "--current", "usrs=log.csv", "log.csv"),
            "--current usrs: there is no such table; did you mean usr?",
        ),
        (
            ("convert", "--to", "xds", "--tables", "unquoted.toml", "log.csv"),
            "unquoted.toml: Invalid value (at line 2, column 10): a text is in quotes",
        ),
        (("import-config", "usr.toml"), "usr.toml is no exported configuration: it is no XML document: "),
        (
            ("redrive", "1", "--all", "--url", "postgresql://x/y"),
            "--all is every row that failed: leave it out",
        ),
        (
            ("convert", "--from", "gbase", "--to", "changes", "notes.txt"),
            "notes.txt: it is text, and no capture: a hex dump is read with --framed",
        ),
        ((*FROM_LOG, "junk.csv.gz"), "junk.csv.gz: Not a gzipped file"),
        ((*HTTP, "--http-token-file", "no"), "eventlog: http-token-file no: No such file or directory"),
        ((*HTTP, "--http-ca", "usr.toml"), "http-ca usr.toml: it holds no certificate, in PEM"),
        (
            (*HTTP, "--http-cert", "usr.toml"),
            "http-cert usr.toml: it does not hold a certificate and its key, in PEM\n",
        ),
        (("redrive", "--because", " "), "--because is empty, and selects nothing: leave it out"),
        (("errors", "--table", ""), "--table is empty, and selects nothing: leave it out"),
        (("run", "--disable"), "eventlog: the publisher is disabled: disable = true in its settings"),
    ],
)
def test_a_word_that_does_not_fit_is_named(shell: Shell, words: tuple[str, ...], reported: str) -> None:
    done = shell.with_files(FILES).run(*words)
    assert (done.code, reported in done.stderr) == (2, True), done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_brokers_that_do_not_answer_are_named(shell: Shell) -> None:
    topic = ("--kafka-brokers", "127.0.0.1:1", "--kafka", "changes", "--kafka-timeout", "0.1")
    done = shell.run("convert", "--from", "qlik-message", "--to", "xds", *topic)
    assert (done.code, done.stderr) == (
        1,
        "eventlog: Kafka: no broker answers at 127.0.0.1:1 (kafka-brokers) within 0.1 s\n",
    )


def test_a_database_that_refuses_is_quoted_without_the_statement(shell: Shell, postgres: Database) -> None:
    done = shell.run("install", "--url", postgres.address, "--log-table", "nosuch.changes")
    assert (done.code, done.stderr) == (1, 'eventlog: the database refused: schema "nosuch" does not exist\n')


def test_track_by_another_role_names_who_may(shell: Shell, postgres: Database) -> None:
    statements = ("create table usr (idu int primary key)", "create role misuse_poor login password 'x'")
    run_statements(postgres.engine(), *statements)
    assert shell.run("install", "--url", postgres.address).code == 0
    poor = postgres.url.set(username="misuse_poor", password="x")
    done = shell.run("track", "usr", "--url", poor.render_as_string(hide_password=False))
    assert (done.code, "let the owner of the log and of the table give this command" in done.stderr) == (
        1,
        True,
    )
    assert "the rights of a publisher" not in done.stderr
