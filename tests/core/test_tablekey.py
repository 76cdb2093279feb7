"""table_key and association: written and read, any text in values, every fault with its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core import tablekey
from eventlog.core.errors import MalformedAssociation, MalformedKey

pytestmark = pytest.mark.quick

names = st.text(
    st.characters(exclude_characters=sorted(tablekey.SPECIAL), exclude_categories=["Cs"]), min_size=1
)
texts = st.text(st.characters(exclude_categories=["Cs"]))
keys = st.lists(st.tuples(names, texts), min_size=1, max_size=4).map(tuple)
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


def check_both_ways(pairs: tablekey.Pairs, text: str) -> None:
    assert tablekey.write(pairs) == text
    assert tablekey.read(text) == pairs


def test_the_keys_of_the_specification() -> None:
    check_both_ways((("idu", "1"),), "idu=1")
    check_both_ways((("pkey1", "value1"), ("pkey2", "value2")), "pkey1=value1+pkey2=value2")
    check_both_ways((("pkey", ", ; ' + \" = \\ < >"),), r'''pkey=", ; ' + \" = \\ < >"''')
    check_both_ways((("a", ""), ("b", "")), "a=+b=")
    check_both_ways((("idu", " 1"),), "idu= 1")


def test_quotes_that_need_not_be_are_read() -> None:
    assert tablekey.read('a="1"+b=2') == (("a", "1"), ("b", "2"))


@given(keys)
def test_what_is_written_is_read(pairs: tablekey.Pairs) -> None:
    assert tablekey.read(tablekey.write(pairs)) == pairs


@given(texts)
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    try:
        pairs = tablekey.read(text)
    except MalformedKey as fault:
        place = fault.args[0]
    else:
        assert tablekey.read(tablekey.write(pairs)) == pairs
        place = 1
    assert 1 <= place <= len(text) + 1


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("", 1, "a column name"),
        ("idu", 4, "'='"),
        ("=1", 1, "a column name"),
        ("a=1,b=2", 4, "'+' or the end"),
        ("a=1+", 5, "a column name"),
        ('a="x', 5, "the closing quote"),
        ('a="x\\n"', 6, "after the backslash"),
        ('a="x"y', 6, "'+' or the end"),
        ("a=b=c", 4, "'+' or the end"),
        ("a=1+b", 6, "'='"),
    ],
)
def test_a_malformed_key_names_the_character_and_what_was_expected(
    text: str, place: int, expected: str
) -> None:
    with pytest.raises(MalformedKey) as caught:
        tablekey.read(text)
    assert caught.value.args[0] == place
    assert expected in str(caught.value)


def test_a_hostile_key_of_a_million_characters_is_read_in_one_pass() -> None:
    long = "x" * 1_000_000
    assert tablekey.read(f'a="{long}\\""') == (("a", long + '"'),)
    with pytest.raises(MalformedKey):
        tablekey.read('a="' + "\\\\" * 500_000)


@given(keys.filter(lambda pairs: pairs[0][0].strip(" \t\r\n") == pairs[0][0]), words, st.none() | words)
def test_an_association_is_read_as_written(pairs: tablekey.Pairs, table: str, schema: str | None) -> None:
    key = tablekey.write(pairs)
    text = tablekey.write_association(key, table, schema)
    assert tablekey.read_association(f"\n {text} ") == (key, table, schema)


def test_an_association_repeats_the_key_byte_for_byte() -> None:
    text = 'idu="1",table=usr,schema=indirect'
    assert tablekey.read_association(text) == ('idu="1"', "usr", "indirect")
    assert tablekey.write_association('idu="1"', "usr", "indirect") == text


@pytest.mark.parametrize(
    "text", ["", "idu=1", "idu=1,table", "idu=1,table=a,x=b", "idu=1,table=a,schema=b,c"]
)
def test_a_malformed_association_is_refused(text: str) -> None:
    with pytest.raises(MalformedAssociation):
        tablekey.read_association(text)
