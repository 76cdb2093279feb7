"""The pages about the house name every room of it, and no other; each file and each task has a place."""

from __future__ import annotations

import re
import runpy
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]
SPARK = ROOT / "spark" / "eventlog_spark"
# a cell by its number, or several; the first of a row is often its only one
BY_PLACE = re.compile(r"\b(?:(?:entry|cells)\[-?[0-9]|(?:row|record|item)\[(?:-?[1-9]|[0-9]*:-?[0-9]*\]))")


def test_sparks_readme_names_each_module_under_its_wing() -> None:
    named: defaultdict[str, list[str]] = defaultdict(list)
    wing = ""
    for line in (ROOT / "spark" / "README.md").read_text("utf-8").splitlines():
        if found := re.match(r"\| \*{0,2}((?:`[a-z_/]+` ?)+)\*{0,2} \|", line):
            names = re.findall(r"`([a-z_/]+)`", found[1])
            if names[0].endswith("/"):
                wing = names.pop(0)
            named[wing] += names
    there: defaultdict[str, list[str]] = defaultdict(list)
    for path in SPARK.rglob("*.py"):
        inner = path.relative_to(SPARK)
        if inner.stem != "__init__":
            there["".join(f"{part}/" for part in inner.parts[:-1])].append(inner.stem)
    assert {wing: sorted(names) for wing, names in named.items()} == {
        wing: sorted(names) for wing, names in there.items()
    }


def test_the_architecture_names_each_room() -> None:
    page = (ROOT / "docs" / "contribute" / "architecture.md").read_text("utf-8")
    named = set(re.findall(r"[a-z_]+/", page)) | set(re.findall(r"`([a-z_]+)`", page))
    rooms = {f"{path.parent.name}/" for path in (ROOT / "eventlog").glob("*/__init__.py")}
    rooms |= {path.stem for path in (ROOT / "eventlog").glob("[a-z]*.py")}
    wings = {f"{path.parent.name}/" for path in SPARK.glob("*/__init__.py")}
    assert (rooms | wings) - named == set()


def test_each_test_that_ci_names_is_there() -> None:
    scripts = [ROOT / "Makefile", *(path for path in (ROOT / ".ci").iterdir() if path.is_file())]
    text = "".join(path.read_text("utf-8") for path in scripts)
    named = set(re.findall(r"\btests/[a-z_0-9/]+(?:\.py)?", text))
    assert named
    assert {name for name in named if not (ROOT / name).exists()} == set()


FOLDERS = {".ci", ".githooks", "bench", "docker", "docs", "eventlog", "examples", "spark", "tests"}
FILES = {
    ".gitignore",
    ".pre-commit-config.yaml",
    "LICENSE",
    "Makefile",
    "NOTICE",
    "constraints.txt",
    "mkdocs.yml",
}
# What people search for, and the page with a heading that has these words.
SEARCHED = {
    "skip a row": "run/run-book",
    "send it again": "run/run-book",
    "loopback": "start/questions",
    "three in the morning": "run/night",
    "the log is locked": "run/night",
    "disk of the folder is full": "run/night",
    "will not start": "run/night",
    "the backlog grows": "run/run-book",
    "failover": "run/run-book",
    "upgrade": "run/operations",
    "what became of a row": "run/status-page",
    "sizes on disk": "run/operations",
    "status page": "run/status-page",
    "sinks": "publish/sinks",
    "without triggers": "publish/without-triggers",
    "what may leave": "log/what-may-leave",
    "nothing is published": "run/run-book",
}
LONGEST_PAGE = 1800  # words of a page that one question of a user leads to
PAGES = {"CHANGELOG.md", "CONTRIBUTING.md", "DESCRIPTION.md", "README.md", "SECURITY.md"}
LARGEST = 400_000  # bytes


@pytest.mark.long
def test_nothing_stands_there_that_has_no_place() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone")
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    names = listed.stdout.rstrip("\0").split("\0")
    assert {name.partition("/")[0] for name in names} == FOLDERS | FILES | PAGES | {"pyproject.toml"}
    sizes = {name: (ROOT / name).stat().st_size for name in names if (ROOT / name).exists()}
    assert {name: size for name, size in sizes.items() if size > LARGEST} == {}


def test_the_first_screen_names_who_and_why_and_when_not_before_an_example() -> None:
    first_screen, _, rest = (ROOT / "README.md").read_text("utf-8").partition("```console")
    asked = re.findall(r"\*\*([A-Z][^*]+)[.?]\*\*", first_screen)
    assert asked == ["For whom", "What for", "Why not that driver", "Why not Debezium", "When not"]
    assert "fold" not in first_screen.partition("**For whom")[0]
    assert rest.partition("\n## ")[2].startswith("Try it")
    assert len(first_screen.splitlines()) <= 40


def test_the_first_page_begins_in_words_of_everybody_and_with_the_rows_of_the_readme() -> None:
    page, readme = ((ROOT / name).read_text("utf-8") for name in ("docs/index.md", "README.md"))
    first_words, _, session = page.partition("```console\n")
    assert len(first_words.splitlines()) <= 25
    assert re.findall(r"(?i)\b(?:driver|publisher|sink|trigger|capture|XDS|NetIQ|Qlik)", first_words) == []
    assert session.partition("```")[0] == readme.partition("```console\n")[2].partition("```")[0]


def test_each_task_of_the_first_page_is_in_the_navigation() -> None:
    page = (ROOT / "docs" / "index.md").read_text("utf-8")
    lines = page.partition("| I want to … | |\n|---|---|\n")[2].partition("\n\n")[0].splitlines()
    tasks = runpy.run_path(str(ROOT / "docs" / ".hooks.py"))["tasks"](page)
    assert 18 <= len(tasks) == len(lines)
    for line, (title, address) in zip(lines, tasks, strict=True):
        assert line.lower().startswith(f"| {title.lower()} | [")
        file = address.replace("/#", ".md#") if "#" in address else f"{address.removesuffix('/')}.md"
        assert f"]({file})" in line


def navigation() -> dict[str, list[str]]:
    """Return the pages of the site by the titles of their sections."""
    text = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    sections = re.split(r"^  - (.*):.*\n", text, flags=re.MULTILINE)[1:]
    return {
        title: re.findall(r"([\w/-]+\.md)$", pages, re.MULTILINE)
        for title, pages in zip(sections[::2], sections[1::2], strict=True)
    }


def test_a_page_of_a_user_answers_one_question() -> None:
    """Count the words of a page without the part that is made from the program."""
    pages = navigation()
    assert {"contribute/benchmarks.md", "databases/runs.md", "decisions/README.md"} <= {
        *pages.pop("For contributors")
    }
    words = {}
    for page in (page for listed in pages.values() for page in listed if not page.startswith("commands/")):
        text = (ROOT / "docs" / page).read_text("utf-8")
        by_hand = re.sub(r"<!-- made by .*?<!-- until here -->", "", text, flags=re.DOTALL)
        words[page] = len(by_hand.split())
    assert len(words) > 50
    assert {page: count for page, count in words.items() if count > LONGEST_PAGE} == {}


def test_each_page_that_a_message_or_a_file_names_is_there() -> None:
    """The links of the pages themselves are checked by `mkdocs build --strict`."""
    files = [ROOT / name for name in (*PAGES, "Makefile", "pyproject.toml")]
    for folder in ("eventlog", "spark", "examples", "docker", "bench", "tests", ".ci"):
        files += [path for path in (ROOT / folder).rglob("*") if path.is_file() and path.suffix != ".pyc"]
    named: defaultdict[str, set[str]] = defaultdict(set)
    for path in files:
        for page in re.findall(r"\bdocs/[\w/-]+\.md\b", path.read_text("utf-8", errors="replace")):
            named[page].add(path.relative_to(ROOT).as_posix())
    assert len(named) > 20
    assert {page: names for page, names in named.items() if not (ROOT / page).exists()} == {}


def test_each_alert_leads_to_a_heading_of_a_page() -> None:
    rules = (ROOT / "examples" / "monitoring" / "alerts.yaml").read_text("utf-8")
    leads = re.findall(r'runbook: "(\S+\.md)(?:: (.*))?"', rules)
    assert len(leads) == rules.count("- alert: ") > 5
    for page, heading in leads:
        headings = re.findall(r"^#+ (.*)$", (ROOT / page).read_text("utf-8"), re.MULTILINE)
        assert heading.lower() in ("", *(title.lower() for title in headings)), (page, heading)


def test_each_page_is_led_to_by_another_one() -> None:
    docs = ROOT / "docs"
    pages = {path.resolve(): path.read_text("utf-8") for path in docs.rglob("*.md")}
    led_to = {docs / "index.md"}
    for path, text in pages.items():
        led_to |= {(path.parent / link).resolve() for link in re.findall(r"\]\(([^)#:\s]+\.md)", text)} - {
            path
        }
    assert [path.relative_to(docs).as_posix() for path in sorted(pages.keys() - led_to)] == []


@pytest.mark.parametrize("searched", SEARCHED)
def test_what_people_search_for_is_a_heading(searched: str) -> None:
    text = (ROOT / "docs" / f"{SEARCHED[searched]}.md").read_text("utf-8")
    assert [h for h in re.findall(r"^#+ (.*)$", text, re.MULTILINE) if searched in h.lower()], searched


def test_no_row_is_read_by_the_numbers_of_its_cells() -> None:
    """An attribute, names of all its cells, or a place of `core/entry` show which cell is meant."""
    read_by_place = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for room in sorted((ROOT / "eventlog").iterdir())
        if room.is_dir() and room.name not in ("cli", "web")
        for path in sorted(room.rglob("*.py"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if BY_PLACE.search(line)
    ]
    assert read_by_place == []
