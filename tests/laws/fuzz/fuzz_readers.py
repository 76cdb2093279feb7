"""Coverage-guided fuzzing of a reader, on demand: python tests/laws/fuzz/fuzz_readers.py NAME [-runs=N]."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["eventlog"]):
    from tests.kit.anybytes import CHECKS, SOUND

NAME = sys.argv.pop(1)


def fuzz(data: bytes) -> None:
    """Read bytes as they are, or laid over valid ones."""
    sound = SOUND[NAME]
    if len(data) > 3 and data[0] & 1:
        at = data[1] % len(sound)
        data = sound[:at] + data[3:] + sound[at + data[2] :]
    CHECKS[NAME](data)


if __name__ == "__main__":
    atheris.Setup(sys.argv, fuzz)
    atheris.Fuzz()
