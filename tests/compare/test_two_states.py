"""The changes of `eventlog compare` turn one state into the other, and nothing else."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from eventlog.compare.digest import digest
from eventlog.compare.lines import differences, in_order
from eventlog.compare.ordering import Phase, ranks
from eventlog.compare.rows import TwoRows, in_batches
from eventlog.core import tablekey, tablesfile
from eventlog.core.change import Op
from eventlog.core.tables import Table
from eventlog.formats.neutral import load
from tests.kit.commands import Shell, environment
from tests.kit.databases import Database
from tests.kit.statements import run_statements
from tests.kit.support import USR
from tests.kit.tiers import drawn

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]
HEADER = "idu,fname,lname,photo\n"

# Values that a collation or a careless reader would take for the same.
_TEXT = st.sampled_from(
    ["", " ", "a", "a ", "A", "ä", "a\u0308", "é,'\"=\\<>;+", "\n", "0", "x" * 300]
) | st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=4)
_CELLS = st.tuples(*[st.none() | _TEXT] * 2, st.none() | st.just("qqo="))
_STATE = st.dictionaries(_TEXT, _CELLS, max_size=12)
PEOPLE = tablesfile.read(
    '[tables.p]\nkey = ["k"]\ncolumns = { k = "text", a = "text", b = "text", c = "blob" }\n'
)
P = PEOPLE.get("p")


def _batches(table: Table, state: dict[str, Any], name: str) -> Any:
    return in_batches(table, ((f"{name}:{n}", (key,), cells) for n, (key, cells) in enumerate(state.items())))


@settings(max_examples=drawn(40))
@given(_STATE, _STATE, st.sampled_from([600, 1 << 20]))
def test_the_changes_make_one_state_the_other(old: Any, new: Any, memory: int) -> None:
    found = differences(PEOPLE, P, _batches(P, old, "a"), _batches(P, new, "b"), memory)
    replica, phases = dict(old), []
    for number, line in enumerate(in_order(PEOPLE, ((P, one) for one in found), memory), 1):
        assert isinstance(line, str)
        change = load(json.loads(line))
        assert change.position == str(number)
        key = str(change.key[0][1])
        phases.append((change.op, tablekey.quote(key).encode()))
        if change.op is Op.DELETE:
            del replica[key]
            continue
        assert (key in replica) == (change.op is Op.UPDATE)
        if change.op is Op.UPDATE:
            assert change.before != change.after
        a, b, c = (change.after[name] for name in "abc")
        replica[key] = (a, b, None if c is None else "qqo=")
    assert replica == new
    order = (Op.DELETE, Op.INSERT, Op.UPDATE)
    assert phases == sorted(phases, key=lambda one: (order.index(one[0]), one[1]))
    assert len(phases) == sum(old.get(key) != new.get(key) for key in old.keys() | new.keys())


def test_two_rows_of_one_key_are_an_error_that_names_both(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(HEADER + "1,a,,\n")
    (tmp_path / "b.csv").write_text(HEADER + "1,a,,\n2,b,,\n1,c,,\n")
    found = _compare(tmp_path, "a.csv", "b.csv", exit_code=1)
    assert "b.csv:2 and " in found
    assert "b.csv:4 have the same key, idu=1" in found


def test_a_change_that_cannot_be_written_is_left_out_and_the_command_fails(tmp_path: Path) -> None:
    (tmp_path / "usr.toml").write_text(USR)
    (tmp_path / "a.csv").write_text(HEADER)
    (tmp_path / "b.csv").write_text(HEADER + "1,\x01,,\n2,b,,\n")
    words = ("--tables", "usr.toml", "--table", "usr", "--to", "xds")
    done = shell_in(tmp_path).run("compare", "a.csv", "b.csv", *words)
    assert (done.code, done.stdout.count("<add ")) == (1, 1)
    assert "1 change was left out" in done.stderr


@pytest.mark.parametrize("memory", [1, 1 << 20])
def test_rows_of_one_key_on_disk_too(memory: int) -> None:
    rows = [("b:1", ("x",), (None, None, None)), ("b:2", ("x",), (None, None, None))]
    with pytest.raises(TwoRows, match="b:1 and b:2"):
        list(differences(PEOPLE, P, iter(()), in_batches(P, rows), memory))


def test_every_container_says_the_same(tmp_path: Path) -> None:
    old = [(1, "Jack", None, b"\xaa\xaa"), (2, "", "x", None), (3, "k", "k", None)]
    new = [(3, "k", "k", None), (2, None, "x", b"\xbb"), (4, "ä", "y", None)]
    names = ("idu", "fname", "lname", "photo")
    for name, rows in (("a", old), ("b", new)):
        columns = list(zip(*rows, strict=True))
        types = (pa.int64(), pa.string(), pa.string(), pa.binary())
        arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
        pq.write_table(pa.table(arrays, names), tmp_path / f"{name}.parquet")
        texts = [[_BASE64.get(cell, cell) for cell in row] for row in rows]
        lines = "".join(
            ",".join("" if c is None else f'"{c}"' if c == "" else str(c) for c in row) + "\n"
            for row in texts
        )
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress((HEADER + lines).encode()))
        objects = (json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in texts)
        (tmp_path / f"{name}.jsonl").write_text("".join(objects))
    reported = [_compare(tmp_path, f"a.{one}", f"b.{two}") for one in _KINDS for two in _KINDS]
    assert len(set(reported)) == 1
    assert [json.loads(line)["op"] for line in reported[0].splitlines()] == ["delete", "insert", "update"]


def test_the_part_of_a_killed_run_in_a_folder_is_passed_over(tmp_path: Path) -> None:
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "usr.csv").write_text(HEADER + "1,a,,\n")
        (tmp_path / name / ".usr.csv.part").write_text(name)
    assert _compare(tmp_path, "before/", "after/", tables="usr.toml") == ""


_BASE64: dict[object, object] = {b"\xaa\xaa": "qqo=", b"\xbb": "uw=="}
_KINDS = ("parquet", "csv.gz", "jsonl")


def test_values_that_are_written_otherwise_are_no_change(tmp_path: Path) -> None:
    columns = 'k = "integer", n = "numeric(9,2)", c = "char(4)", i = "integer"'
    tables = f'[tables.t]\nkey = ["k"]\ncolumns = {{ {columns} }}\n'
    (tmp_path / "tables.toml").write_text(tables)
    (tmp_path / "a.csv").write_text("k,n,c,i\n1,1.10,ab  ,5\n2,1,x,1\n")
    (tmp_path / "b.csv").write_text("k,n,c,i\n2,1.0,x,2\n1,1.1,ab,+05\n")
    (line,) = _compare(tmp_path, "a.csv", "b.csv", tables="tables.toml").splitlines()
    reported = {one["column"]: (one["before"], one["after"]) for one in json.loads(line)["fields"]}
    assert reported == {"k": (2, 2), "n": ("1.0", "1.0"), "c": ("x", "x"), "i": (1, 2)}


def test_a_circle_of_references_is_closed_by_a_change(tmp_path: Path) -> None:
    tables = """
[tables.dept]
key = ["d"]
columns = { d = "integer", boss = "integer" }
references = { boss = "emp" }
[tables.emp]
key = ["e"]
columns = { e = "integer", d = "integer", name = "text" }
references = { d = "dept" }
[tables.site]
key = ["s"]
columns = { s = "integer", d = "integer" }
references = { d = "dept" }
"""
    (tmp_path / "tables.toml").write_text(tables)
    for side in ("old", "new"):
        (tmp_path / side).mkdir()
    for table, header, gone, new in (
        ("dept", "d,boss", "1,1", "2,2"),
        ("emp", "e,d,name", "1,1,a", "2,2,b"),
        ("site", "s,d", "1,1", "2,2"),
    ):
        (tmp_path / "old" / f"{table}.csv").write_text(f"{header}\n{gone}\n")
        (tmp_path / "new" / f"{table}.csv").write_text(f"{header}\n{new}\n")
    reported = [
        json.loads(line) for line in _compare(tmp_path, "old", "new", tables="tables.toml").splitlines()
    ]
    steps = [(one["op"], one["table"]) for one in reported]
    assert steps[:3] == [("delete", "site"), ("delete", "emp"), ("delete", "dept")]
    assert steps[3:] == [
        *(("insert", name) for name in ("dept", "emp", "site")),
        *(("update", name) for name in ("dept", "emp")),
    ]
    site = reported[5]["fields"]
    assert {"column": "d", "after": 2} in site  # refers to nothing that comes later
    assert {"column": "boss", "before": None, "after": 2} in reported[6]["fields"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a.csv", "none.csv"), "none.csv: no such file"),
        (("a.csv", "short.csv"), "lacks column photo"),
        (("a.csv", "null.csv"), "idu is null, and belongs to the key"),
        (("a.csv", "torn.csv"), "the rows of a state cannot be read"),
        (("a.csv", "b.txt"), "--as"),
    ],
)
def test_what_cannot_be_compared_is_said(words: tuple[str, str], said: str, tmp_path: Path) -> None:
    for name, content in {
        "a.csv": HEADER + "1,a,,\n",
        "short.csv": "idu,fname,lname\n",
        "null.csv": HEADER + ",a,,\n",
        "torn.csv": HEADER + "1,a\n",
        "b.txt": "",
    }.items():
        (tmp_path / name).write_text(content)
    assert said in _compare(tmp_path, *words, exit_code=1 if "null" in words[1] else 2)


def test_tables_of_databases_and_files_compare(database: Database, tmp_path: Path) -> None:
    """Compare rows of a database with an older file, and with themselves."""
    engine = database.engine()
    with engine.begin() as connection:
        connection.execute(
            text(
                "create table usr (idu integer primary key, fname varchar(64), lname varchar(64), ok boolean)"
            )
        )
        rows = [
            {"i": 1, "f": "Jack", "l": None, "o": True},
            {"i": 2, "f": "a ", "l": "ä", "o": False},
            {"i": 3, "f": "", "l": "x", "o": None},
        ]
        connection.execute(text("insert into usr values (:i, :f, :l, :o)"), rows)
    url = database.address
    (tmp_path / "usr.csv").write_text('idu,fname,lname,ok\n3,"",x,\n2,a,ä,false\n4,gone,,\n')
    assert _compare(tmp_path, "usr", "usr", "--url", url, tables=None) == ""
    reported = _compare(tmp_path, "usr.csv", "usr", "--url-b", url, tables=None)
    found = [json.loads(line) for line in reported.splitlines()]
    assert [(one["op"], one["key"]) for one in found] == [
        ("delete", {"idu": 4}),
        ("insert", {"idu": 1}),
        ("update", {"idu": 2}),
    ]
    assert {"column": "fname", "before": "a", "after": "a "} in found[2]["fields"]
    assert {"column": "ok", "before": False, "after": False} in found[2]["fields"]
    back = _compare(tmp_path, "usr", "usr.csv", "--url", url, tables=None)
    assert [json.loads(line)["op"] for line in back.splitlines()] == ["delete", "insert", "update"]
    engine.dispose()


def test_a_state_is_kept_for_the_next_comparison(postgres: Database, tmp_path: Path) -> None:
    """Keep the state in a file, because nothing may be made in the database."""
    engine = postgres.engine()
    run_statements(
        engine,
        "create table usr (a integer, b text, v bytea, primary key (a, b))",
        "insert into usr values (1, '=+', '\\xaaaa'), (2, '', null)",
    )
    url = postgres.address
    words = ("usr.parquet", "usr", "--url", url, "--keep", "usr.parquet")
    first = [json.loads(line) for line in _compare(tmp_path, *words, tables=None).splitlines()]
    assert [(one["op"], one["key"]) for one in first] == [
        ("insert", {"a": 1, "b": "=+"}),
        ("insert", {"a": 2, "b": ""}),
    ]
    assert _compare(tmp_path, *words, tables=None) == ""
    run_statements(engine, "update usr set v = '\\xbb'")
    kept = (tmp_path / "usr.parquet").read_bytes()
    bad = shell_in(tmp_path).run("compare", *words, "--to", "xds", "-o", "no/folder.xml")
    assert (bad.code, (tmp_path / "usr.parquet").read_bytes()) == (2, kept)
    reported = [json.loads(line) for line in _compare(tmp_path, *words, tables=None).splitlines()]
    assert [one["op"] for one in reported] == ["update", "update"]
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []
    engine.dispose()


def test_values_of_an_attribute_are_a_set_in_a_digest() -> None:
    table = tablesfile.read(_described([("v", "text", None)])).get("v")
    values: list[tuple[str, ...]] = [("a", "b"), ("b", "a"), ("a", "b", "a"), ("b", "b", "a", "a")]
    assert len({digest(table.data, [texts]) for texts in values}) == 1
    others: list[str | tuple[str, ...]] = [("a",), ("a", "c"), ("a", "b", "c"), ("ab",), "a"]
    assert len({digest(table.data, [texts]) for texts in [*others, ("a", "b")]}) >= len(others)


@pytest.mark.parametrize("names", list(permutations(("a", "b", "c"))))
def test_what_refers_goes_after_what_is_new_and_before_what_is_gone(names: tuple[str, str, str]) -> None:
    """Let the last table refer to the second, and that to the first."""
    first, second, third = names
    tables = tablesfile.read(
        "".join(
            f'[tables.{name}]\nkey = ["k"]\ncolumns = {{ k = "integer", r = "integer" }}\n'
            + (f'references = {{ r = "{parent}" }}\n' if parent else "")
            for name, parent in ((first, ""), (second, first), (third, second))
        )
    )
    places = {
        phase: sorted(names, key=lambda name: ranks(tables).place(phase, tables.get(name)))
        for phase in (Phase.DELETED, Phase.NEW, Phase.CHANGED)
    }
    parents_first = [first, second, third]
    assert places == {
        Phase.DELETED: parents_first[::-1],
        Phase.NEW: parents_first,
        Phase.CHANGED: parents_first,
    }


def test_the_published_vectors_of_digests() -> None:
    lines = (ROOT / "examples" / "digests.jsonl").read_text("utf-8").splitlines()
    assert len(lines) > 10
    for line in lines:
        vector = json.loads(line)
        table = tablesfile.read(_described(vector["columns"])).get("v")
        texts = [tuple(t) if isinstance(t, list) else t for *_, t in vector["columns"]]
        assert vector["format"] == 2
        assert digest(table.data, texts).hex() == vector["digest"], line


def _described(columns: list[tuple[str, str, object]]) -> str:
    listed = "".join(f', {json.dumps(name)} = "{kind}"' for name, kind, _ in columns)
    return f'[tables.v]\nkey = ["k"]\ncolumns = {{ k = "text"{listed} }}\n'


def test_a_limit_of_memory_changes_nothing_but_where_rows_wait(tmp_path: Path) -> None:
    rows = [f"{n},Jack,Doe{n},\n" for n in range(20_000)]
    (tmp_path / "a.csv").write_text(HEADER + "".join(rows))
    (tmp_path / "b.csv").write_text(HEADER + "".join(reversed(rows[:-1])))
    found = {_compare(tmp_path, "--compare-memory", most, "a.csv", "b.csv") for most in ("1", "256")}
    assert [json.loads(line)["key"] for line in found.pop().splitlines()] == [{"idu": 19_999}]
    assert not found
    assert "between" in _compare(tmp_path, "--compare-memory", "0", "a.csv", "b.csv", exit_code=2)


def test_one_that_is_killed_leaves_no_rows_that_waited_on_disk(tmp_path: Path) -> None:
    (tmp_path / "usr.toml").write_text(USR)
    rows = [f"{n},Jack,Doe{n},\n" for n in range(50_000)]
    (tmp_path / "a.csv").write_text(HEADER + "".join(rows))
    (tmp_path / "waiting").mkdir()
    os.mkfifo(tmp_path / "b.csv")
    words = ("a.csv", "b.csv", "--tables", "usr.toml", "--table", "usr", "--to", "changes")
    with (
        subprocess.Popen(
            [sys.executable, "-m", "eventlog", "compare", *words, "--compare-memory", "1"],
            cwd=tmp_path,
            env=environment(TMPDIR=str(tmp_path / "waiting")),
            stdout=subprocess.DEVNULL,
        ) as process,
        (tmp_path / "b.csv").open("wb", buffering=0) as second,
    ):
        second.write((HEADER + "".join(rows)).encode())  # more than a pipe holds: the first is on disk
        process.kill()
        process.wait()
    assert list((tmp_path / "waiting").iterdir()) == []


def _compare(folder: Path, *words: str, tables: str | None = "usr.toml", exit_code: int = 0) -> str:
    """Return the changes that the command writes, or its message if it fails."""
    (folder / "usr.toml").write_text(USR)
    table_flags = {None: [], "usr.toml": ["--tables", "usr.toml", "--table", "usr"]}
    done = shell_in(folder).run(
        "compare", *words, *table_flags.get(tables, ["--tables", str(tables)]), "--to", "changes"
    )
    assert done.code == exit_code, done.stderr
    return done.stdout if exit_code == 0 else done.stderr


_SHELLS: list[Shell] = []


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Iterator[None]:
    yield
    for shell in _SHELLS:
        shell.close()
    _SHELLS.clear()


def shell_in(folder: Path) -> Shell:
    """Return the one shell of this module, in a folder."""
    if not _SHELLS:
        _SHELLS.append(Shell(folder))
    _SHELLS[0].folder = folder
    return _SHELLS[0]
