"""A name of a setting has one type, one meaning and one default, and a value is of that type at each door."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

import eventlog
from eventlog.cli import COMMANDS
from eventlog.cli.options import SettingOption
from eventlog.core.errors import Misuse
from eventlog.core.settings import WrongType, build, declared, is_flag, setting
from eventlog.fold import Rules
from eventlog.formats.gbase.gbase_settings import GbaseSettings
from eventlog.opening.config import InvalidSettings, read_config
from eventlog.opening.publisher_settings import DaemonSettings, DatabaseSettings, PublisherSettings
from eventlog.sinks.command import CommandSettings
from tests.kit.commands import Shell
from tests.kit.support import HEADER, USR
from tests.project.generated import context_of

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]


def declarations() -> Iterator[type]:
    """Yield each dataclass of the source that has settings."""
    for folder, package in ((ROOT, "eventlog"), (ROOT / "spark", "eventlog_spark")):
        for path in sorted((folder / package).rglob("*.py")):
            text = path.read_text("utf-8")
            if "@dataclass" in text and "setting" in text:
                module = import_module(".".join(path.relative_to(folder).with_suffix("").parts))
                for each in [each for each in vars(module).values() if isinstance(each, type)]:
                    is_ours = each.__module__ == module.__name__ and dataclasses.is_dataclass(each)
                    if is_ours and any(declared(each)):
                        yield each


def differences(declaring: Iterable[type]) -> list[str]:
    """Return a line for each setting that two dataclasses declare in different ways."""
    first: dict[str, tuple[type, dict[str, Any]]] = {}
    lines = []
    for settings in declaring:
        for field in declared(settings):
            facts = {"type": field.type, "default": field.default, **field.metadata}
            owner, first_facts = first.setdefault(field.name, (settings, facts))
            if different := [name for name, fact in facts.items() if fact != first_facts[name]]:
                where = f"{owner.__name__} and {settings.__name__}"
                lines.append(f"{field.name} of {where} differs in: {', '.join(different)}")
    return lines


def dataclass_of(name: str, annotation: str, field: Any) -> type:
    """Return a dataclass with one setting."""
    return dataclasses.make_dataclass("Declared", [(name, annotation, field)])


def test_a_name_has_one_type_one_meaning_and_one_default() -> None:
    declaring = list(declarations())
    assert len({field.name for settings in declaring for field in declared(settings)}) > 140
    assert {"KafkaSinkSettings", "ApplySettings", "CompareSettings"} <= {each.__name__ for each in declaring}
    assert differences(declaring) == []


@pytest.mark.parametrize(
    ("declaration", "differs"),
    [
        (("float", setting(10.0, "seconds", within=(1, 9))), "type"),
        (("int", setting(5, "seconds", within=(1, 9))), "default"),
        (("int", setting(10, "seconds between two looks", within=(1, 9))), "help"),
        (("int", setting(10, "seconds", within=(0, 9))), "within"),
        (("int", setting(10, "seconds", within=(1, 9), metavar="S")), "metavar"),
        (("int", setting(10, "seconds", within=(1, 9))), ""),
    ],
)
def test_two_declarations_that_differ_are_noticed(declaration: tuple[str, Any], differs: str) -> None:
    common = dataclass_of("interval", "int", setting(10, "seconds", within=(1, 9)))
    another = dataclass_of("interval", *declaration)
    assert (
        differences([common, another])
        == [f"interval of Declared and Declared differs in: {differs}"][: bool(differs)]
    )


def test_an_option_with_the_name_of_a_setting_is_that_setting_or_of_its_type() -> None:
    fields = {field.name: field for settings in declarations() for field in declared(settings)}
    helps: dict[str, set[str | None]] = {}
    for command in COMMANDS.keys() - {"bench", "demo"}:
        for option in context_of(command).command.params:
            name = option.opts[0].removeprefix("--").replace("-", "_")
            if not isinstance(option, click.Option) or name not in fields:
                assert not isinstance(option, SettingOption) or name == "log_format", f"{command} --{name}"
            elif isinstance(option, SettingOption):
                helps.setdefault(name, set()).add(option.help)
            else:  # an operand of the command, which has no variable
                assert option.is_flag is is_flag(fields[name]), f"{command} --{name}"
                if isinstance(option.type, click.Choice):
                    assert {*fields[name].metadata["choices"]} <= {*option.type.choices}
    assert {name: texts for name, texts in helps.items() if len(texts) > 1} == {}
    assert len(helps) > 130


def test_a_setting_of_an_unknown_type_is_none() -> None:
    wrong = dataclass_of("words", "list[str]", setting((), "words"))
    with pytest.raises(TypeError, match=r"words is declared as list\[str\]; a setting is one of bool, int"):
        list(declared(wrong))


def test_a_setting_that_may_be_open_is_open_by_default() -> None:
    assert build(dataclass_of("count", "int | None", setting(None, "a number")), {}).count is None
    wrong = dataclass_of("count", "int | None", setting(1, "a number"))
    with pytest.raises(TypeError, match=r"count is declared as int \| None, and its default is 1"):
        build(wrong, {})


@pytest.mark.parametrize("default", ["1", 1.0, True, None])
def test_a_default_is_of_the_declared_type(default: object) -> None:
    wrong = dataclass_of("count", "int", setting(default, "a number"))
    with pytest.raises(TypeError, match=f"count is declared as int, and its default is {default!r}"):
        build(wrong, {})


@pytest.mark.parametrize(
    ("settings", "name", "value", "takes"),
    [
        (DaemonSettings, "polling_interval", "0.5", "a whole number"),
        (DaemonSettings, "polling_interval", 0.5, "a whole number"),
        (DaemonSettings, "polling_interval", True, "a whole number"),
        (DaemonSettings, "disable", "no", "1, yes, true, 0, no or false"),
        (DaemonSettings, "disable", 1, "1, yes, true, 0, no or false"),
        (PublisherSettings, "retry_wait", "10", "a number"),
        (PublisherSettings, "retry_wait", True, "a number"),
        (GbaseSettings, "max_open", "2", "a whole number"),
        (DatabaseSettings, "log_table", True, "a text"),
        (CommandSettings, "command_environment", "JAVA_HOME", "texts with commas between them"),
        (CommandSettings, "command_environment", ("JAVA_HOME", 1), "texts with commas between them"),
    ],
)
def test_what_is_built_has_values_of_the_declared_types(
    settings: type, name: str, value: object, takes: str
) -> None:
    option = name.replace("_", "-")
    with pytest.raises(WrongType, match=rf"^{option} is {re.escape(repr(value))}: expected {takes}$"):
        build(settings, {name: value})


def test_what_is_built_has_the_values_that_fit_and_the_defaults() -> None:
    values: Mapping[str, Any] = {
        "retry_wait": 3,
        "retry_longest": 4.5,
        "delete_from_log": True,
        "query_limit": None,
        "disable": "not ours",
    }
    assert build(PublisherSettings, values) == PublisherSettings(True, 10_000, 3, 4.5)
    assert build(Rules, {"whole_rows": True, "no_such": 1}).whole_rows


@pytest.mark.parametrize(
    ("line", "name", "takes"),
    [
        ("polling-interval = 0.5", "polling-interval: '0.5'", "a whole number"),
        ("polling-interval = true", "polling-interval: 'True'", "a whole number"),
        ("polling-interval = 'soon'", "polling-interval: 'soon'", "a whole number"),
        ("disable = 'source'", "disable: 'source'", "1, yes, true, 0, no or false"),
        ("retry-wait = 'long'", "retry-wait: 'long'", "a number"),
        ("log-table = true", "log-table: 'True'", "a text"),
        ("log-table = { name = 'x' }", "log-table: ", "a text"),
    ],
)
def test_a_line_of_another_type_is_named_with_what_its_setting_takes(
    line: str, name: str, takes: str, tmp_path: Path
) -> None:
    file = tmp_path / "eventlog.toml"
    file.write_text(f"{line}\n")
    with pytest.raises(InvalidSettings, match=rf"eventlog\.toml: {name}.* is not {takes}"):
        read_config((DatabaseSettings, DaemonSettings, PublisherSettings), {}, {}, file)


@pytest.mark.parametrize(
    ("name", "value", "reported"),
    [
        ("max_changes", "many", "max_changes: 'many' is not a whole number"),
        ("pretty", "source", "pretty: 'source' is not 1, yes, true, 0, no or false"),
        ("log_name", True, "log_name: 'True' is not a text"),
        ("insert_query_back", "drop", "insert_query_back: 'drop' is not one of modify, add"),
    ],
)
def test_an_argument_of_another_type_is_named_with_what_its_setting_takes(
    name: str, value: Any, reported: str
) -> None:
    with pytest.raises(Misuse, match=f"^{reported}$"):
        list(eventlog.documents([], **{name: value}))


@pytest.fixture
def shell(shell: Shell) -> Shell:
    return shell.with_files({"usr.toml": USR, "log.csv": f"{HEADER}1,4,usr,idu=1,,,\n"})


CONVERT = ("convert", "--to", "xds", "--tables", "usr.toml", "log.csv")


@pytest.mark.parametrize(
    ("words", "variables", "reported"),
    [
        (CONVERT, {"EVENTLOG_PRETTY": "source"}, "'--pretty': 'source' is not 1, yes, true, 0, no or false"),
        (CONVERT, {"EVENTLOG_PRETTY": "on"}, "'--pretty': 'on' is not 1, yes, true, 0, no or false"),
        (CONVERT, {"EVENTLOG_MAX_CHANGES": "0.5"}, "'--max-changes': '0.5' is not a whole number"),
        (("run", "--once"), {"EVENTLOG_DISABLE": "on"}, "EVENTLOG_DISABLE: 'on' is not 1, yes, true,"),
        (("run", "--once", "--query-limit", "few"), {}, "--query-limit: 'few' is not a whole number"),
    ],
)
def test_a_variable_and_a_flag_are_read_alike_by_all_commands(
    words: tuple[str, ...], variables: dict[str, str], reported: str, shell: Shell
) -> None:
    done = shell.run(*words, **variables)
    assert (done.code, reported in done.stderr) == (2, True), done.stderr


def test_yes_in_a_variable_switches_a_flag_on_and_a_flag_switches_it_off(shell: Shell) -> None:
    plain, pretty = shell.run(*CONVERT), shell.run(*CONVERT, "--pretty")
    assert plain.stdout != pretty.stdout
    assert shell.run(*CONVERT, EVENTLOG_PRETTY="yes").stdout == pretty.stdout
    assert shell.run(*CONVERT, "--no-pretty", EVENTLOG_PRETTY="yes").stdout == plain.stdout
