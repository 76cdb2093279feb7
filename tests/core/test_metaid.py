"""The grammar of view columns, as the original's manual prints it, and as real views stretch it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.meta_identifiers import MetaName, read_name

pytestmark = pytest.mark.quick

FORMS = [
    ("pk_idu", MetaName("idu", "pk_"), "pk_idu"),
    ("pk__idu__idu", MetaName("idu", "pk_", column="idu"), "pk_idu"),
    ("PK_sv_1__idu__nr", MetaName("nr", "PK_", group="1", column="idu"), "PK_nr"),
    ("pk_12_idu", MetaName("idu", "pk_", group="12"), "pk_idu"),
    ("pk_2nd", MetaName("2nd", "pk_"), "pk_2nd"),
    ("sv_fname", MetaName("fname"), "fname"),
    ("MV_phoneno", MetaName("phoneno", is_multivalued=True), "phoneno"),
    ("fk__idu__manager", MetaName("manager", "fk_", column="idu"), "fk_manager"),
    ("fk_mv__idg__mbr_of", MetaName("mbr_of", "fk_", True, column="idg"), "fk_mbr_of"),
    ("fk_0__id_a__ref", MetaName("ref", "fk_", group="0", column="id_a"), "fk_ref"),
    ("fk_sv_g1__idu__mgr", MetaName("mgr", "fk_", group="g1", column="idu"), "fk_mgr"),
    ("fk_mbr_of", MetaName("mbr_of", "fk_"), "fk_mbr_of"),
    ("fk_mv_mbr_of", MetaName("mbr_of", "fk_", True), "fk_mbr_of"),
    ("fname", MetaName("fname"), "fname"),
    ("mv_", MetaName("mv_"), "mv_"),
    ("pk_", MetaName("pk_"), "pk_"),
    ("mvname", MetaName("mvname"), "mvname"),
]


@pytest.mark.parametrize(("column", "found", "published"), FORMS, ids=lambda value: str(value)[:30])
def test_the_forms_of_the_grammar(column: str, found: MetaName, published: str) -> None:
    assert read_name(column) == found
    assert found.published == published


words = st.from_regex(r"[a-z][a-z0-9]{0,5}(_[a-z][a-z0-9]{0,3})?", fullmatch=True)
groups = st.sampled_from(("", "0_", "17_"))
references = words.map("_{}__".format)
names = st.one_of(
    st.tuples(
        st.just("pk_"), st.sampled_from(("", "sv_")), groups, words.map("_{}__".format) | st.just(""), words
    ),
    st.tuples(st.just("fk_"), st.sampled_from(("", "sv_", "mv_")), groups, words.map("_{}__".format), words),
    st.tuples(st.sampled_from(("", "sv_", "mv_")), words),
)
_TAKEN = ("pk_", "fk_", "sv_", "mv_")


@given(names)
def test_whatever_the_grammar_makes_is_read_as_what_it_was_made_of(parts: tuple[str, ...]) -> None:
    *meta, name = parts
    if name.startswith(_TAKEN):
        return
    found = read_name("".join(parts))
    assert found.name == name
    assert found.prefix == (meta[0] if meta[0] in ("pk_", "fk_") else "")
    assert found.is_multivalued == ("mv_" in meta)
    assert read_name(found.published).name == name
