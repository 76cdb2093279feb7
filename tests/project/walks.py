"""Follow one row through the program: which modules run, in the order in which they first do."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[2]
PACKAGES = {str(ROOT / "eventlog"): "eventlog", str(ROOT / "spark" / "eventlog_spark"): "eventlog_spark"}


@contextmanager
def recorded() -> Iterator[list[str]]:
    """Record the modules of ours whose functions run within the block, each once."""
    modules: dict[str, None] = {}
    files: dict[str, str | None] = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        name = frame.f_code.co_filename
        if name not in files:
            files[name] = module_of(name)
        module = files[name]
        if event == "call" and module is not None:
            modules[module] = None

    recording: list[str] = []
    gc.collect()
    gc.disable()  # it would close what earlier tests left, within our walk
    sys.setprofile(note)
    try:
        yield recording
    finally:
        sys.setprofile(None)
        gc.enable()
        recording += modules


def module_of(file: str) -> str | None:
    """Return the module of a file of ours, None of another file."""
    for folder, package in PACKAGES.items():
        if file.startswith(folder + "/"):
            path = Path(file).relative_to(folder).with_suffix("")
            return ".".join((package, *path.parts)).removesuffix(".__init__")
    return None
