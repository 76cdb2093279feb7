"""Header timestamps in the forms that header-time-format names, in change tables and in messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from eventlog.cli import cli
from eventlog.core.errors import InvalidValue, Refused
from eventlog.core.settings import declared, read_value
from eventlog.qlik.message_settings import MessageSettings
from eventlog.qlik.tables import TableSettings
from tests.qlik import message_samples
from tests.qlik.helpers import change, ct, read_messages, read_rows, reason, row, source

pytestmark = pytest.mark.quick

COLUMNS = ct("id")
FORM = "%d.%m.%Y %H:%M:%S.%f"
ORACLE = "%d-%b-%y %I.%M.%S.%f %p %z"
CASES = [
    ("epoch", "1732528800", "2024-11-25T10:00:00Z"),
    ("epoch", "1732528800.25", "2024-11-25T10:00:00.25Z"),
    ("epoch", "-1.5", "1969-12-31T23:59:58.5Z"),
    ("epoch-millis", "1732528800123", "2024-11-25T10:00:00.123Z"),
    ("epoch-micros", "1732528800123456", "2024-11-25T10:00:00.123456Z"),
    (FORM, "25.11.2024 10:00:00.1234567", "2024-11-25T10:00:00.1234567Z"),
    (FORM, "25.11.2024 10:00:00", "2024-11-25T10:00:00Z"),
    (FORM, "5.1.2024 9:05:07.50", "2024-01-05T09:05:07.5Z"),
    ("%m/%d/%Y %I:%M:%S %p", "11/25/2024 12:00:00 AM", "2024-11-25T00:00:00Z"),
    ("%m/%d/%Y %I:%M:%S %p", "11/25/2024 12:30:00 pm", "2024-11-25T12:30:00Z"),
    ("%Y%m%d%H%M%S", "20241125100000", "2024-11-25T10:00:00Z"),
    (ORACLE, "25-NOV-24 10.00.00.123456 AM +01:00", "2024-11-25T09:00:00.123456Z"),
    (ORACLE, "25-Nov-99 11.30.00 PM -0530", "1999-11-26T05:00:00Z"),
    ("at %Y-%m-%d, 100%%", "at 2024-11-25, 100%", "2024-11-25T00:00:00Z"),
]
WRONG = [
    ("", "25.11.2024 10:00", "a timestamp in ISO 8601 (header-time-format names another form)"),
    (FORM, "2024-11-25 10:00:00", f"a timestamp as {FORM}"),
    (FORM, "30.02.2024 10:00:00", f"a timestamp as {FORM}"),
    (FORM, "25.11.2024 10:00:61", f"a timestamp as {FORM}"),
    ("%m/%d/%Y %I:%M:%S %p", "11/25/2024 13:00:00 PM", "a timestamp as %m/%d/%Y"),
    (ORACLE, "25-NOX-24 10.00.00 AM Z", "a timestamp as %d-%b-%y"),
    ("epoch", "1e9", "a timestamp as epoch"),
    ("epoch", "999999999999999999", "a timestamp as epoch"),
    ("epoch-millis", "soon", "a timestamp as epoch-millis"),
]


def row_read(form: str, time: Any) -> Any:
    rows = source(COLUMNS, row(1, "I", "80", "1", timestamp=time))
    (found,) = read_rows(rows, header_time_format=form)
    return found


def message_read(form: str, time: Any) -> Any:
    message = message_samples.altered(message_samples.UPDATE, timestamp=time)
    (found,) = read_messages([message], header_time_format=form)
    return found


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
    assert isinstance(message_read("", 1732528800), Refused)


@pytest.mark.parametrize("settings", [TableSettings, MessageSettings])
@pytest.mark.parametrize(
    "form", ["iso", "%Y", "%Y-%m", "%Y-%m-%d %q", "%Y-%Y-%m-%d", "%Y-%m-%d %I", "%Y-%m-%d %", "%Y %y %m %d"]
)
def test_a_form_without_a_whole_date_is_no_form(settings: type, form: str) -> None:
    (field,) = (field for field in declared(settings) if field.name == "header_time_format")
    with pytest.raises(InvalidValue, match="is not epoch, epoch-millis"):
        read_value(field, form)


def test_convert_takes_the_form(tmp_path: Path) -> None:
    table = tmp_path / "usr__ct.csv"
    cells = (str(cell or "") for cell in row(1, "I", "", "1", timestamp="25.11.2024 10:00:00.25"))
    table.write_text(f"{','.join(COLUMNS)}\n{','.join(cells)}\n")
    words = ["convert", "--to", "changes", "--header-time-format", FORM, str(table)]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["time"] == "2024-11-25T10:00:00.25Z"
