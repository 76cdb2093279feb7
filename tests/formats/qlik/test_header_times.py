"""Header timestamps in the forms that header-time-format names, in change tables and in messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from eventlog.cli import cli
from eventlog.core.errors import Refused
from tests.formats.qlik import message_samples
from tests.formats.qlik.helpers import change, ct, read_messages, read_rows, reason, row, source

pytestmark = pytest.mark.quick

COLUMNS = ct("id")
CASES = [
    ("epoch", "1732528800", "2024-11-25T10:00:00Z"),
    ("epoch", "1732528800.25", "2024-11-25T10:00:00.25Z"),
    ("epoch", "-1.5", "1969-12-31T23:59:58.5Z"),
    ("epoch-millis", "1732528800123", "2024-11-25T10:00:00.123Z"),
    ("epoch-micros", "1732528800123456", "2024-11-25T10:00:00.123456Z"),
]
WRONG = [
    ("iso", "25.11.2024 10:00", "a timestamp in ISO 8601 (header-time-format reads numbers since 1970)"),
    ("epoch", "1e9", "a timestamp as epoch"),
    ("epoch", "999999999999999999", "a timestamp as epoch"),
    ("epoch-millis", "soon", "a timestamp as epoch-millis"),
]


def row_read(form: str, time: Any) -> Any:
    rows = source(COLUMNS, row(1, "I", "80", "1", timestamp=time))
    (answer,) = read_rows(rows, header_time_format=form)
    return answer


def message_read(form: str, time: Any) -> Any:
    message = message_samples.altered(message_samples.UPDATE, timestamp=time)
    (answer,) = read_messages([message], header_time_format=form)
    return answer


@pytest.mark.parametrize("read", [row_read, message_read])
@pytest.mark.parametrize(("form", "text", "time"), CASES)
def test_a_time_is_read_in_its_form(read: Any, form: str, text: str, time: str) -> None:
    assert change(read(form, text)).time == time


@pytest.mark.parametrize("read", [row_read, message_read])
@pytest.mark.parametrize(("form", "text", "words"), WRONG)
def test_a_time_in_another_form_is_refused(read: Any, form: str, text: str, words: str) -> None:
    assert f"{text!r} is not {words}" in reason(read(form, text))


@pytest.mark.parametrize("read", [row_read, message_read])
def test_a_time_since_1970_may_be_a_number(read: Any) -> None:
    assert change(read("epoch-millis", 1732528800123)).time == "2024-11-25T10:00:00.123Z"
    assert change(read("epoch", 1732528800.5)).time == "2024-11-25T10:00:00.5Z"


@pytest.mark.parametrize("time", [0, "", None])
def test_the_start_of_1970_is_no_time(time: object) -> None:
    assert change(row_read("epoch", time)).time is None


def test_a_number_without_a_form_is_refused() -> None:
    assert isinstance(message_read("iso", 1732528800), Refused)


def test_convert_takes_the_form(tmp_path: Path) -> None:
    table = tmp_path / "usr__ct.csv"
    cells = (str(cell or "") for cell in row(1, "I", "", "1", timestamp="1732528800.25"))
    table.write_text(f"{','.join(COLUMNS)}\n{','.join(cells)}\n")
    words = ["convert", "--to", "changes", "--header-time-format", "epoch", str(table)]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["time"] == "2024-11-25T10:00:00.25Z"
