"""The stores of names with a scheme: S3, HDFS and others, as Python reads them.

Workers in Python have no JVM, so they use Arrow's file systems. The driver translates Hadoop's configuration
of a store for them.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import IO, Any, Self, cast

from pyarrow import fs

from eventlog.core.errors import Misuse

_S3 = ("s3a", "s3", "s3n")
_CONTAINED = ("gs", "abfs", "abfss")
_SCHEMES = (*_S3, *_CONTAINED, "hdfs")
_NAMED = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)/?(.*)", re.DOTALL)
_BUFFER = 1 << 20
_KEYS = ("SimpleAWSCredentialsProvider", "TemporaryAWSCredentialsProvider")
_ROLE = "AssumedRoleCredentialProvider"
_ANONYMOUS = "AnonymousAWSCredentialsProvider"
_FOUND = (  # what Arrow's own chain finds as well
    "EnvironmentVariableCredentialsProvider",
    "IAMInstanceCredentialsProvider",
    "InstanceProfileCredentialsProvider",
    "ContainerCredentialsProvider",
    "ProfileCredentialsProvider",
    "WebIdentityTokenFileCredentialsProvider",
    "WebIdentityTokenCredentialsProvider",
    "DefaultCredentialsProvider",
    "DefaultAWSCredentialsProviderChain",
)
_PREFIX = "fs.s3a."
_SECRETS = ("access.key", "secret.key", "session.token")
_ENCRYPTION = ("encryption.algorithm", "server-side-encryption-algorithm")

Setting = Callable[[str], str | None]


class StoreLost(RuntimeError):
    """An error: a store does not answer, or refuses. No record is at fault, so the task fails."""


def is_remote(name: str) -> bool:
    """Return whether a name is of a store, and not of a local file."""
    found = _NAMED.match(name)
    return found is not None and found[1].lower() != "file"


def plain(name: str) -> str:
    """Return the name; that of a file without its scheme."""
    found = _NAMED.fullmatch(name)
    if found is None or found[1].lower() != "file":
        return name
    if found[2] not in ("", "localhost"):
        raise Misuse(f"{name}: a file of this machine has three slashes: file:///{found[3]}")
    return "/" + found[3]


@dataclass(frozen=True)
class ObjectStore:
    """A bucket, a container or a name node; it travels in pickled code only, for it may hold a key."""

    root: str  # as names begin: s3a://bucket
    given: tuple[tuple[str, Any], ...] = field(default=(), repr=False)

    @property
    def files(self) -> fs.FileSystem:
        """The store as Arrow reaches it, opened once in each process."""
        return _opened(self)

    def place(self, name: str) -> str:
        """Return Arrow's name for a name of this store."""
        rest = name[len(self.root) :].strip("/")
        scheme, _, host = self.root.partition("://")
        return f"/{rest}" if scheme == "hdfs" else f"{host.partition('@')[0]}/{rest}".rstrip("/")

    def name(self, place: str) -> str:
        """Return the name of what Arrow calls so."""
        return f"{self.root}/{place.lstrip('/').removeprefix(self.place(self.root).lstrip('/')).lstrip('/')}"

    def open(self, name: str) -> IO[bytes]:
        """Return a file to read, at any place of it."""
        with lost(name):
            file = self.files.open_input_file(self.place(name))
        return cast(IO[bytes], io.BufferedReader(_Reached(file, name), _BUFFER))

    def create(self, name: str) -> IO[bytes]:
        """Return a file to write; it is there once it is closed."""
        with lost(name):
            file = self.files.open_output_stream(self.place(name), compression=None)
        return cast(IO[bytes], io.BufferedWriter(_Reached(file, name), _BUFFER))

    def below(self, name: str) -> list[tuple[str, fs.FileInfo]]:
        """Return the files under a folder, in the order of their names; none where there is no such
        folder.
        """
        with lost(name):
            chosen = fs.FileSelector(self.place(name), allow_not_found=True, recursive=True)
            found = self.files.get_file_info(chosen)
        files = ((self.name(file.path), file) for file in found if file.type == fs.FileType.File)
        return sorted(files, key=lambda file: file[0])

    def look(self, name: str) -> fs.FileInfo:
        """Return what exists under the name."""
        with lost(name):
            return self.files.get_file_info(self.place(name))

    def text(self, name: str) -> str | None:
        """Return a small file; None where there is none."""
        if self.look(name).type != fs.FileType.File:
            return None
        with self.open(name) as file:
            return file.read().decode()

    def put(self, name: str, text: str) -> None:
        """A small file, whole."""
        with self.create(name) as file:
            file.write(text.encode())

    def drop(self, names: Iterable[str]) -> None:
        """Remove files."""
        for name in names:
            with lost(name):
                self.files.delete_file(self.place(name))


@lru_cache(maxsize=64)
def _opened(store: ObjectStore) -> fs.FileSystem:
    with lost(store.root):
        if store.root.partition("://")[0] in _S3:
            return fs.S3FileSystem(**dict(store.given))
        return fs.FileSystem.from_uri(store.root + "/")[0]


@contextmanager
def lost(name: str) -> Iterator[None]:
    """Add the requested name to an error of a store."""
    try:
        yield
    except (OSError, ImportError, NotImplementedError) as fault:
        raise StoreLost(f"{name}: {' '.join(str(fault).split())}") from None


class _Reached(io.RawIOBase):
    """A file of a store, whose errors are no fault of a record."""

    def __init__(self, file: Any, name: str) -> None:
        self._file = file
        self._name = name

    def readable(self) -> bool:
        return bool(self._file.readable())

    def writable(self) -> bool:
        return bool(self._file.writable())

    def seekable(self) -> bool:
        return bool(self._file.seekable())

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def readinto(self, buffer: Any) -> int:
        with lost(self._name):
            return int(self._file.readinto(buffer))

    def write(self, data: Any) -> int:
        with lost(self._name):
            return int(self._file.write(bytes(data)))  # the buffer is used again

    def close(self) -> None:
        if not self.closed:
            try:
                with lost(self._name):
                    self._file.close()
            finally:
                super().close()


@dataclass(frozen=True)
class Stores:
    """The stores that the names of a job lead to."""

    known: tuple[ObjectStore, ...] = ()

    @classmethod
    def reached(cls, spark: Any, names: Iterable[str]) -> Self:
        """Return the stores of these names, as the session is configured."""

        def setting(name: str) -> str:
            configured = spark.sparkContext._jsc.hadoopConfiguration()
            return "".join(configured.getPassword(name) or ())

        return cls.configured(names, setting)

    @classmethod
    def configured(cls, names: Iterable[str], setting: Setting) -> Self:
        """Return the stores of these names by Hadoop's settings; `setting` gives the text of a whole name."""
        roots = sorted({root_of(name) for name in names if is_remote(name)})
        return cls(tuple(store_said(root, setting) for root in roots))

    def of(self, name: str) -> ObjectStore | None:
        """Return the store of a name; None for a file that every machine has."""
        if not is_remote(name):
            return None
        root = root_of(name)
        found = next((store for store in self.known if store.root == root), None)
        if found is None:
            raise Misuse(f"{name}: only files of this machine are read here, and no names of a store")
        return found

    def open(self, name: str) -> IO[bytes]:
        """Open a file as bytes, wherever it is."""
        store = self.of(name)
        return open(name, "rb") if store is None else store.open(name)

    def opener(self, name: str) -> Callable[[str], IO[bytes]] | None:
        """Return what opens a file of a store; None for a file that every machine has."""
        store = self.of(name)
        return None if store is None else store.open


def root_of(name: str) -> str:
    """Return the store of a name."""
    found = _NAMED.match(name)
    assert found is not None
    root = found[2] if found[1] in _S3 else found[2].rpartition("@")[0]
    if ":" in root or (found[1] in _S3 and "@" in root):
        raise Misuse("a name of a store holds no key: give it to Hadoop's configuration, for names are shown")
    if found[1] not in _SCHEMES or not (found[2] or found[1] == "hdfs"):
        raise Misuse(f"{name}: names begin with {', '.join(f'{one}://' for one in _SCHEMES)} or file:///")
    return f"{found[1]}://{found[2]}"


def store_said(root: str, setting: Setting) -> ObjectStore:
    """Return the store of names from Hadoop's settings; `setting` returns the text of a whole name."""
    scheme, _, bucket = root.partition("://")
    if scheme not in _S3:
        return ObjectStore(root)

    def said(name: str) -> str | None:
        """Return the setting of this bucket, else of all."""
        found = (setting(f"{_PREFIX}{of}{name}") for of in (f"bucket.{bucket}.", ""))
        return next((text.strip() for text in found if text and text.strip()), None)

    given = arrow_s3_options(said)
    if not given.keys() & {"region", "endpoint_override"}:
        with lost(root):
            given["region"] = fs.resolve_s3_region(bucket)
    return ObjectStore(root, tuple(sorted(given.items())))


def arrow_s3_options(said: Setting) -> dict[str, Any]:
    """Return Arrow's options for a bucket from Hadoop's S3A settings; `said` returns a setting without
    `fs.s3a.`.
    """
    for name in _ENCRYPTION:
        if said(name):
            raise Misuse(f"fs.s3a.{name}: tasks leave encryption to the bucket, which has a default for it")
    secure = said("connection.ssl.enabled") != "false"
    given: dict[str, Any] = {"scheme": "https" if secure else "http"} | _credentials(said)
    endpoint = said("endpoint")
    if endpoint is not None:
        scheme, between, host = endpoint.rpartition("://")
        given |= {"endpoint_override": host.rstrip("/")} | ({"scheme": scheme} if between else {})
        given["force_virtual_addressing"] = said("path.style.access") != "true"
    region = said("endpoint.region")
    return given if region is None else given | {"region": region}


def _credentials(said: Setting) -> dict[str, Any]:
    named = said("aws.credentials.provider") or ""
    providers = [name.strip().rpartition(".")[2] for name in named.split(",")]
    strange = [name for name in filter(None, providers) if name not in (*_KEYS, *_FOUND, _ROLE, _ANONYMOUS)]
    if strange:
        raise Misuse(f"fs.s3a.aws.credentials.provider: tasks of Python have nothing like {strange[0]}")
    if providers[0] == _ANONYMOUS:
        return {"anonymous": True}
    role = said("assumed.role.arn")
    if _ROLE in providers and role is not None:
        return {"role_arn": role, "session_name": said("assumed.role.session.name") or "eventlog"}
    key, secret, token = (said(name) for name in _SECRETS)
    if key is None or secret is None or (any(providers) and not set(_KEYS) & set(providers)):
        return {}
    return {"access_key": key, "secret_key": secret} | ({} if token is None else {"session_token": token})


def create_new(spark: Any, name: str, text: str) -> bool:
    """Write a small file unless it exists. Return whether it was written; in one step, if the store can.

    Hadoop's own client does it, because Arrow's has no such condition.
    """
    context = spark.sparkContext
    path = context._jvm.org.apache.hadoop.fs.Path(name)
    from py4j.protocol import Py4JJavaError

    try:
        files = path.getFileSystem(context._jsc.hadoopConfiguration())
        if files.hasPathCapability(path, _CONDITIONAL):
            stream = files.createFile(path).must(_CONDITIONAL, True).build()
        else:
            stream = files.create(path, False)
        stream.write(bytearray(text.encode()))
        stream.close()
    except Py4JJavaError as fault:
        kind, message = fault.java_exception.getClass().getName(), fault.java_exception.getMessage()
        if kind.rpartition(".")[2] in _TAKEN:
            return False
        raise StoreLost(f"{name}: {message}") from None
    return True


_CONDITIONAL = "fs.option.create.conditional.overwrite"
_TAKEN = ("FileAlreadyExistsException", "RemoteFileChangedException")
