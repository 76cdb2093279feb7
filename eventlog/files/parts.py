"""A folder of numbered parts: each appears whole, and leftovers of a killed run are removed."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.formats import Shape
from eventlog.files.durable import sync
from eventlog.files.inputs import container_of
from eventlog.files.outputs import Output

_PART: Final = re.compile(r"part-([0-9]{8})(?:\..*)?")
_UNFINISHED: Final = re.compile(r"\.eventlog-[0-9a-f-]+\.part")
_EXTENSIONS: Final = {"blob": "bin", "messages": "bin"}
_PIECE: Final = 1 << 20

Part = Mapping[str, Any]  # its number, and the length and hash of each of its files


class Damaged(EventlogError):
    """{0} differs from what the state recorded: restore it, or start with another folder"""


class Parts:
    """The parts of a folder; the last one is known from the state that was written after it."""

    def __init__(
        self, folder: str, shape: Shape, container_name: str | None, extension: str, last: Part | None
    ) -> None:
        self._folder = Path(folder)
        self._shape = shape
        default_container = "csv" if container_name is None and shape is Shape.ROWS else container_name
        self._container = container_of("-", shape, default_container, "--output-as")
        self._extension = extension or _EXTENSIONS.get(self._container, self._container)
        self._folder.mkdir(exist_ok=True)
        self.last: Part = last or {"number": 0, "files": {}}
        self._number = int(self.last["number"])
        self._check()
        self._clear(new=last is None)

    @contextmanager
    def part(self) -> Iterator[Output]:
        """The output of the next part, which is on disk when the block ends."""
        self._number += 1
        name = self._folder / f"part-{self._number:08}"
        place = f"{name}/" if self._shape is Shape.ROWS else f"{name}.{self._extension}"
        with Output(place, self._shape, self._container) as output:
            yield output
        path = Path(place)
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        for folder in {path.parent, self._folder, path} if path.is_dir() else {self._folder}:
            sync(folder)
        facts = {str(file.relative_to(self._folder)): _facts(file) for file in files}
        self.last = {"number": self._number, "files": facts}

    def _check(self) -> None:
        for name, facts in self.last["files"].items():
            path = self._folder / name
            if not path.is_file() or _facts(path) != list(facts):
                raise Damaged(path)

    def _clear(self, new: bool) -> None:
        """Remove files that follow the last part."""
        for path in self._folder.iterdir():
            match = _PART.fullmatch(path.name)
            if match and new:
                raise Misuse(f"{path} exists, but no state records it: name another folder, or its state")
            is_unfinished = not new and _UNFINISHED.fullmatch(
                path.name
            )  # a folder that is new to us may be shared
            if is_unfinished or (match and int(match[1]) > self._number):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _facts(path: Path) -> list[Any]:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return [path.stat().st_size, digest.hexdigest()]
