"""The folder of the files sink: the names of its files, its record, and the order in which documents left.

A file's name is a number of 15 digits, which only grows in a folder, and the name of its document. So every
sort by name is the order in which the documents left. Files of version 0.1.0 have no number; the record has
their order, and the earlier record once the record began anew.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from eventlog.core.errors import Misuse
from eventlog.core.plurals import quantity
from eventlog.core.state_versions import FILES

ASIDE = ".eventlog"  # in the folder: the record, the number, and files that are not complete
RECORD = "record"
BEGINNING = -1  # before the number of any file
NUMBER = "number"  # the file of the highest number, where the record does not have it any more
EARLIER_RECORD = "record.1"  # the files without numbers of a record that began anew
SUFFIX = ".xml"
_SUFFIXES = (SUFFIX, f"{SUFFIX}.gz")
_NUMBERED = re.compile(r"([0-9]{15})-[^-]+-.+")
_UNNUMBERED = re.compile(r"[0-9]{1,19}(?:\.[0-9]+)?-[0-9a-f]{1,19}")  # the name of a document alone
_LINE = re.compile(r"(?:([0-9]{15}) )?(\S+) out")  # a line that a crash cut has no such end
_AND = "/"  # between the names of documents in one file: none of them holds it


class UnknownOrder(Misuse):
    """{0}: neither a number in the name nor a record in the folder shows when {1} left. Read such files \
from a folder of their own, with the record (.eventlog) that they had"""


class RecordedFile(NamedTuple):
    """A file on the record: its number, which a file of 0.1.0 lacks, and the names of its documents."""

    number: int | None
    names: Sequence[str]

    @property
    def stem(self) -> str:
        """Return the name without its suffix, after the first document."""
        return self.names[0] if self.number is None else f"{self.number:015}-{self.names[0]}"

    @property
    def line(self) -> str:
        """Return the line of the record."""
        number = "" if self.number is None else f"{self.number:015} "
        return f"{number}{_AND.join(self.names)} out"


def read_record(folder: Path) -> list[RecordedFile] | None:
    """Return the files on a folder's record, in the order in which they went out; None without a record."""
    path = folder / ASIDE / RECORD
    return _read_files(path) if path.is_file() else None


def is_document_folder(name: str | None) -> bool:
    """Return whether this is a folder of the files sink."""
    return name is not None and (Path(name) / ASIDE / RECORD).is_file()


def read_earlier_record(folder: Path) -> list[RecordedFile]:
    """Return the files without numbers that left before a folder's record began, in their order."""
    path = folder / ASIDE / EARLIER_RECORD
    return _read_files(path) if path.is_file() else []


def _read_files(path: Path) -> list[RecordedFile]:
    """Return the files on one record."""
    first, end, lines = path.read_text("utf-8", "replace").partition("\n")
    if end and first:  # that of 0.1.0 is empty
        FILES.check_head(path, first)
    matches = filter(None, map(_LINE.fullmatch, lines.split("\n")))
    return [RecordedFile(int(match[1]) if match[1] else None, match[2].split(_AND)) for match in matches]


def highest_number(folder: Path) -> int:
    """Return the highest number in the names of files in a folder; 0 if none has one."""
    return max((number for number in map(_number, os.listdir(folder)) if number is not None), default=0)


def unnumbered(folder: Path) -> list[str]:
    """Return the names in a folder that are those of documents alone."""
    return sorted(filter(_is_unnumbered, os.listdir(folder)))


def without_order(folder: Path, names: Iterable[str]) -> list[str]:
    """Return those of some names of documents alone that neither record of a folder has."""
    recorded = {file.stem for file in (*read_earlier_record(folder), *(read_record(folder) or ()))}
    return [name for name in names if _is_unnumbered(name) and _stem(name) not in recorded]


class PlacedFile(NamedTuple):
    """A file that has its place in a folder; the number is 0 for a file of 0.1.0."""

    number: int
    path: Path

    @property
    def stem(self) -> str:
        """Return the name without its suffix."""
        return _stem(self.path.name)


def placed_files(folder: Path, after: int) -> list[PlacedFile]:
    """Return the files after a number, in the order in which they left; those of 0.1.0 have 0.

    The list ends before a file that is on record and has no place yet, and at the end of the record. The
    names of later files may be listed before those of earlier ones.
    """
    numbers = _recorded_numbers(folder)
    last = max(numbers, default=_number_begun(folder))
    aside = map(_number, os.listdir(folder / ASIDE))  # read after the record, and before the names
    unplaced = min((number for number in aside if number in numbers), default=None)
    names = [name for name in os.listdir(folder) if name.endswith(_SUFFIXES)]
    ordered = [PlacedFile(_number(name) or 0, folder / name) for name in _in_order_of_folder(folder, names)]
    return [
        file
        for file in ordered
        if after < file.number <= last and (unplaced is None or file.number < unplaced)
    ]


def is_continued(folder: Path, number: int, stem: str) -> bool:
    """Return whether a folder goes on after a file; not if another folder is in its place by now."""
    numbers = _recorded_numbers(folder)
    if number in numbers:
        return numbers[number] == stem
    return number < max(numbers, default=_number_begun(folder) + 1)


def _recorded_numbers(folder: Path) -> dict[int, str]:
    """Return the stems of the files on record that have numbers."""
    return {file.number: file.stem for file in read_record(folder) or () if file.number is not None}


def _number_begun(folder: Path) -> int:
    """Return the highest number before the record began anew, else of all files."""
    try:
        return int((folder / ASIDE / NUMBER).read_text("ascii", "replace"))
    except (FileNotFoundError, ValueError):
        return highest_number(folder)


def in_order(names: Sequence[str], roots: Sequence[str] = ()) -> list[str]:
    """Return names of files, with the documents of each folder in the order in which they left.

    Names of other files stay where they are. All documents below a root that has a record are of its folder.
    """
    recorded = [root for root in map(Path, roots) if read_record(root) is not None]
    places: dict[Path, list[int]] = defaultdict(list)
    for place, name in enumerate(names):
        if name.endswith(_SUFFIXES):
            root = next((root for root in recorded if root in Path(name).parents), None)
            places[Path(os.path.dirname(name)) if root is None else root].append(place)
    ordered = list(names)
    for folder, places_of_folder in places.items():
        files = _in_order_of_folder(folder, [names[place] for place in places_of_folder])
        for place, name in zip(places_of_folder, files, strict=True):
            ordered[place] = name
    return ordered


def _in_order_of_folder(folder: Path, names: Sequence[str]) -> Sequence[str]:
    """Return the names of a folder's files in the order in which they left, by its record or the numbers.

    Files of an earlier record left first. A file that left before the record began has a lower number than
    those on it. Without a record and without numbers the names stay as they are.
    """
    record, numbers = read_record(folder), {name: _number(name) for name in names}
    if record is None and set(numbers.values()) == {None}:
        return names
    earlier_places = {file.stem: place for place, file in enumerate(read_earlier_record(folder))}
    places = {file.stem: place for place, file in enumerate(record or ())}
    first = next((file.number for file in record or () if file.number is not None), 0)
    unknown = without_order(folder, names)
    if unknown and len(names) > 1:
        raise UnknownOrder(folder, _listed(unknown))

    def place_of(name: str) -> tuple[int, int, str]:
        stem, number = _stem(name), numbers[name]
        if stem in earlier_places:
            return 0, earlier_places[stem], name
        if stem in places:
            return 2, places[stem], name
        return (4, 0, name) if number is None else (1 if number < first else 3, number, name)

    return sorted(names, key=place_of)


def _listed(names: Sequence[str]) -> str:
    """Return the first of some names, and how many others there are."""
    first = os.path.basename(min(names))
    return first if len(names) == 1 else f"{first} and {quantity(len(names) - 1, 'other file')}"


def _number(name: str) -> int | None:
    """Return the number in the name of a file; None if it has none."""
    match = _NUMBERED.fullmatch(_stem(name))
    return int(match[1]) if match else None


def _is_unnumbered(name: str) -> bool:
    return name.endswith(_SUFFIXES) and _UNNUMBERED.fullmatch(_stem(name)) is not None


def _stem(name: str) -> str:
    return os.path.basename(name).removesuffix(".gz").removesuffix(SUFFIX)
