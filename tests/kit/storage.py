"""The S3 server that EVENTLOG_TEST_S3 names; `.ci/storage` starts one."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from pyarrow import fs

ADDRESS = os.environ.get("EVENTLOG_TEST_S3", "")
JARS = os.environ.get("EVENTLOG_TEST_S3_JARS", "")
_KEY = "nobody"  # the server needs no key, but clients want one


def bucket() -> str:
    """Return a new bucket that no other test has."""
    name = f"test-{secrets.token_hex(8)}"
    filesystem().create_dir(name)
    return name


def filesystem() -> fs.S3FileSystem:
    """Return the server as Arrow sees it."""
    return fs.S3FileSystem(
        access_key=_KEY,
        secret_key=_KEY,
        endpoint_override=ADDRESS,
        region="us-east-1",
        allow_bucket_creation=True,
    )


def conf(address: str = ADDRESS) -> dict[str, str]:
    """Return the settings of a Spark session for the server, or for one before it."""
    hadoop = {
        "endpoint": address,
        "endpoint.region": "us-east-1",
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "access.key": _KEY,
        "secret.key": _KEY,
    }
    jars = ",".join(str(path) for path in sorted(Path(JARS).glob("*.jar")))
    return {"spark.jars": jars} | {f"spark.hadoop.fs.s3a.{name}": value for name, value in hadoop.items()}


def variables() -> dict[str, str]:
    """Return the environment in which Spark reaches the server."""
    few = {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}
    reported = " ".join(f"--conf {name}={value}" for name, value in (few | conf()).items())
    return {
        "PYSPARK_SUBMIT_ARGS": f"--master local[2] {reported} pyspark-shell",
        "SPARK_LOCAL_IP": "127.0.0.1",
    } | keys()


def keys(address: str = ADDRESS) -> dict[str, str]:
    """Return the environment in which libraries other than Hadoop's reach the server, or one before it."""
    return {
        "AWS_ENDPOINT_URL": address,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": _KEY,
        "AWS_SECRET_ACCESS_KEY": _KEY,
    }
