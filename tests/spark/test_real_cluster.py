"""A standalone cluster of two machines that share only an S3 server; one dies, one is stopped."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import storage
from tests.kit.installed import ROOT
from tests.kit.support import patient
from tests.spark.helpers import by_object, converted, job, write_log

pytestmark = pytest.mark.long

UNSHARE = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


def missing() -> str:
    """Return why a cluster is impossible here."""
    if not os.environ.get("CI_FULL") and not os.environ.get("EVENTLOG_TEST_CLUSTER"):
        return "it is for the night: set CI_FULL or EVENTLOG_TEST_CLUSTER"
    if not storage.JARS:
        return "EVENTLOG_TEST_S3_JARS names no client: .ci/storage fetches it"
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        return "there is no ip or no unshare"
    bridge = "ip link add bridge type bridge && ip link add to-one type veth peer name eth0"
    tried = subprocess.run([*UNSHARE, "sh", "-c", bridge], capture_output=True, text=True, check=False)
    return f"no namespaces: {tried.stderr.strip()}" if tried.returncode else ""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can enter."""
    path = Path(tempfile.mkdtemp(prefix="eventlog-cluster-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


REASON = missing()


@pytest.mark.timeout(1_800)
@pytest.mark.skipif(bool(REASON), reason=REASON)
def test_machines_that_share_nothing_but_a_store(folder: Path, tmp_path: Path) -> None:
    from eventlog_spark.session import find_java

    from tests.spark.real_cluster import ROWS

    paths = os.pathsep.join((str(ROOT), str(ROOT / "spark")))
    done = subprocess.run(
        [*UNSHARE, sys.executable, Path(__file__).with_name("real_cluster.py"), folder],
        env=os.environ | {"PYTHONPATH": paths, "JAVA_HOME": str(find_java())},
        capture_output=True,
        text=True,
        check=False,
        timeout=patient(1_500),
    )
    assert done.returncode == 0, done.stderr[-4000:]
    reported = json.loads(done.stdout)
    assert reported["code"] == 0, reported["said"]
    assert reported["killed"] >= 2  # the worker and its executor
    assert any("/part-" in name for name in reported["then"])
    assert "done/_SUCCESS" not in reported["then"]
    assert {"documents/_SUCCESS", "done/_SUCCESS"} < set(reported["done"])
    expected, _ = converted(job([write_log(tmp_path / "log.parquet", ROWS)], tmp_path / "expected"))
    assert by_object(reported["documents"], ROWS) == by_object(expected, ROWS)
