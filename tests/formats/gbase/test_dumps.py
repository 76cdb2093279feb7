"""Dumps of reads: several records in one, what is stale, the forms that people have, and what is no dump."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.formats.gbase.gbase_settings import GbaseSettings
from eventlog.formats.gbase.records import Discard, Number, Timeout
from tests.formats.gbase.helpers import HERE, T1, StreamBuilder, changes_of, read_all, refusals_of
from tests.kit.commands import Shell

pytestmark = pytest.mark.quick

DUMP = (HERE / "dump.txt").read_bytes()


def framed(text: str | bytes) -> list[Change | Refused]:
    data = text if isinstance(text, bytes) else text.encode()
    return read_all([data], settings=GbaseSettings(framed=True))


def values(answers: list[Any]) -> list[Any]:
    return [change.after["c1"] for change in changes_of(answers)]


def insert(sequence: int, value: int, built: StreamBuilder | None = None) -> StreamBuilder:
    built = built or StreamBuilder().table(7, T1)
    return (
        built.begin(sequence, 1).row(Number.INSERT, sequence + 1, 1, 7, (value, "x")).commit(sequence + 2, 1)
    )


def test_all_records_of_a_read_are_read() -> None:
    answers = framed(insert(1, 5).data.hex())
    assert values(answers) == [5]
    assert not refusals_of(answers)


def test_a_timeout_and_a_discard_within_a_read_hide_nothing() -> None:
    built = StreamBuilder().table(7, T1).say(Timeout(0)).begin(1, 1).row(Number.INSERT, 2, 1, 7, (1, "x"))
    built.row(Number.INSERT, 3, 1, 7, (2, "x")).say(Discard(3, 1)).say(Timeout(3))
    answers = framed(built.row(Number.INSERT, 4, 1, 7, (3, "x")).commit(5, 1).data.hex())
    assert values(answers) == [1, 3]
    assert not refusals_of(answers)


def test_a_whole_old_record_behind_a_read_is_stale_and_said() -> None:
    first, second = insert(1, 5).data, StreamBuilder().begin(10, 1).data
    reused = second + first[len(second) :]  # the same buffer, with a shorter read at its start
    start = first.index(StreamBuilder().commit(3, 1).data)
    reused = second + first[start:]
    answers = framed("\n".join(map(bytes.hex, (first, reused))))
    assert values(answers) == [5]
    stale, unfinished = refusals_of(answers)
    assert "COMMTX" in stale.reason
    assert "was there before" in stale.reason
    assert not stale.fault
    assert "unfinished" in unfinished.reason


def test_a_record_that_goes_back_within_its_transaction_is_stale() -> None:
    head = StreamBuilder().table(7, T1).begin(10, 1).data.hex()
    row = StreamBuilder().table(7, T1)
    size = len(row.data)
    row.row(Number.INSERT, 12, 1, 7, (1, "x")).row(Number.INSERT, 11, 1, 7, (2, "x"))
    answers = framed(f"{head}\n{row.data[size:].hex()}\n{StreamBuilder().commit(13, 1).data.hex()}")
    assert values(answers) == [1]
    assert ["not above 12" in refused.reason for refused in refusals_of(answers)] == [True]


def test_a_sound_header_whose_record_does_not_fit_is_said() -> None:
    data = insert(1, 5).data
    more = StreamBuilder().begin(20, 2).data
    answers = framed((data + more[:30]).hex())
    assert values(answers) == [5]
    assert "only 30 are there" in refusals_of(answers)[0].reason


def test_where_the_dump_counts_the_count_decides() -> None:
    first = insert(1, 5)
    again = StreamBuilder().begin(1, 2).commit(1, 2).data.hex().upper()
    title = f"第一列 {len(first.data)} 字节"
    counted = f"{title}\n{first.data.hex().upper()}\nrest\n{again}\n"
    answers = framed(counted)
    assert values(answers) == [5]
    assert not refusals_of(answers)
    short = framed(counted.replace(str(len(first.data)), str(len(first.data) - 3)))
    assert "cut off" in refusals_of(short)[0].reason


def xxd(data: bytes, tool: str) -> str:
    """Return the output of the tools, which the test must not need."""
    lines = []
    for at in range(0, len(data), 16):
        piece = data[at : at + 16]
        text = "".join(chr(b) if 32 <= b < 127 else "." for b in piece)
        if tool == "xxd":
            groups = " ".join(piece[i : i + 2].hex() for i in range(0, len(piece), 2))
            lines.append(f"{at:08x}: {groups:<39}  {text}")
        else:
            halves = "  ".join(" ".join(f"{b:02x}" for b in piece[i : i + 8]) for i in (0, 8) if piece[i:])
            lines.append(f"{at:08x}  {halves:<48}  |{text}|")
    if tool == "hexdump -C":
        lines.append(f"{len(data):08x}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("tool", ["xxd", "hexdump -C"])
def test_lines_of_xxd_are_read(tool: str) -> None:
    answers = framed(xxd(insert(1, 5).data, tool) + xxd(insert(10, 6).data, tool))
    assert values(answers) == [5, 6]
    assert not refusals_of(answers)


def test_text_that_looks_like_hex_beside_the_bytes_is_no_byte() -> None:
    built = (
        StreamBuilder()
        .table(7, T1)
        .begin(1, 1)
        .row(Number.INSERT, 2, 1, 7, (1, "cafe 00 cafe" * 3))
        .commit(3, 1)
    )
    for tool in ("xxd", "hexdump -C"):
        assert not refusals_of(framed(xxd(built.data, tool)))


def test_a_gap_between_lines_of_xxd_is_said() -> None:
    lines = xxd(insert(1, 5).data, "xxd").splitlines()
    answers = framed("\n".join(lines[:2] + lines[3:]))
    assert "its offset is 48, the lines before it have 32 bytes" in refusals_of(answers)[0].reason


def test_the_form_of_our_tools_is_that_of_the_real_ones() -> None:
    data = insert(1, 5).data
    for tool in ("xxd", "hexdump -C"):
        try:
            printed = subprocess.run(tool.split(), input=data, capture_output=True, check=True).stdout
        except FileNotFoundError:
            continue
        assert printed.decode() == xxd(data, tool)


def test_the_typed_dump_is_read_in_gb18030() -> None:
    assert framed(DUMP.decode().encode("gb18030")) == framed(DUMP)
    assert values(framed(DUMP)) == [15]


@pytest.mark.parametrize(
    "text", ["nothing here\nat all\n", "\u4e0b\u9762", "\x00\x01\x02", "第1行\nnothing\n", "{}"]
)
def test_an_input_that_is_not_understood_is_an_error(text: str) -> None:
    refused = framed(text)
    assert len(refused) == 1
    assert "no read was found" in refused[0].reason  # type: ignore[union-attr]


def test_nothing_is_no_error() -> None:
    assert framed("") == framed("\n \n") == []


def test_convert_fails_where_a_dump_has_no_read(tmp_path: Path) -> None:
    (folder := tmp_path / "here").mkdir()
    (folder / "capture.txt").write_text("a log of something else\n")
    shell = Shell(folder)
    done = shell.run("convert", "--from", "gbase", "--framed", "--to", "changes", "capture.txt")
    assert (done.code, done.stdout) == (1, "")
    assert "no read was found" in done.stderr
    shell.close()
