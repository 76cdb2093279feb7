"""Checks the prose of the repository by CONTRIBUTING.md: `python -m tests.project.prose [PATH ...]`.

Prose is docstrings, comments, Markdown, and the texts that eventlog prints. The check has a list of words
with their plain replacement. It also checks how a docstring starts, and the length of sentences and lines.
A function or class that another room imports must have a docstring. It prints one line for each place.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

ROOT = Path(__file__).parents[2]
MOST_WORDS: Final = 30  # of a sentence
LONGEST: Final = 110  # characters of a line of Markdown
DENIED: Final = {
    "tell": "return, report, log",
    "say": "return, report, contain",
    "speak": "return, report",
    "stand": "is, are",
    "behind": "after",
    "beside": "next to, compared with",
    "nobody": "no one, or name the role",
    "whoever": "name the role",
    "lest": "so that … not",
    "but for": "except",
    "of which": "whose, or two sentences",
    "of whom": "whose, or two sentences",
    "likewise": "the thing itself once more",
}
_FORMS = {
    "tell": "tell|tells|told|telling",
    "say": "say|says|said|saying",
    "speak": "speak|speaks|spoke|spoken|speaking",
    "stand": "stand|stands|stood|standing",
}
_DENIED = {word: re.compile(rf"\b(?:{_FORMS.get(word, word)})\b", re.IGNORECASE) for word in DENIED}
_ARTICLES: Final = ("A", "An", "The", "One", "All", "Each", "Every", "Both", "No")
_REPEATING = re.compile(r"(?:(?:Return|Yield|Do) t|T)he same\b")
_CODE = re.compile(r"``.*?``|`[^`]*`|https?://\S+|\"[^\"]*\"|'[^']*'|\[([^\]]*)\]\([^)]*\)")
_NO_PROSE = re.compile(r"\s*(>>>|\.\.\.|\S+ {2,}\S|\s{2,}|.* ::= |\[|\w+ = )")  # doctests, tables, grammars
_NOTICE = re.compile(r"# (noqa|type:|ruff|pragma|fmt)|#!")  # for tools
_PACKAGES: Final = ("eventlog/", "spark/")  # whose texts users see
_FEWEST_WORDS: Final = 4  # of a text that is a message
_STATEMENT = re.compile(  # of a database, of PL/SQL or of a logging system
    r"\s*(CODE\.|\w+Logger|select\b|insert into\b|delete from\b|merge into\b|with recursive\b"
    r"|update \S+ set\b"
    r"|create (or replace|table|index|view|function|procedure|trigger|package|user|type)\b)",
    re.IGNORECASE,
)
_NO_FUNCTION = re.compile(r"property|setter|fixture|contextmanager|command|group")  # decorators
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


class Prose(NamedTuple):
    """A piece of prose and the line at which it begins."""

    line: int
    text: str
    opens: bool = False  # it is a docstring of a class or function
    verb: bool = False  # it must start with a verb, because a function returns something


class Fault(NamedTuple):
    """A place of the repository that breaks the rule."""

    path: str
    line: int
    reason: str


def faults(path: Path) -> Iterator[Fault]:
    """Return what breaks the rule in a file."""
    name = path.relative_to(ROOT).as_posix()
    text = path.read_text("utf-8")
    pieces = list(markdown(text) if path.suffix == ".md" else python(text))
    if path.suffix == ".py" and name.startswith(_PACKAGES):
        pieces += messages(text)
    for piece in pieces:
        for reason in reasons(piece):
            yield Fault(name, piece.line, reason)
    if path.suffix == ".md":
        for number, line in enumerate(_without_code(text).splitlines(), 1):
            if len(line) > LONGEST and line[:1] not in "|<" and "](" not in line:
                yield Fault(name, number, f"a line of {len(line)} characters")


def reasons(piece: Prose) -> Iterator[str]:
    """Return what is wrong with a piece of prose."""
    if piece.opens and (reason := opening(piece.text, piece.verb)):
        yield reason
    plain = _CODE.sub(lambda code: code[1] or "CODE", piece.text)
    for word, pattern in _DENIED.items():
        if match := pattern.search(plain):
            yield f"{match[0]!r}: write {DENIED[word]}"
    for paragraph in re.split(r"\n\s*\n", plain):
        for sentence in _SENTENCE.split(" ".join(paragraph.split())):
            words = len(sentence.split())
            if words > MOST_WORDS:
                yield f"a sentence of {words} words: {sentence[:60]}…"


def opening(text: str, verb: bool = False) -> str:
    """Return what is wrong with the first words of a docstring."""
    if match := _REPEATING.match(text):
        return f"it starts with {match[0]!r}: write what it is, because a reader may see it alone"
    first = re.match(r"[`\"']?([\w'-]+)", text)
    if first is None or first[1] in verbs() or (first[1] in _ARTICLES and not verb) or text[0] in "`\"'{<":
        return ""
    return f"it starts with {first[1]!r}: start with a verb or an article (verbs: tests/project/verbs.txt)"


def verbs() -> frozenset[str]:
    """Return the verbs with which a docstring may start."""
    return frozenset((Path(__file__).with_name("verbs.txt")).read_text("utf-8").split())


def python(text: str) -> Iterator[Prose]:
    """Return the docstrings and comments of a module."""
    for node in ast.walk(ast.parse(text)):
        if (doc := _docstring(node)) is not None:
            words = _without_examples(inspect.cleandoc(str(doc.value)))
            yield Prose(doc.lineno, words, not isinstance(node, ast.Module), _returns(node))
    yield from _comments(text)


def _returns(node: ast.AST) -> bool:
    """Return whether a node is a function that returns something: no test, property or context manager."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.returns is None:
        return False
    used_as_value = any(_NO_FUNCTION.search(ast.unparse(decorator)) for decorator in node.decorator_list)
    return not used_as_value and ast.unparse(node.returns) not in ("None", "NoReturn")


def messages(text: str) -> Iterator[Prose]:
    """Return the texts of a module that people may see: strings of four words or more, but no statements."""
    tree = ast.parse(text)
    skipped_ids = {
        id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
    }
    skipped_ids |= {id(_docstring(node)) for node in ast.walk(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "CODE" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped_ids:
            text = node.value
        else:
            continue
        if len(text.split()) >= _FEWEST_WORDS and not _STATEMENT.match(text):
            yield Prose(node.lineno, text)


def _docstring(node: ast.AST) -> ast.Constant | None:
    """Return the docstring of a module, class or function, but not one that is an error message."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    first = node.body[0] if node.body else None
    if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Constant):
        return None
    doc = first.value.value
    if not isinstance(doc, str):
        return None
    if isinstance(node, ast.ClassDef) and (not doc[:1].isupper() or "{0}" in doc):
        return None
    return first.value


def _without_examples(doc: str) -> str:
    """Return a docstring without its doctests and its tables, whose lines are indented or aligned."""
    lines = (line for line in doc.splitlines() if not _NO_PROSE.match(line))
    return "\n".join(lines)


def _comments(text: str) -> Iterator[Prose]:
    """Return comments; those of following lines are one."""
    comment_lines: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not re.match(
            r"# (noqa|type:|ruff|pragma|fmt)|#!", token.string
        ):
            own_line = not token.line[: token.start[1]].strip()
            if comment_lines and not (own_line and token.start[0] == comment_lines[-1][0] + 1):
                yield _joined(comment_lines)
                comment_lines = []
            comment_lines.append((token.start[0], token.string.lstrip("# -")))
    if comment_lines:
        yield _joined(comment_lines)


def _joined(comment_lines: list[tuple[int, str]]) -> Prose:
    return Prose(comment_lines[0][0], " ".join(text for _, text in comment_lines))


def markdown(text: str) -> Iterator[Prose]:
    """Return the paragraphs, list items and cells of a page, without its code."""
    text = _without_code(text)
    start, lines = 1, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        new = not line.strip() or re.match(r"\s*([-*|#>]|\d+\.)\s", line)
        if new and lines:
            yield from _cells(start, " ".join(lines))
            lines = []
        if line.strip():
            start = number if not lines else start
            lines.append(line.strip())


def _without_code(text: str) -> str:
    """Return a page with empty lines for its blocks of code."""
    return re.sub(r"(?ms)^ *(```|~~~).*?^ *\1", lambda code: "\n" * code[0].count("\n"), text)


def _cells(line: int, text: str) -> Iterator[Prose]:
    for cell in text.strip("|").split(" | ") if text.startswith("|") else (text,):
        yield Prose(line, cell)


def undocumented(modules: Mapping[str, ast.Module]) -> Iterator[tuple[str, int, str]]:
    """Return the functions and classes without a docstring that another room imports.

    A place is its module, its line and its name. A room is a package of eventlog, or Spark's.
    """
    imported = {
        (node.module, alias.name)
        for module, tree in modules.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and _room(node.module) != _room(module)
        for alias in node.names
    }
    for module, tree in modules.items():
        named = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef))
        for node in named:
            if (module, node.name) in imported and ast.get_docstring(node) is None:
                yield module, node.lineno, node.name


def _room(module: str) -> str:
    return ".".join(module.split(".")[:2]) if module.startswith("eventlog.") else module.partition(".")[0]


def _faults_of_rooms(paths: Iterable[Path]) -> Iterator[Fault]:
    sources = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removeprefix("spark."): path
        for path in files(_PACKAGES)
        if path.suffix == ".py"
    }
    sources = {module.removesuffix(".__init__"): path for module, path in sources.items()}
    trees = {module: ast.parse(path.read_text("utf-8")) for module, path in sources.items()}
    chosen_paths = set(paths)
    for module, line, name in undocumented(trees):
        if sources[module] in chosen_paths:
            reason = f"{name} has no docstring, and another room imports it"
            yield Fault(sources[module].relative_to(ROOT).as_posix(), line, reason)


def files(names: Iterable[str]) -> list[Path]:
    """Return the Python and Markdown files of the repository under some paths, but no pages of help texts."""
    listed = subprocess.run(
        ["git", "ls-files", "--", *(names or ["."])], cwd=ROOT, check=True, capture_output=True, text=True
    )
    help_texts = "docs/commands/"
    named = (name for name in listed.stdout.split() if not name.startswith(help_texts))
    return [ROOT / name for name in named if name.endswith((".py", ".md"))]


def main() -> None:
    """Print all faults, and exit with 1 if there are any."""
    paths = files(sys.argv[1:])
    all_faults = [*(fault for path in paths for fault in faults(path)), *_faults_of_rooms(paths)]
    for path, line, reason in all_faults:
        print(f"{path}:{line}: {reason}")
    if all_faults:
        print(f"{len(all_faults)} places")
        sys.exit(1)


if __name__ == "__main__":
    main()
