"""The effect of publish and withhold: no other column leaves, in any spelling, on any way out of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eventlog.core import tablesfile
from eventlog.core.change import Change, Field, Op
from eventlog.core.entry import Entry
from eventlog.core.errors import Misuse
from eventlog.core.publish_lists import column_filter
from eventlog.core.tables import Tables
from eventlog.fold import Fate, Outcome, Rules, plan
from tests.kit.support import run_convert

pytestmark = pytest.mark.quick

SECRET = "s3cret"
OPEN = (
    'key = ["idu"]\ncolumns = { idu = "integer", fname = "varchar(64)", pin = "integer", pw = "varchar(64)" }'
)
WITHHELD = f'[tables.usr]\nschema = "hr"\n{OPEN}\nwithhold = ["pw", "pin"]\n'
PUBLISHED = f'[tables.usr]\nschema = "hr"\n{OPEN}\npublish = ["fname"]\n'
VIEW = """
[tables.people]
view = true
columns = { pk_idu = "integer", sv_pw = "text", fk_mv__idg__mbr_of = "integer", fname = "text" }
"""
FAMILY = """
[tables.usr]
key = ["idu"]
columns = { idu = "integer", fname = "text", "usr_phone.phoneno" = "text", "usr_phone.pin" = "text" }
multivalued = ["usr_phone.phoneno"]
"""


def published_columns(text: str, table: str) -> set[str]:
    return {column.name for column in tablesfile.read(text).get(table).columns.values() if column.leaves}


def outcomes(folder: Path, text: str, rows: list[str], **options: Any) -> tuple[str, list[str]]:
    """Return the content of the documents of some rows, and the reasons of refused ones."""
    header = "record_id,event_type,table_name,table_key,column_name,old_value,new_value\n"
    log = header + "".join(f"{number},{row}\n" for number, row in enumerate(rows, 1))
    written, refused = run_convert(folder, "log", "xds", log, tables=tablesfile.read(text), **options)
    return written, [bad.reason for bad in refused]


@pytest.mark.parametrize("lists", [WITHHELD, PUBLISHED])
@pytest.mark.parametrize("table", ["usr", "USR", "hr.usr"])
@pytest.mark.parametrize(
    "column", ["pw", "PW", '"pw "', " pw", "password_hash", "p\u0077d", "hr.pw", "usr.pw", "\x01", "ﬀ"]
)
def test_no_other_column_leaves_under_any_spelling(
    tmp_path: Path, lists: str, table: str, column: str
) -> None:
    rows = [f"{kind},{table},idu=1,{column},{SECRET}1,{SECRET}2" for kind in (1, 2, 3)]
    written, refused = outcomes(tmp_path, lists, [*rows, f"2,{table},idu=1,fname,Jack,John"])
    assert SECRET not in written
    assert refused == []
    assert "John" in written


def test_a_withheld_value_is_not_looked_at_so_no_reason_shows_it(tmp_path: Path) -> None:
    written, refused = outcomes(
        tmp_path, WITHHELD, [f"3,usr,idu=1,pin,,{SECRET}", f"2,usr,idu=1,PIN,1,{SECRET}"]
    )
    assert (written, refused) == ("", [])


def test_a_table_without_lists_publishes_what_it_lacks_as_a_string(tmp_path: Path) -> None:
    written, _ = outcomes(tmp_path, f"[tables.usr]\n{OPEN}", ["3,usr,idu=1,gone,,kept"])
    assert 'attr-name="gone"' in written


@pytest.mark.parametrize("name", ["usr ", "x.usr", '"""usr"""', "USR ", "hr. usr", "[usr]"])
def test_no_spelling_of_the_table_makes_it_one_that_has_no_lists(tmp_path: Path, name: str) -> None:
    written, refused = outcomes(tmp_path, WITHHELD, [f"3,{name},idu=1,pw,,{SECRET}"], unknown_tables="string")
    assert (written, refused) == ("", [])
    other, _ = outcomes(tmp_path, WITHHELD, ["3,other,idu=1,pw,,reported"], unknown_tables="string")
    assert "reported" in other


@pytest.mark.parametrize("entry", ["sv_pw", "pw", "PW", "fk_mbr_of", "mbr_of", "FK_MV__idg__mbr_of"])
def test_a_list_holds_for_each_name_of_a_views_column(entry: str) -> None:
    column = "sv_pw" if entry.lower().endswith("pw") else "fk_mv__idg__mbr_of"
    everything = {"pk_idu", "sv_pw", "fk_mv__idg__mbr_of", "fname"}
    assert published_columns(f'{VIEW}withhold = ["{entry}"]', "people") == everything - {column}
    assert published_columns(f'{VIEW}publish = ["{entry}"]', "people") == {"pk_idu", column}


def test_what_a_child_withholds_its_parent_withholds() -> None:
    child = '[tables.usr_phone]\ncolumns = { idu = "integer", phoneno = "text", pin = "text" }\n'
    for lists in ("withhold = ['pin']", "publish = ['phoneno']", "schema = 'hr'\nwithhold = ['PIN']"):
        found = published_columns(FAMILY + child + lists, "usr")
        assert found == {"idu", "fname", "usr_phone.phoneno"}
    parents = FAMILY.replace("multivalued", "withhold = ['usr_phone.pin']\nmultivalued")
    assert published_columns(parents + child + "publish = ['phoneno', 'pin']", "usr") == found


def test_entries_that_are_no_columns() -> None:
    with pytest.raises(Misuse, match=r"\[tables.usr\] publish: a column 'phone', which hr.usr lacks"):
        tablesfile.read(PUBLISHED.replace('fname"]', 'phone"]'))
    with pytest.raises(Misuse, match=r"\[tables.usr\] withhold: a column 'salary', which hr.usr lacks"):
        tablesfile.read(WITHHELD.replace('pin"]', 'salary"]'))
    with pytest.raises(Misuse, match="'idu' is of the key"):
        tablesfile.read(WITHHELD.replace('pin"]', 'idu"]'))


def test_the_lists_of_a_tables_file_are_written_again() -> None:
    for text in (WITHHELD, PUBLISHED, f"[tables.usr]\n{OPEN}\nwithhold = []"):
        before = tablesfile.read(text)
        again = tablesfile.read(tablesfile.write(before))
        assert [(t.closed, dict(t.columns)) for t in again] == [(t.closed, dict(t.columns)) for t in before]


@pytest.mark.parametrize("target", ["changes", "xds", "log"])
def test_changes_of_other_formats_leave_without_what_is_withheld(tmp_path: Path, target: str) -> None:
    change = (
        '{"op":"update","schema":"hr","table":"usr","key":{"idu":1},"fields":[{"column":"fname","before":"a",'
        '"after":"b"},{"column":"pw","before":"s3cret1","after":"s3cret2"},{"column":"old","after":"s3cret"}]}\n'
    )
    silent = change.replace('{"column":"fname","before":"a","after":"b"},', "")
    tables = tablesfile.read(WITHHELD)
    written, refused = run_convert(
        tmp_path, "changes", target, change + silent, name="in.jsonl", tables=tables
    )
    assert refused == []
    assert SECRET not in written
    assert "b" in written
    assert silent not in written


def test_an_update_of_what_is_withheld_does_not_leave_with_its_unchanged_columns(tmp_path: Path) -> None:
    change = (
        '{"op":"update","schema":"hr","table":"usr","key":{"idu":1},"fields":[{"column":"fname","before":"a",'
        '"after":"a"},{"column":"pw","before":"s3cret1","after":"s3cret2"}]}\n'
    )
    tables = tablesfile.read(WITHHELD)
    assert run_convert(tmp_path, "changes", "changes", change, name="in.jsonl", tables=tables) == ("", [])


def test_what_no_list_touches_is_published_even_if_nothing_changed() -> None:
    published = column_filter(tablesfile.read(WITHHELD))
    idle, secret = Field("fname", "a", "a"), Field("pw", "s3cret1", "s3cret2")
    change = Change(Op.UPDATE, "hr", "usr", (("idu", 1),), (idle,))
    assert published(change) == change
    assert published(change._replace(fields=(idle, secret))) is None
    assert published(change._replace(fields=(Field("fname", "a", "b"), secret))) is not None


def test_the_fold_says_why() -> None:
    entry = Entry(1, "N", 3, "2025-01-01T00:00:00", None, "usr", "idu=1", "gone", None, SECRET)
    planned = plan([entry, entry._replace(record_id=2, column_name="pw")], tablesfile.read(WITHHELD), Rules())
    planned.events()
    assert planned.outcomes == {
        1: Outcome(Fate.SAYS_NOTHING, "usr has publish or withhold, and no column 'gone'"),
        2: Outcome(Fate.SAYS_NOTHING, "column pw is withheld"),
    }


def test_nothing_is_shut_where_nobody_has_lists() -> None:
    assert not Tables(tablesfile.read(f"[tables.usr]\n{OPEN}")).shuts("usr")
