"""A variable means one thing to all commands: what is legal for one of them ends no other."""

from __future__ import annotations

import json

import pytest

from tests.kit.commands import Shell
from tests.kit.support import HEADER, USR

pytestmark = pytest.mark.quick

NOWHERE = "postgresql+psycopg://u@127.0.0.1:1/none"
COLUMNS = "TRANSACT_ID,SYSLOG_ADDR,TYP,TABNUM_SRC,LEN1,LEN2,DST_SERVER,OPER_DATE,DATA"
QUEUE = f"""\
{COLUMNS}
5,100,2,7,4,0,A,3b9acaff4000,01000000
5,110,4,,0,0,,3b9acaff4000,
6,120,2,7,4,0,B,3b9acaff4000,02000000
6,130,4,,0,0,,3b9acaff4000,
"""
INSERT = (
    '{"op":"insert","schema":"hr","table":"usr","key":{"idu":1},"fields":[{"column":"idu","after":1}],'
    '"position":"1"}\n'
)
QUEUED = """\
[tables.usr]
key = ["idu"]
number = 7
columns = { idu = "integer" }
[tables.usr.linter]
columns = { idu = "integer" }
"""


@pytest.fixture
def shell(shell: Shell) -> Shell:
    log = f"{HEADER}1,1,usr,idu=1,fname,,Jack\n"
    shell = shell.with_files({"usr.toml": USR, "log.csv": log, "insert.jsonl": INSERT})
    return shell.with_files({"queue.csv": QUEUE, "queue.toml": QUEUED})


def test_the_interval_of_a_publisher_is_not_that_of_following(shell: Shell) -> None:
    follow = ("convert", "--from", "qlik-table", "--to", "changes", "--follow", "gone__ct.csv")
    done = shell.run("run", "--once", EVENTLOG_URL=NOWHERE, EVENTLOG_POLLING_INTERVAL="0.5")
    reported = "EVENTLOG_POLLING_INTERVAL: '0.5' is not a whole number"
    assert (done.code, reported in done.stderr) == (2, True), done.stderr
    for variable in ("EVENTLOG_POLLING_INTERVAL", "EVENTLOG_FOLLOW_INTERVAL"):
        done = shell.run(*follow, **{variable: "0.5"})
        assert (done.code, done.stderr) == (2, "eventlog: gone__ct.csv: no such file\n")
    done = shell.run("run", "--once", EVENTLOG_URL=NOWHERE, EVENTLOG_FOLLOW_INTERVAL="0.5")
    assert (done.code, "Connection refused" in done.stderr) == (1, True), done.stderr
    done = shell.run(*follow, EVENTLOG_FOLLOW_INTERVAL="soon")
    assert (done.code, "'--follow-interval': 'soon' is not a number" in done.stderr) == (2, True)


def test_the_schemas_of_messages_are_not_those_of_tables(shell: Shell) -> None:
    words = ("convert", "--to", "debezium", "--tables", "queue.toml", "insert.jsonl")
    plain, with_schemas = (
        shell.run(*words, EVENTLOG_SCHEMAS="source", EVENTLOG_MESSAGE_SCHEMAS=text) for text in ("no", "yes")
    )
    assert (plain.code, "schema" in json.loads(plain.stdout)) == (0, False)
    assert (with_schemas.code, "schema" in json.loads(with_schemas.stdout)) == (0, True)
    done = shell.run(*words, EVENTLOG_MESSAGE_SCHEMAS="source")
    assert (done.code, "'source' is not 1, yes, true, 0, no or false" in done.stderr) == (2, True)
    done = shell.run("apply", "--to-url", NOWHERE, "--from", "log", "log.csv", EVENTLOG_SCHEMAS="yes")
    assert (done.code, "'yes' is not one of one, source" in done.stderr) == (2, True)


def test_the_server_of_a_queue_is_not_that_of_messages(shell: Shell) -> None:
    words = ("convert", "--from", "linter", "--to", "qlik-message", "--tables", "queue.toml", "queue.csv")
    for flags, keys, name in (
        (("--server", "B"), [2], ""),
        (("--replicate-server", "hr1"), [1, 2], "hr1"),
        (("--server", "A", "--replicate-server", "hr1"), [1], "hr1"),
    ):
        done = shell.run(*words, *flags)
        assert done.code == 0, done.stderr
        messages = [json.loads(line) for line in done.stdout.splitlines()]
        lineage = [each["message"]["lineage"]["server"] for each in messages if each["type"] == "MD"]
        data = [each["message"]["data"]["idu"] for each in messages if each["type"] == "DT"]
        assert (data, lineage) == (keys, [name])


def test_the_settings_of_a_publisher_end_no_conversion(shell: Shell) -> None:
    words = ("convert", "--to", "xds", "--tables", "usr.toml", "log.csv")
    variables = {"EVENTLOG_SNAPSHOT": "one", "EVENTLOG_MAX_DELETES": "20%", "EVENTLOG_KAFKA_BROKERS": "b:1"}
    assert shell.run(*words, **variables) == shell.run(*words)


@pytest.mark.parametrize(
    "words", ["convert --from debezium --to changes", "convert --to qlik-message log.csv"]
)
def test_topics_need_brokers_as_the_sink_does(words: str, shell: Shell) -> None:
    done = shell.run(*words.split(), "--tables", "usr.toml", "--kafka", "hr")
    assert (done.code, done.stderr) == (2, "eventlog: a topic needs --kafka-brokers\n")
