"""The new database of docs/contribute/dialects.md, by its steps: PostgreSQL without all that has a default.

`pytest -p tests.sql.toy` adds it to the databases that eventlog supports, so that EVENTLOG_TEST_URLS may
name one.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic.ddl.postgresql import PostgresqlImpl
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from eventlog.sql import dialects
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.common.templates import read

PAGE = Path(__file__).parents[2] / "docs" / "contribute" / "dialects.md"


class ToyServer(PGDialect_psycopg):
    """A PostgreSQL under another name, for SQLAlchemy."""

    name = "toy"
    is_toy = True
    supports_statement_cache = True


class ToyMigrations(PostgresqlImpl):
    """A PostgreSQL under another name, for Alembic."""

    __dialect__ = "toy"


registry.register("toy.psycopg", __name__, "ToyServer")


def block(language: str) -> str:
    """Return the one block of the page in a language."""
    blocks: list[str] = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (only,) = blocks
    return only


def made_in(folder: Path) -> Dialect:
    """Return the dialect of the page, with its statements in a folder.

    These are PostgreSQL's in place of those that a newcomer would write, but none that changes a common one.
    """
    own_sql = block("sql")
    taken = {*re.findall(r"^-- (\w+) --$", own_sql, re.MULTILINE), *read("common")}
    texts = [
        f"-- {name} --\n-- As PostgreSQL has it.\n" + "".join(f"{part}\n/\n" for part in parts)
        for name, parts in read("postgresql").items()
        if name not in taken
    ]
    (folder / "toy.sql").write_text(own_sql + "\n" + "\n".join(texts), "utf-8")
    names: dict[str, Dialect] = {}
    exec(block("python").replace('"toy", "common"', f'"{folder}", "common"'), names)
    return names["TOY"]


@contextmanager
def supported(dialect: Dialect) -> Iterator[Dialect]:
    """Make eventlog support a dialect while the block runs."""
    dialects.DIALECTS[dialect.name] = dialects.SCHEMES[dialect.name] = dialect
    dialects.BY_ATTRIBUTE[dialect.server_attribute] = dialect
    yield dialect
    del dialects.DIALECTS[dialect.name], dialects.SCHEMES[dialect.name]
    del dialects.BY_ATTRIBUTE[dialect.server_attribute]


_folder = tempfile.TemporaryDirectory()


def pytest_load_initial_conftests() -> None:
    """Make eventlog support the toy in this run."""
    supported(made_in(Path(_folder.name))).__enter__()
    from tests.kit.databases import CLIENTS, PLACES

    PLACES["toy"], CLIENTS["toy"] = PLACES["postgresql"], CLIENTS["postgresql"]
