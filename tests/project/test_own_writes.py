"""What a cycle or a transfer has done so far is a value, or is written by the methods of its class alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields, is_dataclass
from inspect import getsource
from pathlib import Path
from typing import Any

import pytest

from eventlog.publisher.reading import FoldedPickUp
from eventlog.publisher.settlement import Settlement
from eventlog.publisher.tally import AnswerTally, CycleResult
from eventlog.transfer.report import Report
from eventlog.transfer.targets.tables.outcomes import StepsResult, Tally

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for folder in ("eventlog", "spark") for path in (ROOT / folder).rglob("*.py"))
WRITERS = (AnswerTally, Settlement, Report, StepsResult)
MUTABLE = re.compile(r"\b(list|dict|set|Counter|deque|defaultdict|bytearray)\b")
MUTATORS = {
    name
    for kind, reader in ((list, tuple), (set, frozenset), (dict, frozenset))
    for name in set(dir(kind)) - set(dir(reader))
    if not name.startswith("_")
} - {"copy", "get", "items", "keys", "values"}


@pytest.mark.parametrize("value", [CycleResult(), Tally(), FoldedPickUp(None)])  # type: ignore[arg-type]
def test_a_result_is_a_value(value: Any) -> None:
    assert is_dataclass(value)
    for field in fields(value):
        assert not MUTABLE.search(str(field.type)), field.name
        with pytest.raises(FrozenInstanceError):
            setattr(value, field.name, None)


def test_no_attribute_of_a_running_result_is_written_outside_its_class() -> None:
    names = {name for kind in WRITERS for name in attributes(ast.parse(getsource(kind)).body[0])}
    assert {"blocked", "bad_files", "tally", "_letters"} <= names
    mention = re.compile(rf"\w\.({'|'.join(names)})\b")
    texts = {path: path.read_text() for path in SOURCES}
    assert [
        f"{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)}"
        for path, text in texts.items()
        if mention.search(text)
        for node in foreign_writes(ast.parse(text), names)
    ] == []


def attributes(node: ast.AST) -> Iterator[str]:
    """Yield the attributes that a class writes itself, and its fields."""
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and is_self(each.value):
            yield each.attr
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            yield each.target.id


def foreign_writes(tree: ast.AST, names: set[str]) -> Iterator[Any]:
    """Yield the expressions that write an attribute of these names of another object, unless the object is a
    parameter that is annotated with another class."""
    writers = {kind.__name__ for kind in WRITERS}
    nodes: list[tuple[ast.AST, frozenset[str]]] = [(tree, frozenset())]
    while nodes:
        node, foreign_parameters = nodes.pop()
        if isinstance(node, ast.FunctionDef):
            parameters = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            annotations = {each.arg: ast.unparse(each.annotation) for each in parameters if each.annotation}
            foreign_parameters = frozenset(
                name for name, words in annotations.items() if writers.isdisjoint(re.findall(r"\w+", words))
            )
        if (written := written_by(node)) is not None and written.attr in names:
            owner = written.value
            if not is_self(owner) and not (isinstance(owner, ast.Name) and owner.id in foreign_parameters):
                yield node
        nodes += ((child, foreign_parameters) for child in ast.iter_child_nodes(node))


def written_by(node: ast.AST) -> ast.Attribute | None:
    """Return the attribute that an expression writes, or whose items it writes."""
    target: ast.AST | None = None
    if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
        target = node if isinstance(node, ast.Attribute) else node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
        target = node.func.value
    return target if isinstance(target, ast.Attribute) else None


def is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
