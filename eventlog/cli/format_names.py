"""Formats from the names of files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from eventlog.core.errors import Misuse
from eventlog.core.formats import Shape
from eventlog.files.document_folder import is_document_folder
from eventlog.files.inputs import stem_of
from eventlog.formats.qlik.change_tables import SUFFIX
from eventlog.transfer.format_registry import FORMATS

_BY_EXTENSION = {".xml": "xds", ".csv": "log", ".parquet": "log", ".jsonl": "changes"}
_BY_EXTENSION |= {".json": "changes", ".tsv": "log"}  # of inputs
_NEEDS = "cannot be seen from its name: give {flag}, one of " + ", ".join(FORMATS)


class MeantConversion(NamedTuple):
    """A conversion as it was meant."""

    source: str
    target: str
    inputs: tuple[str, ...]
    output: str

    @property
    def reads_lines(self) -> bool:
        """Return whether records are lines; else they are parts of a stream of bytes."""
        return FORMATS[self.source].shape is not Shape.BYTES


def guess(
    source: str | None, target: str | None, inputs: Sequence[str], output: str | None
) -> MeantConversion:
    """Return the formats, inputs and output of a conversion; what is not given follows from names.

    Without a target and an output, the last of several names is the output. It must not exist, so that no
    input is overwritten.
    """
    if target is None and output is None and len(inputs) > 1:
        *inputs, output = inputs
        if Path(output).exists():
            raise Misuse(f"{output} exists already: replace it with -o {output}, or read it with --to FORMAT")
    names = tuple(inputs) or ("-",)
    return MeantConversion(
        source or _format_of_all(names, "--from"),
        target or _format_of_all((output or "-",), "--to"),
        names,
        output or "-",
    )


def _format_of_all(names: Sequence[str], flag: str) -> str:
    formats = {name: _format_of(name) for name in names}
    for name, format_name in formats.items():
        if format_name is None:
            raise Misuse(f"the format of {_STREAM_NAMES.get((name, flag), name)} {_NEEDS.format(flag=flag)}")
    if len(set(formats.values())) > 1:
        listed = ", ".join(f"{name} ({format_name})" for name, format_name in formats.items())
        raise Misuse(f"the inputs seem to be of several formats: {listed}; give {flag}")
    return str(formats[names[0]])


_STREAM_NAMES = {("-", "--from"): "standard input", ("-", "--to"): "the output"}


def _format_of(name: str) -> str | None:
    if name == "-":
        return None
    if is_document_folder(name):
        return "xds"
    folder = Path(name) if Path(name).is_dir() else Path(name).parent  # of the files of one change table
    if any(stem.lower().endswith(SUFFIX) for stem in (stem_of(name), folder.name)):
        return "qlik-table"
    return _BY_EXTENSION.get(Path(name.removesuffix(".gz")).suffix.lower())
