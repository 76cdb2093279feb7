"""What a release consists of: the files of the wheel and of the source distribution, twice the same bytes.

`python -m tests.project.artifacts settle FILE` gives every member of a source distribution the time in
SOURCE_DATE_EPOCH, because setuptools gives them that of the build. `… check FOLDER` prints each file that an
artifact lacks, or has beyond its list, and an artifact that is too large. `… closure FOLDER` fails for an
installation that is too large, `… bill FILE` for a bill of materials without a required package, its version
or its licence. It needs nothing but Python.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

PACKAGES = ("eventlog/", "spark/eventlog_spark/")
NAME = "eventlog_publisher"
IN_WHEEL = (
    *(
        f"{NAME}.dist-info/{name}"
        for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt")
    ),
    *(f"{NAME}.dist-info/licenses/{name}" for name in ("LICENSE", "NOTICE")),
)
IN_SOURCES = (
    *("DESCRIPTION.md", "LICENSE", "NOTICE", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"),
    *(f"{NAME}.egg-info/{name}" for name in ("PKG-INFO", "SOURCES.txt", "dependency_links.txt")),
    *(f"{NAME}.egg-info/{name}" for name in ("entry_points.txt", "requires.txt", "top_level.txt")),
)
MOST_PACKED = 1_500_000  # bytes of an artifact
MOST_INSTALLED = 400_000_000  # bytes of the wheel and of all that it requires
_VERSION = re.compile(rf"^{NAME}-[^/]+?(?=\.dist-info/)")


def contents(artifact: Path) -> set[str]:
    """Return the files of an artifact, without the version in their names."""
    if artifact.suffix == ".whl":
        return {_VERSION.sub(NAME, name) for name in zipfile.ZipFile(artifact).namelist()}
    with tarfile.open(artifact) as archive:
        return {member.name.partition("/")[2] for member in archive if member.isfile()}


def expected(artifact: Path, tracked: Iterable[str]) -> set[str]:
    """Return the files that an artifact has of those that git knows: the packages, and its own few."""
    packages = {name for name in tracked if name.startswith(PACKAGES)}
    if artifact.suffix == ".whl":
        return {name.removeprefix("spark/") for name in packages} | {*IN_WHEEL}
    return packages | {*IN_SOURCES}


def differences(artifact: Path, tracked: Iterable[str]) -> Iterator[str]:
    """Yield a line for each file that an artifact has beyond its list, or lacks."""
    there, listed = contents(artifact), expected(artifact, tracked)
    yield from (f"{artifact.name}: {name} does not belong there" for name in sorted(there - listed))
    yield from (f"{artifact.name}: {name} is missing" for name in sorted(listed - there))
    if (size := artifact.stat().st_size) > MOST_PACKED:
        yield f"{artifact.name} has {size} bytes; the most is {MOST_PACKED}"


def kinds(names: Iterable[str]) -> list[str]:
    """Return the folders of files, each with the suffixes of its files."""
    return sorted({f"{Path(name).parent}/*{Path(name).suffix or Path(name).name}" for name in names})


def size_on_disk(folders: Iterable[Path]) -> int:
    """Return the bytes of all files below some folders, or of files."""
    files = (path for folder in folders for path in (folder.rglob("*") if folder.is_dir() else (folder,)))
    return sum(path.stat().st_size for path in files if path.is_file() and path.suffix != ".pyc")


def gaps(bill: Path) -> Iterator[str]:
    """Yield a line for each required package that a bill of materials lacks or describes in part."""
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    components = {_plain(part["name"]): part for part in json.loads(bill.read_text("utf-8"))["components"]}
    for requirement in project["dependencies"]:
        name = _plain(re.split(r"[^\w-]", requirement)[0])
        part = components.get(name, {})
        missing = [field for field in ("version", "licenses") if field not in part]
        yield from (f"{bill.name}: {name} has no {field}" for field in missing)


def _plain(name: str) -> str:
    """Return the name of a package as all of its spellings have it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def settle(sources: Path, moment: int) -> None:
    """Write a source distribution again, with its members in order, of no user, at one moment."""
    with tarfile.open(sources) as archive:
        members = sorted(archive.getmembers(), key=lambda member: member.name)
        files = [(member, archive.extractfile(member)) for member in members]
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as settled:
            for member, file in files:
                member.mtime, member.uid, member.gid, member.uname, member.gname = moment, 0, 0, "", ""
                member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
                member.pax_headers = {}
                settled.addfile(member, file)
    with sources.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=moment) as compressed:
        compressed.write(packed.getvalue())


def main(verb: str, place: str) -> int:
    """Settle a source distribution, or check the artifacts of a folder; return the exit code."""
    if verb == "settle":
        settle(Path(place), int(os.environ["SOURCE_DATE_EPOCH"]))
        return 0
    lines: list[str]
    if verb == "closure":
        size = size_on_disk([Path(place)])
        print(f"the installation has {size // 1_000_000} MB; the most is {MOST_INSTALLED // 1_000_000}")
        return int(size > MOST_INSTALLED)
    if verb == "bill":
        lines = [*gaps(Path(place))]
        print("\n".join(lines) if lines else f"{place}: the bill of materials has what is required")
        return int(bool(lines))
    tracked = subprocess.run(
        ["git", "ls-files"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    lines = [line for artifact in sorted(Path(place).iterdir()) for line in differences(artifact, tracked)]
    print("\n".join(lines) if lines else f"{place}: the artifacts have what belongs to them")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
