"""PgBouncer before the server: in session mode all works, in transaction mode it is refused and named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
import sqlalchemy
from sqlalchemy.engine import Engine

from tests.kit.commands import Done, Shell
from tests.kit.databases import Database
from tests.kit.poolers import pooler
from tests.kit.statements import run_statements

pytestmark = pytest.mark.servers


@contextmanager
def pooled(postgres: Database, mode: str, shell: Shell) -> Iterator[tuple[Callable[..., Done], Engine]]:
    """Yield what runs commands through a pooler in this mode, and an application there."""
    with pooler(postgres.url, mode) as url:
        application = sqlalchemy.create_engine(url)
        address = url.render_as_string(hide_password=False)
        yield partial(shell.run, EVENTLOG_URL=address, EVENTLOG_ALLOW_LOOPBACK="true"), application
        application.dispose()


ODD_ROW = (
    "insert into eventlog (event_type, table_name, table_key, column_name) values (8, 'usr', 'idu=1', 'x')"
)


@pytest.mark.slow("it runs ten commands")
def test_each_command_works_in_a_session_that_another_one_had(postgres: Database, shell: Shell) -> None:
    with pooled(postgres, "session", shell) as (run, application):
        run_statements(application, "create table usr (idu integer primary key, fname text)")
        publish = partial(run, "run", "--once", "--sink", "files", "--files-folder", "documents")
        for words in (("install",), ("track", "usr")):
            assert run(*words).code == 0
        run_statements(application, "insert into usr values (1, 'Jack')", ODD_ROW)
        assert publish("--unknown-columns", "refuse").code == 0
        assert "E error      1" in run("status").stdout
        assert run("redrive", "--all").code == 0
        assert publish().code == 0
        assert run("audit", "--state", "--delivered", "documents").code == 0
        assert run("check").code == 0
        url = application.url.render_as_string(hide_password=False)
        assert run("compare", "usr", "usr", "--url", url, "--to", "changes").code == 0


def test_a_pooler_that_gives_one_session_to_several_is_refused(postgres: Database, shell: Shell) -> None:
    with pooled(postgres, "transaction", shell) as (run, application):
        run_statements(application, "create table usr (idu integer primary key, fname text)")
        assert shell.run("install", EVENTLOG_URL=postgres.address).code == 0
        for words in (("run", "--once"), ("run",), ("track", "usr"), ("install",)):
            refused = run(*words)
            assert (refused.code, "pool_mode = session" in refused.stderr) == (1, True)
        run_statements(application, "insert into usr values (1, 'Jack')")  # no setting of ours is left to it


def test_a_session_that_no_pooler_resets_is_refused(postgres: Database, shell: Shell) -> None:
    with pooled(postgres, "session\nserver_reset_query =", shell) as (run, application):
        assert "pool_mode = session" in run("install").stderr
        run_statements(application, "create table usr (idu integer primary key)")
