"""Random logs: all event types, deletes and re-inserts, hostile values, hot objects, bad rows."""

from __future__ import annotations

from hypothesis import strategies as st

TEXTS = st.sampled_from(
    [
        "",
        "a",
        "b",
        "Jack",
        " x ",
        "<&>",
        '"q"',
        "é\u4e2d\U0001f600",
        "line\r\nend\t",
        "\x00",
        "\ufffe",
        "a" * 40,
        "]]>",
    ]
)
TYPED = st.sampled_from(
    [
        "1",
        "2",
        "01",
        " 7 ",
        "-5",
        "x",
        "qqo=",
        "u7s=",
        "qqp=",
        "q qo\r\n=\t",
        "true",
        "t",
        "f",
        "no",
        "2024-02-29",
        "2023-02-29",
    ]
)
VALUES = st.one_of(st.none(), TEXTS, TYPED)
COLUMNS = {
    "usr": (
        "idu",
        "fname",
        "FNAME",
        "lname",
        "photo",
        "born",
        "on",
        "age",
        "\u00e9xtra",
        "usr_phone.no",
        "no",
    ),
    "grp": ("name", "member", "boss", "ghost"),
    "nowhere": ("x", "y", "z"),
}
KEYS = {
    "usr": ("idu=1", "idu=2", "idu= 2", "idu=3", 'idu="3"', "idu=x", "idu", "IDU=1", "idu=4+x=1", "idu=é"),
    "grp": ("org=a+name=b", 'org="a,b"+name=', "name=b+org=a", "org=a", 'org="'),
    "nowhere": ("x=a+y=1", "z=a", "y=1+x=a"),
}
NAMES = {
    "usr": ("usr", "usr", "usr", "USR", "indirect.usr", "usr_phone"),
    "grp": ("grp", "grp", "Grp", "n\u00f6where"),
    "nowhere": ("nowhere",),
}
TIMES = st.sampled_from(
    [
        "2025-03-23 10:57:19",
        "2025-03-23T10:57:19.5",
        "2025-03-23 10:57:19.120",
        "2025-03-23 12:57:19+02:00",
        "2025-02-30 00:00:00",
    ]
)


@st.composite
def row(draw: st.DrawFn, times: st.SearchStrategy[str], few: bool) -> tuple[object, ...]:
    """Return the ten cells of a row without its record_id."""
    table = draw(st.sampled_from(("usr", "usr", "grp", "nowhere")))
    names, keys = NAMES[table], KEYS[table]
    event_type = draw(st.sampled_from((1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 7, 8, 2 if few else 9)))
    column = draw(st.sampled_from(COLUMNS[table]))
    return (
        draw(st.sampled_from("NNNNNNNNSn")),
        event_type,
        draw(times),
        draw(st.sampled_from((None, None, "ann", "driver"))),
        names[0] if few else draw(st.sampled_from(names)),
        draw(st.sampled_from(keys[:2] if few else keys)),
        None if event_type in (4, 5, 6) or (not few and draw(st.integers(0, 30)) == 0) else column,
        draw(VALUES),
        draw(VALUES),
    )


@st.composite
def logs(draw: st.DrawFn, max_rows: int = 60) -> list[tuple[object, ...]]:
    """Return rows of a log in any order, sometimes with a duplicate record_id."""
    few = draw(st.booleans())
    times = st.just("2025-03-23 10:57:19") if draw(st.booleans()) else TIMES
    rows = draw(st.lists(row(times, few), min_size=1, max_size=max_rows))
    ids = draw(st.permutations(range(1, len(rows) + 1)))
    has_duplicate_id = draw(st.integers(0, 3)) == 0
    numbers = [1 if has_duplicate_id and n == len(rows) else n for n in ids]
    return [(number, *cells) for number, cells in zip(numbers, rows, strict=True)]


CURRENT = {
    "usr": "idu,fname,lname,photo,born,on,age,usr_phone.no\n"
    '1,Jöhn,Doe  ,u7s=,2024-02-29,true,5,11\n2,,"",,,,,\n9,Z,Z,,,f,,9\n',
    "grp": 'org,name,member,boss\na,b,m1,1\na,b,m2,1\n"a,b","",x,\n',
}
CURRENT_TEXTS = (
    "fname",
    "lname",
    "photo",
    "born",
    "on",
    "age",
    "usr_phone.no",
    "org",
    "name",
    "member",
    "boss",
)
