"""Configurations of the original driver become ours, and nothing of them is dropped in silence."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from eventlog.cli import cli
from eventlog.cli.log_options import ALL
from eventlog.netiq import export, translate
from eventlog.netiq.parameters import PARAMETERS, UNNEEDED, find
from eventlog.netiq.translate import read_jdbc
from eventlog.opening.config import Config, read_config

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]


def definition(name: str, value: str, **attributes: str) -> str:
    reported = "".join(f' {key.replace("_", "-")}="{text}"' for key, text in attributes.items())
    return f'<definition name="{name}"{reported}><value>{value}</value></definition>'


def definitions(*elements: str) -> str:
    inner = f"<definitions>{''.join(elements)}</definitions>"
    return f"<configuration-values>{inner}</configuration-values>"


def channel(name: str, *elements: str) -> str:
    return f"<{name}-options>{definitions(*elements)}</{name}-options>"


def run(folder: Path, text: str, *options: str) -> Result:
    (folder / "driver.xml").write_text(text)
    return CliRunner().invoke(cli, ["import-config", str(folder / "driver.xml"), *options])


def settings(folder: Path, text: str) -> tuple[dict[str, Any], str]:
    done = run(folder, text)
    assert done.exit_code == 0, done.output
    return tomllib.loads(done.stdout), done.stderr


def imported(*pairs: tuple[str, str], text: str = "") -> translate.Translation:
    """Return what becomes of parameters, or of a whole file."""
    reported = text or definitions(*(definition(name, value) for name, value in pairs))
    return translate.translate(export.read("driver.xml", reported.encode()))


def decided_settings(translation: translate.Translation) -> dict[str, Any]:
    """Return the settings that the export itself decided."""
    return {line.name: line.value for line in translation.lines if line.name != "log-time"}


def all_settings(translation: translate.Translation) -> dict[str, Any]:
    return {line.name: line.value for line in (*translation.lines, *translation.assumed)}


def reasons(translation: translate.Translation) -> str:
    return "\n".join(map(str, translation.without))


def test_an_export_becomes_settings() -> None:
    data = (ROOT / "examples" / "driver.xml").read_bytes()
    found = translate.translate(export.read("driver.xml", data))
    assert decided_settings(found) == {
        "url": "postgresql+psycopg://idm@db.example.com:5432/personnel",
        "time-syntax": 3,
        "sync-schema": "indirect",
        "log-table": "indirect.eventlog",
        "delete-from-log": True,
        "polling-interval": 30,
        "batch-size": 16,
    }
    assert reasons(found) == 'jdbc-class = "org.postgresql.Driver": url names the driver'


def test_the_defaults_of_what_an_export_leaves_out_are_stated() -> None:
    assert {line.name: line.value for line in imported(("batch-size", "5")).assumed} == {
        "delete-from-log": True,
        "allow-loopback": False,
        "handle-future-events": False,
        "polling-interval": 10,
        "query-limit": 10000,
        "pub-heartbeat-interval": 0,
        "enable-refs": True,
        "enable-meta-identifiers": True,
        "time-syntax": 1,
        "reconnect": 30,
        "disable": False,
    }
    reported = reasons(imported(("batch-size", "5")))
    assert (
        'log-table: the export names no log, and the original has no default: "eventlog" is taken' in reported
    )


SETTINGS = [
    (("query-limit", "0"), {"query-limit": 2**31 - 1}),
    (("query limit", "1000"), {"query-limit": 1000}),
    (
        ("sync-tables", "usr  grp;view_usr,\n x"),
        {"sync-tables": "usr, grp, view_usr, x", "sync-children": True},
    ),
    (("sync-tables", 'hr."my table"'), {"sync-tables": '"hr.my table"', "sync-children": True}),
    (("column-position-comparator", "com.x.StringByteComparator"), {}),
    (("minimal-metadata", "1"), {"enable-refs": False}),
    (("minimal-metadata", "0"), {}),
    (("time-of-day", "13:00:00 (1PM), 16:00:00 (4 PM)"), {"time-of-day": "13:00:00,16:00:00"}),
    (("delete-from-log", "1 (yes)"), {"delete-from-log": True}),
    (("sync-tables", ""), {}),
]


@pytest.mark.parametrize(("pair", "found"), SETTINGS, ids=lambda value: str(value)[:50])
def test_a_parameter_becomes_a_setting(pair: tuple[str, str], found: dict[str, Any]) -> None:
    assert decided_settings(imported(pair)) == found


def test_the_log_is_in_the_schema_that_is_synchronized() -> None:
    schema = ("sync-schema", "indirect")
    assert decided_settings(imported(("log-table", "eventlog"), schema))["log-table"] == "indirect.eventlog"
    assert decided_settings(imported(("log-table", "other.log"), schema))["log-table"] == "other.log"
    assert (
        decided_settings(imported(("log-table", "eventlog"), ("sync-tables", "usr")))["log-table"]
        == "eventlog"
    )


def test_the_filter_says_whether_a_schema_or_a_list_is_synchronized() -> None:
    both = (("sync-schema", "indirect"), ("sync-tables", "usr"), ("include-table-filter", "u.*"))
    by_list = imported(("sync-filter", "list (include by table/view name)"), ("log-table", "log"), *both)
    assert decided_settings(by_list) == {"log-table": "log", "sync-tables": "usr", "sync-children": True}
    assert 'sync-schema = "indirect": not in force: sync-filter is list' in reasons(by_list)
    by_schema = imported(("sync-filter", "schema"), ("log-table", "log"), *both)
    assert decided_settings(by_schema) == {
        "log-table": "indirect.log",
        "sync-schema": "indirect",
        "include-table-filter": "u.*",
    }
    neither = imported(("sync-filter", "empty"), ("log-table", "log"), *both)
    assert decided_settings(neither) == {"log-table": "log", "disable": True}
    assert "both are given: both are published" in reasons(imported(*both))


def test_filters_are_carried_over_with_their_schema_alone() -> None:
    filters = (("include-table-filter", "IDM_.*"), ("exclude-table-filter", r"BIN\$.{22}==\$0"))
    found = imported(("sync-schema", "indirect"), *filters)
    assert decided_settings(found) == {"sync-schema": "indirect"} | dict(filters)
    assert reasons(imported(*filters)).count("not in force: it chooses among the tables of sync-schema") == 2
    assert r"bad escape \p" in reasons(imported(("include-table-filter", r"\p{Alpha}")))


@pytest.mark.parametrize(
    "pairs",
    [
        [("disable", "1")],
        [("disable", "perhaps")],
        [("publication-mode", "3")],
        [("disable", "~gcv.off~")],
        [("sync-filter", "nothing")],
        [("sync-filter", "empty")],
    ],
)
def test_a_publisher_that_was_off_does_not_run(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    assert decided_settings(imported(*pairs))["disable"] is True
    assert config_of(imported(*pairs), tmp_path).values["disable"] is True


@pytest.mark.parametrize(("option", "ours"), [("1", "resync"), ("2 (future)", "future"), ("3", "all")])
def test_triggerless_publication_compares_states(option: str, ours: str, tmp_path: Path) -> None:
    pairs = (("publication-mode", "2 (triggerless)"), ("startup-option", option), ("sync-tables", "usr"))
    given = config_of(imported(*pairs), tmp_path).values
    assert (given["publication_mode"], given["startup_option"], given["disable"]) == ("compare", ours, False)


def test_triggerless_publication_is_led_to_a_log_elsewhere() -> None:
    pairs = (("publication-mode", "2"), ("state-dir", "/var/opt/state"), ("sync-tables", "usr"))
    found = imported(*pairs)
    (mode,) = (line for line in found.lines if line.name == "publication-mode")
    assert "source-url" in mode.note
    assert "source-url" in reasons(found)
    assert "log-time" not in {line.name for line in found.lines}  # no log was written there
    server = "<authentication-info><server>jdbc:sqlserver://db:1433</server></authentication-info>"
    for mode_number, reported in (("1", "set url"), ("2", "name it in source-url")):
        other = imported(text=f"<d>{server}{definitions(definition('publication-mode', mode_number))}</d>")
        assert "url" not in decided_settings(other)
        assert reported in reasons(other)


def test_a_startup_option_is_of_triggerless_publication_alone() -> None:
    found = imported(("publication-mode", "1"), ("startup-option", "1"))
    assert not {"publication-mode", "startup-option"} & decided_settings(found).keys()
    assert 'startup-option = "resync": not in force' in reasons(found)
    odd = imported(("publication-mode", "2"), ("startup-option", "4"))
    assert "startup-option" not in decided_settings(odd)
    assert "'4' is not one of 1, 2, 3" in reasons(odd)


def test_the_subscriber_has_parameters_of_the_same_names() -> None:
    off, on = definition("disable", "1"), definition("disable", "0")
    one = imported(text=f"<d>{channel('subscriber', off)}{channel('publisher', on)}</d>")
    assert decided_settings(one) == {"disable": False}
    other = imported(text=f"<d>{channel('subscriber', on)}{channel('publisher', off)}</d>")
    assert decided_settings(other) == {"disable": True}
    flat = imported(text=definitions(definition("disable", "1", display_name="Disable subscriber?")))
    assert decided_settings(flat) == {}


@pytest.mark.parametrize("known", UNNEEDED, ids=lambda known: known.tag)
def test_what_is_not_needed_is_reported_with_the_reason(known: Any) -> None:
    assert known.reason in reasons(imported((known.tag, "1")))
    by_title = definition("", "1", display_name=f"{known.display.split(', ')[0]}:")
    assert known.reason in reasons(imported(text=definitions(by_title)))


def test_what_cannot_be_read_is_reported() -> None:
    for pair, reason in (
        (("batch-size", "0"), "'0' is not between 1 and 100000"),
        (
            ("column-position-comparator", "com.acme.Mine"),
            "what differs between databases is part of eventlog",
        ),
        (
            ("preserve_sql_whitespace", "no"),
            'preserve_sql_whitespace = "no": statements run unchanged',
        ),
    ):
        assert reason in reasons(imported(pair))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (definition("batch-size", "0"), "'0' is not between 1 and 100000"),
        (definition("log-password", "hush"), "it may hold a secret"),
        (definition("log-table", "~gcv.log~"), "it refers to a global configuration value"),
        (definition("log-table", "a") + definition("log-table", "b"), "given more than once"),
        (definition("whatever", "x"), "no counterpart"),
        (
            f"""<group>{definition("mode", "poll")}<subordinates active-value="time">
            {definition("time-of-day", "10:00:00")}</subordinates></group>""",
            "its group is not set to",
        ),
    ],
)
def test_what_has_no_counterpart_is_reported_and_stands_as_a_comment(
    tmp_path: Path, given: str, reason: str
) -> None:
    done = run(tmp_path, definitions(given))
    assert done.exit_code == 0
    assert reason in done.stderr
    assert any(line.startswith("#   ") and reason in line for line in done.stdout.splitlines())


SECRETS = [
    definition("http-token", "HUSH"),
    definition("x", "HUSH", type="password-ref"),
    definition("y", "HUSH", is_sensitive="true"),
    definition("z", "HUSH", display_name="Application Password"),
    definition("whatever", "HUSH"),
    definition("connection-properties", "user={$username}; password=HUSH; ssl=true"),
    definition("connection-init", "alter user me identified by HUSH"),
    definition("post-poll-stmt", "call sync('token HUSH')"),
    definition("batch-size", "password=HUSH"),
    definition("jdbc-class", "a.b?password=HUSH"),
    definition("db.secret", "HUSH") + definition("log-table", "~db.secret~"),
    definition("generation", "HUSH") + definition("mine", "HUSH", display_name="Mine"),
    "<server>jdbc:oracle:thin:scott/HUSH@//db/xe</server>" + definition("a", "b"),
    "<server>jdbc:mysql://root:HUSH@db/idm?password=HUSH</server>" + definition("a", "b"),
    "<server>jdbc:nothing://root:HUSH@db</server>" + definition("a", "b"),
    "<shim-auth-password>HUSH</shim-auth-password>" + definition("a", "b"),
]


@pytest.mark.parametrize("text", SECRETS)
def test_no_secret_is_written_anywhere(text: str, tmp_path: Path) -> None:
    done = run(tmp_path, f"<d>{definitions(text)}</d>", "-o", str(tmp_path / "out.toml"))
    assert done.exit_code == 0, done.output
    assert "HUSH" not in done.output + (tmp_path / "out.toml").read_text()


def test_parameters_are_known_by_display_name_and_global_values_are_looked_up(tmp_path: Path) -> None:
    given = definition("drv.1", "~mine~", display_name="Polling Interval (In Seconds):")
    given += definition("mine", "45") + definition("sync_tables", "usr  grp;view_usr")
    given += definition("", "idm", display_name="Schema Name") + definition(
        "9", "x", display_name="Event log table name:"
    )
    found = settings(tmp_path, definitions(given))[0]
    assert found["polling-interval"] == 45
    assert found["sync-tables"] == "usr, grp, view_usr"
    assert (found["sync-schema"], found["log-table"]) == ("idm", "idm.x")


@pytest.mark.parametrize(
    ("jdbc", "url", "left_out"),
    [
        ("jdbc:oracle:thin:@//db:1521/xe", "oracle+oracledb://me@db:1521/?service_name=xe", ()),
        ("jdbc:oracle:thin:@db:1521/xe", "oracle+oracledb://me@db:1521/?service_name=xe", ()),
        ("jdbc:oracle:thin:@db:1521:xe", "oracle+oracledb://me@db:1521/xe", ()),
        ("jdbc:oracle:thin:a/b@db:1521:xe", "oracle+oracledb://me@db:1521/xe", ("password",)),
        ("jdbc:postgresql://db/idm?ssl=true", "postgresql+psycopg://me@db/idm", ("ssl",)),
        ("jdbc:postgresql:idm", "postgresql+psycopg://me@localhost/idm", ()),
        ("jdbc:postgresql://[::1]:5433/idm", "postgresql+psycopg://me@[::1]:5433/idm", ()),
        ("jdbc:mysql://db:3306/idm", "mysql+pymysql://me@db:3306/idm", ()),
        ("jdbc:mariadb://db/idm?a=1&b=2", "mariadb+pymysql://me@db/idm", ("a", "b")),
        ("jdbc:sybase:Tds:db:2048/idm", "", ()),
    ],
)
def test_a_jdbc_url_names_the_database(jdbc: str, url: str, left_out: tuple[str, ...]) -> None:
    assert read_jdbc(jdbc, "me") == (url, left_out)


def test_the_user_of_a_jdbc_url_is_kept_where_the_export_names_no_other() -> None:
    found = read_jdbc("jdbc:oracle:thin:scott/tiger@db:1521:xe", "")
    assert found == ("oracle+oracledb://scott@db:1521/xe", ("password",))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<driver", "cut short"),
        ("<driver/>", "holds no definition"),
        (
            "<d><publisher-options><log-table>x</log-table></publisher-options></d>",
            "its publisher-options hold no definition; export the driver again",
        ),
        ('<!DOCTYPE d [<!ENTITY e SYSTEM "/etc/passwd">]><d>&e;</d>', "document type declaration"),
        ("<d>" * 5000 + "</d>" * 5000, "Excessive depth"),
    ],
)
def test_what_is_no_export_is_said_so(text: str, reason: str) -> None:
    with pytest.raises(export.NotAnExport, match=reason):
        export.read("driver.xml", text.encode())


def config_of(translation: translate.Translation, folder: Path) -> Config:
    """Return the settings as `eventlog run` reads them."""
    file = folder / "eventlog.toml"
    file.write_text(translate.as_toml("driver.xml", translation), "utf-8")
    return read_config((settings for _, settings in ALL), {}, {}, file)


texts = st.text(st.characters(exclude_characters="~", codec="utf-8"), max_size=30)
values = st.one_of(
    texts, st.sampled_from(("0", "1", "2", "yes", "schema", "list", "empty", "12:00:00", "a.*", "none"))
)


@given(
    st.lists(st.tuples(st.sampled_from([known.tag for known in PARAMETERS] + ["other"]), values), max_size=12)
)
def test_whatever_stands_there_becomes_settings_that_can_be_used(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]
) -> None:
    reported = tuple(export.StatedParameter(tag, value, value) for tag, value in pairs)
    found = translate.translate(export.Export(reported))
    written = tomllib.loads(translate.as_toml("a\nb = 1", found))
    assert written == all_settings(found)
    config = config_of(found, tmp_path_factory.getbasetemp())
    assert {name.replace("-", "_") for name in written} == config.values.keys()


def test_a_log_whose_name_cannot_be_one_here_is_left_out_and_reported() -> None:
    found = imported(("log-table", "log:of/idm"))
    assert "log-table" not in decided_settings(found)
    assert "log-table" in reasons(found)
    assert "cannot name anything in a log" in reasons(found)


def test_a_file_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    text, target = definitions(definition("log-table", "x")), tmp_path / "eventlog.toml"
    assert run(tmp_path, text, "-o", str(target)).exit_code == 0
    assert tomllib.loads(target.read_text())["log-table"] == "x"
    assert "already exists" in str(run(tmp_path, text, "-o", str(target)).exception)


def test_every_parameter_is_found_by_all_its_names() -> None:
    for known in (*PARAMETERS, *UNNEEDED):
        tags = [known.tag, known.tag.replace("-", "_"), known.tag.upper()]
        displayed = known.display.split(", ")
        titles = [*displayed, *(name.lower().rstrip("?") + ":" for name in displayed)]
        found = [*(find(tag) for tag in tags), *(find("", title) for title in titles)]
        assert found == [known] * len(found)


def test_deletion_that_an_export_leaves_out_is_assumed_and_reported() -> None:
    found = imported(("batch-size", "1"))
    assert all_settings(found)["delete-from-log"] is True
    assert "delete-from-log: the export leaves it out, which means yes in two editions" in reasons(found)
    kept = imported(("delete-from-log", "no"))
    assert (all_settings(kept)["delete-from-log"], "delete-from-log" in reasons(kept)) == (False, False)
    assert all_settings(imported(("publication-mode", "2")))["delete-from-log"] is False
