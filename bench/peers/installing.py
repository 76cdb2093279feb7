"""Peers and judges from Debian, PyPI, Maven Central and Go's proxy, each in a folder below EVENTLOG_PEERS.

    python -m bench.peers.installing [NAME…]

fetches those that are named, or all, and prints RUN or SKIPPED with the reason for each. If CI_FULL is
set, a skip is an error. Existing installations are used as they are. Nothing of it is a dependency of the
product.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

PATIENCE = 600  # seconds for one of them
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>eventlog</groupId>
  <artifactId>{name}</artifactId>
  <version>1</version>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
DEPENDENCY = (
    "    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
    "<classifier>{}</classifier></dependency>"
)
CONNID = "net.tirasa.connid.bundles.db"
DEBEZIUM_VERSION = "3.3.1.Final"
JARS: dict[str, tuple[tuple[str, ...], ...]] = {
    "debezium": (
        ("io.debezium", "debezium-api", DEBEZIUM_VERSION),
        ("io.debezium", "debezium-embedded", DEBEZIUM_VERSION),
        ("io.debezium", "debezium-connector-postgres", DEBEZIUM_VERSION),
        ("org.slf4j", "slf4j-nop", "1.7.36"),
    ),
    "connid": (
        ("net.tirasa.connid", "connector-framework-internal", "1.5.2.0"),
        (CONNID, f"{CONNID}.scriptedsql", "2.2.10", "bundle"),
        ("org.apache.groovy", "groovy-sql", "4.0.24"),
        ("org.mariadb.jdbc", "mariadb-java-client", "3.4.1"),
        ("org.postgresql", "postgresql", "42.7.4"),
        ("org.slf4j", "slf4j-nop", "1.7.36"),
    ),
    "flink": (
        ("org.apache.flink", "flink-json", "1.20.1"),
        ("org.apache.flink", "flink-table-runtime", "1.20.1"),
        ("org.slf4j", "slf4j-nop", "1.7.36"),
    ),
    "iceberg-rest": (
        ("org.apache.iceberg", "iceberg-core", "1.11.0"),
        ("org.apache.iceberg", "iceberg-core", "1.11.0", "tests"),
        ("org.eclipse.jetty", "jetty-servlet", "11.0.26"),
        ("org.xerial", "sqlite-jdbc", "3.50.3.0"),
        ("org.slf4j", "slf4j-nop", "2.0.17"),
    ),
    "informix": (
        ("com.ibm.informix", "jdbc", "4.50.13.1"),
        ("com.ibm.informix", "ifx-changestream-client", "1.1.5"),
        ("org.mongodb", "bson", "3.8.0"),
        ("org.slf4j", "slf4j-nop", "2.0.16"),
    ),
}
GO_TPC = "github.com/pingcap/go-tpc/cmd/go-tpc@v1.0.12"  # later versions have no PostgreSQL
PACKAGES = {"reladiff": ("reladiff==0.6.0", "psycopg2-binary", "setuptools")}


class Skipped(Exception):
    """The reason why a peer cannot run here."""


def jars(name: str) -> list[str]:
    """Return the jars of a peer, as Maven resolves them."""
    folder = _place() / name
    if not (folder / "complete").exists():
        for program in ("java", "mvn"):
            if shutil.which(program) is None:
                raise Skipped(f"there is no {program} on the path")
        folder.mkdir(parents=True, exist_ok=True)
        dependencies = "\n".join(DEPENDENCY.format(*(*coordinates, "")[:4]) for coordinates in JARS[name])
        (folder / "pom.xml").write_text(POM.format(name=name, dependencies=dependencies))
        _run(folder, "mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib")
        (folder / "complete").touch()
    return sorted(str(path) for path in (folder / "lib").glob("*.jar"))


def python(name: str) -> Path:
    """Return the Python of an environment that has a peer's packages."""
    folder = _place() / name
    program = folder / "bin" / "python"
    if not (folder / "complete").exists():
        venv.create(folder, with_pip=True, clear=True)
        _run(folder, str(program), "-m", "pip", "install", "-q", *PACKAGES[name])
        (folder / "complete").touch()
    return program


def go_tpc() -> Path:
    """Return the program of go-tpc, which Go builds."""
    program = _place() / "go-tpc" / "go-tpc"
    if not program.exists():
        if shutil.which("go") is None:
            raise Skipped("there is no go on the path")
        program.parent.mkdir(parents=True, exist_ok=True)
        _run(program.parent, "env", f"GOBIN={program.parent}", "go", "install", GO_TPC)
    return program


def pgq() -> Path:
    """Return the programs of a PostgreSQL of Debian's that has PgQ; it need not be installed."""
    folder = _place() / "pgq"
    if not (folder / "complete").exists():
        for program in ("apt-cache", "apt-get", "dpkg-deb"):
            if shutil.which(program) is None:
                raise Skipped("PgQ comes from Debian, and this is none")
        folder.mkdir(parents=True, exist_ok=True)
        words = _run(folder, "apt-cache", "search", "--names-only", "^postgresql-[0-9]+-pgq3$").split()
        names = [word for word in words if word.endswith("-pgq3")]
        if not names:
            raise Skipped("Debian's archive here has no postgresql-N-pgq3")
        for package in (names[-1], names[-1].removesuffix("-pgq3")):
            _run(folder, "apt-get", "download", "-qq", "-o", "APT::Sandbox::User=", package)
        for package in map(str, folder.glob("*.deb")):
            _run(folder, "dpkg-deb", "-x", package, "root")
        (folder / "complete").touch()
    return next(folder.glob("root/usr/lib/postgresql/*/bin"))


def _place() -> Path:
    named = os.environ.get("EVENTLOG_PEERS")
    if not named:
        raise Skipped("EVENTLOG_PEERS names no folder to install it in")
    return Path(named).resolve()


def _run(folder: Path, *words: str) -> str:
    """Return a program's output; its last line is the reason if it fails."""
    try:
        done = subprocess.run(
            words, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired as late:
        raise Skipped(f"{words[0]} took more than {PATIENCE} seconds") from late
    if done.returncode:
        output_lines = (done.stderr + done.stdout).strip().splitlines() or ["it said nothing"]
        raise Skipped(f"{Path(words[0]).name}: {output_lines[-1][:200]}")
    return done.stdout


INSTALLERS: dict[str, Callable[[], object]] = {
    "pgq": pgq,
    "debezium": lambda: jars("debezium"),
    "connid": lambda: jars("connid"),
    "flink": lambda: jars("flink"),
    "iceberg-rest": lambda: jars("iceberg-rest"),
    "informix": lambda: jars("informix"),
    "go-tpc": go_tpc,
    "reladiff": lambda: python("reladiff"),
}


def main(names: Sequence[str]) -> int:
    """Fetch them; 1 where one that must be there is not."""
    skips = 0
    for name in names or INSTALLERS:
        try:
            INSTALLERS[name]()
            print(f"{name}: RUN", flush=True)
        except Skipped as reason:
            skips += 1
            print(f"{name}: SKIPPED: {reason}", flush=True)
    return int(bool(skips and os.environ.get("CI_FULL")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
