"""Documents on the standard input of a program that stays, one a line; its answers on standard output.

An answer is an nds document and ends with a line that ends with </nds>. The program gets the few variables
of the environment that programs need, and those that a setting names: ours hold passwords.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.settings import setting
from eventlog.files.ready import ready
from eventlog.sinks.sink import OutgoingDocument, Reply, Sink, SinkKind, answered, unanswered, unreachable

LONGEST_ANSWER = 16 << 20  # bytes
INHERITED = frozenset(
    ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "NO_COLOR")
)
_LOCALE = "LC_"
_END = b"</nds>"
_PATIENCE = 5.0  # seconds that the program gets to end


def read_command(text: str) -> list[str]:
    """Return the words of a command, quoted as for a shell."""
    try:
        return shlex.split(text)
    except ValueError as fault:
        raise Misuse(f"the command cannot be split into words: {fault}") from None


@dataclass(frozen=True, slots=True)
class CommandSettings:
    command: str | None = setting(
        None, "the program and its arguments; no shell reads it", metavar="COMMAND", check=read_command
    )
    command_environment: tuple[str, ...] = setting(
        (),
        "variables that the program gets besides PATH, HOME and their like, separated by commas",
        metavar="NAMES",
    )
    command_timeout: float = setting(
        30.0, "seconds until a document counts as not answered", metavar="S", within=(0.01, 86_400)
    )


def _need_words(settings: CommandSettings) -> list[str]:
    words = read_command(settings.command or "")
    if not words:
        raise Misuse("the command sink needs the setting command")
    return words


def _need_program(settings: CommandSettings) -> None:
    name = _need_words(settings)[0]
    if shutil.which(name) is None:
        raise Misuse(f"{name} (the setting command): there is no such program that this user may run")


def inherited(environment: Mapping[str, str], names: Container[str]) -> dict[str, str]:
    """Return the part of an environment that the program gets."""
    return {
        name: value
        for name, value in environment.items()
        if name in INHERITED or name.startswith(_LOCALE) or name in names
    }


class NoAnswer(EventlogError):
    """the program {0}"""


class CommandSink(Sink):
    """One running program; one that fails is started anew for the next document."""

    def __init__(self, settings: CommandSettings) -> None:
        self._words = _need_words(settings)
        self._inherited_names = settings.command_environment
        self._timeout = settings.command_timeout
        self._process: subprocess.Popen[bytes] | None = None

    def deliver(self, documents: Iterable[OutgoingDocument]) -> Iterator[Reply]:
        yield from map(self._exchange, documents)

    def close(self) -> None:
        """End the program: close its input first, then use signals."""
        if self._process is None:
            return
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _exchange(self, document: OutgoingDocument) -> Reply:
        try:
            process = self._started()
        except OSError as fault:
            return unreachable(f"{self._words[0]}: {fault.strerror}")
        try:
            reply = answered(self._talk(process, document.data + b"\n"), document)
        except (OSError, NoAnswer) as fault:
            reply = unanswered(f"{self._words[0]}: {fault}")
        if reply.fault is not None:
            self._abandon()
        return reply

    def _started(self) -> subprocess.Popen[bytes]:
        """Return the program; a new one if it ended, or writes without a document."""
        if self._process is not None and any(ready([self._process.stdout or 0])):
            self._abandon()
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = subprocess.Popen(
                self._words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                env=inherited(os.environ, self._inherited_names),
            )
            assert self._process.stdin is not None
            os.set_blocking(self._process.stdin.fileno(), False)
        return self._process

    def _abandon(self) -> None:
        if self._process is not None:
            self._process.kill()
            self.close()

    def _talk(self, process: subprocess.Popen[bytes], line: bytes) -> bytes:
        """Write the document and read the answer, whichever the program is ready for, in time."""
        assert process.stdin is not None
        assert process.stdout is not None
        until = time.monotonic() + self._timeout
        unwritten, answer = memoryview(line), bytearray()
        while not answer.rstrip().endswith(_END) or not answer.endswith(b"\n"):
            writing = [process.stdin] if unwritten else []
            seconds = max(0.0, until - time.monotonic())
            can_read, can_write = ready([process.stdout], writing, seconds)
            if not (can_read or can_write):
                raise NoAnswer(f"gave no complete answer within {self._timeout:g} seconds")
            if can_write:
                unwritten = unwritten[os.write(process.stdin.fileno(), unwritten) :]
            if can_read:
                piece = os.read(process.stdout.fileno(), 1 << 16)
                if not piece:
                    raise NoAnswer("ended before it had answered")
                answer += piece
                if len(answer) > LONGEST_ANSWER:
                    raise NoAnswer("answers without end")
        if unwritten:
            raise NoAnswer("answered before it had the whole document")
        return bytes(answer)


def _remedy(settings: CommandSettings, fault: str) -> str:
    return f"mend the command {_need_words(settings)[0]}"


KIND = SinkKind(CommandSettings, CommandSink, check=_need_program, place="command", remedy=_remedy)
