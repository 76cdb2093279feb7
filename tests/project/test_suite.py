"""How the suite runs: by tiers, nothing is compiled twice, nothing long starts last; faults have a place."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import frugal, parallel, tiers
from tests.kit.commands import environment
from tests.mutants import reach
from tests.mutants.faults import Fault, faults, file_of, function_of
from tests.mutants.finding import ENOUGH
from tests.project import changed

pytestmark = pytest.mark.quick

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent


def test_programs_are_compiled_once_also_where_nobody_wants_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("dont_write_bytecode", "pycache_prefix"):
        monkeypatch.setattr(sys, name, getattr(sys, name))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    frugal.keep_bytecode()
    asked = [sys.executable, "-c", "import sys; print(sys.dont_write_bytecode, sys.pycache_prefix)"]
    reported = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert reported.stdout == f"False {sys.prefix}/bytecode\n"


def test_what_takes_long_has_its_turn_first(request: pytest.FixtureRequest) -> None:
    if all(
        Path(argument).is_dir() for argument in request.config.args
    ):  # files keep the order they are named in
        turns = [parallel.turn(Path(item.path)) for item in request.session.items]
        assert turns == sorted(turns)
    assert [parallel.turn(Path("tests", name, "test_a.py")) for name in ("laws/chaos", "spark", "core")] == [
        0,
        1,
        len(parallel.LONG),
    ]


def test_each_folder_is_a_room_or_what_rooms_share() -> None:
    rooms = {path.parent.name for path in ROOT.glob("eventlog/*/__init__.py")}
    folders = {path.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/*.py")}
    assert folders - rooms == {"kit", "laws", "mutants", "project", "spark", "world"}
    assert {path.name for path in TESTS.glob("*.py")} == {"conftest.py"}
    assert folders > set(parallel.LONG)


# A time of more than five seconds, in which something must come to an end.
CONSTANT_DEADLINE = re.compile(
    r"(\btimeout=|time\.monotonic\(\) \+ |\.(wait|join|result|poll|communicate)\(|create_connection\(.*\), )"
    r"([6-9]|[1-9][\d_]+)\b"
)


def test_each_deadline_grows_with_the_load() -> None:
    constant = [
        f"{path.relative_to(ROOT)}:{number}: {line}"
        for path in sorted(TESTS.rglob("*.py"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if CONSTANT_DEADLINE.search(line)
    ]
    assert constant == []


LIMITED = """
import os, signal, pytest
os.getloadavg = lambda: (100.0, 0, 0)
@pytest.mark.quick
@pytest.mark.timeout(1)
def test_limited(): assert signal.getitimer(signal.ITIMER_REAL)[0] > 1
"""


def test_the_limit_of_a_test_grows_with_the_load(tmp_path: Path) -> None:
    (tmp_path / "test_limited.py").write_text(LIMITED)
    assert " 1 passed" in run_pytest(tmp_path).stdout


TIERED = """
import pytest
pytestmark = pytest.mark.quick
def test_quick(): pass
@pytest.mark.long
def test_long(): pass
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.servers)])
def test_servers(n): pytest.skip("no reason")
@pytest.mark.family
@pytest.mark.parametrize("n", [1, 2, 3])
def test_of_a_family(n): pass
@pytest.mark.one_database
@pytest.mark.parametrize("server", ["embedded PostgreSQL", "another"])
def test_of_one_database(server): pass
"""


FAILING = """
import pytest
pytestmark = pytest.mark.quick
@pytest.mark.long
def test_long(): raise ValueError
@pytest.mark.parametrize("n", [1, 2, 3])
def test_b(n): assert n == 1
def test_passes(): pass
def test_a(): raise ValueError
def test_z(): raise ValueError
"""


@pytest.mark.parametrize(
    ("arguments", "outcome", "last"),
    [
        ([], "4 passed, 1 skipped, 4 deselected", "1 servers, 2 long, 1 nightly; `make test-all` runs all"),
        (["--tiers", "all"], "6 passed, 2 skipped, 1 deselected", "left out: 1 nightly"),
        (["--tiers", "servers"], "1 skipped, 8 deselected", "5 quick, 2 long, 1 nightly; `make test-all`"),
        (["-n", "2"], "4 passed, 1 skipped", "1 servers, 2 long, 1 nightly; `make test-all`"),
    ],
)
def test_a_run_takes_its_tiers_and_says_what_it_left_out(
    tmp_path: Path, arguments: list[str], outcome: str, last: str
) -> None:
    (tmp_path / "test_tiered.py").write_text(TIERED)
    done = run_pytest(tmp_path, *arguments)
    assert done.returncode == 0
    assert f" {outcome} in " in done.stdout
    assert last in done.stdout
    assert "skipped" in next(line for line in done.stdout.splitlines() if line.endswith(": no reason"))


def test_a_test_by_its_id_runs_in_any_tier(tmp_path: Path) -> None:
    (tmp_path / "test_tiered.py").write_text(TIERED)
    done = run_pytest(tmp_path, "test_tiered.py::test_long")
    assert " 1 passed in " in done.stdout


def test_a_test_without_a_tier_stops_the_collection(tmp_path: Path) -> None:
    (tmp_path / "test_bare.py").write_text("def test_it(): pass\n")
    done = run_pytest(tmp_path)
    assert done.returncode
    assert "no mark of a tier (quick, servers, long, nightly): test_bare.py" in done.stderr


def run_pytest(
    folder: Path, *arguments: str, module: str = "pytest", stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder with the hooks of this suite."""
    markers = "\n  ".join((*tiers.TIERS, "family", "one_database"))
    (folder / "none.ini").write_text(f"[pytest]\nmarkers = {markers}\n")
    words = ["-p", "tests.conftest", "-p", "no:cacheprovider", "-c", "none.ini", *arguments]
    return subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=folder,
        env=environment(),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_change_reaches_the_tests_that_use_it_nearest_first() -> None:
    files = changed.tests_of([changed.ROOT / "eventlog" / "xds" / "split.py"])
    assert files.index("tests/xds/test_one_door.py") < files.index("tests/publisher/test_deliver.py")
    assert "tests/formats/gbase/test_columns.py" not in files
    assert "tests/sql/test_install.py" in changed.tests_of(
        [changed.ROOT / "eventlog" / "sql" / "statements" / "common" / "schema.sql"]
    )
    assert changed.tests_of([Path(__file__)]) == ["tests/project/test_suite.py"]
    assert "tests/project/test_documents.py" in changed.tests_of([changed.ROOT / "docs" / "index.md"])


def test_a_fault_has_its_place_in_the_source_and_tests_that_there_are() -> None:
    texts = {file: (ROOT / file).read_text("utf-8") for fault in faults() for file in files_of(fault)}
    assert [fault.name for fault in faults() if texts[fault.file].count(fault.original) != 1] == []
    finders = [test for fault in faults() for test in fault.finders]
    functions = [(test, function_of(test).rpartition("::")[2]) for test in finders if "::" in test]
    assert [test for test, name in functions if f"def {name}(" not in texts[file_of(test)]] == []


def files_of(fault: Fault) -> set[str]:
    """Return the file of a fault, and those of its finders."""
    return {fault.file, *map(file_of, fault.finders)}


def test_what_finds_a_fault_is_quick(request: pytest.FixtureRequest) -> None:
    items = request.session.items
    finders = {test for fault in faults() for test in fault.finders}
    if {file_of(test) for test in finders} <= {
        file_of(item.nodeid) for item in items
    }:  # the whole suite runs
        quick = {item.nodeid for item in items if tiers.tier_of(item) == "quick"}
        assert finders - quick - {*map(function_of, quick)} - {*map(file_of, quick)} == set()


ONE_FINDER = 56  # faults that one function finds; a second one for each new fault, and fewer of these


def test_no_further_fault_has_one_finder() -> None:
    single = [fault.name for fault in faults() if len(set(map(function_of, fault.finders))) < ENOUGH]
    assert len(single) <= ONE_FINDER


SQUARE = '''def area(side):
    """Return the area of a square."""
    if side < 0:
        return 0
    elif side == 0: return 1
    return side * FACTOR
FACTOR = 2
'''


def test_a_probe_is_before_the_statement_of_a_fault() -> None:
    places = {"below": "return 0", "none": "side == 0", "late": "side *", "outside": "FACTOR = 2"}
    planted = reach.with_probes(SQUARE, [Fault(name, "", (), old, "", False) for name, old in places.items()])
    probe = '__import__("tests.mutants.probe", fromlist=["reached"]).'
    assert (
        planted.replace(probe, "")
        == '''def area(side):
    """Return the area of a square."""
    reached('none')
    reached('outside')
    if side < 0:
        reached('below')
        return 0
    elif side == 0: return 1
    reached('late')
    return side * FACTOR
FACTOR = 2
'''
    )


def test_finders_run_in_turn_until_two_functions_fail(tmp_path: Path) -> None:
    """A job has its own process of one that has imported libraries."""
    (tmp_path / "test_tiered.py").write_text(FAILING)
    tests = ["test_tiered.py::test_long", "test_tiered.py::test_b[2]", "test_tiered.py"]
    both = ["test_tiered.py::test_b[2]", "test_tiered.py::test_a"]
    jobs = [{"tests": tests, "finders": finders, "seconds": 600} for finders in ([], both[:1])]
    lines = "".join(f"{json.dumps(job)}\n" for job in jobs)
    done = run_pytest(tmp_path, module="tests.mutants.finding", stdin=lines)
    first, second, after = done.stdout.split("exit code 2\n")
    assert "2 failed, 1 passed, 2 skipped, 1 deselected in" in first
    assert first.endswith(f"\n{json.dumps(both)}\n")
    assert "1 failed, 1 passed, 1 deselected in" in second
    assert second.endswith(f"\n{json.dumps(both[1:])}\n")
    assert after == ""
