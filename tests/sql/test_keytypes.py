"""How the texts of keys are sent to the database."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.typenames import kind_of, number_of
from eventlog.core.values import Kind
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.common.key_types import KeyType, key_type_of
from eventlog.sql.dialects import DIALECTS
from eventlog.sql.postgresql import POSTGRESQL

pytestmark = pytest.mark.quick

AS_THEY_ARE = [
    pytest.param(key_type, id=f"{dialect.name}-{name}")
    for dialect in DIALECTS.values()
    for name, key_type in dialect.values.key_types.items()
    if key_type.as_it_is is not None
]


@pytest.mark.parametrize("key_type", AS_THEY_ARE)
@given(data=st.data())
@pytest.mark.family
def test_a_text_of_the_pattern_is_sent_as_it_is(key_type: KeyType, data: st.DataObject) -> None:
    """Send it unchanged, so that many keys need no look at each."""
    text = data.draw(st.from_regex(re.compile(key_type.as_it_is or ""), fullmatch=True))
    assert key_type.sent(text) == text


@pytest.mark.parametrize("text", ["-0", "007", "+7", " 7", "7 ", "2147483648", "99999999999", "", "7\n", "٧"])
def test_other_integers_are_looked_at(text: str) -> None:
    pattern = POSTGRESQL.values.key_types["integer"].as_it_is
    assert pattern is not None
    assert not re.fullmatch(pattern, text)


ONE_TEXT = (Kind.STRING, Kind.PADDED, Kind.OCTET, Kind.STATE)  # for each value


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_a_type_whose_values_have_several_texts_is_not_compared_as_text(dialect: Dialect) -> None:
    """Ask for a key by the one form of its texts, which may be another than the row's."""
    assert [
        name
        for name in dialect.values.expressions.by_type
        if (kind_of(name, dialect.name) not in ONE_TEXT or number_of(name, dialect.name))
        and key_type_of(dialect.values.key_types, name) is None
    ] == []
