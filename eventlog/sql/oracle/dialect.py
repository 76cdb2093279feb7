"""Oracle as a dialect."""

from __future__ import annotations

from eventlog.sql.common.capacity import Capacity
from eventlog.sql.common.dialect import POSITIVE_INTEGER, Dialect
from eventlog.sql.common.storage import Storage
from eventlog.sql.oracle.binds import listen
from eventlog.sql.oracle.expressions import EXPRESSIONS
from eventlog.sql.oracle.key_types import KEY_TYPES
from eventlog.sql.oracle.triggers import TRIGGERS

# names: invalid, too long, twice; definitions: a size, an invalid type, too many columns, a key of a LOB
_UNMADE = "902 903 904 907 910 911 955 957 972 1450 1727 1728 1792 2327 2329 3001"
_CAPACITY = Capacity(
    title="Oracle",
    name=128,
    columns=1_000,
    digits=38,
    barred='"',
    taken=frozenset(("rowid",)),
    own_schemas=("sys", "xdb", "audsys", "mdsys", "ctxsys"),
    unmade=frozenset(_UNMADE.split()),
)
_NUMBER_OF_TEXT = (
    f"(case when regexp_like({{column}}, {POSITIVE_INTEGER}) then to_number(trim({{column}})) end)"
)

ORACLE = Dialect(
    name="oracle",
    title="Oracle",
    folders=("oracle", "common"),
    expressions=EXPRESSIONS,
    key_types=KEY_TYPES,
    triggers=TRIGGERS,
    storages={"float": Storage.NUMERIC, "real": Storage.NUMERIC, "number(,0)": Storage.INTEGER},
    listen=listen,
    driver="oracle+oracledb",
    extra="oracle",
    quote_mark='"',
    max_name=128,
    max_parameters=65_535,
    plain_names="upper",
    capacity=_CAPACITY,
    dual=" from dual",
    chunk=1_000,
    text_type="varchar2(4000)",
    long_text="clob",
    stage_prefix="ORA$PTT_",
    # too long, too large, no number, no date; raised by triggers, as all from 20000 to 20999 are
    refusals=frozenset(
        ["1401", "1426", "1438", "1722", "1839", "1841", "1843", "1847", "1858", "1861", "12899"]
        + [str(number) for number in range(20_000, 21_000)]
    ),
    conflicts=frozenset(("60", "8177")),
    current_schema="sys_context('USERENV', 'CURRENT_SCHEMA')",
    utc_now="sys_extract_utc(systimestamp)",
    local_now="cast(systimestamp as timestamp)",
    local_as_utc="sys_extract_utc(from_tz(cast({column} as timestamp), to_char(systimestamp, 'TZR')))",
    integer="number(19)",
    text="rtrim({column})",
    time_text="to_char({column}, 'YYYY-MM-DD HH24:MI:SS.FF9')",
    zoned_as_utc="sys_extract_utc({column})",
    quotient="trunc({column} / {by})",
    number_of_text=_NUMBER_OF_TEXT,
    indexes_expressions=True,
    share_lock="for update",
    lock_is_transactional=True,
    shares_snapshots=True,
    empty_is_null=True,
    # a blank line would end a statement, an & ask for a value
    script_head=("set define off", "set sqlblanklines on", "whenever sqlerror exit failure", ""),
    block_end="\n/",
    reads_lines=True,
)
