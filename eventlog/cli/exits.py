"""How a command ends: its exit code, and what went wrong in plain lines.

0 is done, 1 failed, 2 misuse, 128 and its number a signal. Misuse is a wrong flag or setting, a port in use,
or a file that cannot be used as what it was named for. A traceback is shown only with -v.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

import click

from eventlog.cli.log_records import Records
from eventlog.cli.terminal import print_line, print_sentence, use_names_of
from eventlog.core.errors import EventlogError, Misuse, NotText

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_REPEAT_AFTER = 0.05  # seconds until a signal that got lost is raised again


class Signalled(KeyboardInterrupt):
    """A signal that asks the process to end; it unwinds the stack as a Ctrl-C does.

    It is raised again if it gets lost: Python ignores what a destructor raises, and some libraries swallow
    every exception.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        weakref.finalize(self, signal.setitimer, signal.ITIMER_REAL, _REPEAT_AFTER).atexit = False


class Ended(Exception):
    """A command was stopped by a signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = signal.Signals(number)


def ended(fault: KeyboardInterrupt) -> Ended:
    """Return the exit code of a signal, once everything is closed."""
    return Ended(fault.args[0] if isinstance(fault, Signalled) else signal.SIGINT)


def _signal_in(fault: BaseException) -> Ended | None:
    """Return the signal for which click raises Abort, as it does while it parses words or shows the help."""
    cause = fault.__cause__
    return ended(cause) if isinstance(fault, click.Abort) and isinstance(cause, KeyboardInterrupt) else None


class CommandExit:
    """A runner of one command, which turns its end into an exit code."""

    def __init__(self) -> None:
        self._tracebacks = False  # -v was given

    def carry_out(self, command: Callable[[], object]) -> int:
        """Return the exit code of the command; report what it raised."""
        self._watch()
        try:
            _need_standard_files()
            code = command()
            sys.stdout.flush()
        except SystemExit as done:
            code = done.code
        except KeyboardInterrupt as fault:
            return self._report(ended(fault))
        except BaseException as fault:
            return self._report(_signal_in(fault) or fault)
        finally:
            try:
                self._close_outputs()
            except KeyboardInterrupt:  # a signal that comes when the command has ended
                self._close_outputs()
        return code if isinstance(code, int) else 0

    def _watch(self) -> None:
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                signal.signal(number, _raise_signal)
        self.trace(False)
        threading.excepthook = self._report_of_thread
        sys.unraisablehook = self._report_unraisable

    def trace(self, is_on: bool) -> None:
        """Set whether tracebacks are shown, and what libraries log."""
        self._tracebacks = is_on
        logging.raiseExceptions = is_on
        our_handler = logging.StreamHandler(sys.stderr)
        our_handler.setFormatter(Records(is_on))
        logging.getLogger("eventlog").handlers[:] = [our_handler]
        library_handler = logging.StreamHandler(sys.stderr)
        library_handler.addFilter(lambda record: is_on and not record.name.startswith("eventlog"))
        logging.getLogger().handlers[:] = [library_handler]

    def _report_of_thread(self, raised: threading.ExceptHookArgs) -> None:
        if raised.exc_value is not None:
            self._report(raised.exc_value)

    def _report_unraisable(self, raised: sys.UnraisableHookArgs) -> None:
        """Report what was raised where no caller can catch it, such as in a destructor."""
        self._trace(raised.exc_value)

    def _trace(self, fault: BaseException | None) -> None:
        if self._tracebacks and fault is not None:
            for piece in traceback.format_exception(fault):
                for line in piece.rstrip("\n").split("\n"):
                    print_line(line)

    def _report(self, fault: BaseException) -> int:
        self._trace(fault)
        for kind, (code, words) in _FAULTS.items():
            if isinstance(fault, kind):
                _print_lines(words(fault))
                return code(fault)
        raise AssertionError(fault)

    def _close_outputs(self) -> None:
        """Write what is buffered, drop what cannot be written any more, and ignore signals from here on."""
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        for number in _SIGNALS:
            if signal.getsignal(number) is _raise_signal:
                signal.signal(number, signal.SIG_DFL)
        for stream in (sys.stdout, sys.stderr):
            try:
                if stream is not None:
                    stream.flush()
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def verbose_option(**attributes: Any) -> click.Option:
    """Add -v to a command."""

    def set_tracebacks(ctx: click.Context, parameter: click.Parameter, value: bool) -> bool:
        use_names_of(ctx)
        if value:
            ctx.find_root().ensure_object(CommandExit).trace(True)
        return value

    return click.Option(
        ["-v", "--verbose"],
        is_flag=True,
        callback=set_tracebacks,
        help="log more; show tracebacks",
        **attributes,
    )


def _raise_signal(number: int, frame: FrameType | None) -> NoReturn:
    """Raise the first signal only, because a second one must not interrupt the clean-up."""
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, lambda *_: _raise_signal(number, None))
    raise Signalled(number)


def _need_standard_files() -> None:
    """Check the standard files.

    Input and messages may be closed. Output may not, because the next file opened would be taken for it.
    """
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for as long as the process lives
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115
    if sys.stdout is None:
        raise Misuse("standard output is closed")


def _print_lines(lines: Iterator[str]) -> None:
    first, *causes = [*dict.fromkeys(lines)] or [""]
    if first:
        print_sentence(first, "bold red")
    for cause in causes:
        print_line(cause, "  ")


def _chain(fault: BaseException) -> Iterator[str]:
    """Return the error, and its causes that were not reported yet."""
    reported = _message_of(fault)
    yield reported
    cause = fault.__cause__
    while cause is not None:
        words = _message_of(cause)
        if _in_a_line(words.partition("\n")[0]) not in _in_a_line(reported):
            yield f"because: {words}"
            reported = words
        cause = cause.__cause__


def _in_a_line(words: str) -> str:
    return " ".join(words.split())


def _message_of(fault: BaseException) -> str:
    if isinstance(fault, OSError) and fault.strerror is not None:
        return fault.strerror if fault.filename is None else f"{_text(fault.filename)}: {fault.strerror}"
    return str(fault) or type(fault).__name__


def _text(name: object) -> str:
    return os.fsdecode(name) if isinstance(name, str | bytes) else str(name)


# Options of one meaning, and what people write instead.
SYNONYMS = (
    ("--url", "--to-url", "--database", "--dsn"),
    ("--table", "--rows-of"),
    ("--state", "--memory"),
    ("--because", "--reason", "--comment"),
    ("--polling-interval", "--follow-interval", "--poll-interval"),
    ("--kafka", "--kafka-topic", "--topic"),
    ("--from", "--input-format", "--format"),
    ("--to", "--output-format", "--format"),
)


def _usage(fault: click.ClickException) -> Iterator[str]:
    names = _right_names(fault)
    yield f"{fault.message} Did you mean {names}?" if names else fault.format_message()
    ctx = getattr(fault, "ctx", None)
    if ctx is not None:
        yield f"see: {ctx.command_path} --help"


def _right_names(fault: click.ClickException) -> str:
    """Return the options of the command that mean what a wrong one does."""
    if not isinstance(fault, click.NoSuchOption) or fault.ctx is None:
        return ""
    right = {flag for flags in SYNONYMS if fault.option_name in flags for flag in flags}
    flags = (flag for parameter in fault.ctx.command.params for flag in parameter.opts)
    return " or ".join(repr(flag) for flag in flags if flag in right)


def _help(fault: click.exceptions.NoArgsIsHelpError) -> Iterator[str]:
    """Print the help that a command without words asks for, and yield nothing."""
    if fault.ctx is not None:
        click.echo(fault.ctx.get_help(), color=fault.ctx.color)
    yield from ()


def _unforeseen(fault: BaseException) -> Iterator[str]:
    text = f"{type(fault).__name__}: {fault}"
    yield f"this is a bug in eventlog, please report it: {text} (-v shows where)"


def _unencoded(fault: UnicodeEncodeError) -> Iterator[str]:
    """Yield a word of the command line or the environment that is not text, if it is to blame."""
    if word := _word_with(fault):
        yield str(NotText(word))
    else:
        yield from _unforeseen(fault)


def _word_with(fault: UnicodeEncodeError) -> str | None:
    """Return the word with what UTF-8 cannot encode."""
    part = fault.object[fault.start : fault.end]
    words = (*sys.argv[1:], *os.environ.values()) if fault.encoding == "utf-8" else ()
    return next((word for word in words if part in word), None)


def _nothing(fault: BaseException) -> Iterator[str]:
    """Yield nothing, because the reader of our output has gone."""
    yield from ()


_WRONG_FILES = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)


def _code(fault: BaseException) -> int:
    """Return 2 if a file that was named is to blame, else 1."""
    cause = fault if isinstance(fault, OSError) else fault.__cause__
    return 2 if isinstance(cause, _WRONG_FILES) and cause.filename is not None else 1


# From the particular to the general: the first kind that fits.
_FAULTS: dict[type[BaseException], tuple[Callable[[Any], int], Callable[[Any], Iterator[str]]]] = {
    click.exceptions.NoArgsIsHelpError: (lambda fault: 0, _help),
    click.ClickException: (lambda fault: fault.exit_code, _usage),
    Misuse: (lambda fault: 2, _chain),
    EventlogError: (_code, _chain),
    BrokenPipeError: (lambda fault: 1, _nothing),
    OSError: (_code, _chain),
    UnicodeEncodeError: (lambda fault: 2 if _word_with(fault) else 1, _unencoded),
    MemoryError: (lambda fault: 1, lambda fault: iter(("there is not enough memory",))),
    Ended: (lambda fault: 128 + fault.number, lambda fault: iter((f"stopped by {fault.number.name}",))),
    BaseException: (lambda fault: 1, _unforeseen),
}
