"""Configurations of the original driver become ours, and nothing of them is dropped in silence."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from eventlog.cli.import_config import import_config
from eventlog.original import export, translate
from eventlog.original.parameters import PARAMETERS, find

ROOT = Path(__file__).parents[2]


def definition(name: str, value: str, **more: str) -> str:
    told = "".join(f' {key.replace("_", "-")}="{text}"' for key, text in more.items())
    return f'<definition name="{name}"{told}><value>{value}</value></definition>'


def definitions(*found: str) -> str:
    inner = f"<definitions>{''.join(found)}</definitions>"
    return f"<configuration-values>{inner}</configuration-values>"


def run(folder: Path, text: str, *options: str) -> Result:
    (folder / "driver.xml").write_text(text)
    return CliRunner().invoke(import_config, [str(folder / "driver.xml"), *options])


def settings(folder: Path, text: str) -> tuple[dict[str, Any], str]:
    done = run(folder, text)
    assert done.exit_code == 0, done.output
    return tomllib.loads(done.stdout), done.stderr


def test_an_export_becomes_settings() -> None:
    data = (ROOT / "examples" / "driver.xml").read_bytes()
    found = translate.translate(export.read("driver.xml", data))
    assert tomllib.loads(translate.write("driver.xml", found)) == {
        "url": "postgresql+psycopg://idm@db.example.com:5432/personnel",
        "time-syntax": 3,
        "sync-schema": "indirect",
        "log-table": "indirect.eventlog",
        "delete-from-log": True,
        "polling-interval": 30,
        "batch-size": 16,
    }
    assert [str(without) for without in found.without] == [
        'jdbc-class = "org.postgresql.Driver": no counterpart'
    ]


def test_the_older_form_names_options_by_their_elements(tmp_path: Path) -> None:
    text = """<driver-config><publisher-options>
        <log-table display-name="Event log">indirect.events</log-table>
        <time-of-day>15:30:00, 23:00:00</time-of-day>
      </publisher-options><subscriber-options><generation>1</generation></subscriber-options></driver-config>"""
    found, told = settings(tmp_path, text)
    assert found == {"log-table": "indirect.events", "time-of-day": "15:30:00,23:00:00"}
    assert told == 'not carried over: generation = "1": of the Subscriber channel, which is not ours\n'


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (definition("batch-size", "0"), "'0' is not a whole number from 1 to 100000"),
        (definition("log-password", "hush"), "a secret is not carried over"),
        (definition("log-table", "~gcv.log~"), "it refers to a global configuration value"),
        (definition("log-table", "a") + definition("log-table", "b"), "given more than once"),
        (definition("column-position-comparator", "a.b.Other"), "'a.b.Other' is not a comparator"),
        (definition("whatever", "x"), "no counterpart"),
        (
            f"""<group>{definition("mode", "poll")}<subordinates active-value="time">
            {definition("time-of-day", "10:00:00")}</subordinates></group>""",
            "its group is not set to",
        ),
    ],
)
def test_what_has_no_counterpart_is_told_and_stands_as_a_comment(
    tmp_path: Path, given: str, reason: str
) -> None:
    done = run(tmp_path, definitions(given))
    assert done.exit_code == 0
    assert reason in done.stderr
    assert "hush" not in done.output
    assert any(line.startswith("#   ") and reason in line for line in done.stdout.splitlines())


def test_parameters_are_known_by_display_name_and_global_values_are_looked_up(tmp_path: Path) -> None:
    given = definition("drv.1", "~mine~", display_name="Polling Interval (In Seconds):")
    given += definition("mine", "45") + definition("sync_tables", "usr  grp;view_usr")
    assert settings(tmp_path, definitions(given))[0] == {
        "polling-interval": 45,
        "sync-tables": "usr,grp,view_usr",
    }


@pytest.mark.parametrize(
    ("jdbc", "url"),
    [
        ("jdbc:oracle:thin:@//db:1521/xe", "oracle+oracledb://me@db:1521/?service_name=xe"),
        ("jdbc:oracle:thin:@db:1521:xe", "oracle+oracledb://me@db:1521/xe"),
        ("jdbc:postgresql://db/idm?ssl=true", "postgresql+psycopg://me@db/idm"),
        ("jdbc:mysql://db:3306/idm", "mysql+pymysql://me@db:3306/idm"),
        ("jdbc:sybase:Tds:db:2048/idm", None),
    ],
)
def test_a_jdbc_url_names_the_database(jdbc: str, url: str | None) -> None:
    assert translate.read_jdbc(jdbc, "me") == url


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<driver", "no well-formed XML"),
        ("<driver/>", "holds no definition"),
        ('<!DOCTYPE d [<!ENTITY e SYSTEM "/etc/passwd">]><d>&e;</d>', "document type declaration"),
        ("<d>" * 500 + "</d>" * 500, "Excessive depth"),
    ],
)
def test_what_is_no_export_is_said_so(text: str, reason: str) -> None:
    with pytest.raises(export.NotAnExport, match=reason):
        export.read("driver.xml", text.encode())


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["log-table", "post-poll-stmt", "other"]),
            st.text(st.characters(exclude_characters="~", codec="utf-8"), max_size=30),
        )
    )
)
def test_whatever_stands_there_is_legal_toml(pairs: list[tuple[str, str]]) -> None:
    said = tuple(export.Said(tag, value, value) for tag, value in pairs)
    found = translate.translate(export.Export(said))
    written = tomllib.loads(translate.write("a\nb = 1", found))
    assert written == {parameter.tag: value for parameter, value in found.settings}


def test_a_file_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    text, target = definitions(definition("log-table", "x")), tmp_path / "eventlog.toml"
    assert run(tmp_path, text, "-o", str(target)).exit_code == 0
    assert tomllib.loads(target.read_text()) == {"log-table": "x"}
    assert "is there already" in run(tmp_path, text, "-o", str(target)).output


def test_every_parameter_is_found_by_all_its_names() -> None:
    for parameter in PARAMETERS:
        names = [
            find(parameter.tag),
            find(parameter.tag.replace("-", "_")),
            *(find("", n) for n in parameter.display),
        ]
        assert names == [parameter] * len(names)
