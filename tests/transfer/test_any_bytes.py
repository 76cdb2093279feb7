"""Readers of foreign bytes, with any bytes: sound ones with pieces cut out, doubled and changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.anybytes import CHECKS, SOUND

pytestmark = pytest.mark.quick


@st.composite
def mutants(draw: st.DrawFn, sound: bytes) -> bytes:
    data = sound
    for _ in range(draw(st.integers(0, 4))):
        start, end = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        piece = draw(st.one_of(st.binary(max_size=4), st.just(data[start:end]), st.just(b"<!DOCTYPE nds [")))
        data = data[:start] + piece + data[draw(st.sampled_from((start, end))) :]
    return data


@pytest.mark.parametrize("name", CHECKS)
def test_any_bytes(name: str) -> None:
    @given(st.one_of(st.binary(), mutants(SOUND[name])))
    def check(data: bytes) -> None:
        CHECKS[name](data)

    CHECKS[name](SOUND[name])
    check()
