"""Streams are waited for whatever their numbers are."""

from __future__ import annotations

import fcntl
import os
import resource
from collections.abc import Iterator

import pytest

from eventlog.files.ready import ready

pytestmark = pytest.mark.quick


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe whose ends have higher numbers than `select` takes."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 4096), before[1]))
    low_ends = os.pipe()
    reading, writing = (fcntl.fcntl(end, fcntl.F_DUPFD, 2000) for end in low_ends)
    for end in low_ends:
        os.close(end)
    yield reading, writing
    for end in (reading, writing):
        os.close(end)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_stream_of_a_high_number_is_ready_when_something_is_in_it(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    assert ready([reading], [writing], 0.01) == (False, True)
    os.write(writing, b"x")
    assert ready([reading]) == (True, False)
