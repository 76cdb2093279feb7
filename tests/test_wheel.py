"""A non-editable install carries every file that the program reads."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
READ = {".sql", ".dtd", ".html", ".css", ".js", ".py"}


def test_the_wheel_holds_every_file_of_the_packages(tmp_path: Path) -> None:
    source = tmp_path / "source"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, tracked.stdout.split("\0")):
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "-q",
            "--no-deps",
            "--no-build-isolation",
            "-w",
            tmp_path,
            source,
        ],
        check=True,
        timeout=120,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    packages = {"eventlog": source, "eventlog_spark": source / "spark"}
    wanted = {
        path.relative_to(root).as_posix()
        for package, root in packages.items()
        for path in (root / package).rglob("*")
        if path.suffix in READ
    }
    assert len(wanted) > 100
    assert wanted - held == set()
    assert {name.split("/")[0] for name in held if ".dist-info/" not in name} == set(packages)
