"""A database whose every setting is odd: all commands work there, and documents are as in any other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import pytest
import sqlalchemy
from sqlalchemy.engine import URL

from eventlog.sql.common.dialect import Dialect
from tests.kit.commands import Shell
from tests.kit.databases import temporary_database
from tests.kit.statements import run_statements

pytestmark = [pytest.mark.quick, pytest.mark.cold]

ODD_POSTGRESQL = {
    # how values become texts
    "quote_all_identifiers": "on",
    "DateStyle": "'German, DMY'",
    "IntervalStyle": "sql_standard",
    "TimeZone": "'Asia/Kathmandu'",
    "extra_float_digits": "-15",
    "bytea_output": "escape",
    "xmlbinary": "hex",
    "xmloption": "document",
    "client_encoding": "LATIN1",
    # how statements and values are read
    "standard_conforming_strings": "off",
    "escape_string_warning": "off",
    "backslash_quote": "off",
    "transform_null_equals": "on",
    "array_nulls": "off",
    "search_path": "nowhere, public, pg_catalog",
    "default_text_search_config": "simple",
    "plpgsql.variable_conflict": "use_column",
    "plpgsql.extra_errors": "'all'",
    # what is seen
    "row_security": "off",
    "default_transaction_isolation": "serializable",
    "default_transaction_deferrable": "on",
    "synchronize_seqscans": "off",
    "gin_fuzzy_search_limit": "1",
    # plans
    **dict.fromkeys(("enable_nestloop", "enable_indexscan", "enable_bitmapscan", "enable_sort"), "off"),
    **dict.fromkeys(("enable_hashjoin", "enable_hashagg", "enable_mergejoin", "enable_seqscan"), "off"),
    "plan_cache_mode": "force_generic_plan",
    "constraint_exclusion": "on",
    "cursor_tuple_fraction": "1",
    "join_collapse_limit": "1",
    "jit_above_cost": "0",
    "work_mem": "'64kB'",
    "client_min_messages": "error",
    "check_function_bodies": "off",
}
ODD_MYSQL = (
    "sql_mode = 'ANSI,PAD_CHAR_TO_FULL_LENGTH,NO_UNSIGNED_SUBTRACTION', time_zone = '+05:45',"
    " sql_select_limit = 1, sql_safe_updates = 1, sql_big_selects = 0, max_join_size = 1,"
    " sql_auto_is_null = 1, group_concat_max_len = 4, max_sort_length = 8,"
    " div_precision_increment = 0, default_week_format = 3, lc_time_names = 'de_DE',"
    " completion_type = 'CHAIN', collation_connection = 'utf8mb4_bin'"
)


class Application(NamedTuple):
    """The tables of an application, and changes of them for a number."""

    tables: str
    changes: str


POSTGRESQL = Application(
    r"""
create table usr (
  idu integer primary key, born timestamp with time zone, span interval, f float8, photo bytea, kind regtype,
  day date, words text[], "c\l" text);
create table tag (k text[] primary key, usr integer references usr, v text);
create view seen as
  select idu as pk_idu, photo::text as photo, born::text as born, span::text as span, kind::text as kind,
    f::text as f
  from usr;
""",
    r"""
insert into usr values (
  {n}, '2025-03-23 10:57:19+02', interval '40 days 3.5 seconds', 0.1, decode('00ff27', 'hex'), 'integer',
  '2025-03-23', array[null, 'a'], 'x');
insert into tag values (array[null, 'NULL', '{n}', '"'], {n}, 'old');
update usr set f = 1e300, kind = 25::oid::regtype, "c\l" = null where idu = {n};
update tag set v = 'new' where usr = {n};
""",
)
MYSQL = Application(
    r"""
create table usr (
  idu integer primary key, born timestamp(3) null, f double, photo blob, day date, n decimal(9,3),
  `c\l` varchar(20), c char(5));
create table tag (k varchar(20) primary key, usr integer, v varchar(20));
create view seen as
  select idu as pk_idu, f, cast(born as char) as born, c, n / 3 as third, week(day) as week,
    date_format(day, '%%M') as month, (select group_concat(v, k order by k) from tag) as tags
  from usr;
""",
    r"""
insert into usr values (
  {n}, from_unixtime(1742720239.25), 0.1, unhex('00ff27'), '2025-03-23', 1.5, 'x', 'ab');
insert into tag values ('+{n}', {n}, 'old');
update usr set f = 1e300, n = 0.125, `c\l` = null, c = 'b' where idu = {n};
update tag set v = 'new' where k = '+{n}';
""",
)
APPLICATIONS = {"postgresql": POSTGRESQL, "mysql": MYSQL, "mariadb": MYSQL}


class House:
    """A database with an application, a log and documents."""

    def __init__(self, url: URL, dialect: Dialect, folder: Path) -> None:
        self._engine = sqlalchemy.create_engine(url)
        self._dialect = dialect
        self._application = APPLICATIONS[dialect.name]
        self._shell = Shell(folder)
        self._variables = {
            "EVENTLOG_URL": url.render_as_string(hide_password=False),
            "EVENTLOG_ALLOW_LOOPBACK": "true",
            "EVENTLOG_SYNC_TABLES": "usr,tag",
        }
        self._documents = folder / "documents"
        self.execute(self._application.tables)

    def execute(self, statements: str) -> None:
        """Run statements as the application does."""
        each = (statement.removesuffix(";") for statement in statements.strip().split(";\n"))
        run_statements(self._engine, *each, autocommit=True)

    def change(self, number: int) -> None:
        self.execute(self._application.changes.format(n=number))

    def run(self, *words: str, **variables: str) -> str:
        done = self._shell.run(*words, **(self._variables | variables))
        assert done.code == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout.replace(str(self._engine.url.database), "place")

    def publish(self, mode: str = "trigger", **variables: str) -> None:
        """Publish what is pending."""
        into = ("--sink", "files", "--files-folder", "documents")
        self.run("run", "--once", "--mode", mode, *into, **variables)

    def close(self) -> None:
        self._engine.dispose()

    def documents(self) -> list[str]:
        """Return what left, without the name of the database."""
        texts = (path.read_text() for path in self._documents.glob("*.xml"))
        return sorted(text.replace(str(self._engine.url.database), "place") for text in texts)

    def live(self, *, looks: bool) -> Iterator[Sequence[str]]:
        """Yield what leaves by each way of filling the log; look at what became of the first rows."""
        self.run("install")
        self.run("track", "usr", "--insert", "1", "--update", "2")
        self.run("track", "tag")
        self.change(1)
        yield self.run("preview")
        self.publish()
        looking = ("explain 1", "status", "errors", "check", "audit --state --delivered documents")
        for words in looking if looks else ():
            self.run(*words.split())
        yield self.documents()
        if self._dialect.sessions.has_slots:
            self.run("install", "--mode", "slot")
            self.change(2)
            self.publish("slot")
        else:
            self.run("untrack", "usr", "tag")
        self.run("install", "--mode", "compare")
        self.change(3)
        self.publish("compare", EVENTLOG_SYNC_TABLES="usr,tag,seen")
        yield self.documents()


@contextmanager
def house(server: tuple[str, URL], folder: Path, *, odd: bool) -> Iterator[House]:
    with temporary_database(*server) as database:
        url = database.url
        if odd and database.dialect.sessions.has_slots:
            with database.engine().begin() as connection:
                place = f'database "{url.database}"'
                owners = cycle((place, f"role current_user in {place}"))
                for (name, value), owner in zip(ODD_POSTGRESQL.items(), owners, strict=False):
                    connection.exec_driver_sql(f"alter {owner} set {name} to {value}")
        elif odd:
            url = url.update_query_dict({"init_command": f"set {ODD_MYSQL}"})
        folder.mkdir()
        new_house = House(url, database.dialect, folder)
        yield new_house
        new_house.close()


@pytest.mark.slow("it runs twenty commands")
def test_documents_are_those_of_any_other_database(server: tuple[str, URL], tmp_path: Path) -> None:
    lives = []
    for odd in (False, True):
        with house(server, tmp_path / str(odd), odd=odd) as settings:
            lives.append([*settings.live(looks=odd)])
    assert lives[0] == lives[1]
    assert [len(left) > 1 for left in lives[0]] == [True] * 3
