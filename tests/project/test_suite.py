"""How the suite runs: by tiers, nothing is compiled twice, nothing long starts last; faults have a place."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import frugal, parallel
from tests.kit.commands import environment
from tests.mutants.__main__ import Fault, faults
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
"""


@pytest.mark.parametrize(
    ("arguments", "outcome", "last"),
    [
        ([], "1 passed, 1 skipped, 2 deselected", "1 servers, 1 long; `make test-all` runs all but nightly"),
        (["--tiers", "all"], "2 passed, 2 skipped", "left out: nothing"),
        (["--tiers", "servers"], "1 skipped, 3 deselected", "2 quick, 1 long; `make test-all`"),
        (["-n", "2"], "1 passed, 1 skipped", "1 servers, 1 long; `make test-all`"),
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


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder with the hooks of this suite."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
        "-c",
        "none.ini",
    ]
    (folder / "none.ini").write_text("[pytest]\nmarkers = quick\n  servers\n  long\n")
    return subprocess.run(
        [*command, *arguments], cwd=folder, env=environment(), capture_output=True, text=True, check=False
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


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_a_fault_has_its_place_in_the_source_and_a_file_of_tests(fault: Fault) -> None:
    assert (ROOT / fault.file).read_text("utf-8").count(fault.original) == 1
    assert (ROOT / fault.test).is_file()
