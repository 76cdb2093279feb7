"""What a policy of PostgreSQL hides from the publisher is never taken for gone."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from click.testing import Result

from eventlog.opening.open_log import Denied
from eventlog.sql.schema import migrate
from tests.kit.logs import key
from tests.world.world import World, call

pytestmark = pytest.mark.quick


@pytest.fixture
def publisher(world: World) -> Iterator[str]:
    """A role with the rights of a publisher, which no policy lets see anything."""
    if world.log.dialect.name != "postgresql":
        pytest.skip("policies of tables are PostgreSQL's")
    role = f"publisher_{secrets.token_hex(4)}"
    world.change(f"create role {role} login password 'x'")
    with world.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(
            migrate.grants_script(world.log, role).replace("\\set ON_ERROR_STOP on", ""),
            execution_options={"no_parameters": True},
        )
    world.change(f"grant select on usr to {role}")
    yield role
    for table in ("usr", "eventlog"):
        world.change(f"alter table {table} disable row level security")
    world.change(f"drop owned by {role}")
    world.change(f"drop role {role}")


def run(world: World, role: str, *options: str) -> Result:
    url = world.engine.url.set(username=role, password="x").render_as_string(hide_password=False)
    return call(world, "run", "--once", *options, EVENTLOG_URL=url)


def test_who_lacks_a_right_learns_what_prints_it(world: World, publisher: str) -> None:
    world.change(f"revoke select on eventlog_state from {publisher}")
    done = run(world, publisher)
    assert isinstance(done.exception, Denied)
    assert "permission denied" in str(done.exception)
    assert str(done.exception).endswith(
        "`eventlog install --sql --grants ROLE` prints the rights of a publisher"
    )


def test_a_row_that_is_hidden_is_refused_and_not_taken_for_gone(world: World, publisher: str) -> None:
    world.user(1)
    world.change("alter table usr enable row level security")
    world.write(key(1), key(2, event_type=4))
    assert run(world, publisher).exit_code == 0
    assert world.letters() == {1: "E", 2: "S"}
    (failure,) = world.failures()
    assert "row-level security policy" in str(failure.reason)


def test_who_wants_policies_to_decide_says_so(world: World, publisher: str) -> None:
    world.user(1)
    world.change("alter table usr enable row level security")
    world.write(key(1))
    done = run(world, publisher, "--connection-init", "set row_security to on")
    assert (done.exit_code, world.letters()) == (0, {1: "S"})


def test_a_log_that_is_hidden_does_not_look_empty(world: World, publisher: str) -> None:
    world.change("alter table eventlog enable row level security")
    world.write(key(1, event_type=4))
    done = run(world, publisher)
    assert done.exit_code == 1
    assert "row-level security policy" in f"{done.exception}"
