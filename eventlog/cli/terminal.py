"""Output to the terminal: every message to people goes through here, one line each."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import IO, Any, NamedTuple

import click

from eventlog.cli.setting_hints import with_hints
from eventlog.core.redaction import one_line, visible, without_secrets
from eventlog.files.output_files import standard_output

_LONGEST, _END = 2000, 200  # characters of a line, and of its end


def print_sentence(sentence: str, colour: str = "") -> None:
    """A sentence of ours on standard error."""
    print_line(
        sentence, styled("eventlog:", sys.stderr, fg=colour, bold=True) + " " if colour else "eventlog: "
    )


def print_line(line: str, before: str = "") -> None:
    """A line on standard error, which may be gone by now; no secret and no control character is in it."""
    with suppress(OSError, ValueError):
        click.echo(before + _short(one_line(without_secrets(with_hints(line)))), err=True)


def _short(line: str) -> str:
    """Return the line without its middle, where what it quotes is very long."""
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - _END]} … {line[-_END:]}"


class Shade(NamedTuple):
    """A part of a line that a terminal shows in a colour."""

    text: str
    colour: str


def show(*parts: str | Shade) -> None:
    """A line for people on standard output, its spaces as they are."""
    line = "".join(_shown(*part) if isinstance(part, Shade) else _shown(part) for part in parts)
    write_output(line + "\n", safe=True)


def _shown(text: str, colour: str = "") -> str:
    return styled(visible(text).replace("\n", "⟨U+000A⟩"), sys.stdout, fg=colour or None)


def write_output(text: str, safe: bool = False) -> None:
    """Write text to standard output; a terminal gets control characters visibly, unless the text is safe."""
    out = standard_output(safe)
    out.write(text.encode("utf-8", "surrogatepass"))
    out.flush()


def styled(text: str, stream: IO[str], **style: Any) -> str:
    """Return the text with a colour, where the stream shows one and NO_COLOR is not set."""
    return click.style(text, **style) if any(style.values()) and shows_colour(stream) else text


def shows_colour(stream: IO[str]) -> bool:
    """Return whether colours are wanted: https://no-color.org, and terminals that know them."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
