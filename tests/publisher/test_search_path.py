"""Functions and operators of others never run as the publisher, whatever schemas are searched."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from tests.kit.logs import key
from tests.world.world import World, call

pytestmark = pytest.mark.quick

# Each fits what our statements ask better than the server's own does.
FITTING = """
set role {role};
create table public.seen (who name);
grant insert on public.seen to public;
create function public.translate(varchar, text, text) returns text language plpgsql as
  'begin insert into public.seen values (current_user); return pg_catalog.translate($1::text, $2, $3); end';
create function public.unnest(bigint[]) returns setof bigint language plpgsql as
  'begin insert into public.seen values (current_user);
   return query select pg_catalog.generate_subscripts($1, 1)::bigint; end';
create function public.eq(name, varchar) returns boolean language plpgsql as
  'begin insert into public.seen values (current_user); return $1::text operator(pg_catalog.=) $2::text; end';
create operator public.= (leftarg = name, rightarg = varchar, function = public.eq);
reset role
"""


@pytest.fixture
def mallory(world: World) -> Iterator[str]:
    """A role that may make functions where tables are found without their schema."""
    if world.log.dialect.name != "postgresql":
        pytest.skip("elsewhere no function of others is found by a bare name")
    role = f"mallory_{secrets.token_hex(4)}"
    world.change(f"create role {role}")
    world.change(f"grant usage, create on schema public to {role}")
    yield role
    world.change(f"drop owned by {role} cascade")
    world.change(f"drop role {role}")


def users_seen(world: World) -> list[str]:
    with world.engine.connect() as connection:
        return [row[0] for row in connection.exec_driver_sql("select distinct who from public.seen")]


@pytest.mark.parametrize("delete", [False, True])
def test_nothing_that_fits_better_is_run(world: World, mallory: str, delete: bool) -> None:
    world.user(1)
    with world.engine.begin() as connection:
        connection.exec_driver_sql(FITTING.format(role=mallory), execution_options={"no_parameters": True})
    for command in (
        ("check",),
        ("explain", "--all"),
        ("run", "--once", *(["--delete-from-log"] if delete else [])),
        ("redrive", "--all"),
        ("errors",),
        ("status",),
        ("skip", "2", "--because", "why"),
        ("purge", "--older-than", "0s"),
    ):
        world.write(key(1), key(2, table_name="unknown"))
        done = call(world, *command)
        assert done.exit_code in (0, 1), (command, done.output)
        assert users_seen(world) == [], command


def test_statements_after_a_cycle_find_their_tables(world: World, mallory: str) -> None:
    world.change(f"create schema {mallory}")
    world.change(f"create table {mallory}.cycles (n integer)")
    world.user(1)
    world.write(key(1))
    given = ("--connection-init", f"set search_path to {mallory}, public")
    after = ("--post-poll-stmt", "insert into cycles values (1); delete from eventlog where status = 'S'")
    try:
        done = call(world, "run", "--once", *given, *after)
        assert done.exit_code == 0, done.output
        with world.engine.connect() as connection:
            assert connection.exec_driver_sql(f"select count(*) from {mallory}.cycles").scalar() == 1
        assert world.letters() == {}
    finally:
        world.change(f"drop schema {mallory} cascade")
