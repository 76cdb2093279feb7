"""The log of this version as SQL, with rows in every state, and the events that it has yet to send.

`python -m tests.laws.upgrade.fixture` makes both anew in `0.1.0`, on the embedded PostgreSQL and on the
servers in EVENTLOG_TEST_URLS. Once a version is released its folder is never made anew.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from confluent_kafka import Producer
from deltalake import DeltaTable
from sqlalchemy import MetaData, Table, event, inspect, text
from sqlalchemy.engine import Connection, Engine, make_url

from eventlog.cli import cli
from eventlog.core import tablesfile
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.formats.qlik.message_writer import MessageWriter, WrittenMessage
from eventlog.publisher.cycle import ReceiverFatal
from eventlog.sql.capture import track
from eventlog.sql.capture.resync import Resync, resync
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.common.expression import literal
from eventlog.sql.connect import execute_plain
from eventlog.sql.log.object_states import seal
from eventlog.sql.log.slot_state import SlotFacts
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.relation import Choice
from eventlog.sql.schema import migrate
from eventlog.transfer.targets.lake.lake_tables import ROUNDS
from eventlog.web.receiver import incoming
from eventlog.web.receiver.archive import Archive
from eventlog.xds.answers import Level
from tests.formats.linter.helpers import ROW_1, ROW_2, end, operation
from tests.formats.linter.test_in_database import QUEUE, add
from tests.kit.brokers import MOCK, addresses
from tests.kit.commands import Done, Shell
from tests.kit.databases import AT_HAND, EMBEDDED, embedded_server, own_ids, server_url, temporary_database
from tests.kit.logs import Answering, Crash, Receiver, answering, busy, crash, fail, key
from tests.kit.statements import run_statements
from tests.laws.resume import inputs
from tests.world.world import World

FOLDER = Path(__file__).parent / "0.1.0"
BEFORE, GROWN = FOLDER / "before", FOLDER / "grown"  # files that were read, and the same after they grew
PLACE = "database_of_the_fixture"  # in place of the name of a database
END = "\n/\n"  # of a statement
_DDL = re.compile(r"\s*(--.*\n\s*)*(create (?!temp)|drop trigger (?!if)|alter|comment|do\b)", re.IGNORECASE)
_IF_MISSING = re.compile(r"\s*(--.*\n\s*)*(set @|prepare|execute|deallocate)")  # of an index on MySQL
_EVENT_ID = re.compile(r'event-id="([^"]+)"')
_NUMBER = re.compile(r"(?<=/)[0-9]{15}-")  # of a file of documents; those of 0.1.0 have none
USER_TABLES = (
    "create table usr (idu integer primary key, fname varchar(64), lname varchar(64))",
    "create table usr_phone (idp integer primary key, idu integer references usr (idu), n varchar(9))",
    "create table dept (idd integer primary key, name varchar(64), photo varchar(64))",
    "create table grp (idg varchar(20) primary key, name varchar(64))",
    "create table item (a integer not null, b varchar(20) not null, price decimal(9, 2), primary key (a, b))",
    "create table pet (idp integer primary key, name varchar(64))",
)
TRACKED = {
    "usr": Choice(1, 2, children=("usr_phone.n",)),
    "dept": Choice(without=("photo",)),
    "grp": Choice(7, 8, None),
    "item": Choice(1, 3, columns=("price",), granularity="row"),
}
LOGS = ("eventlog", "compared", "slotted")
CHANGES = (
    "insert into usr values (10, 'Joan', 'D''Arc')",
    "insert into usr_phone values (1, 10, '555-1')",
    "insert into dept values (10, 'sales', 'none')",
    "insert into grp values ('a;b', 'quoted')",
    "insert into item values (10, 'x', 9.95)",
    "update usr set lname = null where idu = 10",
    "update dept set name = 'research' where idd = 10",
    "update grp set name = 'changed' where idg = 'a;b'",
    "update item set price = 10 where a = 10",
    "delete from item where a = 10",
    "update pet set name = 'Rex' where idp = 1",
    "delete from pet where idp = 2",
    "insert into pet values (3, 'Tom')",
)  # after which this version and any later one send the same events
_SOURCES = {
    "tables": ("qlik-table", "fish__ct.csv", "pond__ct.csv"),
    "capture": ("gbase", "capture.bin"),
}  # what is converted, with a state of each
_TOPICS = {"messages": ("qlik-message", "hr"), "debezium": ("debezium", "db.hr.fish,db.transaction")}
_TABLES = """\
[tables.fish]
number = 7
key = ["id"]
columns = { id = "integer", name = "varchar(20)" }
[tables.pond]
number = 8
key = ["id"]
columns = { id = "integer", name = "varchar(20)" }
[tables.pet]
key = ["idp"]
columns = { idp = "integer", name = "varchar(20)" }
[tables.usr]
schema = "own"
number = 9
key = ["idu"]
columns = { idu = "integer", fname = "varchar(10)" }
linter = { columns = { idu = "integer", fname = "char(8)" } }
"""
_PETS = {BEFORE: "idp,name\n1,Rex\n2,Mimi\n", GROWN: "idp,name\n1,Rex II\n3,Tom\n"}
_LOG = """\
record_id,status,event_type,event_time,perpetrator,table_name,table_key,column_name,old_value,new_value
1,N,1,2025-03-23 10:57:19,hr,fish,id=1,name,,Nemo
2,N,4,2025-03-23 10:57:20,hr,fish,id=1,,,
"""
SETTINGS = {"EVENTLOG_ALLOW_LOOPBACK": "true", "EVENTLOG_HANDLE_FUTURE_EVENTS": "false"}
COMPARED = {
    "EVENTLOG_PUBLICATION_MODE": "compare",
    "EVENTLOG_SYNC_TABLES": "pet",
    "EVENTLOG_LOG_TABLE": "compared",
}
Run = Callable[..., Done]


def run_on(url: str, shell: Shell) -> Run:
    """Return what runs a command on a database; a command that fails is an error."""

    def run(*words: str, **variables: str) -> Done:
        done = shell.run(*words, EVENTLOG_URL=url, **{**SETTINGS, **variables})
        assert done.code == 0, (words, done.stderr)
        return done

    return run


def convert(shell: Shell) -> str:
    """Convert and deliver what the files have beyond their states; return all that they became."""
    settings = ("--to", "changes", "--tables", "tables.toml")

    def convert_source(name: str, source: str, *words: str) -> None:
        state = ("--state", f"{name}.state", "-o", f"{name}/")
        shell.run("convert", "--from", source, *settings, *state, *words)  # which refuses some records

    for name, (source, *files) in _SOURCES.items():
        convert_source(name, source, *files)
    with addresses(MOCK) as brokers:
        place = ("--kafka-brokers", brokers, "--kafka-timeout", "2", "--open-time", "1e9")
        for name, (source, topics) in _TOPICS.items():
            _send(brokers, shell.folder / f"{name}.topic")
            convert_source(name, source, "--kafka", topics, *place)
    shell.run("deliver", "documents.xml", "--sink", "files", "--files-folder", "delivered")
    words = ("--keep", "kept.parquet", *settings, "--table", "pet")
    shell.run("compare", "kept.parquet", "pet.csv", *words, "-o", "compared.jsonl")
    paths = [*shell.folder.rglob("*.jsonl"), *shell.folder.glob("delivered/*.xml")]
    parts = {_NUMBER.sub("", str(path.relative_to(shell.folder))): path for path in paths}
    texts = [f"# {name}\n{parts[name].read_text()}" for name in sorted(parts, key=Path)]
    return "".join((*texts, *_apply_to_lake(shell)))


def _apply_to_lake(shell: Shell) -> Iterator[str]:
    """Bring the tables of a lake up to what the files have; yield its round, and the rows of each table."""
    _, *files = _SOURCES["tables"]
    lake = shell.folder / "lake"
    words = (
        "--from",
        "qlik-table",
        "--tables",
        "tables.toml",
        "--to-lake",
        f"delta:{lake}",
        "--keep",
        "both",
    )
    shell.run("apply", *words, *files)  # which refuses some records
    yield f"# lake\n{shell.run('rounds', f'delta:{lake}', '--source', 'qlik-table').stdout}"
    for path in sorted(lake.iterdir()):
        if path.name != ROUNDS:
            table = DeltaTable(path).to_pyarrow_table()
            rows = sorted(json.dumps(row, default=str) for row in table.to_pylist())
            yield "\n".join((f"# lake/{path.name}", *rows, ""))


def _send(brokers: str, file: Path) -> None:
    """Send the messages of a file to their topics, in its order."""
    producer = Producer({"bootstrap.servers": brokers, "log_level": 0})
    for line in file.read_text().splitlines():
        topic, key, value = json.loads(line)
        producer.produce(topic, json.dumps(value).encode(), key and json.dumps(key).encode(), 0)
        producer.flush(10)


def apply(url: str, folder: Path) -> None:
    """Make rows of the changes that were added to the files, in this process."""
    _, *files = _SOURCES["tables"]
    words = ("--from", "qlik-table", "--tables", "tables.toml", "--to-url", url)
    with contextlib.chdir(folder):
        done = CliRunner().invoke(cli, ["apply", *words, *files])  # which refuses some records
    assert done.exit_code == 1, done.output


def read_queue(run: Run, engine: Engine, folder: Path) -> str:
    """Convert what a queue in this database has beyond its state; return the changes."""
    QUEUE.create(engine)
    add(engine, *(tuple(json.loads(line)) for line in (folder / "queue.lines").read_text().splitlines()))
    url = engine.url.render_as_string(hide_password=False)
    words = ("--to", "changes", "--tables", "tables.toml", "--state", "queue.state", "--url", url)
    run("convert", "--from", "linter", *words, QUEUE.name, "-o", "queue/")
    QUEUE.drop(engine)
    return "".join(path.read_text() for path in sorted((folder / "queue").iterdir()))


def publish(run: Run, engine: Engine, folder: Path) -> str:
    """Publish all that a restored log has and gets; return the event-ids, and the rows of applied tables.

    Each step has a heading.
    """
    steps: list[str] = []

    def step(heading: str, *words: str, **variables: str) -> None:
        done = run(*(words or ("run", "--once", "--sink", "stdout")), **variables)
        steps.extend((f"# {heading}", *_EVENT_ID.findall(done.stdout)))

    apply(str(engine.url.render_as_string(hide_password=False)), folder)
    run("resume")
    step("what was interrupted, pending or held")
    step("what was held until then")
    run("redrive", "--all")
    step("what had failed")
    run_statements(engine, *CHANGES)
    step("what the triggers logged")
    run("resync", "dept", "--chunk", "2")
    step("what the resync had yet to log")
    step("what was compared", "run", "--once", "--sink", "stdout", **COMPARED)
    with engine.connect() as connection:
        for table in ("fish", "pond"):
            rows = connection.execute(text(f"select id, name from {table} order by id"))
            steps.extend((f"# rows of {table}", *(f"{row.id} {row.name}" for row in rows)))
    steps.extend(("# all changes of the queue", *read_queue(run, engine, folder).splitlines()))
    return "\n".join((*steps, ""))


def restore(engine: Engine, script: str) -> None:
    """Make the tables of a fixture."""
    place = str(engine.url.database)
    with engine.begin() as connection:
        for statement in script.removesuffix(END).split(END):
            execute_plain(connection, statement.replace(PLACE, place))
        if PLACE in script:
            _seal_anew(connection)


def _seal_anew(connection: Connection) -> None:
    """Give the kept values of compared objects the checksums that the name of this database asks for."""
    question = (
        "select object_table, object_key, digest, next_digest, row_values, next_values from compared_known"
    )
    sealed = text(
        "update compared_known set row_values = :row_values, next_values = :next_values"
        " where object_table = :object_table and object_key = :object_key"
    )
    for row in connection.execute(text(f"{question} where key_hash <> 'base'")).mappings().all():
        table, object_key = row["object_table"], row["object_key"]
        values = {
            f"{which}_values": seal(
                table, object_key, row[digest], row[f"{which}_values"] and row[f"{which}_values"][16:]
            )
            for which, digest in (("row", "digest"), ("next", "next_digest"))
        }
        connection.execute(sealed, {"object_table": table, "object_key": object_key, **values})


class Maker:
    """A log in which every state is made, and its text as SQL."""

    def __init__(self, engine: Engine, dialect: Dialect, shell: Shell) -> None:
        self.world = World(engine, dialect)
        self.shell = shell
        self.run = run_on(self.world.url, shell)
        self.ddl: list[str] = []

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        """Record each statement of the block that makes something."""

        def hear(connection: Any, cursor: Any, statement: str, *unused: Any) -> None:
            is_new = _DDL.match(statement) and statement.strip() not in self.ddl
            if is_new or _IF_MISSING.match(statement):
                self.ddl.append(statement.strip())

        event.listen(Engine, "before_cursor_execute", hear)
        yield
        event.remove(Engine, "before_cursor_execute", hear)

    def make(self) -> str:
        """Make the log, and rows in every state; return the statements that make all of it anew."""
        world = self.world
        for statement in USER_TABLES:
            world.change(statement)
        self._install()
        for number, name in enumerate(("Jack", "Jill", "June", "Joe", "Jim", "Jane", "Joy"), 1):
            world.change(f"insert into usr values ({number}, '{name}', 'Frost')")
        self._cycle(Receiver())
        self._answer(1, answering(Level.WARNING, "taken, but"))
        self._answer(2, fail)
        self._answer(7, answering(Level.FATAL, "the receiver shuts down"))
        self._answer(3, busy)
        self.world.change("update usr set lname = 'held' where idu = 3")
        self._answer(4, fail)
        self.run("skip", *map(str, self._failed(4)), "--because", "given up", "--by", "ada")
        world.write(key(9, table_key="nonsense"), key(5, event_type=12))
        self._cycle(Receiver())
        for number in range(1, 6):
            world.change(f"insert into dept values ({number}, 'd{number}', 'p')")
        self._cycle(Receiver())
        self._resync_a_part()
        self._answer(5, crash)
        world.write(
            key(1, event_type=1, column_name="fname", new_value="a"),
            key(1, event_type=2, column_name="fname", old_value="a", new_value="b"),
            key(1, event_type=3, column_name="fname", old_value="b", new_value="it's \\ one"),
            key(6, event_type=4),
            key(1, event_type=5),
            key(2, event_type=6),
            key(1, event_type=7, column_name="lname"),
            key(1, event_type=8, column_name="lname"),
        )
        self._compare()
        if world.log.dialect.sessions.has_slots:
            self._note_slot()
        self.run("pause", "--because", "an upgrade", "--by", "ada")
        return self._script()

    def _install(self) -> None:
        """Make the logs, the triggers and what is applied, and record how."""
        engine, dialect = self.world.engine, self.world.log.dialect
        with self.recorded():
            for name in LOGS:
                migrate.install(engine, Log(dialect, name), future_events=True)
            track.install_routines(engine, self.world.log)
            for table, choice in TRACKED.items():
                replicated = dialect.triggers.replicates and table == "grp"
                track.track(engine, self.world.log, table, replace(choice, replicated=replicated))
            apply(self.world.url, self.shell.folder)

    def _cycle(self, receiver: Receiver) -> None:
        self.world.cycle(receiver, tables=tuple(TRACKED))

    def _answer(self, number: int, answering: Answering) -> None:
        """Change a user, and answer the event so."""
        self.world.change(f"update usr set fname = 'changed' where idu = {number}")
        with contextlib.suppress(Crash, ReceiverFatal):
            self._cycle(Receiver(answering))

    def _failed(self, number: int) -> list[int]:
        """Return the failed rows of a user."""
        return [row.record_id for row in self.world.failures() if row.table_key == f"idu={number}"]

    def _resync_a_part(self) -> None:
        """Log the first rows of a table, as a resync does that is interrupted."""
        with self.world.engine.connect() as connection:
            table = Catalogue(connection).find("dept").table
        next(resync(self.world.store, Resync(table, chunk=2), lambda rows: None))

    def _compare(self) -> None:
        """Publish a table by comparing it, and change it."""
        self.world.change("insert into pet values (1, 'Rex I'), (2, 'Mimi')")
        self.run("run", "--once", "--sink", "stdout", **COMPARED)

    def _note_slot(self) -> None:
        """Keep the state of a slot on record."""
        store = Store(self.world.engine, Log(self.world.log.dialect, "slotted"))
        with store.engine.begin() as connection:
            state = store.slot_state(connection)
            state.record(SlotFacts("slotted", "7000000000000000001", 16400, {"public.pet": 16390}))
            state.note(24_000_000)

    def _script(self) -> str:
        """Return the statements that make all of this anew."""
        self.world.change(
            f"update {self.world.log.names()['retry']} set next_at = {self.world.log.dialect.values.utc_now}"
        )
        users = [statement.split()[2] for statement in USER_TABLES]
        companions = sorted({*inspect(self.world.engine).get_table_names()} - {*users})
        statements = [
            *USER_TABLES,
            *self._rows(users),
            *self.ddl,
            *self._rows(companions),
            *self._sequences(),
        ]
        place = str(self.world.engine.url.database)
        return "".join(f"{statement.replace(place, PLACE)}{END}" for statement in statements)

    def _rows(self, tables: Iterable[str]) -> Iterator[str]:
        """Yield the statements that insert all rows."""
        quote, overriding = self.world.log.dialect.quote, own_ids(self.world.log.dialect)
        for name in tables:
            table = Table(name, MetaData(), autoload_with=self.world.engine)
            order = [*table.primary_key.columns] or [*table.columns]
            with self.world.engine.connect() as connection:
                for row in connection.execute(table.select().order_by(*order)).mappings():
                    columns = ", ".join(quote(column) for column in row)
                    values = ", ".join(self._value(dict(row), column) for column in row)
                    yield f"insert into {quote(name)} ({columns}) {overriding}values ({values})"

    def _value(self, row: Mapping[str, Any], column: str) -> str:
        """Return a value as a constant; number and owner of a table are those where it is restored."""
        value, backslash = row[column], "\\\\" if self.world.log.dialect.name != "postgresql" else "\\"
        if value is None:
            return "null"
        if column == "table_id":
            return f"(select cast(cast('{row['schema_name']}.{row['table_name']}' as regclass) as oid)::text)"
        if column == "table_owner":
            return "current_user"
        if isinstance(value, datetime):
            return f"timestamp '{value}'"
        return literal(value.replace("\\", backslash)) if isinstance(value, str) else str(value)

    def _sequences(self) -> Iterator[str]:
        """Yield the statements after which numbers go on, where an insert does not see to that."""
        for log in LOGS if self.world.log.dialect.schema.sequence_hidden else ():
            for table, column in ((log, "record_id"), (f"{log}_notice", "notice_id")):
                sequence = f"pg_get_serial_sequence('{table}', '{column}')"
                yield f"select setval({sequence}, coalesce(max({column}), 1), count(*) > 0) from {table}"


def write_files(shell: Shell) -> None:
    """Write the files that were read and what they became, and the same after they grew."""
    for folder, until in ((BEFORE, inputs.STAGES[0]), (GROWN, inputs.STAGES[-1])):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tables.toml").write_text(_TABLES)
        for name, source in (("fish", "usr"), ("pond", "grp")):
            rows = (",".join(row) for row in inputs.table_rows(source, until))
            (folder / f"{name}__ct.csv").write_text("\n".join((inputs.HEADING, *rows, "")))
        stages = 1 if folder is BEFORE else 3
        _write_lines(folder / "messages.topic", _messages(stages))
        _write_lines(folder / "debezium.topic", _debezium_messages(stages))
        _write_lines(folder / "queue.lines", _queue_rows(stages))
        documents = b"".join(inputs.documents_of_stage(stage) for stage in range(stages))
        (folder / "documents.xml").write_bytes(documents)
        (folder / "pet.csv").write_text(_PETS[folder])
        count = 1 if folder is BEFORE else None
        (folder / "capture.bin").write_bytes(b"".join(inputs.capture_stages()[:count]))
    shutil.copytree(BEFORE, shell.folder, dirs_exist_ok=True)
    convert(shell)
    for entry in shell.folder.glob("lake/**/*.json"):  # the log of a table names the place where it was made
        entry.write_text(entry.read_text().replace(f"{shell.folder.as_uri()}/", ""))
    with contextlib.closing(Archive(shell.folder / "received")) as archive:
        body = inputs.documents_of_stage(0)
        archive.keep("2026-11-28T12:00:00Z", body, incoming.read(body), "success", b"<nds/>")


def drain(shell: Shell) -> None:
    """Write the output of a backlog on Spark next to its log."""
    (shell.folder / "log.csv").write_text(_LOG)
    words = ("backlog", "--from", "log", "--to", "xds", "--tables", "tables.toml", "-o", "backlog", "log.csv")
    done = shell.run(*words)
    assert done.code == 0, done.stderr
    for checksum in shell.folder.glob("backlog/**/*.crc"):
        checksum.unlink()


def _write_lines(file: Path, records: Iterable[Any]) -> None:
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))


def _messages(stages: int) -> Iterator[tuple[str, Any, Any]]:
    """Yield messages of Replicate with their topics and keys, and the metadata before them."""
    changes = (change._replace(table="fish") for n in range(stages) for change in inputs.message_changes(n))
    writer = MessageWriter(tablesfile.read(_TABLES), MessageSettings(now="2023-11-14T22:13:00Z"))
    for written in writer.write(changes):
        assert isinstance(written, WrittenMessage)
        yield "hr", written.change and dict(written.change.key), written.message


def _debezium_messages(stages: int) -> Iterator[tuple[str, Any, Any]]:
    """Yield messages of Debezium with their topics and keys.

    Each stage has a whole transaction, and one whose end is in the next stage.
    """
    ends, moment = "db.transaction", {"ts_ms": 1_700_000_000_000}
    counts = {"event_count": 1, "data_collections": [{"data_collection": "hr.fish", "event_count": 1}]}
    for stage in range(stages):
        if stage:
            yield ends, None, {"status": "END", "id": f"open {stage - 1}", **counts, **moment}
        for number, name in enumerate((f"whole {stage}", f"open {stage}")):
            value = {"op": "u", "before": None, "after": {"id": number, "name": name}}
            value["source"] = {"connector": "postgresql", "schema": "hr", "table": "fish", "lsn": stage}
            value["transaction"] = {"id": name, "total_order": 1, "data_collection_order": 1}
            yield "db.hr.fish", {"id": number}, value | moment
        yield ends, None, {"status": "END", "id": f"whole {stage}", **counts, **moment}


def _queue_rows(stages: int) -> list[tuple[Any, ...]]:
    """Return the rows of a queue: a transaction that ends in each stage, and one that ends in the next."""
    rows: list[tuple[Any, ...]] = []
    for stage in range(stages):
        facts: dict[str, Any] = {"SYSLOG_ADDR": 100 * stage, "TABNUM_SRC": 9}
        rows += [operation(2, ROW_1, TRANSACT_ID=stage + 1, **facts)]
        rows += [
            operation(3, ROW_1, ROW_2, TRANSACT_ID=stage + 2, **facts | {"SYSLOG_ADDR": 100 * stage + 10})
        ]
        rows += [end(SYSLOG_ADDR=100 * stage + 20, TRANSACT_ID=stage + 1)]
    return rows


def main() -> None:
    """Make the fixtures anew: the files, and the log of each kind of database at hand."""
    for folder in (BEFORE, GROWN):
        shutil.rmtree(folder, ignore_errors=True)
    dialects: set[str] = set()
    with embedded_server() as embedded, tempfile.TemporaryDirectory() as temporary:
        shell = Shell(Path(temporary) / "run")
        write_files(shell)
        with temporary_database(EMBEDDED, make_url(embedded.url)) as database:
            read_queue(run_on(database.address, shell), database.engine(), shell.folder)
        drain(shell)
        shutil.copytree(shell.folder, BEFORE, dirs_exist_ok=True)
        for name in AT_HAND:
            with server_url(name, embedded) as url, temporary_database(name, url) as database:
                dialect = database.dialect.name
                if dialect not in dialects:
                    dialects.add(dialect)
                    script = Maker(database.engine(), database.dialect, shell).make()
                    (FOLDER / f"{dialect}.sql").write_text(script)
                    (FOLDER / f"{dialect}.txt").unlink(missing_ok=True)
        shutil.copytree(GROWN, shell.folder, dirs_exist_ok=True)
        (FOLDER / "parts.jsonl").write_text(convert(shell))
        for name in AT_HAND:
            with server_url(name, embedded) as url, temporary_database(name, url) as database:
                statements = FOLDER / f"{database.dialect.name}.sql"
                events = statements.with_suffix(".txt")
                if not events.exists():
                    restore(database.engine(), statements.read_text())
                    run = run_on(database.address, shell)
                    events.write_text(publish(run, database.engine(), shell.folder))
                    print(f"{statements}: {len(events.read_text().splitlines())} lines of what it has")


if __name__ == "__main__":
    main()
