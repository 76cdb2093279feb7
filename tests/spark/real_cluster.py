"""A standalone cluster whose machines share nothing but an S3 server, and a backlog on it.

    unshare --net --mount --pid --fork --kill-child --mount-proc python real_cluster.py FOLDER

Each worker is a process in a network namespace and a mount namespace of its own. It sees Spark, Java, the
system's Python and its own folder. It does not see this source, its environment, or the folders of the
driver and the other worker. Its Python environment comes by `spark.archives`. When the first part is in the
bucket, one worker dies with all its executors, and the other is stopped for a while. A line of JSON has the
result.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyspark
from pyarrow import fs

from tests.kit import storage
from tests.kit.installed import ROOT, Installation, base, build, everything, source
from tests.kit.support import patient
from tests.spark.helpers import TABLES, write_log

_HOST, _SUBNET = "10.77.0.1", "10.77.0"
_S3, _MASTER = 5000, 7077
_WORKERS = ("one", "two")
_SPARK = Path(pyspark.__file__).parent
_PANDAS = ("pandas", "numpy", "numpy.libs", "dateutil", "pytz", "tzdata", "six.py")
ROWS = [
    (n, "N", 2, "2025-03-23 10:57:19", None, "usr", f"idu={n % 500}", "fname", str(n), str(n + 1))
    for n in range(1, 20_001)
]


def sh(*words: str | Path) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def wait(what: str, true: Callable[[], Any], seconds: float = 300) -> Any:
    """Return its value as soon as it is true."""
    deadline = time.monotonic() + patient(seconds)
    while time.monotonic() < deadline:
        with suppress(OSError):
            if value := true():
                return value
        time.sleep(0.1)
    raise TimeoutError(what)


def network() -> None:
    """A bridge, and a namespace for each worker."""
    sh("mount", "-t", "tmpfs", "tmpfs", "/run")
    sh("ip", "link", "set", "lo", "up")
    sh("ip", "link", "add", "bridge", "type", "bridge")
    sh("ip", "address", "add", f"{_HOST}/24", "dev", "bridge")
    sh("ip", "link", "set", "bridge", "up")
    for number, name in enumerate(_WORKERS, 11):
        sh("ip", "netns", "add", name)
        sh("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
        sh("ip", "link", "set", f"to-{name}", "master", "bridge", "up")
        inside = ("ip", "-n", name)
        sh(*inside, "address", "add", f"{_SUBNET}.{number}/24", "dev", "eth0")
        sh(*inside, "link", "set", "eth0", "up")
        sh(*inside, "link", "set", "lo", "up")


def environment(folder: Path) -> Path:
    """Pack our wheel and its dependencies; Spark's own Python comes with Spark."""
    packages = base() | {name: path for name, path in everything().items() if name in _PANDAS}
    (folder / "source").mkdir()
    installed = Installation(folder / "env", build(source(folder / "source"), folder), packages)
    packed = folder / "env.tar.gz"  # of a .tar Spark forgets what can be run
    with tarfile.open(packed, "w:gz", compresslevel=1) as archive:
        archive.dereference = True
        archive.add(installed.python, "bin/python")
        archive.add(folder / "env" / "pyvenv.cfg", "pyvenv.cfg")
        archive.add(installed.site, str(installed.site.relative_to(folder / "env")))
    return packed


def worker(name: str, number: int, folder: Path) -> subprocess.Popen[bytes]:
    """Return a worker that sees what a machine of its own would."""
    own_folder = folder / name
    (own_folder / "spark").mkdir(parents=True)
    other_places = [
        ROOT,
        Path(storage.JARS).parent,
        folder / "driver",
        *(folder / n for n in _WORKERS if n != name),
    ]
    hidden = [str(path) for path in other_places]
    run = f"{own_folder}/spark/bin/spark-class org.apache.spark.deploy.worker.Worker"
    script = [
        f"mount --bind {_SPARK} {own_folder}/spark",
        *(f"mount -t tmpfs tmpfs {path}" for path in hidden),
        f"cd {own_folder}",
        f"exec {run} --host {_SUBNET}.{number} --cores 1 --memory 1g --work-dir {own_folder}/work spark://{_HOST}:{_MASTER}",
    ]
    variables = {"SPARK_HOME": f"{own_folder}/spark", "PATH": os.environ["PATH"], "HOME": str(own_folder)}
    variables |= {"JAVA_HOME": os.environ["JAVA_HOME"], "SPARK_LOCAL_DIRS": str(own_folder)}
    variables |= {"SPARK_LOCAL_IP": f"{_SUBNET}.{number}"}
    return subprocess.Popen(
        ["ip", "netns", "exec", name, "unshare", "--mount", "sh", "-ec", "\n".join(script)],
        env=variables,
        stdout=subprocess.DEVNULL,
        stderr=(folder / f"{name}.log").open("wb"),
    )


def processes(name: str) -> list[int]:
    """Return all processes in the namespace of a worker."""
    listing = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=True)
    return [int(number) for number in listing.stdout.split()]


def listed(place: str) -> list[str]:
    chosen = fs.FileSelector(place, allow_not_found=True, recursive=True)
    entries = storage.filesystem().get_file_info(chosen)
    return sorted(file.path[len(place) + 1 :] for file in entries if file.type == fs.FileType.File)


def put(folder: Path, bucket: str) -> None:
    """Write the log in ten files, one of them for our own reader."""
    for number in range(10):
        file = write_log(folder / f"log{number}.{'parquet' if number else 'csv'}", ROWS[number::10])
        with storage.filesystem().open_output_stream(f"{bucket}/logs/{file.name}") as out:
            out.write(file.read_bytes())


def command(folder: Path, packed: Path, bucket: str) -> Sequence[str]:
    """Return the backlog, as docs/convert/clusters.md gives it."""
    (folder / "tables.toml").write_text(TABLES, "utf-8")
    conf = storage.conf() | {
        "spark.archives": f"{packed}#env",
        "spark.pyspark.python": "./env/bin/python",
        "spark.driver.host": _HOST,
        "spark.executor.memory": "512m",
        "spark.speculation": "true",
    }
    conf_words = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    words = ["--from", "log", "--to", "xds", "--tables", str(folder / "tables.toml"), "--partitions", "12"]
    places = ["-o", f"s3a://{bucket}/out", f"s3a://{bucket}/logs"]
    master = ["--master", f"spark://{_HOST}:{_MASTER}"]
    return [sys.executable, "-m", "eventlog", "backlog", *words, *master, *conf_words, *places]


def trouble(bucket: str, job: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Kill one worker and stop the other for a while; return the files in the bucket at that time."""

    def parts() -> list[str]:
        return [name for name in listed(f"{bucket}/out") if "/part-" in name]

    wait("a part", lambda: parts() or job.poll() is not None, 900)
    dead, stalled = processes("two"), processes("one")
    for process in dead:
        os.kill(process, signal.SIGKILL)
    for process in stalled:
        os.kill(process, signal.SIGSTOP)
    files_then = listed(f"{bucket}/out")
    time.sleep(3)  # the time for which this worker is stopped
    for process in stalled:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)
    return {"then": files_then, "killed": len(dead)}


def run(folder: Path) -> dict[str, Any]:
    """Run the cluster from start to end, and return what happened."""
    network()
    os.environ["SPARK_LOCAL_IP"] = _HOST
    driver = folder / "driver"
    driver.mkdir()
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": (folder / "servers.log").open("wb")}
    server = Path(storage.JARS).parent / "env" / "bin" / "moto_server"
    started = [subprocess.Popen([server, "-H", _HOST, "-p", str(_S3)], **quiet)]
    try:
        packed = environment(driver)
        master = ("org.apache.spark.deploy.master.Master", "--host", _HOST, "--port", str(_MASTER))
        started.append(subprocess.Popen([_SPARK / "bin" / "spark-class", *master], **quiet))
        started += [worker(name, number, folder) for number, name in enumerate(_WORKERS, 11)]
        bucket = wait("the S3 server", storage.bucket)
        put(driver, bucket)
        with (folder / "driver.log").open("wb") as log:
            job = subprocess.Popen(command(driver, packed, bucket), cwd=driver, stdout=log, stderr=log)
            reported = trouble(bucket, job)
            reported["code"] = job.wait(timeout=patient(900))
        reported["said"] = (folder / "driver.log").read_text("utf-8", "replace")[-4000:]
        written_documents = [] if reported["code"] else list(documents(bucket))
        return reported | {"done": listed(f"{bucket}/out"), "documents": written_documents}
    finally:
        for process in started:
            process.kill()


def documents(bucket: str) -> Iterator[str]:
    """Yield the documents of the output."""
    files = storage.filesystem()
    for name in listed(f"{bucket}/out/documents"):
        if name.startswith("part-"):
            yield from files.open_input_stream(f"{bucket}/out/documents/{name}").read().decode().splitlines()


if __name__ == "__main__":
    storage.ADDRESS = f"http://{_HOST}:{_S3}"
    print(json.dumps(run(Path(sys.argv[1]))))
