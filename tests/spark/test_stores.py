"""The store settings of a session, translated for the workers; and wrong names."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from eventlog_spark.cluster.stores import ObjectStore, StoreLost, Stores, arrow_s3_options, plain
from eventlog_spark.io.storage import expand

from eventlog.core.errors import Misuse
from eventlog.core.formats import Shape

pytestmark = pytest.mark.quick

NOTHING: dict[str, str] = {}  # gets the S3A settings


class No(BaseHTTPRequestHandler):
    """A server that denies every key."""

    def do_GET(self) -> None:
        body = b"<Error><Code>InvalidAccessKeyId</Code><Message>The key does not exist.</Message></Error>"
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def test_wrong_credentials_are_reported_without_the_secret() -> None:
    with HTTPServer(("127.0.0.1", 0), No) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        given = {
            "access_key": "AKIAKEY",
            "secret_key": "very-secret",
            "region": "us-east-1",
            "scheme": "http",
        }
        given["endpoint_override"] = f"127.0.0.1:{server.server_port}"
        store = ObjectStore("s3a://bucket", tuple(given.items()))
        with pytest.raises(StoreLost) as caught:
            expand(["s3a://bucket/logs"], Shape.ROWS, None, Stores((store,)))
        server.shutdown()
    assert str(caught.value).startswith("s3a://bucket/logs: ")
    assert "ACCESS_DENIED" in str(caught.value)
    assert "very-secret" not in str(caught.value) + repr(store) + repr(Stores((store,)))


@pytest.mark.parametrize(
    ("said", "given"),
    [
        ({}, {"scheme": "https"}),
        ({"access.key": "k", "secret.key": "s"}, {"scheme": "https", "access_key": "k", "secret_key": "s"}),
        (
            {"endpoint": "http://store:9000/", "path.style.access": "true"},
            {"scheme": "http", "endpoint_override": "store:9000", "force_virtual_addressing": False},
        ),
        (
            {"endpoint": "store:9000", "connection.ssl.enabled": "false", "endpoint.region": "eu-west-1"},
            {
                "scheme": "http",
                "endpoint_override": "store:9000",
                "force_virtual_addressing": True,
                "region": "eu-west-1",
            },
        ),
        (
            {"aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"},
            {"scheme": "https", "anonymous": True},
        ),
        (
            {
                "aws.credentials.provider": "a.b.DefaultCredentialsProvider",
                "access.key": "k",
                "secret.key": "s",
            },
            {"scheme": "https"},
        ),
        (
            {"aws.credentials.provider": "x.AssumedRoleCredentialProvider", "assumed.role.arn": "arn:r"},
            {"scheme": "https", "role_arn": "arn:r", "session_name": "eventlog"},
        ),
    ],
)
def test_what_hadoop_knows_of_a_store_is_given_to_arrow(said: dict[str, str], given: dict[str, Any]) -> None:
    assert arrow_s3_options(said.get) == given


@pytest.mark.parametrize(
    "said", [{"aws.credentials.provider": "com.example.Ours"}, {"encryption.algorithm": "SSE-KMS"}]
)
def test_what_cannot_be_reported_is_said(said: dict[str, str]) -> None:
    with pytest.raises(Misuse, match=r"fs\.s3a\."):
        arrow_s3_options(said.get)


@pytest.mark.parametrize("name", ["ftp://host/x", "s3a:///x", "S3A://bucket/x"])
def test_a_scheme_that_is_unknown(name: str) -> None:
    with pytest.raises(Misuse, match="names begin with s3a://"):
        Stores.reached(None, [name])


def test_a_store_that_nobody_reported_of() -> None:
    with pytest.raises(Misuse, match="only files of this machine are read here"):
        expand(["s3a://bucket/x.csv"], Shape.ROWS, None)


@pytest.mark.parametrize(
    "name",
    [
        "s3a://AKIAKEY:very-secret@bucket/x",
        "s3a://AKIAKEY:very-secret@",
        "s3://very-secret@bucket",
        "s3a://AKIAKEY:very-secret/with/slashes@bucket/x",
        "hdfs://me:very-secret@head:8020/x",
        "nothing://me:very-secret@bucket/x",
    ],
)
def test_a_name_with_a_key_in_it_is_not_repeated(name: str) -> None:
    with pytest.raises(Misuse, match="a name of a store holds no key") as caught:
        Stores.configured([name], NOTHING.get)
    assert "very-secret" not in str(caught.value)


def test_a_container_and_a_user_are_no_keys() -> None:
    names = ["abfss://lake@account.dfs.core.windows.net/x", "hdfs://me@head:8020/x"]
    found = Stores.configured(names, NOTHING.get).known
    assert [store.root for store in found] == [name[:-2] for name in names]


def test_keys_of_one_bucket_in_a_file_of_credentials(spark: Any, tmp_path: Path) -> None:
    context = spark.sparkContext
    configured = context._jsc.hadoopConfiguration()
    plain_settings = {
        "hadoop.security.credential.provider.path": f"localjceks://file{tmp_path}/keys",
        "fs.s3a.bucket.lake.access.key": "id",
        "fs.s3a.bucket.lake.endpoint.region": "eu-central-1",
    }
    secret = "very secret + 'quoted'"
    for name, value in plain_settings.items():
        configured.set(name, value)
    try:
        factory = context._jvm.org.apache.hadoop.security.alias.CredentialProviderFactory
        (provider,) = factory.getProviders(configured)
        letters = context._gateway.new_array(context._jvm.char, len(secret))
        for at, letter in enumerate(secret):
            letters[at] = letter
        provider.createCredentialEntry("fs.s3a.bucket.lake.secret.key", letters)
        provider.flush()
        (store,) = Stores.reached(spark, ["s3a://lake/x"]).known
    finally:
        for name in plain_settings:
            configured.unset(name)
    assert dict(store.given)["secret_key"] == secret
    assert secret not in repr(store)


def test_files_of_this_machine_may_have_a_scheme(tmp_path: Path) -> None:
    (tmp_path / "a%20.csv").write_text("")
    (found,) = expand([f"file://{tmp_path}/a%20.csv"], Shape.ROWS, None)
    assert found.name == str(tmp_path / "a%20.csv")
    with pytest.raises(Misuse, match="three slashes"):
        plain("file://host/x")
