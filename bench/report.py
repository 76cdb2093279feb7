"""All benchmarks, several times in turn, as one report in Markdown.

    eventlog bench report [--quick | --scale] [--runs 5] [--only NAME] [-o FOLDER] [--page FILE]
    eventlog bench report --beside FOLDER …

A figure of the report is the median of the runs, and after each line is the spread of its first figure, as
a share of its median. Ratios are those of one run. What cannot run here is listed with the reason.
`--quick` has small sizes, `--scale` the largest, once each. `--page` writes the report between two lines
of a page that has them, such as docs/contribute/benchmarks.md.

`--beside` names a checkout of another version, with an environment of its own in `.venv`. Both versions
take turns, and each of them is first in every other round. A line that both print is in the report twice,
with the ratio of the first figure that differs, and the spread of this ratio between rounds.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from bench.latency import HERE, Version
from eventlog.core.errors import Misuse

SIZES: dict[
    str, Mapping[str, str]
] = {  # the arguments by the form of the report; a name begins with its benchmark
    "formats": {"quick": "", "full": ""},
    "convert": {"quick": "100000 --changes 20000", "full": "1000000", "scale": "10000000"},
    "publisher": {"quick": "30000", "full": "100000", "scale": "10000000"},
    "latency": {"quick": "200", "full": "200"},
    "pressure": {"quick": "--seconds 6 --mode update", "full": "--seconds 20", "scale": "--minutes 10"},
    "pressure of single rows": {
        "quick": "--only open --rate 400 --mode update --seconds 20",
        "full": "--only open --rate 400 --mode update --seconds 60",
        "scale": "--only open --rate 400 --minutes 60",
    },
    "apply": {"quick": "50000", "full": "100000", "scale": "2000000"},
    "compare": {"quick": "50000", "full": "100000", "scale": "10000000"},
    "triggers": {"quick": "20000", "full": "20000", "scale": "200000"},
    "peers": {"quick": "10000 --rounds 1", "full": "20000 --rounds 1"},
    "spark": {"quick": "100000 1 even", "full": "1000000 1", "scale": "100000000 1 even"},
}
BY_COMMANDS: dict[str, Sequence[str]] = {  # drive another version's publisher, which follows these words
    "latency": (),
    "pressure": ("--of",),
    "pressure of single rows": ("--of",),
}
PACKAGES = ("lxml", "numpy", "psycopg", "pyarrow", "pyspark", "sqlalchemy")
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")


MARKS = ("<!-- make bench writes from here -->", "<!-- to here -->")


class Line(NamedTuple):
    """A line of a benchmark, with the medians of its figures."""

    text: str
    spread: float | None  # of the first figure that differs between runs, as a share of its median
    first: float | None  # that figure's median


class Section(NamedTuple):
    """The output of a benchmark."""

    command: str
    runs: int
    seconds: float  # of one run
    lines: Sequence[Line]
    skipped: str | None  # why there is nothing


def medians(runs: Sequence[str]) -> list[Line]:
    """Return the lines that all runs printed alike except for their figures; each figure is the median of the
    runs.
    """
    columns = zip_longest(*(run.splitlines() for run in runs), fillvalue="")
    return [_median(lines) for lines in columns if len(set(map(_words, lines))) == 1]


def pair_with_theirs(ours: Sequence[str], theirs: Sequence[str]) -> list[Line]:
    """Return our lines, each with the line of theirs that has the same words, then their other lines."""
    mine, yours = _by_words(ours), _by_words(theirs)
    own_lines = [
        line
        for key, lines in mine.items()
        for line in (_both(lines, yours[key]) if key in yours else [_of("only ours", _median(lines))])
    ]
    return own_lines + [_of("only theirs", _median(lines)) for key, lines in yours.items() if key not in mine]


def _by_words(runs: Sequence[str]) -> dict[tuple[str, int], list[str]]:
    """Return the lines that all runs printed, by their words and their place among lines of these words."""
    lines_by_place: dict[tuple[str, int], list[str]] = {}
    for run in runs:
        counts: Counter[str] = Counter()
        for line in filter(None, run.splitlines()):
            lines_by_place.setdefault((_words(line), counts[_words(line)]), []).append(line)
            counts[_words(line)] += 1
    return {key: lines for key, lines in lines_by_place.items() if len(lines) == len(runs)}


def _both(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[Line]:
    """Yield both median lines, ours with the ratio of the first figure that differs in any run."""
    columns = zip(*map(_figures, [*ours, *theirs]), strict=True)
    drawn = next((numbers for numbers in columns if len(set(numbers)) > 1), None)
    if drawn is None:
        yield _of("both", Line(ours[0], None, None))
        return
    here, there = drawn[: len(ours)], drawn[len(ours) :]
    text, first, base = _median(ours).text, statistics.median(here), statistics.median(there)
    ratio = f"   {first / base:.2f} x" if base else ""
    yield _of("ours", Line(f"{text}{ratio}", _spread(here, there), first))
    yield _of("theirs", Line(_median(theirs).text, None, None))


def _spread(here: Sequence[float], there: Sequence[float]) -> float | None:
    """Return the spread of the ratios of the rounds, as a share of their median."""
    each = [mine / yours for mine, yours in zip(here, there, strict=True) if yours]
    middle = statistics.median(each) if len(each) > 1 else 0
    return (max(each) - min(each)) / middle if middle else None


def _of(whose: str, line: Line) -> Line:
    return Line(f"{whose:<11}  {line.text}", line.spread, line.first)


def _words(line: str) -> str:
    """Return a line without its figures."""
    return " ".join(_NUMBER.sub("#", line).split())


def _figures(line: str) -> list[float]:
    return [float(text.replace(",", "")) for text in _NUMBER.findall(line)]


def _median(lines: Sequence[str]) -> Line:
    figures = list(zip(_NUMBER.findall(lines[0]), zip(*map(_figures, lines), strict=True), strict=True))
    differing = [numbers for _, numbers in figures if len(set(numbers)) > 1]
    if not differing:
        return Line(lines[0], None, None)
    figures_shown = [_like(text, statistics.median(ns)) if ns in differing else text for text, ns in figures]
    words = iter(figures_shown)
    first = statistics.median(differing[0])
    spread = (max(differing[0]) - min(differing[0])) / first if first else None
    return Line(_NUMBER.sub(lambda match: next(words).rjust(len(match[0])), lines[0]), spread, first)


def _like(text: str, number: float) -> str:
    """Return a number written as another one is."""
    digits = len(text.partition(".")[2])
    return f"{number:,.{digits}f}" if "," in text or number >= 10_000 else f"{number:.{digits}f}"


def markdown(sections: Sequence[Section], about: Mapping[str, str]) -> str:
    """Return the report as a page of Markdown."""
    page = ["# What was measured", ""]
    page += [f"- {name}: {value}" for name, value in about.items()]
    for section in sections:
        page += ["", f"## {section.command}", ""]
        if section.skipped is not None:
            page.append(f"SKIPPED: {section.skipped}")
            continue
        runs = "one run" if section.runs == 1 else f"medians of {section.runs} runs"
        page += [f"RUN: {runs}, {section.seconds:.0f} s each", "", "```text", *_block(section.lines), "```"]
    return "\n".join(page) + "\n"


def _block(lines: Sequence[Line]) -> Iterator[str]:
    wide = max((len(line.text) for line in lines if line.spread is not None), default=0)
    for line in lines:
        yield line.text if line.spread is None else f"{line.text:<{wide}}   within {line.spread:.0%}"


def within(page: str, report: str) -> str:
    """Return a page of Markdown with the report between its marks, a level deeper and without a title of its
    own.
    """
    before, begun, after_mark = page.partition(MARKS[0])
    _, ended, after = after_mark.partition(MARKS[1])
    if not begun or not ended:
        raise Misuse(f"the page has no lines {' and '.join(MARKS)}")
    body = re.sub(r"^#(?=#)", "##", report.partition("\n\n")[2], flags=re.MULTILINE)
    return f"{before}{begun}\n\n{body}\n{ended}{after}"


def measured(
    form: str, runs: int, only: Sequence[str], trees: Sequence[Path | None]
) -> Iterator[list[Section]]:
    """Yield, after each run of all benchmarks in each of the trees, their output so far."""
    plan = {name: sizes[form] for name, sizes in SIZES.items() if form in sizes and name in (only or SIZES)}
    heard = {name: [Heard(tree, [], []) for tree in trees] for name in plan}
    for number in range(runs):
        for name, size in plan.items():
            print(f"run {number + 1} of {runs}: {name} {size}", file=sys.stderr, flush=True)
            for tree in heard[name][:: -1 if number % 2 else 1]:
                tree.hear(name, size)
        yield [_section(name, size, heard[name]) for name, size in plan.items()]


@dataclass(slots=True)
class Heard:
    """The outputs of a benchmark in one tree, run after run, until it fails."""

    tree: Path | None  # None: this one
    outputs: list[str]
    seconds: list[float]
    fault: str | None = None

    def hear(self, name: str, size: str) -> None:
        """Run the benchmark once more."""
        if self.fault is not None:
            return
        begun = time.monotonic()
        version = Version(self.tree)
        command = ["bench", name.split()[0], *size.split()]
        if self.tree is not None and name in BY_COMMANDS:
            version, command = HERE, [*command, *BY_COMMANDS[name], str(self.tree)]
        process = version.start(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        output, fault = (text.decode() for text in process.communicate())
        if process.returncode:
            self.fault = (fault.strip().splitlines() or ["it said nothing"])[-1]
        self.outputs.append(output)
        self.seconds.append(time.monotonic() - begun)
        print(f"  {self.seconds[-1]:.0f} s", file=sys.stderr, flush=True)


def _section(name: str, size: str, heard: Sequence[Heard]) -> Section:
    ours, *other_trees = heard
    took = statistics.median(ours.seconds)
    command = f"eventlog bench {name.split()[0]} {size}".rstrip()
    return Section(
        command, len(ours.outputs), took, [] if ours.fault else _lines(ours, other_trees), ours.fault
    )


def _lines(ours: Heard, other_trees: Sequence[Heard]) -> list[Line]:
    for theirs in other_trees:
        if theirs.fault is None:
            return pair_with_theirs(ours.outputs, theirs.outputs)
        return [Line(f"theirs: SKIPPED: {theirs.fault}", None, None), *medians(ours.outputs)]
    return medians(ours.outputs)


def this_machine() -> dict[str, str]:
    """Return a description of this machine."""
    cpuinfo = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"model name\s*: (.*)", cpuinfo)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores ({model[1] if model else platform.machine()}), {memory:.0f} GiB",
        "load when it began": f"{os.getloadavg()[0]:.1f}",
        "Python": platform.python_version(),
        "packages": ", ".join(f"{name} {version(name)}" for name in PACKAGES),
    }


def _commit(folder: Path) -> str:
    """Return the commit of a checkout, or raise Misuse if it has no environment."""
    if not (folder / ".venv" / "bin" / "python").exists():
        raise Misuse(f"{folder} has no .venv: run `make .venv/.test` there")
    done = subprocess.run(
        ["git", "-C", folder, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or folder.name


def main() -> None:
    """Measure, print the Markdown, and write it after each run where a folder is given."""
    parser = argparse.ArgumentParser(
        prog="eventlog bench report", description="All benchmarks as one report."
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--quick", action="store_const", const="quick", dest="form", help="small sizes")
    form.add_argument(
        "--scale", action="store_const", const="scale", dest="form", help="the largest sizes, once"
    )
    parser.add_argument("--runs", type=int, default=5, help="of each benchmark (5)")
    parser.add_argument("--only", choices=SIZES, action="append", default=[], help="only this benchmark")
    parser.add_argument("--beside", type=Path, help="a checkout of another version, with its .venv")
    parser.add_argument("-o", "--output", type=Path, help="a folder for report.md")
    parser.add_argument("--page", type=Path, help="a page of Markdown that has the report between two lines")
    arguments = parser.parse_args()
    if arguments.page is not None:
        within(arguments.page.read_text(), "")  # reported before anything is measured
    chosen = arguments.form or "full"
    about = this_machine() | {"form": chosen}
    trees: list[Path | None] = [None]
    if arguments.beside is not None:
        trees.append(arguments.beside.resolve())
        about["beside"] = _commit(arguments.beside)
    sections: list[Section] = []
    for sections in measured(chosen, 1 if chosen == "scale" else arguments.runs, arguments.only, trees):
        if arguments.output is not None:  # also where the next run does not come to its end
            arguments.output.mkdir(parents=True, exist_ok=True)
            (arguments.output / "report.md").write_text(markdown(sections, about))
    print(markdown(sections, about))
    if arguments.page is not None:
        arguments.page.write_text(within(arguments.page.read_text(), markdown(sections, about)))


if __name__ == "__main__":
    main()
