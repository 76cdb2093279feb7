"""One file to which run after run adds can be read as a whole, whatever a run that was killed left in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from eventlog.core.errors import Misuse, Refused
from eventlog.transfer.convert import convert as convert_job
from eventlog.transfer.job import Job
from eventlog.transfer.report import Report
from tests.kit.support import CLOCK
from tests.transactions.test_states import USR, Line, job, written

pytestmark = pytest.mark.quick

LINES = [Line(number, 60 * number, f"{number}", "usr") for number in (1, 2, 3)]


def run(folder: Path, upto: int, target: str, output: str, **options: str) -> None:
    """One run over what an export held by then."""
    inputs = [written(folder, "in", LINES[:upto], 3600)]
    conversion = replace(
        job(folder, inputs, **options), target_format=target, tables=USR, output=str(folder / output)
    )
    convert_job(conversion, Report(print), CLOCK)


def keys(folder: Path, source: str, name: str, **options: str) -> tuple[list[str], list[Refused]]:
    """Return the keys of the changes in the file, and what cannot be read of it."""
    refused: list[Refused] = []
    out = folder / "reported.jsonl"
    read = Job(
        source, "changes", (str(folder / name),), str(out), tables=USR, options={"table": "usr", **options}
    )
    convert_job(read, Report(refused.append), CLOCK)
    return [
        line.partition('"key":{"id":')[2].partition("}")[0] for line in out.read_text().splitlines()
    ], refused


def test_csv_names_its_columns_once(tmp_path: Path) -> None:
    run(tmp_path, 2, "qlik-table", "out.csv")
    run(tmp_path, 3, "qlik-table", "out.csv")
    assert keys(tmp_path, "qlik-table", "out.csv") == (["1", "2", "3"], [])


@pytest.mark.parametrize("size", [0, 1, 40])
def test_half_the_line_that_names_the_columns_is_completed(tmp_path: Path, size: int) -> None:
    run(tmp_path, 1, "qlik-table", "whole.csv")
    (tmp_path / "state").unlink()
    (tmp_path / "out.csv").write_bytes((tmp_path / "whole.csv").read_bytes()[:size])
    run(tmp_path, 1, "qlik-table", "out.csv")
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


@pytest.mark.parametrize("half", ["2023,I,3", '2023,"ab', '2023,"ab\n'])
def test_half_a_row_takes_nothing_with_it(tmp_path: Path, half: str) -> None:
    run(tmp_path, 2, "qlik-table", "out.csv")
    with (tmp_path / "out.csv").open("a") as file:
        file.write(half)
    run(tmp_path, 3, "qlik-table", "out.csv")
    closed = f'{half}"\n' if '"' in half else f"{half}\n"
    lines = (tmp_path / "out.csv").read_text()
    assert lines.partition(half)[2].startswith(closed.removeprefix(half))
    reported, refused = keys(tmp_path, "qlik-table", "out.csv")
    assert (reported, len(refused)) == (["1", "2", "3"], 1)


def test_csv_of_other_columns_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("a,b\n1,2\n")
    with pytest.raises(Misuse, match="has other columns"):
        run(tmp_path, 1, "qlik-table", "out.csv")
    assert (tmp_path / "out.csv").read_text() == "a,b\n1,2\n"
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("half", [b"", b"\0\0", b"\0\0\1\0abc"])
def test_half_a_message_behind_its_length_is_taken_away(tmp_path: Path, half: bytes) -> None:
    """Remove it; else its length would count for what is written after it, and all of that would be lost."""
    run(tmp_path, 2, "qlik-message", "out.avro", encoding="avro")
    with (tmp_path / "out.avro").open("ab") as file:
        file.write(half)
    run(tmp_path, 3, "qlik-message", "out.avro", encoding="avro")
    assert keys(tmp_path, "qlik-message", "out.avro", encoding="avro") == (["1", "2", "3"], [])


def test_what_holds_no_messages_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out.avro").write_text("a letter to a friend")
    with pytest.raises(Misuse, match="does not hold messages with a length before each"):
        run(tmp_path, 1, "qlik-message", "out.avro", encoding="avro")
    assert (tmp_path / "out.avro").read_text() == "a letter to a friend"


@pytest.mark.parametrize("name", ["out.parquet", "out.csv.gz", "out.jsonl.gz"])
def test_what_can_only_be_written_whole_is_not_added_to(tmp_path: Path, name: str) -> None:
    with pytest.raises(Misuse, match=r"name .*a folder, -o DIR/"):
        run(tmp_path, 1, "qlik-table", name)
    assert not (tmp_path / name).exists()
    assert not (tmp_path / "state").exists()
