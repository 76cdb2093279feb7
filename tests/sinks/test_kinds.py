"""The kinds of sinks, and the one that prints."""

from __future__ import annotations

import errno
import io
import os

import pytest

from eventlog.core.errors import Misuse
from eventlog.core.settings import declared
from eventlog.sinks import SINKS, open_sink, sink_kind, sink_remedy
from eventlog.sinks.sink import ACCEPTED
from eventlog.sinks.stdout import StdoutSink
from tests.sinks.documents import make

pytestmark = pytest.mark.quick


def test_every_sink_has_its_settings_and_the_place_of_its_documents() -> None:
    for kind in map(sink_kind, SINKS):
        names = {field.name for field in declared(kind.settings)}
        assert kind.place in names or not names
    with pytest.raises(Misuse, match="known are stdout, files"):
        open_sink("smtp", {})


def test_a_full_disk_and_a_folder_that_is_gone_have_each_their_remedy() -> None:
    values = {"files_folder": "out"}
    full, gone = (f"folder out: {os.strerror(code)}" for code in (errno.ENOSPC, errno.ENOENT))
    taken_away = "take documents that were read away from the full folder out"
    assert sink_remedy("files", values, full) == taken_away
    assert sink_remedy("files", values, gone) == "mend the folder out"


@pytest.mark.parametrize(
    ("name", "setting", "given"),
    [
        ("http", "http-url", {}),
        ("command", "command", {}),
        ("command", "command", {"command": " "}),
    ],
)
def test_a_sink_names_the_setting_that_it_needs(name: str, setting: str, given: dict[str, str]) -> None:
    with pytest.raises(Misuse, match=f"the {name} sink needs the setting {setting}"):
        open_sink(name, given)


def test_standard_output_is_a_document_a_line() -> None:
    out = io.BytesIO()
    assert list(StdoutSink(out).deliver([make(1), make(2)])) == [ACCEPTED, ACCEPTED]
    assert [line.count(b"eventlog:") for line in out.getvalue().splitlines()] == [1, 1]
