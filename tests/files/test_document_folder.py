"""Documents of the files sink are read in the order in which they left, however their names are given."""

from __future__ import annotations

import gzip
import random
import shutil
from collections.abc import Sequence
from contextlib import chdir, closing
from pathlib import Path

import pytest

from eventlog.core.tables import Tables
from eventlog.files.document_folder import in_order
from eventlog.sinks.files import KIND, FilesSettings, FilesSink
from eventlog.sinks.sink import ACCEPTED, Item, OutgoingDocument
from tests.kit.commands import Shell

pytestmark = pytest.mark.quick


def make(number: int) -> OutgoingDocument:
    """Return a document with this number about one object: each tenth deletes it."""
    attr = '<add-attr attr-name="fname"><value type="string">x</value></add-attr>'
    name, content = ("delete", "") if number % 10 == 0 else ("add", attr)
    key = "<association>idu=1,table=usr</association>"
    text = f'<{name} class-name="usr" event-id="eventlog:{number}">{key}{content}</{name}>'
    return OutgoingDocument(f"{number}-{number}", [Item(f"eventlog:{number}", text)])


def fill(folder: Path, numbers: Sequence[int]) -> list[str]:
    """Deliver documents. Return all names in the folder in the order in which they left."""
    with closing(FilesSink(folder)) as sink:
        assert list(sink.deliver([make(number) for number in numbers])) == [ACCEPTED] * len(numbers)
    return sorted(str(path) for path in folder.glob("*.xml"))


def as_first_version(folder: Path) -> list[str]:
    """Name the files and the record as 0.1.0 did. Return the names in the order in which they left."""
    paths = sorted(folder.glob("*.xml"))
    names = [str(path.rename(path.with_name(path.name.partition("-")[2]))) for path in paths]
    record = "".join(f"\n{Path(name).stem} out\n" for name in names)
    (folder / ".eventlog" / "record").write_text(record)
    return names


def test_names_are_put_in_order(tmp_path: Path) -> None:
    names = fill(tmp_path, range(7, 13))
    shuffled = random.Random(1).sample(names, len(names))
    assert in_order(shuffled) == names
    shutil.rmtree(tmp_path / ".eventlog")
    assert in_order(shuffled) == names
    Path(f"{names[2]}.gz").write_bytes(gzip.compress(Path(names[2]).read_bytes()))
    packed = [f"{names[2]}.gz" if name == names[2] else name for name in shuffled]
    assert in_order(packed) == [*names[:2], f"{names[2]}.gz", *names[3:]]


def test_the_record_has_the_order_of_names_without_numbers(tmp_path: Path) -> None:
    fill(tmp_path, [9, 10, 8])
    before = as_first_version(tmp_path)
    after = fill(tmp_path, [12, 11])[:2]
    assert [Path(name).name for name in after] == ["000000000000001-12-12.xml", "000000000000002-11-11.xml"]
    assert in_order(sorted([*before, *after])) == [*before, *after]


def test_files_that_left_before_the_record_began_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, [1, 2])
    monkeypatch.setattr("eventlog.sinks.files._LONGEST_RECORD", 1)
    names = fill(tmp_path, [3, 4])
    assert "2-2" not in (tmp_path / ".eventlog" / "record").read_text()
    assert in_order(names[::-1]) == names
    (tmp_path / ".eventlog" / "record").write_text("")  # a crash as it began
    assert in_order(names[::-1]) == names


def test_the_order_of_names_without_numbers_outlasts_their_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let the record begin anew twice; a crash after the first half of that changes nothing."""
    fill(tmp_path, [9, 10, 8])
    before = as_first_version(tmp_path)
    record = tmp_path / ".eventlog" / "record"
    content = record.read_text()
    monkeypatch.setattr("eventlog.sinks.files._LONGEST_RECORD", 1)
    for numbers in ([12, 11], [14, 13]):
        fill(tmp_path, numbers)
    after = sorted(str(path) for path in tmp_path.glob("0*.xml"))
    assert "14-14" in record.read_text()
    assert not {"8-8", "12-12"} & set(record.read_text().split())
    assert in_order(sorted([*before, *after])) == [*before, *after]
    flaws = list(KIND.flaws(FilesSettings(str(tmp_path)), Tables()))
    assert [("go by the record" in flaw.remedy) for flaw in flaws] == [True]
    record.write_text(content)
    assert in_order(sorted([*before, *after])) == [*before, *after]
    (tmp_path / ".eventlog" / "record.1").unlink()
    record.write_text("")
    (flaw,) = KIND.flaws(FilesSettings(str(tmp_path)), Tables())
    assert ("lacks the order of 3" in flaw.what, "nothing shows when they left" in flaw.remedy) == (
        True,
        True,
    )


def test_a_document_of_another_log_leaves_though_the_earlier_record_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, [9, 10])
    before = as_first_version(tmp_path)
    monkeypatch.setattr("eventlog.sinks.files._LONGEST_RECORD", 1)
    fill(tmp_path, [11])
    with closing(FilesSink(tmp_path)) as sink:
        assert (sink.knows("9-9"), sink.highest()) == (False, 11)
        assert list(sink.deliver([make(9)])) == [ACCEPTED]
    names = sorted(str(path) for path in tmp_path.glob("0*-9-9.xml"))
    assert in_order([*names, *before[::-1]]) == [*before, *names]


def test_other_names_stay_as_they_are_given(tmp_path: Path) -> None:
    names = fill(tmp_path / "out", [1, 2])
    others = ["b/2.xml", "a/1.csv", "-", str(tmp_path / "10-10.xml"), str(tmp_path / "9-9.xml")]
    given = [others[0], names[1], *others[1:3], names[0], *others[3:]]
    assert in_order(given) == [others[0], names[0], *others[1:3], names[1], *others[3:]]


def test_all_files_below_a_root_are_of_its_record(tmp_path: Path) -> None:
    fill(tmp_path, [9, 10])
    names = as_first_version(tmp_path)
    (tmp_path / "done").mkdir()
    moved = str(Path(names[0]).rename(tmp_path / "done" / "9-9.xml"))
    assert in_order([names[1], moved], [str(tmp_path)]) == [moved, names[1]]
    with chdir(tmp_path):
        assert in_order(["10-10.xml", "done/9-9.xml"], ["."]) == ["done/9-9.xml", "10-10.xml"]


def test_convert_brings_no_deleted_row_back(tmp_path: Path) -> None:
    fill(tmp_path / "out", range(1, 11))  # the last one deletes
    shell = Shell(tmp_path)

    def last_of(names: Sequence[str]) -> str:
        done = shell.run("convert", "--from", "xds", "--to", "changes", *names)
        assert (done.code, len(done.stdout.splitlines())) == (0, 10), done.stderr
        return done.stdout.splitlines()[-1]

    assert '"op":"delete"' in last_of(sorted(f"out/{path.name}" for path in tmp_path.glob("out/*.xml")))
    as_first_version(tmp_path / "out")
    names = sorted(f"out/{path.name}" for path in tmp_path.glob("out/*.xml"))
    assert names[:2] == ["out/1-1.xml", "out/10-10.xml"]
    assert '"op":"delete"' in last_of(names)


@pytest.mark.parametrize("has_record", [False, True])
def test_names_whose_order_is_not_known_are_refused(tmp_path: Path, has_record: bool) -> None:
    out = tmp_path / "out"
    fill(out, [9, 10])
    as_first_version(out)
    (out / ".eventlog" / "record").unlink()  # or it began anew
    fill(out, [11])
    if not has_record:
        shutil.rmtree(out / ".eventlog")
    names = sorted(f"out/{path.name}" for path in out.glob("*.xml"))
    done = Shell(tmp_path).run("convert", "--from", "xds", "--to", "changes", *names)
    assert (done.code, done.stdout) == (2, "")
    assert "in the folder shows when 10-10.xml and 1 other file left. Read such files" in done.stderr
    assert in_order(names[1:2]) == names[1:2]  # one alone has an order
