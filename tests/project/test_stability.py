"""What docs/reference/stability.md promises exists: each command, option, setting, metric and table."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click
import pytest

import eventlog
from eventlog.cli import COMMANDS
from eventlog.cli.log_options import ALL
from eventlog.core import state_versions
from eventlog.core.settings import declared
from eventlog.core.state_versions import StateForm
from eventlog.sql.dialects import DIALECTS
from eventlog.sql.names import COMPANIONS, Log
from eventlog.sql.schema import migrate
from eventlog.status.log_status import LogStatus
from eventlog.transfer.targets.lake.lake_settings import DELETED
from eventlog.transfer.targets.lake.lake_tables import HISTORY_FORM
from tests.project import artifacts
from tests.project.generated import context_of

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
PAGE = (ROOT / "docs" / "reference" / "stability.md").read_text("utf-8")
READABLE = ("eventlog", "eventlog_failed", "eventlog_notice", "eventlog_tracked")
UNSTABLE = ("bench", "demo")  # commands


def names() -> Iterator[str]:
    """Yield a line for each name that others may rely on."""
    for command in COMMANDS:
        if command not in UNSTABLE:
            for parameter in context_of(command).command.params:
                if isinstance(parameter, click.Option) and not parameter.hidden:
                    yield from (f"{command} {option}" for option in parameter.opts + parameter.secondary_opts)
    yield from (f"setting {f.name.replace('_', '-')}" for _, settings in ALL for f in declared(settings))
    metrics = (GOLDEN / "metrics.txt").read_text("utf-8")
    yield from (f"metric {name} {kind}" for name, kind in re.findall(r"^# TYPE (\w+) (\w+)", metrics, re.M))
    script = migrate.install_script(Log(DIALECTS["postgresql"]))
    for table in READABLE:
        (body,) = re.findall(rf'^create table if not exists "{table}" \((.*?)^\)', script, re.M | re.S)
        yield from (
            f"column {table}.{name}" for name in re.findall(r'^  "?(?!constraint|--)(\w+)', body, re.M)
        )
    yield from (f"column of a lake {name}" for name in (DELETED, *HISTORY_FORM.names))
    yield from (f"json status.{each.name}" for each in fields(LogStatus))
    yield from (f"state {form.head}" for form in vars(state_versions).values() if isinstance(form, StateForm))
    yield from (f"name eventlog.{name}" for name in dir(eventlog))
    yield from (f"routine {name}" for name in ("eventlog_event", "eventlog_key_value") if name in script)


def test_no_stable_name_is_gone() -> None:
    """Compare with the golden file. EVENTLOG_WRITE_GOLDEN=1 writes it anew; read the difference first."""
    there = sorted({*names()})
    golden = GOLDEN / "stable.txt"
    if os.environ.get("EVENTLOG_WRITE_GOLDEN"):
        golden.write_text("".join(f"{name}\n" for name in there))
    assert [name for name in golden.read_text().splitlines() if name not in there] == []
    assert {name.partition(" ")[0] for name in there} == {
        *COMMANDS.keys() - {*UNSTABLE},
        *("setting", "metric", "column", "routine", "json", "state", "name"),
    }


def test_the_page_sorts_each_table_of_a_log() -> None:
    read, _, ours = PAGE.partition("**read**")[2].partition("The others are")
    mentioned = re.findall(r"`eventlog_(\w+)`", ours.partition("**Not stable**")[0])
    readable = re.findall(r"`eventlog_(\w+)`", read)
    assert [f"eventlog_{name}" for name in readable] == [*READABLE[1:]]
    assert sorted(readable + mentioned) == sorted(COMPANIONS)


def test_the_wheel_has_files_of_ours_in_folders_that_are_listed() -> None:
    """Compare with the golden file. EVENTLOG_WRITE_GOLDEN=1 writes it; test_release.py builds the wheel."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    wheel = artifacts.expected(Path("x.whl"), listed.stdout.splitlines())
    golden, there = GOLDEN / "wheel.txt", artifacts.kinds(wheel)
    if os.environ.get("EVENTLOG_WRITE_GOLDEN"):
        golden.write_text("".join(f"{kind}\n" for kind in there))
    assert there == golden.read_text().splitlines()
    assert [name for name in wheel if re.search(r"(^|/)(tests?|bench|docs)/|\.(png|svg|jpg)$", name)] == []


def test_readme_and_the_site_lead_to_the_page() -> None:
    assert "(docs/reference/stability.md)" in (ROOT / "README.md").read_text("utf-8")
    assert "stability.md" in (ROOT / "mkdocs.yml").read_text("utf-8")
