"""The hint of a missing package is a command that works where eventlog came from."""

from __future__ import annotations

import pytest

from eventlog.core.extras import MissingExtra, extra, install_command
from tests.kit.installed import ROOT

pytestmark = pytest.mark.quick


def test_in_a_clone_the_clone_is_named() -> None:
    command = install_command("kafka")
    assert command == f"pip install '.[kafka]' in {ROOT}"
    with pytest.raises(MissingExtra) as caught, extra("kafka", "kafka://"):
        raise ModuleNotFoundError("none", name="confluent_kafka")
    assert str(caught.value) == f"kafka:// needs a package that is not installed: {command}"
