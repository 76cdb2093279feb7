"""The table of planted faults fits the source."""

from __future__ import annotations

import pytest

from tests.mutants.__main__ import Fault, faults
from tests.project.changed import ROOT

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_a_fault_has_its_place_in_the_source_and_a_file_of_tests(fault: Fault) -> None:
    assert (ROOT / fault.file).read_text("utf-8").count(fault.original) == 1
    assert (ROOT / fault.test).is_file()
