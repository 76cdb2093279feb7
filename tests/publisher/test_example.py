"""The example of a settings file is complete and true."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from eventlog.cli.log_options import ALL
from eventlog.core.settings import declared
from eventlog.opening.config import read_config

pytestmark = pytest.mark.quick

EXAMPLE = Path(__file__).parents[2] / "examples" / "eventlog.toml"
NOT_FOR_FILES = {"status", "http_password"}  # N is the only letter published; passwords are elsewhere
FREE = {
    "http_url",
    "url",
    "sink",
    "driver_user",
    "command_environment",
}  # shown with a value that is no default

DECLARED = {field.name: field for _, settings in ALL for field in declared(settings)}


def uncommented() -> str:
    lines = EXAMPLE.read_text().splitlines()
    return "\n".join(re.sub(r"^# (?=[\w-]+ = |\[)", "", line) for line in lines)


def test_every_setting_stands_in_the_example() -> None:
    shown = {name.replace("-", "_") for name in tomllib.loads(uncommented())}
    assert shown - {"log", "tables"} == DECLARED.keys() - NOT_FOR_FILES


def test_the_example_can_be_used_with_every_line(tmp_path: Path) -> None:
    file = tmp_path / "eventlog.toml"
    file.write_text(uncommented())
    found = read_config([settings for _, settings in ALL], {}, {}, file)
    assert found.columns["table_key"] == "obj_key"
    assert found.tables["usr"]["withhold"] == ["password_hash"]


def test_what_is_commented_out_is_the_default() -> None:
    plain = tomllib.loads(uncommented())
    for name, value in plain.items():
        default: Any = DECLARED[name.replace("-", "_")].default if name not in ("log", "tables") else value
        if default not in (None, "") and name.replace("-", "_") not in FREE:
            assert value == default or float(value) == float(default), name
