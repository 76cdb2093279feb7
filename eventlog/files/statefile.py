"""A small file that remembers between two runs, as JSON: a write is whole, or did not happen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from eventlog.core.errors import EventlogError, Misuse
from eventlog.files.durable import write_whole
from eventlog.files.output_files import need_folder

T = TypeVar("T")
# what loading meets in a file that somebody else wrote
_NO_STATE: Final = (
    *(ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError),
    EventlogError,
)


def read_state(path: Path, load: Callable[[Any], T], none: T) -> T:
    """Return what `load` makes of the file; `none` if there is no file."""
    need_memory(path)
    try:
        return load(json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return none
    except _NO_STATE as fault:
        message = f"{path} is not a state file: name another, or remove it to start from the beginning"
        raise Misuse(message) from fault


def need_memory(path: Path) -> None:
    """Raise Misuse if nothing can be kept between runs: in a folder, a device, a pipe."""
    if path.exists() and not path.is_file():
        raise Misuse(f"{path} is no regular file: nothing can be remembered there")
    need_folder(path, str(path))


def write_state(path: Path, state: Any) -> None:
    """Keep the state on disk, in place of the one before."""
    write_whole(path, json.dumps(state))
