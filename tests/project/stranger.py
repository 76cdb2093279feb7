"""A stranger's path with the wheel alone: a log from its installation to its end; nothing of it is left.

It is a program of its own, `python -P stranger.py`, for an environment with the wheel and `embedded`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg

from eventlog.embedded import embedded_postgres

OBJECTS = """
select 'table ' || tablename from pg_tables where schemaname = 'public'
union all select 'routine ' || proname from pg_proc where pronamespace = 'public'::regnamespace
union all select 'trigger ' || tgname from pg_trigger where not tgisinternal
union all select 'sequence ' || sequencename from pg_sequences where schemaname = 'public'
order by 1
"""


def run(url: str, folder: str, *words: str) -> str:
    """Return what a command prints that succeeds."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "eventlog", *words],
        cwd=folder,
        env={**os.environ, "EVENTLOG_URL": url, "EVENTLOG_ALLOW_LOOPBACK": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout + done.stderr


def change(url: str, *statements: str) -> list[str]:
    """Run statements as a user of the database; return the rows of the last one."""
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement.encode())
        return [str(row[0]) for row in cursor] if cursor.description else []


def main() -> None:
    """Install a log, send a change, audit it, and uninstall the log."""
    with embedded_postgres() as server, tempfile.TemporaryDirectory() as folder:
        url = server.url
        change(url, "create table usr (idu integer primary key, fname text)")
        before = change(url, OBJECTS)
        assert "is installed" in run(url, folder, "install")
        run(url, folder, "track", "usr")
        change(url, "insert into usr values (1, 'Jack')", "update usr set fname = 'John'")
        run(url, folder, "run", "--once", "--sink", "files", "--files-folder", "out")
        documents = [*Path(folder, "out").glob("*.xml")]
        assert documents, "nothing was sent"
        run(url, folder, "check")
        run(url, folder, "audit", "--delivered", "out")
        run(url, folder, "untrack", "usr")
        run(url, folder, "uninstall")
        assert change(url, OBJECTS) == before, "something is left"
        print(f"installed, sent {len(documents)}, audited, uninstalled; nothing is left")


if __name__ == "__main__":
    main()
