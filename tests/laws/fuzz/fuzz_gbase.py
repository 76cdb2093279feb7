"""Coverage-guided fuzzing of the stream reader, on demand: python tests/laws/fuzz/fuzz_gbase.py [-runs=N]."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["eventlog"]):
    from tests.formats.gbase.mutants import check_any_bytes, sound_stream

SOUND = sound_stream()
PIECES = (1, 16, 97, 4096)  # how many bytes a feed brings


def fuzz(data: bytes) -> None:
    """Read bytes as they are, or laid over a valid stream."""
    if len(data) > 4 and data[0] & 4:
        at = int.from_bytes(data[1:3], "big") % len(SOUND)
        data = SOUND[:at] + data[4:] + SOUND[at + data[3] :]
    check_any_bytes(data, PIECES[data[0] & 3 if data else 0])


if __name__ == "__main__":
    atheris.Setup(sys.argv, fuzz)
    atheris.Fuzz()
