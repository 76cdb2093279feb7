"""install, uninstall and resync as a person calls them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from tests.kit.commands import Done, Shell
from tests.kit.databases import Database
from tests.kit.statements import run_statements

pytestmark = pytest.mark.quick

Call = Callable[..., Done]
GOLDEN = Path(__file__).parents[1] / "golden" / "install"


@pytest.fixture
def call(tmp_path: Path) -> Call:
    """Runs the command line in the test's own folder; a warning of Python is an error."""
    return Shell(tmp_path, strict=True).run


def test_a_log_from_install_to_uninstall(postgres: Database, tmp_path: Path, call: Call) -> None:
    url = postgres.url.render_as_string(hide_password=False)
    (tmp_path / "eventlog.toml").write_text(
        f'url = "{url}"\nlog-table = "events"\nsync-tables = "usr"\n[log.columns]\nstatus = "state"\n'
    )
    engine = postgres.engine()
    run_statements(
        engine,
        "create table usr as select n as idu from generate_series(1, 30) as n",
        "alter table usr add primary key (idu)",
    )

    done = call("install", "--future-events")
    reported, notice = done.stderr.splitlines()
    assert (done.code, done.stdout, reported) == (0, "", "public.events is installed")
    assert notice.startswith(
        "its triggers run as a superuser, the owner of the log: fine for a test, else let"
    )
    assert call("install").stderr.startswith("public.events is up to date\n")

    run_statements(engine, "select events_capture_is_off()")

    done = call("resync", "usr", "--where", "idu > 10", "--chunk", "7")
    assert (done.code, done.stderr) == (0, "public.usr: 20 rows logged\n")
    with engine.connect() as connection:
        found = connection.execute(text("select state, count(*) from events group by state")).all()
    assert [tuple(row) for row in found] == [("N", 20)]

    done = call("uninstall")
    assert done.code == 1
    assert "20 rows that are not published" in done.stderr
    assert call("uninstall", "--discard").stderr == "public.events is uninstalled\n"
    assert inspect(engine).get_table_names() == ["usr"]
    with engine.connect() as connection:
        left = "select count(*) from pg_proc where pronamespace = 'public'::regnamespace"
        assert connection.execute(text(left)).scalar() == 0


@pytest.mark.parametrize("dialect", ["postgresql", "oracle", "mysql", "mariadb"])
def test_the_ddl_is_printed_without_a_connection(dialect: str, call: Call) -> None:
    asked = ("--sql", "--dialect", dialect)
    newest = (GOLDEN / f"{dialect}-schema.sql").read_text()
    assert call("install", *asked, "--future-events").stdout == newest
    assert (
        call("install", *asked, "--grants", "publisher").stdout
        == (GOLDEN / f"{dialect}-grants.sql").read_text()
    )
    assert call("uninstall", *asked).stdout == (GOLDEN / f"{dialect}-uninstall.sql").read_text()


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("install",), "which database?"),
        (("install", "--sql"), "--sql needs --dialect"),
        (("install", "--config", "nowhere.toml"), "nowhere.toml"),
    ],
)
def test_misuse_says_what_to_say(words: tuple[str, ...], reported: str, call: Call) -> None:
    done = call(*words, EVENTLOG_URL="")
    assert done.code == 2
    assert reported in done.stderr
    assert "Traceback" not in done.stderr


def test_settings_are_read_as_by_every_command(tmp_path: Path, call: Call) -> None:
    (tmp_path / "eventlog.toml").write_text(
        'url = "postgresql://127.0.0.1:1/x"\nlog-tabel = "a"\nlayout = "b"\n'
    )
    done = call("install", EVENTLOG_LOG_TIME="noon")
    assert done.code == 2
    for reported in ("log-tabel: there is no such setting", "layout: 'b'", "EVENTLOG_LOG_TIME: 'noon'"):
        assert reported in done.stderr
