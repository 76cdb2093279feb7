"""Which tests execute the code of each fault: the tests run once in a copy that has a probe at each fault.

A probe is a call before the statement of a fault. If the fault is outside of functions, each function of its
module begins with one. A fault in a file of SQL has none: any test that can reach the file may find it.
"""

from __future__ import annotations

import ast
import json
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.mutants import probe
from tests.mutants.faults import Checkout, Fault, file_of, function_of
from tests.project.changed import ROOT, tests_of

_CALL = '__import__("tests.mutants.probe", fromlist=["reached"]).reached({!r})'
_DURATION = re.compile(r"(\d+\.\d\d)s (?:setup|call|teardown) +(tests/.+)")
FIRST = 2  # parameters of a function that run before other functions are tried
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Reach:
    """The tests of a run with their seconds, and those that reached each fault."""

    def __init__(self, seconds: Mapping[str, float], tests: Mapping[str, Iterable[str]]) -> None:
        self._seconds = seconds
        self._tests = tests

    @classmethod
    def load(cls, text: str) -> Reach:
        """Read what `dump` returned."""
        return cls(**json.loads(text))

    def dump(self) -> str:
        """Return it as JSON."""
        return json.dumps({"seconds": self._seconds, "tests": {f: sorted(t) for f, t in self._tests.items()}})

    def candidates(self, fault: Fault) -> list[str]:
        """Return the tests that may find a fault: first parameters first, of these the cheap ones."""
        near = {*map(file_of, fault.finders), *tests_of([ROOT / fault.file])}
        tests = self._tests.get(fault.name) or [test for test in self._seconds if file_of(test) in near]
        places: Counter[str] = Counter()
        turns = {}
        for test in sorted(tests):
            turns[test] = (places[function_of(test)] >= FIRST, self._cost(test), file_of(test))
            places[function_of(test)] += 1
        return sorted(turns, key=turns.__getitem__)

    def _cost(self, test: str) -> int:
        """Return the order of magnitude of a test's time: tests of one order share fixtures of their file."""
        return round(self._seconds.get(test, 0) * 100).bit_length()


def measure(faults: Sequence[Fault], checkout: Checkout, tiers: str) -> Reach:
    """Run the tests of these tiers in a copy with probes."""
    plant_probes(faults, checkout)
    words = ["-q", "-p", "no:cacheprovider", "--durations=0", "--durations-min=0", "--tiers", tiers]
    words += ["-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder"]
    with tempfile.TemporaryDirectory(prefix="eventlog-reached-") as folder:
        done = checkout.ended("pytest", *words, **{probe.FOLDER: folder})
        records = [line for path in Path(folder).iterdir() for line in path.read_text("utf-8").splitlines()]
    return Reach(seconds_of(done.stdout), tests_by_fault(records))


def seconds_of(output: str) -> Mapping[str, float]:
    """Return the seconds of each test from what pytest printed."""
    seconds: dict[str, float] = defaultdict(float)
    for line in filter(None, map(_DURATION.fullmatch, output.splitlines())):
        seconds[line[2]] += float(line[1])
    return seconds


def tests_by_fault(records: Sequence[str]) -> Mapping[str, set[str]]:
    """Return the tests that reached each fault from what probes wrote."""
    tests: dict[str, set[str]] = defaultdict(set)
    for record in records:
        fault, _, test = record.partition("\t")
        tests[fault].add(test.rpartition(" ")[0])  # without the phase
    return tests


def plant_probes(faults: Sequence[Fault], checkout: Checkout) -> None:
    """Put a probe at each fault in Python."""
    by_file: dict[str, list[Fault]] = defaultdict(list)
    for fault in faults:
        by_file[fault.file].append(fault)
    for file, faults_of_file in by_file.items():
        if file.endswith(".py"):
            text = (checkout.folder / file).read_text("utf-8")
            checkout.write(file, with_probes(text, faults_of_file))


def with_probes(text: str, faults: Sequence[Fault]) -> str:
    """Return a module with a probe at each of its faults."""
    lines = text.splitlines(keepends=True)
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, Function)]
    statements = [list(_statements(function, lines)) for function in functions]
    probes: dict[int, list[str]] = defaultdict(list)  # by the line that they precede
    for fault in faults:
        space = len(fault.original) - len(fault.original.lstrip())
        line = text.count("\n", 0, text.index(fault.original) + space) + 1
        around = [s for inner in statements for s in inner if s.lineno <= line <= (s.end_lineno or 0)]
        innermost = sorted(around, key=lambda s: (s.end_lineno or 0) - s.lineno)[:1]
        for statement in innermost or [inner[0] for inner in statements if inner]:
            probes[statement.lineno].append(_CALL.format(fault.name))
    for number, calls in probes.items():
        line_of_code = lines[number - 1]
        indent = line_of_code[: len(line_of_code) - len(line_of_code.lstrip())]
        lines[number - 1] = "".join(f"{indent}{call}\n" for call in calls) + line_of_code
    return "".join(lines)


def _statements(function: Function, lines: Sequence[str]) -> Iterator[ast.stmt]:
    """Yield the statements in a function that another one may precede, except its docstring."""
    for node in ast.walk(function):
        if isinstance(node, ast.stmt) and node is not function and not getattr(node, "decorator_list", ()):
            line = lines[node.lineno - 1]
            begins = not line[: node.col_offset].strip() and not line.lstrip().startswith("elif")
            is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if begins and not is_text:
                yield node
