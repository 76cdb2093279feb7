"""Withheld columns leave by no way: documents, preview, explain, errors, our further tables."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import text

from eventlog.cli import cli
from eventlog.core.errors import Misuse
from tests.publisher.test_opening import config, publish
from tests.world.world import World

pytestmark = pytest.mark.quick

SECRET = "s3cret"
WAYS = (["preview"], ["explain"], ["run", "--once"], ["errors", "--with-document"], ["explain", "--json"])


@pytest.fixture
def secretive(world: World) -> Iterator[World]:
    """Make users with a password, whose column is gone while rows of it are pending, and a PIN."""
    world.change("create table account (id integer primary key, name varchar(64), pin integer)")
    yield world
    world.change("drop table account")


def rows(world: World) -> None:
    """Make rows of each type and spelling, right ones and wrong ones."""
    columns = ("pin", "PIN", "password_hash", "password_hash ", "Name.x")
    written: list[dict[str, Any]] = [
        {"event_type": kind, "table_name": table, "column_name": column}
        for kind in (1, 2, 3)
        for table in ("account", "ACCOUNT")
        for column in columns
    ]
    world.write(
        *({"table_key": "id=1", "old_value": SECRET, "new_value": f"{SECRET}2"} | row for row in written)
    )
    world.write(
        {
            "event_type": 3,
            "table_name": "account",
            "table_key": "id=1",
            "column_name": "name",
            "new_value": "Jo",
        }
    )
    world.write(
        {
            "event_type": 3,
            "table_name": "account",
            "table_key": "id",
            "column_name": "pin",
            "new_value": SECRET,
        }
    )


def call(world: World, folder: Path, section: str, *words: str) -> Result:
    file = folder / "eventlog.toml"
    url = world.url
    file.write_text(f'url = "{url}"\nsync-tables = "account"\nallow-loopback = true\n[tables.{section}\n')
    return CliRunner().invoke(cli, [*words, "--config", str(file)])


@pytest.mark.parametrize("section", ['account]\npublish = ["name"]', 'ACCOUNT]\nwithhold = ["PIN"]'])
def test_no_way_out_shows_a_withheld_value(secretive: World, tmp_path: Path, section: str) -> None:
    rows(secretive)
    reported = ""
    for words in WAYS:
        result = call(secretive, tmp_path, section, *words)
        assert not isinstance(result.exception, AssertionError | TypeError), result.exception
        reported += result.output
    assert ">Jo<" in reported
    assert "says nothing" in reported
    assert SECRET not in reported
    assert secretive.counts() == {"S": 31, "E": 1}
    names = secretive.log.names()
    with secretive.engine.connect() as connection:
        for table in ("failed", "batch", "retry", "notice"):
            found = connection.execute(text(f"select * from {names[table]}")).all()
            assert SECRET not in repr(found)


@pytest.mark.parametrize("words", [["preview"], ["explain"], ["run", "--once"]])
@pytest.mark.parametrize(
    ("section", "reason"),
    [
        ('acount]\npublish = ["name"]', "there is no such table or view"),
        ("acount]\nmax-value = 3", "there is no such table or view"),
        ('account]\nwithhold = ["id"]', "'id' is of the key"),
    ],
)
def test_lists_that_cannot_be_meant_are_reported_at_start(
    secretive: World, tmp_path: Path, words: list[str], section: str, reason: str
) -> None:
    rows(secretive)
    result = call(secretive, tmp_path, section, *words)
    assert isinstance(result.exception, Misuse)
    assert reason in str(result.exception)
    assert secretive.counts() == {"N": 32}


@pytest.mark.parametrize("name", ["publish", "withhold"])
def test_a_list_that_names_no_column_halts_its_table(secretive: World, tmp_path: Path, name: str) -> None:
    rows(secretive)
    result = call(secretive, tmp_path, f'account]\n{name} = ["nmae"]', "run", "--once")
    assert result.exit_code == 1
    assert f"{name}: a column 'nmae', which" in result.stderr
    assert "account" not in result.stdout
    assert SECRET not in result.stdout


def test_what_is_withheld_of_no_table_is_a_warning(
    secretive: World, caplog: pytest.LogCaptureFixture
) -> None:
    tables = {
        "account": {"withhold": ["pin"]},
        "gone": {"withhold": ["pin"]},
        "usr": {"withhold": ["lname"]},
    }
    secretive.change("insert into account values (1, 'Jack', 1)")
    secretive.write(
        {"table_name": "account", "table_key": "id=1"},
        *(
            {
                "event_type": 3,
                "table_name": name,
                "table_key": "id=1",
                "column_name": "pin",
                "new_value": SECRET,
            }
            for name in ("gone", "GONE", "usr", "x.gone")
        ),
    )
    with caplog.at_level(logging.WARNING, "eventlog"):
        configured = config(secretive, sync_tables="account", tables=tables, unknown_tables="string")
        receiver = publish(secretive, secretive.store, configured)
    assert "withhold: a column 'pin', and there is no such table or view" in caplog.text
    (event,) = receiver.events
    assert event.xpath("modify-attr/@attr-name") == ["name"]
