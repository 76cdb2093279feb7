"""The containers, as far as a machine without an engine can check them: check.sh, and compose.yaml."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from eventlog.cli.log_options import RUNNING
from eventlog.opening.config import read_config
from eventlog.web.monitor import MonitorSettings
from tests.kit.support import patient

pytestmark = pytest.mark.long

FOLDER = Path(__file__).parents[2] / "docker"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy that a test may break."""
    return shutil.copytree(FOLDER, tmp_path / "docker")


def check(folder: Path) -> tuple[int, str]:
    done = subprocess.run([folder / "check.sh"], capture_output=True, text=True, timeout=patient(500))
    return done.returncode, done.stderr


def services() -> dict[str, dict[str, Any]]:
    read: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
    return read


def test_the_check_finds_nothing() -> None:
    code, reported = check(FOLDER)
    assert code == 0, reported


@pytest.mark.parametrize(
    ("file", "old", "new", "reported"),
    [
        ("Dockerfile", "USER 10001:10001", "USER root", "run as a normal user"),
        ("Dockerfile", "HEALTHCHECK", "LABEL", "how its health is checked"),
        ("compose.yaml", "postgres:17.6-alpine", "postgres", "name a version"),
        ("compose.yaml", '"127.0.0.1:8780:8780"', '"8780:8780"', "publish ports on loopback only"),
        ("people.sh", "done", "", "no shell script"),
        ("kubernetes.yaml", "runAsNonRoot: true", "runAsNonRoot: false", "run as a normal user"),
        ("kubernetes.yaml", "emptyDir: {}", "hostPath: {path: /tmp}", "ask for no rights of the host"),
    ],
)
def test_the_check_finds_what_is_broken(copied: Path, file: str, old: str, new: str, reported: str) -> None:
    text = (copied / file).read_text()
    (copied / file).write_text(text.replace(old, new))
    code, said = check(copied)
    assert (code, reported in said) == (1, True), said


def test_the_manifests_hold_settings_that_a_publisher_takes(tmp_path: Path) -> None:
    documents = list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text()))
    by_kind = {document["kind"]: document for document in documents}
    (tmp_path / "eventlog.toml").write_text(by_kind["ConfigMap"]["data"]["eventlog.toml"])
    config = read_config(
        (settings for _, settings in RUNNING), {}, by_kind["Secret"]["stringData"], tmp_path / "eventlog.toml"
    )
    port = by_kind["Service"]["spec"]["ports"][0]["port"]
    assert config.build(MonitorSettings).monitor_port == port
    (container,) = by_kind["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["ports"] == [{"name": "monitor", "containerPort": port}]


def test_profiles_add_to_a_default_that_shows_documents_flowing() -> None:
    by_profile: dict[str, set[str]] = {}
    for name, service in services().items():
        (profile,) = service.get("profiles", ["default"])
        by_profile.setdefault(profile, set()).add(name)
    assert by_profile["default"] == {"postgres", "install", "track", "receiver", "publisher", "people"}
    assert set(by_profile) == {"default", "oracle", "spark"}
    assert services()["spark-worker"]["deploy"]["replicas"] == 2


def test_our_containers_have_no_rights_to_lose() -> None:
    ours = [s for s in services().values() if s["image"].startswith("eventlog")]
    assert len(ours) >= 8
    for service in ours:
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
