"""Changes that Hypothesis draws."""

from __future__ import annotations

from hypothesis import strategies as st

from eventlog.core.change import ABSENT, Change, Field, Op, Scalar, Side, Undecoded
from eventlog.core.tables import Table

xml_text = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff").filter(
        lambda c: c >= " " or c in "\t\n\r"
    )
)
printable = st.text(st.characters(min_codepoint=32, max_codepoint=126))
scalars = (
    xml_text
    | printable
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.binary()
)
any_scalars = scalars | st.text() | st.binary().map(Undecoded)


def xds_values(kind_values: st.SearchStrategy[Scalar]) -> st.SearchStrategy[Side]:
    """Return one value, or several of a multi-valued attribute."""
    return st.one_of(kind_values, st.lists(kind_values, min_size=2, max_size=3).map(tuple))


@st.composite
def xds_changes(draw: st.DrawFn, table: Table) -> Change:
    """Draw a change of a known table in the form in which XDS contains it."""
    by_kind: dict[str, st.SearchStrategy[Scalar]] = {
        "integer": st.integers(-(2**63), 2**63),
        "boolean": st.booleans(),
        "blob": st.binary(),
        "date": st.dates().map(lambda d: d.isoformat()),
    }
    key = tuple((c.name, draw(by_kind.get(c.type, xml_text))) for c in table.key_columns)
    op = draw(st.sampled_from([Op.INSERT, Op.UPDATE, Op.DELETE]))
    columns = draw(
        st.lists(st.sampled_from(table.data), unique=op is Op.INSERT, min_size=op is Op.UPDATE, max_size=4)
    )
    fields = []
    for column in columns if op is not Op.DELETE else []:
        value = xds_values(by_kind.get(column.type, xml_text))
        after = draw(value)
        if op is Op.INSERT:
            fields.append(Field(column.name, ABSENT, after))
        else:
            before = draw(st.just(ABSENT) | st.none() | value)
            after = draw(st.just(after) | st.none()) if before is not None else after
            if before != after:
                fields.append(Field(column.name, before, after))
    if op is Op.UPDATE and not fields:
        fields = [Field(table.data[0].name, ABSENT, None)]
    return Change(op, table.schema, table.name, key, tuple(fields))


@st.composite
def any_changes(draw: st.DrawFn) -> Change:
    """Draw any change that the model can hold."""
    sides = (
        st.just(ABSENT) | st.none() | any_scalars | st.lists(any_scalars, min_size=2, max_size=3).map(tuple)
    )
    key = tuple(draw(st.dictionaries(st.text(), any_scalars, max_size=3)).items())
    fields = tuple(draw(st.lists(st.builds(Field, st.text(), sides, sides), max_size=4)))
    texts = st.none() | st.text()
    facts = (
        st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers(), max_size=3).map(tuple)
    )
    extra = tuple(
        draw(st.dictionaries(st.text().filter(lambda n: n != "table_key"), facts, max_size=2)).items()
    )
    return Change(
        draw(st.sampled_from(Op)),
        draw(texts),
        draw(st.text()),
        key,
        fields,
        draw(texts),
        draw(texts),
        draw(texts),
        draw(texts),
        draw(st.booleans()),
        extra,
    )
