"""Commands that findings, messages and pages print as remedies: of one list, and each runs as it is printed.

What a page prints is run by tests/web/test_status_page.py.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Connection, make_url

from eventlog.cli import COMMANDS
from eventlog.core.remedies import Remedy
from eventlog.embedded import Server
from eventlog.sql.dialects import DIALECTS
from eventlog.sql.names import Log
from eventlog.sql.queries import Queries
from eventlog.status.log_watch import UNREADABLE, unreadable
from eventlog.status.verdict import Severity, State, verdicts_of
from tests.kit.commands import ROOT, Done, Shell
from tests.kit.databases import EMBEDDED, Database, temporary_database
from tests.kit.logs import Receiver, busy
from tests.kit.statements import run_statements
from tests.kit.support import until
from tests.status.test_verdict import SENTENCES, status
from tests.world.world import World

pytestmark = pytest.mark.quick

SOURCE = Path(__file__).parents[2] / "eventlog"
PAGES = {Remedy.REDRIVE, Remedy.RETRY, Remedy.RETRY_ALL, Remedy.SKIP, Remedy.EXPLAIN_KEY}
# what only the reader knows
FILLED = {"ROLE": "reader", "TABLE": "usr", "AGE": "1d", "ROWS": "1", "WHY": "test"}
OTHER_TEXTS = {"demo", "examples.py", "relation.py", "remedies.py"}  # what triggers remember; the list itself
NAMED = {"convert", "import-config", "receive"}  # commands that texts name, and that are no remedy
NEEDS = re.compile(r"\b[A-Z]{2,}\b")
A_COMMAND = rf"eventlog (?:{'|'.join(COMMANDS)})\b"


@dataclass
class Place:
    """A database with a log and the tracked table usr, the shell, and the variables that commands have."""

    database: Database
    shell: Shell
    variables: dict[str, str] = field(default_factory=dict)

    def sql(self, *statements: str) -> None:
        """Run statements, each as a transaction of its own."""
        engine = self.database.engine()
        run_statements(engine, *statements, autocommit=True)
        engine.dispose()

    def call(self, words: str) -> Done:
        """Run a command with our variables."""
        return self.shell.run(
            *shlex.split(words), **{"EVENTLOG_URL": self.database.address, **self.variables}
        )

    def calls(self, *commands: str) -> None:
        """Run commands that succeed."""
        for words in commands:
            done = self.call(words)
            assert done.code == 0, (words, done)


PENDING = (
    "insert into eventlog (event_type, table_name, table_key, perpetrator) values (6, 'usr', 'idu=1', 'hr')"
)
WRONG = PENDING.replace("(6", "(3")  # without a column_name
OUR_SLOTS = "from pg_replication_slots where database = current_database()"
TO_FILES = "run --once --sink files --files-folder out"
AN_HOUR_AGO = PENDING.replace("(event_type", "(event_time, event_type").replace(
    "(6", "(now() at time zone 'utc' - interval '1 hour', 6"
)


def nothing_installed(place: Place) -> Done:
    place.calls("untrack usr", "uninstall")
    return place.call("status")


def stranger(place: Place) -> Done:
    role = f"stranger_{place.database.url.database}"
    place.sql(f"create role {role} login password 'x'")
    try:
        address = make_url(place.database.address).set(username=role, password="x")
        return place.call(f"status --url {shlex.quote(address.render_as_string(hide_password=False))}")
    finally:
        place.sql(f"drop role {role}")


def column_added(place: Place) -> Done:
    place.sql("alter table usr add column mail text")
    return place.call("check")


def table_gone(place: Place) -> Done:
    place.sql("drop table usr")
    return place.call("check")


def trigger_of_reader_gone(place: Place) -> Done:
    place.calls("track --for sailpoint --identity idu usr")
    place.sql(
        "do $$ declare name text; begin for name in select tgname from pg_trigger"
        " where tgrelid = 'usr'::regclass and not tgisinternal loop"
        " execute format('drop trigger %I on usr', name); end loop; end $$"
    )
    return place.call("check")


def by_slot(place: Place) -> None:
    place.variables |= {"EVENTLOG_PUBLICATION_MODE": "slot"}
    place.calls("untrack usr")
    place.variables |= {"EVENTLOG_SYNC_TABLES": "usr"}


def no_slot(place: Place) -> Done:
    by_slot(place)
    return place.call("check")


def slot_and_triggers(place: Place) -> Done:
    by_slot(place)
    place.calls("install --mode slot")
    place.variables |= {"EVENTLOG_PUBLICATION_MODE": "trigger"}
    return place.call("check")


def slot_lost(place: Place) -> Done:
    by_slot(place)
    place.calls("install --mode slot")
    place.sql(f"select pg_drop_replication_slot(slot_name) {OUR_SLOTS}")
    return place.call("status")


def overdue(place: Place) -> Done:
    place.sql(PENDING)
    return place.call("check --patience 0")


def no_one_publishes(place: Place) -> Done:
    place.sql(AN_HOUR_AGO)
    return place.call("status")


def failed(place: Place) -> Done:
    place.sql(WRONG)
    place.calls(TO_FILES)
    return place.call("check")


def failed_for_one_reason(place: Place) -> Done:
    place.sql(WRONG)
    place.calls(TO_FILES)
    return place.call("errors --by-reason")


def skipped(place: Place) -> Done:
    place.sql(PENDING)
    place.calls("skip 1 --because test")
    return place.call("status")


def paused(place: Place) -> Done:
    place.calls("pause")
    return place.call("status")


def deletes_stopped(place: Place) -> Done:
    place.variables |= {"EVENTLOG_PUBLICATION_MODE": "compare", "EVENTLOG_SYNC_TABLES": "usr"}
    place.calls("untrack usr")
    place.sql("insert into usr values (1, 'Jack')")
    place.calls(TO_FILES)
    place.sql("delete from usr")
    return place.call(f"{TO_FILES} --max-deletes 0")


def compared_and_pending(place: Place) -> Done:
    place.variables |= {"EVENTLOG_PUBLICATION_MODE": "compare", "EVENTLOG_SYNC_TABLES": "usr"}
    place.calls("untrack usr", TO_FILES)
    place.sql(PENDING)
    return place.call("install --mode slot")


def statement_names_log(place: Place) -> Done:
    place.variables |= {"EVENTLOG_POST_POLL_STMT": "delete from eventlog"}
    return place.call("check")


def documents_lost(place: Place) -> Done:
    place.sql("insert into usr values (1, 'Jack')")
    place.variables |= {"EVENTLOG_ALLOW_LOOPBACK": "yes"}
    place.calls(TO_FILES)
    (place.shell.folder / "empty.xml").write_text("<nds><input/></nds>")
    return place.call("audit --delivered empty.xml")


def changed_without_triggers(place: Place) -> Done:
    place.sql("insert into usr values (1, 'Jack')")
    place.variables |= {"EVENTLOG_ALLOW_LOOPBACK": "yes"}
    place.calls(TO_FILES)
    place.sql("alter table usr disable trigger all", "update usr set fname = 'Joe'")
    return place.call("audit --state --delivered out")


def changed_since_kept(place: Place) -> Done:
    place.calls("resync usr --compare")
    return changed_without_triggers(place)


def tables_elsewhere(place: Place) -> Done:
    place.calls("untrack usr")
    with closing(sqlite3.connect(place.shell.folder / "source.db")) as source:
        source.execute("create table usr (idu integer primary key, fname text)")
    url = f"sqlite:///{place.shell.folder / 'source.db'}"
    place.variables |= {"EVENTLOG_SOURCE_URL": url, "EVENTLOG_SYNC_TABLES": "usr"}
    place.variables |= {"EVENTLOG_PUBLICATION_MODE": "compare"}
    return place.call("resync usr")


DOORS: dict[Callable[[Place], Done], set[Remedy]] = {
    nothing_installed: {Remedy.INSTALL},
    stranger: {Remedy.GRANTS},
    column_added: {Remedy.TRACK},
    table_gone: {Remedy.UNTRACK},
    trigger_of_reader_gone: {Remedy.UNTRACK_FOR, Remedy.TRACK_FOR},
    no_slot: {Remedy.INSTALL_SLOT},
    slot_and_triggers: {Remedy.INSTALL_TRIGGER},
    slot_lost: {Remedy.CHECK},
    overdue: {Remedy.STATUS},
    no_one_publishes: {Remedy.RUN, Remedy.EXPLAIN},
    failed: {Remedy.ERRORS},
    failed_for_one_reason: {Remedy.REDRIVE_REASON, Remedy.SKIP_REASON},
    skipped: {Remedy.HISTORY},
    paused: {Remedy.RESUME},
    deletes_stopped: {Remedy.RESUME_TABLE},
    compared_and_pending: {Remedy.RUN_ONCE},
    statement_names_log: {Remedy.PURGE},
    documents_lost: {Remedy.RESYNC, Remedy.PURGE},
    changed_without_triggers: {Remedy.RESYNC},
    changed_since_kept: {Remedy.RESYNC_COMPARE},
    tables_elsewhere: {Remedy.RUN_RESYNC},
}


@pytest.fixture(scope="module")
def template(embedded: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database with a log and the tracked table usr."""
    with temporary_database(EMBEDDED, make_url(embedded.url)) as database:
        place = Place(database, Shell(tmp_path_factory.mktemp("template")))
        place.sql("create table usr (idu integer primary key, fname text)")
        place.calls("install", "track usr")
        yield str(database.url.database)


@pytest.fixture
def place(embedded: Server, template: str, shell: Shell) -> Iterator[Place]:
    with temporary_database(EMBEDDED, make_url(embedded.url), template=template) as database:
        new_place = Place(database, shell)
        yield new_place
        new_place.sql(f"select pg_drop_replication_slot(slot_name) {OUR_SLOTS}")


def printed(text: str) -> list[str]:
    """Return the commands in a text: in backquotes, or a line each."""
    pattern = rf"`({A_COMMAND}[^`]*)`|^\s*({A_COMMAND}.*)$"
    return ["".join(groups) for groups in re.findall(pattern, text, re.MULTILINE)]


def form_of(command: str) -> Remedy | None:
    """Return the remedy that a command is; a hole may be any word of it."""
    for remedy in Remedy:
        words = (r"(?:\S+|'[^']*')" if NEEDS.fullmatch(word) else re.escape(word) for word in remedy.split())
        if re.fullmatch(rf"{' '.join(words)}( --log-table public.eventlog)?", command):
            return remedy
    return None


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
@pytest.mark.family
def test_a_command_that_is_printed_runs(door: Callable[[Place], Done], place: Place) -> None:
    output = "".join(door(place)[1:])
    commands = printed(output)
    assert DOORS[door] <= {form_of(command) for command in commands}, output
    for command in commands:
        filled = NEEDS.sub(lambda need: FILLED[need[0]], command).removeprefix("eventlog ")
        done = place.call(TO_FILES if command == Remedy.RUN else filled)
        assert done.code == 0 or (command == Remedy.CHECK and done.code == 1), (command, done)


def test_each_remedy_has_a_door_that_prints_it() -> None:
    assert PAGES | set[Remedy]().union(*DOORS.values()) == {*Remedy}


def texts_of(path: Path) -> Iterator[str]:
    """Yield the texts of a module that a user may read; a hole is a word in capitals."""
    tree = ast.parse(path.read_text("utf-8"))
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    descriptions = {
        id(node.body[0].value)
        for node in nodes
        if node.body
        and isinstance(node.body[0], ast.Expr)
        and not (isinstance(node, ast.ClassDef) and node.bases)  # the docstring of an error is its message
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "HOLE" for part in node.values)
            descriptions.update(map(id, node.values))
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in descriptions:
            yield re.sub(r"\{\w*\}", "HOLE", node.value)


def test_texts_name_no_other_command_as_a_remedy() -> None:
    paths = [path for path in SOURCE.rglob("*.py") if not OTHER_TEXTS & {path.name, path.parent.name}]
    texts = {(path.name, text) for path in paths for text in texts_of(path)}
    texts |= {(path.name, path.read_text("utf-8")) for path in SOURCE.rglob("*.html")}
    unlisted = [
        (name, command)
        for name, text in sorted(texts)
        for command in re.findall(rf"{A_COMMAND}(?:[^`.:;<]*(?=`))?", text)
        if form_of(command) is None and command.removeprefix("eventlog ") not in NAMED
    ]
    assert unlisted == []


# --- the page of states

NIGHT = (ROOT / "docs" / "run" / "night.md").read_text("utf-8")
# Of each state: its severity, and the cell with its commands.
NIGHT_ROWS = {
    state: (severity, cell)
    for state, severity, cell in re.findall(
        r"^\| `([a-z-]+)` \| (\w+) \| .* \| (.*) \|$", NIGHT, re.MULTILINE
    )
}
LEADING = "eventlog run --sink http --http-url http://127.0.0.1:1/ --polling-interval 1 --reconnect 1"


def database_away(place: Place, stack: ExitStack) -> None:
    place.variables |= {"EVENTLOG_URL": "postgresql://127.0.0.1:1/hr"}


def other_log(place: Place, stack: ExitStack) -> None:
    place.variables |= {"EVENTLOG_LOG_TABLE": "nowhere"}


def session(place: Place, stack: ExitStack) -> Connection:
    """Return a session that a command may end."""
    connection = place.database.engine().connect()
    stack.callback(connection.invalidate)
    return connection


def log_locked(place: Place, stack: ExitStack) -> None:
    place.variables |= {"EVENTLOG_LOOK_LIMIT": "1"}
    session(place, stack).execute(text("lock table eventlog"))


def lock_taken(place: Place, stack: ExitStack) -> None:
    connection = session(place, stack)
    assert Queries(Log(DIALECTS["postgresql"])).run(connection, "lead").scalar()
    connection.execute(text("set application_name = 'psql'"))
    connection.commit()


def receiver_down(place: Place, stack: ExitStack) -> None:
    place.sql(PENDING, "insert into usr values (1, 'Jack')")
    publish(place, stack, State.RECEIVER_DOWN)


def page_taken(place: Place, stack: ExitStack) -> None:
    taken = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    publish(place, stack, State.NO_PAGE, "--monitor-port", str(taken.getsockname()[1]))


def publish(place: Place, stack: ExitStack, state: State, *words: str) -> None:
    """Start a publisher whose receiver is away, and wait for a state."""
    variables = os.environ | {"EVENTLOG_URL": place.database.address, "PYTHONPATH": str(ROOT)}
    _, *command = shlex.split(LEADING)
    with (place.shell.folder / "publisher.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-B", "-m", "eventlog", *command, *words], env=variables, stderr=log
        )
    stack.callback(process.wait)
    stack.callback(process.kill)
    until(lambda: state in states_of(place), fault=(place.shell.folder / "publisher.log").read_text)


def waiting(place: Place, stack: ExitStack) -> None:
    place.sql(PENDING, "insert into usr values (1, 'Jack')")
    world = World(place.database.engine(), DIALECTS["postgresql"])
    with world.publisher(Receiver(busy)) as publisher:
        publisher.cycle()


NIGHTS: dict[State, Callable[[Place, ExitStack], object]] = {
    State.DATABASE_AWAY: database_away,
    State.LOG_LOCKED: log_locked,
    State.LOG_UNREAD: other_log,
    State.SLOT_LOST: lambda place, stack: slot_lost(place),
    State.LOCK_TAKEN: lock_taken,
    State.NO_PUBLISHER: lambda place, stack: place.sql(PENDING),
    State.PAUSED: lambda place, stack: paused(place),
    State.RECEIVER_DOWN: receiver_down,
    State.NOT_PUBLISHED: lambda place, stack: deletes_stopped(place),
    State.LATE: lambda place, stack: no_one_publishes(place),
    State.FAILED: lambda place, stack: failed(place),
    State.NO_PAGE: page_taken,
    State.WAITING: waiting,
    State.IDLE: lambda place, stack: None,
}
MENDED = {State.LOG_LOCKED, State.LOCK_TAKEN, State.NO_PUBLISHER, State.PAUSED, State.FAILED, State.NO_PAGE}


def states_of(place: Place) -> list[str]:
    """Return the states that `status` shows; one without an object of JSON is a log that is not read."""
    shown = place.call("status --json").stdout
    return [str(each["state"]) for each in json.loads(shown)["states"]] if shown else [State.LOG_UNREAD]


def sentence_of(place: Place) -> str:
    return str(json.loads(place.call("status --json").stdout)["states"][0]["sentence"])


def run_as_printed(place: Place, command: str) -> None:
    """Run a command of a page, with what it needs; a publisher does one cycle."""
    filled = NEEDS.sub(lambda need: FILLED[need[0]], command).removeprefix("eventlog ")
    done = place.call(TO_FILES if command == Remedy.RUN else filled)
    assert done.code == 0 or (command in (Remedy.CHECK, Remedy.STATUS) and done.code == 1), (command, done)


def test_the_page_of_states_has_a_row_for_each_with_its_severity() -> None:
    severities = [(state, severity) for state, (severity, _) in NIGHT_ROWS.items()]
    assert severities == [(state.value, state.severity.value) for state in State]


def test_the_row_of_a_state_has_the_command_of_its_sentence() -> None:
    verdicts = [verdicts_of(status(change))[0] for change, _ in SENTENCES.values()]
    verdicts += [unreadable(kind("gone")) for kind, *_ in UNREADABLE]
    for verdict in verdicts:
        cell = NIGHT_ROWS[verdict.state][1]
        if verdict.command.startswith("eventlog"):
            assert f"`{verdict.command}`" in cell, verdict.state
        elif verdict.command:
            assert cell == "the statement of the sentence", verdict.state


@pytest.mark.slow("a publisher starts, and another session locks the log for a second")
@pytest.mark.parametrize("state", State)
@pytest.mark.family
def test_the_commands_of_a_state_run_in_it_and_its_exit_code_is_that_of_its_severity(
    state: State, place: Place
) -> None:
    with ExitStack() as stack:
        if bring := NIGHTS.get(state):
            bring(place, stack)
            states = states_of(place)
            assert state in states
            worst = max(EXIT_CODES[NIGHT_ROWS[each][0]] for each in states)
            assert place.call("status --exit-code").code == worst
        else:
            place.sql(WRONG)
            place.calls(TO_FILES)
        cell = NIGHT_ROWS[state][1]
        if cell == "the statement of the sentence":
            place.sql(re.findall("`([^`]*)`$", sentence_of(place))[0])
        for command in printed(cell):
            if command == Remedy.RUN:
                stack.close()  # the publisher is stopped before
            run_as_printed(place, command)
        assert (state in states_of(place)) == (state not in MENDED) or not bring


EXIT_CODES = {
    severity: int(code)
    for severities, code in re.findall(r"^\| ([a-z, ]+) \| (\d) \| [A-Z]+ \|$", NIGHT, re.MULTILINE)
    for severity in severities.split(", ")
}


def test_every_other_command_of_the_page_runs(place: Place) -> None:
    place.sql(WRONG)
    place.calls(TO_FILES)
    in_rows = {command for _, cell in NIGHT_ROWS.values() for command in printed(cell)}
    for command in {*printed(NIGHT.replace("\n", " ").replace("```", "\n"))} - in_rows:
        run_as_printed(place, command)


def test_the_line_for_nagios_has_the_codes_of_its_table(place: Place) -> None:
    assert EXIT_CODES.keys() == {*Severity}
    (line,) = re.findall(r"^command\[\w+\]=\S*/eventlog (.*)$", NIGHT, re.MULTILINE)
    place.shell.with_files({"eventlog.toml": 'log-table = "eventlog"\n'})
    words = line.replace("/etc/eventlog/", "")
    codes = [place.call(words).code]
    place.sql(PENDING)
    codes.append(place.call(words).code)
    place.calls("pause")
    codes.append(place.call(words).code)
    place.sql(AN_HOUR_AGO)
    codes.append(place.call(words).code)
    codes.append(place.call(f"{words} --nosuch").code)
    assert codes == [0, 1, 1, 2, 2]
