"""People of a table on their way to Entra: a server plays its part as Microsoft's pages describe it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from eventlog.cli import cli
from eventlog.core.errors import Misuse
from eventlog.sinks import open_sink
from eventlog.sinks.sink import Item, OutgoingDocument, Reply
from tests.kit.receivers import Answering, receiver, say, serving
from tests.kit.support import until
from tests.world.world import ROOT, World

pytestmark = pytest.mark.quick

PAGE = (ROOT / "docs" / "log" / "entra.md").read_text("utf-8")
SETTINGS = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]
COLUMNS = "emp_no, mail, first_name, last_name, phone, dept, boss_no, employed"
LOGS = "https://graph.microsoft.com/beta/auditLogs/provisioning"


@cache
def bulk_request() -> Any:
    """Return the form of a request, whose library takes half a second for its import."""
    from scim2_models import URN, BulkRequest, EnterpriseUser, Extension, User

    class CostUnit(Extension):
        __schema__ = URN("urn:example:hr")

        cost_unit: str | None = None

    return BulkRequest[User[EnterpriseUser | CostUnit]]


class Entra:
    """A provisioning API: it judges the form of each request, and keeps the users as they were uploaded."""

    def __init__(self, token: str = "valid") -> None:
        self.token = token
        self.uploads: list[list[dict[str, Any]]] = []
        self.users: dict[str, dict[str, Any]] = {}
        self.answers: Iterator[Answering | None] = iter(())  # instead of its own
        self.bad: set[str] = set()  # externalIds of users that are refused

    def __call__(self, handler: Any) -> None:
        answer = next(self.answers, None) or self._judge(handler)
        answer(handler)

    def _judge(self, handler: Any) -> Answering:
        if handler.headers["Authorization"] != f"Bearer {self.token}":
            return refusal(401, "InvalidAuthenticationToken", "Access token has expired or is not yet valid.")
        if handler.headers["Content-Type"] != "application/scim+json":
            return refusal(400, "BadRequest", "Invalid Data Format")
        request = json.loads(handler.body)
        bulk_request().model_validate(request)
        operations = request["Operations"]
        assert 0 < len(operations) <= 50
        assert len({operation["bulkId"] for operation in operations}) == len(operations)
        assert {(operation["method"], operation["path"]) for operation in operations} == {("POST", "/Users")}
        people = [operation["data"] for operation in operations]
        assert "null" not in handler.document
        if not self.bad.isdisjoint(person["externalId"] for person in people):
            return refusal(400, "BadRequest", "a user of this request violates the schema")
        self.uploads.append(operations)
        for person in people:
            self.users[person["externalId"]] = self.users.get(person["externalId"], {}) | person
        return say(202, b"", ("Location", LOGS))


def refusal(status: int, code: str, message: str, *headers: tuple[str, str]) -> Answering:
    return say(status, json.dumps({"error": {"code": code, "message": message}}).encode(), *headers)


BUSY = refusal(429, "TooManyRequests", "Too Many Requests", ("Retry-After", "7"))


@pytest.fixture
def staff(world: World) -> Iterator[World]:
    """Make the table of the page."""
    world.change(
        "create table employee (emp_no varchar(20) primary key, mail varchar(64), first_name varchar(64),"
        " last_name varchar(64), phone varchar(64), dept varchar(64), boss_no varchar(20), employed boolean)"
    )
    yield world
    world.change("drop table employee")


def hire(world: World, number: int, first_name: str = "Jo", dept: str | None = "IT") -> None:
    world.change(
        f"insert into employee ({COLUMNS}) values (:n, :m, :f, 'Doe', null, :d, '1', true)",
        n=str(number),
        m=f"p{number}@example.com",
        f=first_name,
        d=dept,
    )


def row(number: object, event_type: int = 5, **columns: Any) -> dict[str, Any]:
    return {"table_name": "employee", "table_key": f"emp_no={number}", "event_type": event_type} | columns


class Sending:
    """A publisher by the settings of the page, of a table to a server."""

    def __init__(self, world: World, folder: Path, url: str) -> None:
        self.token = folder / "token"
        self.token.write_text("valid\n")
        self.file = folder / "eventlog.toml"
        self.environment = {
            "EVENTLOG_URL": world.url,
            "EVENTLOG_SYNC_TABLES": "employee, usr",
            "EVENTLOG_HTTP_URL": url,
            "EVENTLOG_HTTP_TOKEN_FILE": str(self.token),
            "EVENTLOG_ALLOW_LOOPBACK": "true",
        }
        self.write(SETTINGS)

    def write(self, settings: str) -> None:
        self.file.write_text(settings)

    def once(self, *words: str) -> Result:
        return CliRunner().invoke(
            cli, ["run", "--once", "--config", str(self.file), *words], env=self.environment
        )

    def fault(self) -> str:
        """Send once. Return the fault, which the command line prints."""
        return str(self.once().exception)


@pytest.fixture
def entra() -> Entra:
    return Entra()


@pytest.fixture
def sending(staff: World, tmp_path: Path, entra: Entra) -> Iterator[Sending]:
    with serving(entra) as url:
        yield Sending(staff, tmp_path, f"{url}/v1.0/servicePrincipals/1/synchronization/jobs/2/bulkUpload")


@pytest.mark.usefixtures("either_way")
@pytest.mark.long
def test_the_page_brings_people_to_entra(staff: World, entra: Entra, sending: Sending) -> None:
    hire(staff, 1)
    hire(staff, 2, "Zoë")
    staff.write(row(1), row(2))
    assert sending.once().exit_code == 0
    assert entra.users["2"] == {
        "schemas": [
            "urn:ietf:params:scim:schemas:core:2.0:User",
            "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User",
            "urn:example:hr",
        ],
        "externalId": "2",
        "userName": "p2@example.com",
        "name": {"givenName": "Zoë", "familyName": "Doe"},
        "emails": [{"type": "work", "value": "p2@example.com"}],
        "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": {
            "department": "IT",
            "manager": {"value": "1"},
        },
        "urn:example:hr": {"costUnit": "IT"},
        "active": True,
    }
    assert len(entra.uploads) == 1
    assert staff.counts() == {"S": 2}


@pytest.mark.parametrize("event_type", [1, 2, 3, 5, 6, 7, 8])
def test_each_event_type_sends_the_whole_present_row(
    staff: World, entra: Entra, sending: Sending, event_type: int
) -> None:
    hire(staff, 1, "Ann")
    values = {} if event_type in (5, 6) else {"column_name": "first_name", "new_value": "Ann"}
    staff.write(row(1, event_type, **values))
    assert sending.once().exit_code == 0
    assert entra.users["1"]["name"] == {"givenName": "Ann", "familyName": "Doe"}
    assert entra.users["1"]["active"] is True
    assert staff.counts() == {"S": 1}


def test_the_preview_shows_a_user_on_each_line(staff: World, entra: Entra, sending: Sending) -> None:
    hire(staff, 1, "Zoë")
    staff.write(row(1), row(2, 4))
    words = ["preview", "--config", str(sending.file)]
    lines = CliRunner().invoke(cli, words, env=sending.environment).stdout.splitlines()
    users = [json.loads(line)["data"] for line in lines]
    assert [(user["externalId"], user["active"]) for user in users] == [("1", True), ("2", False)]
    assert entra.uploads == []


@pytest.mark.parametrize("spelled", ["EMP_NO=1", "emp_no=1"])
def test_who_is_deleted_under_another_spelling_is_disabled(
    staff: World, entra: Entra, sending: Sending, spelled: str
) -> None:
    staff.write(row(1, 4, table_key=spelled, table_name="EMPLOYEE"))
    assert sending.once().exit_code == 0
    assert {number: user["active"] for number, user in entra.users.items()} == {"1": False}


@pytest.mark.usefixtures("either_way")
@pytest.mark.long
def test_who_is_deleted_is_disabled_and_who_returns_is_active(
    staff: World, entra: Entra, sending: Sending
) -> None:
    hire(staff, 1)
    staff.write(row(1))
    sending.once()
    staff.change("delete from employee")
    staff.write(row(1, 4))
    sending.once()
    assert entra.uploads[-1][0]["data"].keys() == {"schemas", "externalId", "active"}
    assert entra.users["1"]["active"] is False
    hire(staff, 1)
    staff.write(row(1))
    sending.once()
    assert entra.users["1"]["active"] is True
    staff.change("update employee set employed = false")
    staff.write(row(1, 6))
    sending.once()
    assert entra.users["1"]["active"] is False


def test_people_of_a_table_without_triggers_are_compared(
    staff: World, entra: Entra, sending: Sending
) -> None:
    sending.environment |= {"EVENTLOG_PUBLICATION_MODE": "compare", "EVENTLOG_SYNC_TABLES": "employee"}
    for number in (1, 2, 3):
        hire(staff, number)
    assert sending.once().exit_code == 0
    staff.change("update employee set first_name = 'New' where emp_no = '2'")
    staff.change("delete from employee where emp_no = '3'")
    assert sending.once().exit_code == 0
    assert [len(operations) for operations in entra.uploads] == [3, 2]
    assert entra.users["2"]["name"]["givenName"] == "New"
    assert [number for number, user in entra.users.items() if not user["active"]] == ["3"]
    staff.change("alter table employee drop column phone")
    assert "column 'phone' is no column of its table any more" in sending.fault()


def test_a_request_has_fifty_people_at_most(staff: World, entra: Entra, sending: Sending) -> None:
    for number in range(1, 121):
        hire(staff, number)
    staff.write(*(row(number) for number in range(1, 121)))
    assert sending.once("--batch-size", "120").exit_code == 0
    assert sorted(map(len, entra.uploads)) == [30, 30, 30, 30]
    assert len(entra.users) == 120


def test_when_entra_is_busy_nothing_is_tried_and_nothing_lost(
    staff: World, entra: Entra, sending: Sending
) -> None:
    entra.answers = iter([BUSY])
    hire(staff, 1)
    staff.write(row(1))
    assert "answered 429 Too Many Requests" in sending.fault()
    assert (staff.counts(), entra.users) == ({"N": 1}, {})
    assert sending.once().exit_code == 0
    assert staff.counts() == {"S": 1}
    assert entra.users.keys() == {"1"}


def test_an_expired_token_holds_all_back_until_it_is_renewed(
    staff: World, entra: Entra, sending: Sending
) -> None:
    hire(staff, 1)
    staff.write(row(1))
    sending.token.write_text("expired")
    fault = sending.fault()
    assert "answered 401 Unauthorized: Access token has expired or is not yet valid." in fault
    assert staff.counts() == {"N": 1}
    sending.token.write_text("valid")
    assert sending.once().exit_code == 0
    assert staff.counts() == {"S": 1}


def test_the_bad_user_among_fifty_is_refused_alone(staff: World, entra: Entra, sending: Sending) -> None:
    for number in range(1, 51):
        hire(staff, number)
    staff.write(*(row(number) for number in range(1, 51)))
    entra.bad = {"17"}
    sending.once()
    assert staff.counts() == {"S": 49, "E": 1}
    (failure,) = staff.failures()
    assert failure.record_id == 17
    assert str(failure.reason).endswith(
        "answered 400 Bad Request: a user of this request violates the schema"
    )
    assert failure.document is not None
    assert '"externalId":"17"' in failure.document
    assert len(entra.users) == 49


@pytest.mark.parametrize("answer", [say(503), say(500), say(200), say(302)], ids=["503", "500", "200", "302"])
@pytest.mark.long
def test_other_answers_are_tried_again(
    staff: World, entra: Entra, sending: Sending, answer: Answering
) -> None:
    entra.answers = iter([answer])
    hire(staff, 1)
    staff.write(row(1))
    sending.once("--retry-wait", "0")
    assert (staff.counts(), entra.users) == ({"N": 1}, {})
    assert sending.once("--retry-wait", "0").exit_code == 0
    assert staff.counts() == {"S": 1}


def test_what_cannot_be_a_user_is_refused_by_name(staff: World, entra: Entra, sending: Sending) -> None:
    hire(staff, 1)
    hire(staff, 2)
    staff.change("update employee set employed = null where emp_no = '1'")
    staff.user(3)
    staff.write(row(1), row(2), {"table_key": "idu=3"})
    sending.once()
    assert entra.users.keys() == {"2"}
    assert {failure.record_id: failure.reason for failure in staff.failures()} == {
        1: "column employed is null, and must show whether the user is active",
        3: "no [tables.usr.scim] has the columns that fill a user of Entra",
    }


def test_an_external_id_besides_the_key_can_be_uploaded_and_not_disabled(
    staff: World, entra: Entra, sending: Sending
) -> None:
    sending.write(SETTINGS.replace('externalId = "emp_no"', 'externalId = "phone"'))
    hire(staff, 1)
    hire(staff, 2)
    staff.change("update employee set phone = '77' where emp_no = '1'")
    staff.write(row(1), row(2), row(3, 4))
    sending.once()
    assert entra.users.keys() == {"77"}
    assert {failure.record_id: failure.reason for failure in staff.failures()} == {
        2: "column phone is empty: a user needs its externalId",
        3: "a delete names only its key, which lacks phone: no externalId to disable",
    }


@pytest.mark.parametrize(
    ("dept", "active"), [("IT", True), ("HR", True), ("it", False), ("left", False)], ids=str
)
def test_texts_of_a_column_say_who_is_active(
    staff: World, entra: Entra, sending: Sending, dept: str, active: bool
) -> None:
    mapping = 'active = { column = "DEPT", values = ["IT", "HR"] }'
    sending.write(SETTINGS.replace('active = "employed"', mapping))
    hire(staff, 1, dept=dept)
    staff.write(row(1))
    sending.once()
    assert entra.users["1"]["active"] is active


def test_a_text_that_does_not_say_who_is_active_is_refused(
    staff: World, entra: Entra, sending: Sending
) -> None:
    sending.write(SETTINGS.replace('active = "employed"', 'active = "dept"'))
    hire(staff, 1, dept="IT")
    hire(staff, 2, dept="1")
    staff.write(row(1), row(2))
    sending.once()
    assert entra.users["2"]["active"] is True
    assert [failure.reason for failure in staff.failures()] == [
        "column dept is 'IT', which is neither true nor false"
    ]


def test_a_null_among_texts_is_refused_as_a_null(staff: World, entra: Entra, sending: Sending) -> None:
    mapping = 'active = { column = "DEPT", values = ["IT", "HR"] }'
    sending.write(SETTINGS.replace('active = "employed"', mapping))
    hire(staff, 1)
    staff.change("update employee set dept = null where emp_no = '1'")
    staff.write(row(1))
    sending.once()
    assert [failure.reason for failure in staff.failures()] == [
        "column dept is null, and must show whether the user is active"
    ]


def test_parts_of_one_address_are_together(staff: World, entra: Entra, sending: Sending) -> None:
    home, work = 'addresses[type eq "home"]', 'addresses[type eq "work"]'
    mapping = f"'{work}.locality' = \"dept\"\n'{home}.region' = \"mail\"\n'{work}.country' = \"boss_no\"\n"
    sending.write(SETTINGS + mapping)
    hire(staff, 1)
    staff.write(row(1))
    sending.once()
    assert entra.users["1"]["addresses"] == [
        {"type": "work", "locality": "IT", "country": "1"},
        {"type": "home", "region": "p1@example.com"},
    ]


def test_null_says_not_who_is_active(staff: World, entra: Entra, sending: Sending) -> None:
    mapping = 'active = { column = "dept", values = ["IT"] }'
    sending.write(SETTINGS.replace('active = "employed"', mapping))
    hire(staff, 1, dept=None)
    staff.write(row(1))
    sending.once()
    assert (entra.users, staff.counts()) == ({}, {"E": 1})


def test_a_row_without_active_in_its_mapping_is_active(staff: World, entra: Entra, sending: Sending) -> None:
    sending.write(SETTINGS.replace('active = "employed"\n', ""))
    hire(staff, 1)
    staff.change("update employee set employed = false")
    staff.write(row(1))
    sending.once()
    assert entra.users["1"]["active"] is True


SCIM = "[tables.employee.scim] "


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("userName =", "usrName =", f"{SCIM}'usrName' is no attribute of a user; did you mean userName?"),
        ("userName =", '"emails.value" =', f"{SCIM}'emails.value' is no attribute of a user"),
        ("userName =", '"urn:a:b:c.d" =', f"{SCIM}'urn:a:b:c.d' is no attribute of a user"),
        ('externalId = "emp_no"', "", f'{SCIM}it needs externalId = "COLUMN"'),
        ('"first_name"', '"firstname"', f"{SCIM}a column 'firstname', which "),
        ('"employed"', "true", f'{SCIM}active: it is a column, or {{ column = "…", values = ["…"] }}'),
        ('"employed"', '{ column = "dept", values = [] }', f"{SCIM}active: it is a column, or "),
        ('"employed"', '{ column = "employed", values = [true] }', f"{SCIM}active: it is a column, or "),
        ('"first_name"', "7", f"{SCIM}name.givenName: 7 is not the name of a column, a text"),
        ("[tables.employee.scim]", "[tables.staff.scim]", "[tables.staff] there is no such table or view"),
        ("[tables.employee.scim]", "[tables.employee]", "[tables.employee] externalId: it holds"),
    ],
    ids=lambda text: re.sub(r"\W+", " ", text)[:30].strip(),
)
def test_a_mapping_that_cannot_be_meant_ends_the_publisher_at_its_start(
    staff: World, entra: Entra, sending: Sending, old: str, new: str, reason: str
) -> None:
    settings = SETTINGS.replace(old, new)
    assert settings != SETTINGS
    sending.write(settings)
    hire(staff, 1)
    staff.write(row(1))
    result = sending.once()
    assert isinstance(result.exception, Misuse)
    assert reason in str(result.exception)
    assert (staff.counts(), entra.users) == ({"N": 1}, {})


def test_a_column_that_may_not_leave_is_no_attribute(staff: World, entra: Entra, sending: Sending) -> None:
    sending.write(f'{SETTINGS}[tables.employee]\nwithhold = ["phone"]\n')
    staff.write(row(1, 4))
    assert "column 'phone' is withheld" in sending.fault()
    assert entra.uploads == []


def test_a_column_of_bytes_is_no_attribute(staff: World, entra: Entra, sending: Sending) -> None:
    kind = "bytea" if staff.log.dialect.name == "postgresql" else "blob"
    staff.change(f"alter table employee add photo {kind}")
    sending.write(SETTINGS.replace('"phone"', '"photo"'))
    assert "column 'photo' is not of one text or number" in sending.fault()


def test_without_a_mapping_nothing_begins(staff: World, entra: Entra, sending: Sending) -> None:
    sending.write(SETTINGS.partition("[tables")[0])
    staff.write(row(1, 4))
    assert "entra-bulk needs [tables.NAME.scim]" in sending.fault()
    assert staff.counts() == {"N": 1}


@pytest.mark.slow("a publisher starts, and is killed")
def test_a_publisher_that_is_killed_between_two_requests_loses_nobody(
    staff: World, entra: Entra, sending: Sending
) -> None:
    for number in range(1, 31):
        hire(staff, number)
    staff.write(*(row(number) for number in range(1, 31)))
    processes: list[subprocess.Popen[bytes]] = []

    def kill(handler: Any) -> None:
        processes[0].kill()
        handler.close_connection = True

    entra.answers = iter([None, None, kill])
    command = [sys.executable, "-B", "-m", "eventlog", "run", "--config", str(sending.file)]
    environment = os.environ | sending.environment | {"PYTHONPATH": str(ROOT), "EVENTLOG_BATCH_SIZE": "5"}
    processes.append(subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL))
    processes[0].wait()
    assert len(entra.users) == 10
    staff.change("update employee set first_name = 'New' where emp_no = '3'")
    staff.write(row(3, 6))
    staff.change("delete from employee where emp_no = '30'")
    staff.write(row(30, 4))
    until(lambda: staff.store.holder() is None)
    assert sending.once().exit_code == 0
    assert staff.counts() == {"S": 32}
    assert entra.users.keys() == {str(number) for number in range(1, 31)}
    assert entra.users["3"]["name"]["givenName"] == "New"
    assert [number for number, user in entra.users.items() if not user["active"]] == ["30"]


# --- the sink alone

USER = '{"method":"POST","bulkId":"eventlog:1","path":"/Users","data":{"externalId":"1"}}'


def post(answering: Answering, count: int = 1) -> list[Reply]:
    with receiver(answering) as url:
        sink = open_sink("http", {"http_url": url, "document": "entra-bulk"})
        replies = list(sink.deliver([OutgoingDocument("1-1", [Item("eventlog:1", USER)])] * count))
        sink.close()
        return replies


@pytest.mark.parametrize(("asked", "seconds"), [("7", 7.0), ("99999", 3600.0), ("soon", None)])
def test_the_wait_that_entra_asks_for_has_an_end(asked: str, seconds: float | None) -> None:
    (reply,) = post(say(429, b"", ("Retry-After", asked)))
    assert (reply.arrived, reply.wait) == (False, seconds)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"error": 7}',
        b'{"error": {"message": ["x"]}}',
        b"[" * 100_000,
        b"\xff",
        b'{"error": {}}',
    ],
    ids=range(7),
)
def test_a_strange_refusal_is_a_refusal(body: bytes) -> None:
    (reply,) = post(say(400, body))
    assert reply.fault is None
    assert reply.statuses[0].text.endswith("answered 400 Bad Request")


def test_the_words_of_a_refusal_are_short_and_on_one_line() -> None:
    (reply,) = post(refusal(400, "BadRequest", "no\n\x1b[31m" + "x" * 10_000))
    text = reply.statuses[0].text
    assert len(text) < 400
    assert text.isprintable()


def test_kafka_has_no_bulk_requests() -> None:
    with pytest.raises(Misuse, match="entra-bulk is for the http sink"):
        open_sink("kafka", {"kafka_brokers": "127.0.0.1:1", "kafka_topic": "t", "document": "entra-bulk"})
