"""Corruptions as a law: each is named at its object, whatever made its event, and nothing else is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from eventlog.audit.on_record import read_log
from eventlog.core.entry import OBJECT
from eventlog.embedded import Server
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.schema import migrate
from tests.audit.receivers import PUT, broken_laws
from tests.kit.commands import Shell
from tests.kit.databases import EMBEDDED, Database, server_url, temporary_database

pytestmark = pytest.mark.quick

TABLES = (
    """create table field (id integer primary key, name varchar(64), age integer, active boolean, photo bytea,
    born date, secret varchar(64), boss integer references field)""",
    "create table whole (id integer primary key, name varchar(64), age integer, secret varchar(64))",
    "create table single (id integer primary key, name varchar(64), age integer)",
    "create table latest (id integer primary key, name varchar(64), age integer)",
    "create table large (id integer primary key, body text)",
    "create table whole_mail (id integer references whole, mail varchar(64))",
)
TRACKED = {
    "field": ("--insert", "1", "--update", "2"),
    "whole": ("--child", "whole_mail.mail"),
    "single": ("--insert", "7", "--update", "8"),
    "latest": ("--insert", "1", "--update", "3"),
    "large": (),
}
SETTINGS = '[tables.field]\nwithhold = ["secret"]\n[tables.whole]\nwithhold = ["secret"]\n'
PERSON = "'Jack', 41, true, decode('aaaa', 'hex'), '2000-02-29', 'hidden'"
CHANGES = {
    "insert": f"insert into field values (1, {PERSON}, null)",
    "refer": f"insert into field values (2, {PERSON}, 1)",
    "update": "update field set name = 'John', age = 42, active = null, secret = 'x' where id = 1",
    "delete": "delete from field where id = 2",
    "whole": "insert into whole values (1, 'Jack', 41, 'hidden')",
    "child": "insert into whole_mail values (1, 'jack@a'), (1, 'jack@b')",
    "single": "insert into single values (1, 'Jack', 41)",
    "one": "update single set age = 42 where id = 1",
    "latest": "insert into latest values (1, 'Jack', 41)",
    "large": "insert into large values (1, repeat('x', 900000))",
    "clear": "update latest set name = 'John', age = null where id = 1",
}
CUT = "insert into latest values (2, 'Jill', 43)"
REFUSED = "update field set name = E'\\x01' where id = 1"
MENDED = "update field set name = 'Joe' where id = 1"

Documents = dict[str, bytes]


class History:
    """A log of many kinds of rows, with the documents of each change, and what an audit reads of it."""

    def __init__(self, database: Database, shell: Shell, folder: Path, mode: str = "triggers") -> None:
        self._database, self._shell, self._folder = database, shell, folder
        self._url = database.url.render_as_string(hide_password=False)
        self.engine, self.log = database.engine(), Log(database.dialect)
        (folder / "eventlog.toml").write_text(SETTINGS)
        migrate.install(self.engine, self.log)
        self.change(*TABLES)
        self.kinds: Documents = {}
        self.is_compared = mode == "compare"
        publish = ["--mode", "compare", "--sync-tables", " ".join(TRACKED)] if mode == "compare" else []
        for table, words in TRACKED.items() if not publish else ():
            self.run("track", table, *words)
        for kind, change in CHANGES.items():
            self.change(change)
            self.kinds |= self.publish(kind, *publish)
        if not publish:
            self.change(CUT)
            self.kinds |= self.publish("cut", "--max-changes", "1")
            self.change(REFUSED)
            self.publish("refused")
            self.change(MENDED)
            self.run("redrive", "--all")
            self.kinds |= self.publish("redriven")
        with Store(self.engine, self.log).snapshot() as snapshot:
            self.recorded = read_log(snapshot)
            cells = snapshot.rows(self.recorded.ids.tolist())
            self.objects = {
                int(row[0] or 0): " ".join(map(str, row[OBJECT])).removeprefix("public.") for row in cells
            }

    def change(self, *statements: str) -> None:
        with self.engine.begin() as connection:
            for statement in statements:
                connection.execute(text(statement))

    def publish(self, kind: str, *words: str) -> Documents:
        """Return the documents of a change by its kind; further ones have a number, too."""
        folder = self._folder / "documents"
        before = set(folder.glob("*.xml"))
        self.run(
            "run", "--once", "--allow-loopback", "--sink", "files", "--files-folder", "documents", *words
        )
        new = sorted(set(folder.glob("*.xml")) - before)
        return {f"{kind} {n}" if n else kind: path.read_bytes() for n, path in enumerate(new)}

    def run(self, *words: str) -> None:
        done = self._shell.run(*words, "--url", self._url)
        assert done.code == 0, done.stderr

    def audit(
        self,
        documents: Iterable[bytes],
        receiver: str = "folder",
        levels: dict[int, str] | None = None,  # of documents that were no success, by their numbers
    ) -> set[tuple[str, str]]:
        """Return the laws that these documents break at a kind of receiver, each with its object."""
        return broken_laws(receiver, self._folder, documents, levels or {}, self.recorded, self.objects)


@pytest.fixture(scope="module", params=["triggers", "compare"])
def history(
    request: pytest.FixtureRequest, embedded: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[History]:
    folder = tmp_path_factory.mktemp("audit")
    with (
        server_url(EMBEDDED, embedded) as url,
        temporary_database(EMBEDDED, url) as database,
        closing(Shell(folder)) as shell,
    ):
        log_history = History(database, shell, folder, request.param)
        yield log_history
        log_history.engine.dispose()


def value(name: str) -> str:
    """Return a pattern of the added value of an attribute."""
    removal = "(?:<remove-all-values/>|<remove-value>.*?</remove-value>)?"
    return f'(attr-name="{name}">{removal}(?:<add-value>)?<value [^>]*>)[^<]*'


def attribute(name: str) -> str:
    """Return a pattern of an attribute with all that it has."""
    return f'<(add|modify)-attr attr-name="{name}">.*?</(add|modify)-attr>'


LEAK = '<add-attr attr-name="secret"><value type="string">hidden</value></add-attr>'
LEAKED = '<modify-attr attr-name="secret"><remove-all-values/></modify-attr>'
JACK, CLEAR = "<value [^>]*>Jack</value>", "<remove-all-values/>"
SET = '<add-value><value type="int">41</value></add-value>'
UNCHANGED = '<modify-attr attr-name="{}"><remove-all-values/></modify-attr></modify>'
ADDED = '<add-attr attr-name="{}"><value type="{}">1</value></add-attr></add>'
# kind: the document, what is replaced in it, by what
CORRUPTIONS = {
    "a changed text": ("insert", value("name"), r"\1Eve"),
    "a changed number": ("insert", value("age"), r"\g<1>42"),
    "a number that is spelled in another way": ("insert", value("age"), r"\g<1>041"),
    "a changed boolean": ("insert", value("active"), r"\1false"),
    "other bytes": ("insert", value("photo"), r"\1u7s="),
    "another date": ("insert", value("born"), r"\g<1>0"),
    "a renamed attribute": ("insert", 'attr-name="name"', 'attr-name="fullname"'),
    "an attribute without its value": ("insert", attribute("name"), '<add-attr attr-name="name"></add-attr>'),
    "a removed attribute": ("insert", attribute("name"), ""),
    "an add without its attributes": ("insert", "<add-attr.*</add-attr>", ""),
    "a second value": ("insert", "(<value [^>]*>Jack</value>)", r"\1<value type='string'>Jill</value>"),
    "a value twice": ("insert", "(<value [^>]*>Jack</value>)", r"\1\1"),
    "an attribute twice": ("insert", f"({attribute('age')})", r"\1\1"),
    "an attribute that the table lacks": ("insert", "</add>", ADDED.format("x", "string")),
    "the key as an attribute": ("insert", "</add>", ADDED.format("id", "int")),
    "a withheld column of an add": ("insert", "</add>", f"{LEAK}</add>"),
    "another type of value": ("insert", 'type="int">41', 'type="string">41'),
    "no type of value": ("insert", ' type="int">41', ">41"),
    "another class": ("insert", 'class-name="field"', 'class-name="whole"'),
    "no class": ("insert", ' class-name="field"', ""),
    "an element that no event has": ("insert", "</add>", "<password>x</password></add>"),
    "an add that is a modify": ("insert", "<add .*</add>", None),
    "another object that is referred to": ("refer", 'association-ref="id=1', 'association-ref="id=3'),
    "a reference that is a string": ("refer", 'type="dn" association-ref="[^"]*"', 'type="string"'),
    "a referred value that is another": ("refer", ">1</value>", ">3</value>"),
    "another new value": ("update", "<value [^>]*>John", '<value type="string">Joan'),
    "another old value": ("update", "<value [^>]*>Jack", '<value type="string">Jill'),
    "no old value": ("update", f"<remove-value>{JACK}</remove-value>", ""),
    "no new value": ("update", "<add-value><value [^>]*>John</value></add-value>", ""),
    "all values removed instead of one": ("update", f"<remove-value>{JACK}</remove-value>", CLEAR),
    "old and new value swapped": ("update", "(<remove-value>.*?)(<add-value>.*?</add-value>)", r"\2\1"),
    "a value that came, not went": ("update", "<remove(-value>[^/]*true</value></)remove", r"<add\1add"),
    "a column that did not change": ("update", "</modify>", UNCHANGED.format("born")),
    "a withheld column of a modify": ("update", "</modify>", f"{LEAKED}</modify>"),
    "a modify that lost a column": ("update", attribute("age"), ""),
    "a delete with a value": ("delete", "</delete>", f"{LEAKED}</delete>"),
    "a delete that is a modify": ("delete", "(</?)delete", r"\1modify"),
    "a column that was not read back": ("whole", attribute("age"), ""),
    "a read back column that is not cleared": ("whole", '(attr-name="age">)<remove-all-values/>', r"\1"),
    "a read back value that only goes": ("whole", "add-value", "remove-value"),
    "two values of one column": ("whole", "(<value [^>]*>)Jack</value>", r"\1Jack</value>\1Jill</value>"),
    "a read back number that is none": ("whole", value("age"), r"\1many"),
    "a read back column under another name": ("whole", 'attr-name="age"', 'attr-name="years"'),
    "a withheld column that is read back": ("whole", "</modify>", f"{LEAKED}</modify>"),
    "a whole row in another class": ("whole", 'class-name="whole"', 'class-name="field"'),
    "a read back row of another table": ("whole", 'class-name="whole"', 'class-name="latest"'),
    "a child that is not read back": ("child", attribute("whole_mail.mail"), ""),
    "a child without its table": ("child", 'attr-name="whole_mail.mail"', 'attr-name="mail"'),
    "a value of a child twice": ("child", "(<value [^>]*>jack@a</value>)", r"\1\1"),
    "a child that is not cleared": ("child", '(attr-name="whole_mail.mail">)<remove-all-values/>', r"\1"),
    "a field that is not read back": ("single", attribute("name"), ""),
    "a field that no row names": ("one", "</modify>", UNCHANGED.format("name")),
    "a field under another name": ("one", 'attr-name="age"', 'attr-name="name"'),
    "two values of one field": ("one", "(<value [^>]*>)42</value>", r"\g<1>42</value>\g<1>43</value>"),
    "a field that is not cleared": ("one", "<remove-all-values/>", ""),
    "a value that was to be set": ("clear", "<add-value>.*?</add-value>", ""),
    "another value that is set": ("clear", "John", "Jane"),
    "a value that is set where it was cleared": ("clear", '(attr-name="age">.*?/>)', rf"\1{SET}"),
    "the clearing of a column that is null": ("clear", attribute("age"), ""),
    "a cut event without a value": ("cut", attribute("name"), ""),
    "another value in a later part": ("cut 1", "43", "44"),
    "a later part that is an add": ("cut 1", "<modify.*</modify>", None),
    "a renamed attribute of what was redriven": ("redriven", 'attr-name="name"', 'attr-name="age"'),
    "two values of what was redriven": ("redriven", "(<value [^>]*>Joe</value>)", r"\1\1"),
    "an attribute that was not redriven": ("redriven", "</modify>", f"{LEAKED}</modify>"),
    "another text that was read back": ("whole", value("name"), r"\1Eve"),
    "another number that was read back": ("whole", value("age"), r"\g<1>42"),
    "another value of a child": ("child", "jack@a", "jill@a"),
    "values of a child in another order": ("child", "(<value [^>]*>jack@a</value>)(.*?/value>)", r"\2\1"),
    "a value of a child that is missing": ("child", "<value [^>]*>jack@a</value>", ""),
    "another text that a field brought": ("single", value("name"), r"\1Eve"),
    "another number that a field brought": ("one", "42", "43"),
    "another value of what was redriven": ("redriven", "Joe", "Jim"),
    "one byte in the middle of 900 000": ("large", "(x{450000})x", r"\1y"),
    "two letters swapped": ("whole", "Jack", "Jakc"),
    "a blank after a value": ("insert", "Jack</value>", "Jack </value>"),
    "another association": ("insert", "id=1,", "id=2,"),
}  # fmt: skip
OF_KIND = {"large": "large id=1",  # the objects of documents; others are of `field id=1`
    "refer": "field id=2", "delete": "field id=2", "child": "whole id=1", "one": "single id=1",
           "clear": "latest id=1", "whole": "whole id=1", "single": "single id=1", "cut": "latest id=2",
           "cut 1": "latest id=2"}  # fmt: skip


def corrupted(document: bytes, pattern: str, by: str | None) -> bytes:
    """Return the document with the replacement; None makes a modify of an add, or an add of a modify."""
    read = document.decode()
    if by is not None:
        return re.sub(pattern, by, read).encode()
    if "<add " in read:
        read = re.sub(
            "add-attr attr-name=(.*?)>(.*?)</add-attr>",
            r"modify-attr attr-name=\1><add-value>\2</add-value></modify-attr>",
            read,
        )
        return read.replace("<add ", "<modify ").replace("</add>", "</modify>").encode()
    read = re.sub(
        "modify-attr attr-name=(.*?)><add-value>(.*?)</add-value></modify-attr>",
        r"add-attr attr-name=\1>\2</add-attr>",
        read,
    )
    return read.replace("<modify ", "<add ").replace("</modify>", "</add>").encode()


def test_an_honest_history_is_not_accused(history: History) -> None:
    for receiver in PUT:
        assert history.audit(history.kinds.values(), receiver) == set()
        assert history.audit([*history.kinds.values()] * 2, receiver) == set()  # repeats are allowed
    assert len(history.kinds) >= len(CHANGES) - 1


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_each_corruption_is_named_at_its_object(history: History, kind: str) -> None:
    name, pattern, by = CORRUPTIONS[kind]
    document = history.kinds.get(name, b"")
    changed = corrupted(document, pattern, by)
    if changed == document:
        assert history.is_compared
        pytest.skip("comparing logs other rows than this trigger")
    for receiver in PUT:
        broken = history.audit((history.kinds | {name: changed}).values(), receiver)
        assert {of for _, of in broken} == {OF_KIND.get(name, "field id=1")}, receiver
        assert {law for law, _ in broken} == {"delivered", "explained"}, receiver


@pytest.mark.parametrize("receiver", PUT)
def test_what_a_receiver_lost_moved_or_got_from_elsewhere_is_named(history: History, receiver: str) -> None:
    for kind, (documents, law, of) in losses(history.kinds).items():
        broken = history.audit(documents, receiver)
        assert (law, of) in broken, kind
        assert {name for _, name in broken} == {of}, kind


def losses(kinds: Documents) -> dict[str, tuple[list[bytes], str, str]]:
    """Return documents where one was lost, moved or repeated, with the law and the object that show it."""
    all_documents, without = [*kinds.values()], {**kinds}
    single, insert = without.pop("one"), kinds["insert"]
    return {
        "a document that was lost": ([*without.values()], "delivered", "single id=1"),
        "a document that came before an earlier one": (
            [single, *without.values()],
            "in_order",
            "single id=1",
        ),
        "a document of another log": (
            [insert.replace(b'"eventlog:', b'"other:'), *all_documents],
            "explained",
            "field id=1",
        ),
        "a document that came again with another content": (
            [*all_documents, kinds["delete"].replace(b"delete", b"modify")],
            "explained",
            "field id=2",
        ),
        "an object of which all is lost": (
            [document for kind, document in kinds.items() if kind not in ("single", "one")],
            "delivered",
            "single id=1",
        ),
        "two documents of an object in each other's places": (
            [*(kinds | {"single": single, "one": kinds["single"]}).values()],
            "in_order",
            "single id=1",
        ),
        "a document that came with the event-id of a later one": (
            [*(kinds | {"single": _with_name_of(single, kinds["single"])}).values()],
            "delivered",
            "single id=1",
        ),
        "a document whose event-id names no row": (
            [*all_documents, re.sub(rb'"eventlog:[^"]*"', b'"eventlog:x"', single)],
            "explained",
            "single id=1",
        ),
        "a document without an event-id": (
            [*all_documents, re.sub(rb' event-id="[^"]*"', b"", single)],
            "explained",
            "single id=1",
        ),
        "a document of the same rows in another digest": (
            [*all_documents, re.sub(rb'("eventlog:\d+)[^"]*"', rb'\1-99:00000000"', single)],
            "explained",
            "single id=1",
        ),
        "a document of no row": (
            [*all_documents, re.sub(rb'"eventlog:[^"]*"', b'"eventlog:999"', single)],
            "explained",
            "single id=1",
        ),
    }


def _with_name_of(named: bytes, document: bytes) -> bytes:
    """Return a document with the event-id of another one."""
    name = re.findall(rb' event-id="[^"]*"', named)[0]
    return re.sub(rb' event-id="[^"]*"', name, document)


@pytest.mark.parametrize("level", ["warning", "error", "fatal", "retry", ""])
def test_an_answer_of_the_receiver_is_compared_with_the_letter(history: History, level: str) -> None:
    place = [*history.kinds].index("one")
    broken = history.audit(history.kinds.values(), "receiver", {place: level})
    assert broken == {("answered", "single id=1")}
