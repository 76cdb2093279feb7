"""Memory is bounded by what is stated, whatever a file claims: a process of its own reads each hostile file.

A few kilobytes, or a few megabytes, that would be gigabytes if they were believed.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from eventlog.formats.qlik import avro

MEBIBYTE = 1 << 20
READ = """
import re, sys
from pathlib import Path
from eventlog.core.formats import Shape
from eventlog.core.errors import Refused
from eventlog.files.inputs import open_sources
shape, given, name = sys.argv[1:]
whole = refused = 0
for source in open_sources([name], Shape(shape), given or None):
    if isinstance(source, Refused):
        print(source.reason, file=sys.stderr)
        refused += 1
        continue
    for record in source.records:
        if isinstance(record, Refused):
            refused += 1
            print(record.reason, file=sys.stderr)
        else:
            whole += 1
        del record
(most,) = re.findall(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(whole, refused, int(most) >> 10)
"""
COMMAND = """
import re
from pathlib import Path
from eventlog.cli import main
try:
    main()
finally:
    (most,) = re.findall(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
    print(int(most) >> 10)
"""
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc on this system"),
]


def read(path: Path, shape: str = "rows", container: str = "") -> tuple[int, int, int, str]:
    """Return the whole and the refused records, the most memory in MiB, and the reasons."""
    command = [sys.executable, "-c", READ, shape, container, str(path)]
    reported = subprocess.run(command, capture_output=True, text=True, check=True)
    whole_count, refused, max_mib = map(int, reported.stdout.split())
    return whole_count, refused, max_mib, reported.stderr


def _parquet(path: Path, columns: dict[str, Any], **options: Any) -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), path, **options)


def test_parquet_a_long_value_that_is_repeated_stands_in_memory_once(tmp_path: Path) -> None:
    import pyarrow

    short_then_long = pyarrow.DictionaryArray.from_arrays([0] * 8192 + [1] * 8192, ["x", "x" * MEBIBYTE])
    columns = {"record_id": range(2 * 8192), "value": short_then_long}
    _parquet(tmp_path / "f.parquet", columns, row_group_size=8192, store_schema=False)
    assert (tmp_path / "f.parquet").stat().st_size < 400_000
    whole, refused, most, _ = read(tmp_path / "f.parquet")
    assert (whole, refused) == (2 * 8192, 0)
    assert most < 600


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_parquet_rows_are_read_together_by_their_size(tmp_path: Path, encoding: str) -> None:
    import pyarrow

    values = pyarrow.array(["x" * MEBIBYTE] * 200)
    _parquet(
        tmp_path / "f.parquet",
        {"record_id": range(200), "value": values},
        use_dictionary=False,
        column_encoding={"value": encoding, "record_id": "PLAIN"},
        compression="zstd",
    )
    whole, refused, most, _ = read(tmp_path / "f.parquet")
    assert (whole, refused) == (200, 0)
    assert most < 1200  # a page of 200 MiB, twice, and the rows of a batch


def test_parquet_lists_are_no_cells(tmp_path: Path) -> None:
    _parquet(tmp_path / "f.parquet", {"a": [[1, 2], [3]]})
    assert "column a is a list" in read(tmp_path / "f.parquet")[3]


def test_csv_a_quote_that_is_never_closed(tmp_path: Path) -> None:
    with (tmp_path / "f.csv").open("w") as file:
        file.write('a,b\n1,"\n')
        for _ in range(300):
            file.write(f"1,{'x' * (MEBIBYTE - 3)}\n")
    whole, refused, most, reason = read(tmp_path / "f.csv")
    assert (whole, refused) == (300, 1)
    assert "never closed" in reason
    assert most < 1000


@pytest.mark.parametrize(("name", "shape"), [("f.csv.gz", "rows"), ("f.jsonl.gz", "objects")])
def test_a_line_without_end_in_a_small_file(tmp_path: Path, name: str, shape: str) -> None:
    before, behind = (b"a\n1\n", b"\n2\n") if "csv" in name else (b'{"a":1}\n', b'\n{"a":2}\n')
    with gzip.open(tmp_path / name, "wb", 1) as file:
        file.write(before)
        for _ in range(600):
            file.write(b"[" * MEBIBYTE)
        file.write(behind)
    whole, refused, most, reason = read(tmp_path / name, shape)
    assert (whole, refused) == (2, 1)
    assert "over 268435456 bytes" in reason
    assert most < 1000


def test_json_many_small_objects_on_a_line(tmp_path: Path) -> None:
    text = json.dumps({"a": "," * 30 * MEBIBYTE})
    (tmp_path / "f.jsonl").write_text(f"{text}\n[{'{},' * 10 * MEBIBYTE}1]\n{text}\n")
    whole, refused, most, reason = read(tmp_path / "f.jsonl", "objects")
    assert (whole, refused) == (2, 1)
    assert "apart from its texts it has over" in reason
    assert most < 800


def nested(levels: int) -> str:
    """Return a schema whose record doubles its values tenfold with each level, without a byte of data."""
    first = {"type": "record", "name": "r0", "fields": [{"name": f"f{n}", "type": "null"} for n in range(10)]}
    fields: list[dict[str, Any]] = [{"name": "first", "type": first}]
    for below, above in pairwise(range(levels)):
        inner = [{"name": f"f{n}", "type": f"r{below}"} for n in range(10)]
        fields.append({"name": f"l{above}", "type": {"type": "record", "name": f"r{above}", "fields": inner}})
    return json.dumps({"type": "record", "name": "top", "fields": fields})


def test_avro_a_schema_that_multiplies_itself() -> None:
    assert avro.decode(avro.foreign(nested(3)), b"")
    with pytest.raises(avro.InvalidAvro, match="over 100000 values"):
        avro.foreign(nested(8))
    with pytest.raises(avro.InvalidAvro, match="over 100000 values"):
        avro.foreign(nested(300))


def test_explain_takes_no_more_memory_for_more_rows_that_are_refused(tmp_path: Path) -> None:
    most = []
    for rows in (50_000, 250_000):
        lines = (f"{number},9,usr,idu=1,fname,{'before ' * 8},\n" for number in range(rows))
        header = "record_id,event_type,table_name,table_key,column_name,old_value,new_value\n"
        (tmp_path / "log.csv").write_text(header + "".join(lines))
        command = [sys.executable, "-c", COMMAND, "explain", "log.csv"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert f"{rows} rows are refused" in done.stderr
        most.append(int(done.stdout))
    assert most[1] < most[0] + 20


def test_a_log_in_a_file_takes_no_more_memory_for_more_rows(tmp_path: Path) -> None:
    tables, log = tmp_path / "tables.toml", tmp_path / "log.csv"
    tables.write_text('[tables.usr]\nkey = ["idu"]\ncolumns = { idu = "integer", fname = "varchar(64)" }\n')
    most = []
    for rows in (200_000, 600_000):
        with log.open("w") as file:
            file.write("record_id,event_type,table_name,table_key,column_name,old_value,new_value\n")
            for number in range(1, rows + 1):
                key = number * 7919 % rows // 3  # rows of an object are far apart
                file.write(f"{number},2,usr,idu={key},fname,{'before ' * 8},{'after ' * 8}{number}\n")
        command = ["convert", "--tables", "tables.toml", "--from", "log", "--to", "xds", "-o", "out.xml"]
        reported = subprocess.run(
            [sys.executable, "-c", COMMAND, *command, log.name],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        most.append(int(reported.stdout))
    assert most[1] < most[0] + 30
    assert most[1] < 230


@pytest.mark.parametrize("order", ["as-is", pytest.param("sequence", marks=pytest.mark.nightly)])
def test_large_cells_of_a_change_table_do_not_wait_for_each_other(tmp_path: Path, order: str) -> None:
    tables, rows = tmp_path / "tables.toml", tmp_path / "usr__ct.csv"
    tables.write_text('[tables.usr]\nkey = ["idu"]\ncolumns = { idu = "integer", note = "text" }\n')
    with rows.open("w") as file:
        file.write("header__change_seq,header__change_oper,header__change_mask,idu,note\n")
        for number in range(40):
            file.write(f"20250101{number * 7 % 40:027},I,18,{number},{'x' * 16 * MEBIBYTE}\n")
    command = ["convert", "--tables", tables.name, "--from", "qlik-table", "--to", "changes", rows.name]
    reported = subprocess.run(
        [sys.executable, "-c", COMMAND, *command, "--order", order, "-o", "out.jsonl"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "40 changes were converted" in reported.stderr
    assert int(reported.stdout) < 600
