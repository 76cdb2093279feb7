"""The next version of the program, as a source tree of its own with one revision more: until there is one.

It has a column more, a table more, a row that is changed, triggers of another text, and a new version of each
state. Its commands run in processes of their own. KILL_BEFORE=3 kills one before its third statement that
writes.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.kit.commands import ROOT, Shell

REVISION = '''\
"""The revision of the next version."""

revision = "0002"
down_revision = "0001"


def upgrade(run):
    run("upgrade_next")


def downgrade(run):
    run("downgrade_next")
'''
STATEMENTS = """
-- upgrade_next --
-- Adds a column and a table, fills both, and changes a row.
alter table {failed} add column if not exists next_remark {type_text}
/
create table if not exists {next} (
  event_id {type_table} not null,
  remark {type_text},
  constraint {next_key} primary key (event_id)
){table_end}
/
insert into {next} (event_id, remark)
select distinct event_id, 'failed before' from {failed} f
where event_id is not null and not exists (select null from {next} n where n.event_id = f.event_id)
/
update {failed} set next_remark = 'from 0001' where next_remark is null
/
update {notice} set who = 'renamed' where who = 'ada'

-- downgrade_next --
-- Drops what the next version made.
drop table if exists {next}
"""
EDITS = (
    ("sql/names.py", '    "sent",  #', '    "next",\n    "sent",  #'),
    ("sql/postgresql/trigger_bodies.py", 'f"insert into {names', 'f"/* next */ insert into {names'),
    ("sql/mysql/triggers.py", 'f"insert into {self', 'f"/* next */ insert into {self'),
)
STATES = ("core/state_versions.py", r'(StateForm\("[^"]+", "[^"]+", )([0-9]+)', 7)  # how many there are
KILLS = '''\
"""Kill this process before one of its writing statements, or before a commit."""

import os, re, signal
from sqlalchemy import event
from sqlalchemy.engine import Engine

WRITES = re.compile(r"\\s*(--.*\\n\\s*)*(create|alter|drop|insert|update|delete|comment)\\b", re.IGNORECASE)
written = 0

def count(*words):
    global written
    written += 1
    if str(written) == os.environ.get("KILL_BEFORE"):
        os.kill(os.getpid(), signal.SIGKILL)

@event.listens_for(Engine, "before_cursor_execute")
def write(connection, cursor, statement, *unused):
    if WRITES.match(statement):
        count()

event.listen(Engine, "commit", count)
'''


def make_next_version(folder: Path) -> Path:
    """Return the folder of the source tree of the next version."""
    package = folder / "eventlog"
    shutil.copytree(ROOT / "eventlog", package)
    schema = package / "sql" / "schema" / "migrations" / "versions" / "0002_next.py"
    schema.write_text(REVISION)
    for name, before, after in EDITS:
        source = package / name
        text = source.read_text()
        assert text.count(before) == 1, name
        source.write_text(text.replace(before, after))
    name, pattern, count = STATES
    states = package / name
    text, changed = re.subn(pattern, lambda form: f"{form[1]}{int(form[2]) + 1}", states.read_text())
    assert changed == count
    states.write_text(text)
    with (package / "sql" / "common" / "schema.sql").open("a") as statements:
        statements.write(STATEMENTS)
    (folder / "sitecustomize.py").write_text(KILLS)
    return folder


def shell_of(tree: Path, folder: Path) -> Shell:
    """Return what runs the commands of a source tree in a folder."""
    return Shell(folder, within=("env", "PYTHONSAFEPATH=1", f"PYTHONPATH={tree}:{ROOT / 'spark'}"))
