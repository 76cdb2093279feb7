"""Generated texts are up to date, and examples name what exists."""

from __future__ import annotations

import ast
import configparser
import json
import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest
import yaml  # type: ignore[import-untyped]

from eventlog.cli import COMMANDS, cli
from eventlog.cli.log_options import ALL
from eventlog.core.settings import declared
from eventlog.netiq import export, translate
from eventlog.netiq.parameters import PARAMETERS
from eventlog.opening.config import read_config
from eventlog.status.verdict import Severity, State
from tests.project.generated import COMMAND_PAGES, GENERATED, ROOT, SOURCES, context_of

pytestmark = pytest.mark.quick

EXAMPLES = ROOT / "examples"
NOT_IN_A_FILE = {"status", "http_password"}  # of files of rows; a secret
PAGES = sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_what_is_made_from_the_program_is_up_to_date(path: Path) -> None:
    assert path.read_text("utf-8") == GENERATED[path](), "run: python -m tests.project.generated"


def test_the_pages_have_the_help_of_every_command_and_every_message() -> None:
    reference = ROOT / "docs" / "reference"
    commands, errors = ((reference / f"{name}.md").read_text("utf-8") for name in ("commands", "errors"))
    assert re.findall(r"\(\.\./commands/(.*)\.md\)", commands) == ["options", *COMMANDS]
    assert {path.stem for path in COMMAND_PAGES.iterdir()} == {*COMMANDS, "options"}
    assert "`eventlog.sql.log.leader_transaction.PickUpEnded`" in errors


def test_the_message_of_an_error_has_no_line_break() -> None:
    classes = (
        node
        for source in SOURCES
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    texts = {node.name: ast.get_docstring(node, clean=False) or "" for node in classes}
    assert [name for name, text in texts.items() if not text[:1].isupper() and "\n " in text] == []


def uncommented() -> str:
    """Return the example settings with all of them in force, up to the tables."""
    text = (EXAMPLES / "eventlog.toml").read_text("utf-8").partition("# --- an existing log")[0]
    return re.sub(r"^# (?=[a-z-]+ = )", "", text, flags=re.MULTILINE)


def test_the_example_settings_name_every_setting_and_can_be_used(tmp_path: Path) -> None:
    (tmp_path / "eventlog.toml").write_text(uncommented())
    config = read_config((settings for _, settings in ALL), {}, {}, tmp_path / "eventlog.toml")
    names = {field.name for _, settings in ALL for field in declared(settings)}
    assert names - config.values.keys() == NOT_IN_A_FILE


def test_every_parameter_of_the_original_is_a_setting() -> None:
    names = {field.name.replace("_", "-") for _, settings in ALL for field in declared(settings)}
    assert {parameter.setting for parameter in PARAMETERS} <= names


def test_dashboard_and_alerts_name_metrics_that_are_reported() -> None:
    golden = (ROOT / "tests" / "golden" / "metrics.txt").read_text("utf-8")
    known = set(re.findall(r"^eventlog_\w+", golden, re.MULTILINE))
    source = (ROOT / "eventlog" / "publisher" / "metrics.py").read_text("utf-8")
    known.update(re.findall('"(eventlog_slot_\\w+)"', source))
    dashboard = json.loads((EXAMPLES / "monitoring" / "dashboard.json").read_text())
    alerts = yaml.safe_load((EXAMPLES / "monitoring" / "alerts.yaml").read_text())
    reported = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    reported += [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    named = {name for expression in reported for name in re.findall(r"eventlog_\w+", expression)}
    assert named <= known
    assert known & named >= {"eventlog_pending_rows", "eventlog_oldest_pending_seconds"}


def test_each_state_that_needs_a_person_has_an_alert_of_its_severity() -> None:
    rules = yaml.safe_load((EXAMPLES / "monitoring" / "alerts.yaml").read_text())["groups"][0]["rules"]
    states_by_label = {
        rule["labels"]["severity"]: names[0].split("|")
        for rule in rules
        if (names := re.findall(r'eventlog_state\{state=~"([^"]*)"\}', rule["expr"]))
    }
    for label, severity in (("critical", Severity.ERROR), ("warning", Severity.WARNING)):
        assert states_by_label.pop(label) == [state for state in State if state.severity is severity]
    assert states_by_label == {}


@pytest.mark.parametrize("unit", sorted((EXAMPLES / "systemd").glob("*.service")), ids=lambda path: path.name)
def test_units_start_commands_with_options_that_exist(unit: Path) -> None:
    read = configparser.ConfigParser(strict=False, interpolation=None)
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read(unit)
    program, name, *words = shlex.split(read["Service"]["ExecStart"])
    assert program.endswith("/eventlog")
    context = context_of(name)
    context.command.make_parser(context).parse_args(words)


def commands_of(page: Path) -> list[str]:
    """Return the command lines of eventlog that a page prints, in its sentences and in its blocks."""
    text = page.read_text("utf-8").replace("\\\n", " ")
    inline = re.findall(r"`(?:eventlog) ([a-z][^`\n]*)`", text)
    blocks = re.findall(r"^ *(?:\$ )?eventlog ([a-z].*?)(?: +#.*)?$", text, re.MULTILINE)
    return [line for line in (*inline, *blocks) if line.split()[0] in COMMANDS]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_on_pages_have_only_options_that_exist(page: Path) -> None:
    for line in commands_of(page):
        name, *words = shlex.split(re.split(r"[\\|;]", line)[0].replace("…", "..."))
        if words == ["COMMAND", "--help"] or "--help" in words:
            continue
        context = context_of(name)
        context.command.make_parser(context).parse_args(words)


PIP_LINES = [
    (page, line)
    for page in (ROOT / "README.md", *PAGES)
    for line in re.findall(
        r"\b(?:pip|pipx) install ((?:'[^']*'|[^'`\n#,;)])+)", page.read_text("utf-8").replace("\n'", " '")
    )
]


@pytest.mark.parametrize(("page", "line"), PIP_LINES, ids=lambda value: getattr(value, "name", value))
def test_a_line_for_pip_installs_what_there_is(page: Path, line: str) -> None:
    """The project is on no package index, so its lines install a clone with extras that it has."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for word in shlex.split(line):
        folder, bracket, names = word.rstrip("].").partition("[")
        if bracket:
            assert (folder, set(names.split(",")) - extras.keys()) == (".", set())
        else:
            assert word in (".", "mysqlclient", "venv-pack", "-e")


def test_every_command_can_be_loaded() -> None:
    for name in COMMANDS:
        assert cli.get_command(click.Context(cli), name) is not None


def test_imported_settings_can_be_used(tmp_path: Path) -> None:
    data = (EXAMPLES / "driver.xml").read_bytes()
    found = translate.translate(export.read("driver.xml", data))
    (tmp_path / "eventlog.toml").write_text(translate.as_toml("driver.xml", found))
    config = read_config((settings for _, settings in ALL), {}, {}, tmp_path / "eventlog.toml")
    assert config.values["polling_interval"] == 30
