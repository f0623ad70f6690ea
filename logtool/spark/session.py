"""The Spark session: it starts quietly, and an error that stops it is one line."""

import logging
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module, resources
from importlib.util import find_spec
from traceback import walk_tb
from types import FrameType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from logtool.errors import LogtoolError, ending
from logtool.running import java
from logtool.running.workers import available_cpus
from logtool.spark import connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
"""Oldest version of Java that Spark 4 runs on."""
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_UNDER_SUBMIT = "PYSPARK_GATEWAY_PORT"
"""Environment variable that is set where spark-submit has started the JVM already."""
_INSTALL = "pip install 'kafka-logtool[spark]'"
_TRIES = 4
"""Attempts at a task on this machine. Spark's default is one, with which a killed worker ends the
job."""
_MASTER_SECONDS = 2
"""Seconds in which a master must take a connection."""
_LOCAL = re.compile(r"local(\[(\d+|\*)(\s*,\s*\d+)?\]|-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\])?")
"""Masters on this machine (``SparkMasterRegex``, Spark 4.3)."""
_OF_YARN = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_PORTS = {"https": 443, "http": 80}
_PROXIES = ("https_proxy", "http_proxy", "all_proxy")
_END_SECONDS = 2
"""Most seconds until a JVM whose connection broke has ended."""
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that are held back while a session starts."""


class SparkError(LogtoolError):
    """Spark could not start, or failed; exit status 4."""


def master_here() -> str:
    """Return the master for this machine: as many cores as this process may use."""
    return f"local[{available_cpus()},{_TRIES}]"


def needed() -> None:
    """Raise SparkError where the libraries of the pipeline are not installed."""
    # Only executors use pandas, which takes longer to import than pyspark and logtool together.
    _installed("pyarrow", "pyspark", not_imported="pandas")


def needed_for_runs() -> None:
    """Raise SparkError if a library that reads the tables of finished runs is not installed.

    Reading them needs no Spark.
    """
    _installed("pyarrow")


def _installed(*names: str, not_imported: str = "pyarrow") -> None:
    try:
        for name in names:
            import_module(name)
        if find_spec(not_imported) is None:
            raise ModuleNotFoundError(f"No module named {not_imported!r}")
    except ImportError as error:
        raise SparkError(
            f"The tables of scan need libraries that are not installed: {_INSTALL} ({error})"
        ) from error


@contextmanager
def session(
    master: str | None,
    settings: Mapping[str, str],
    on_start: Callable[[str], None] = lambda _: None,
) -> Iterator["SparkSession"]:
    """Yield a Spark session and stop it at the end; an active one is used and not stopped.

    Without a master the session runs on this machine; under spark-submit it runs where spark-submit
    says. `settings` are any ``spark.*``; they override the settings made here. `on_start` takes a
    line about the start, once what a start needs was found. SparkError without
    pyspark, without a fitting Java, without a master that answers, and for errors of Spark while
    the session is used.
    """
    needed()
    if reason := connect.asked(master, settings):
        raise SparkError(f"{reason}: {connect.REFUSAL}")
    from pyspark.sql import SparkSession

    if active := SparkSession.getActiveSession():
        with _as_spark_error():
            yield active
        return
    submitted = _UNDER_SUBMIT in os.environ
    if not submitted:
        master = master or master_here()
        check_master(master)
        _check_java()
    ours = _settings(master)
    if (master or "").startswith("local"):
        # Else Spark looks the machine's name up, and warns of a loopback address.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # spark-submit does this with the setting; by default executors run the Python that runs here.
    if python := settings.get("spark.pyspark.python"):
        os.environ["PYSPARK_PYTHON"] = python
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("logtool")
    builder = builder.master(master) if master else builder
    for name, value in {**ours, **settings}.items():
        both = name == _JAVA_OPTIONS and name in ours and name in settings
        builder = builder.config(name, f"{ours[name]} {value}" if both else value)
    on_start(f"starting Spark ({master or 'as spark-submit says'})")
    with _interrupts_delayed() as interrupted, _quiet() as said:
        try:
            spark = builder.getOrCreate()
        except Exception as error:
            # The error may be one of pyspark, of py4j or of the system.
            end = _end_of_jvm(error)
            raise SparkError(
                end or f"Spark does not start: {describe_error(error, said())}"
            ) from error
    ended_by = interrupted()
    if ended_by:
        spark.stop()
        raise ended_by
    # py4j logs an interrupted call with its traceback, to stderr if there is no handler.
    silent = logging.NullHandler()
    logging.getLogger().addHandler(silent)
    try:
        with _as_spark_error():
            yield spark
    finally:
        logging.getLogger().removeHandler(silent)
        with suppress(Exception):  # A broken connection must not hide what broke it.
            spark.stop()


def describe_error(error: BaseException, said: str = "") -> str:
    """Return the line of an error that says most: logtool's, else Java's without stack trace."""
    text = f"{error}\n{said}"
    for pattern in (
        r"^logtool\.errors\.\w+: (.+)",
        r"(?:Caused by|Exception in thread [^:]*): [\w.$]*?(\w+(?:Exception|Error): .+)",
        r"[\w.$]*?(\w+(?:Exception|Error): .+)",
    ):
        if found := re.findall(pattern, text, re.MULTILINE):
            return str(found[-1]).strip()
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)


@contextmanager
def _as_spark_error() -> Iterator[None]:
    """Turn what Spark raises into a SparkError of one line."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (ConnectionError, Py4JError, PySparkException) as error:
        raise job_failed(error) from error


def job_failed(error: BaseException) -> SparkError:
    """Return the error of a job that Spark ended, or whose JVM was killed."""
    return SparkError(_end_of_jvm(error) or f"the Spark job failed: {describe_error(error)}")


def _end_of_jvm(error: BaseException) -> str | None:
    """Return how the JVM was killed, if it was; None if it ended by itself or still runs."""
    # Without pyspark there is no JVM.
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    process = getattr(getattr(context, "_gateway", None), "proc", None)
    broken = isinstance(error, ConnectionError) or type(error).__name__ == "Py4JNetworkError"
    if process is None:  # It ended before it answered; only the frame that started it knows it.
        found = (frame.f_locals.get("proc") for frame, _ in walk_tb(error.__traceback__))
        process = next((one for one in found if isinstance(one, subprocess.Popen)), None)
    elif not broken:
        return None
    try:
        code = None if process is None else process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    return killed(code) if code else None


def killed(code: int) -> str | None:
    """Return the line about a JVM that ended by a signal; None for another status of its end."""
    number = -code if code < 0 else code - 128
    try:
        name = signal.Signals(number).name
    except ValueError:
        return None
    hint = (
        "; the kernel does that if memory runs out: see dmesg, and set spark.driver.memory lower"
        if number == signal.SIGKILL
        else ""
    )
    return f"the JVM of Spark was killed by {name}{hint}"


def _settings(master: str | None) -> dict[str, str]:
    """Return the settings for `master`; without a master spark-submit gives most of them."""
    sql = {"spark.sql.execution.arrow.pyspark.enabled": "true", "spark.sql.session.timeZone": "UTC"}
    if master is None:
        return sql
    log4j = resources.files("logtool.spark") / "log4j2.properties"
    settings = {
        **sql,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.unix.domain.socket.enabled": "true",
        _JAVA_OPTIONS: f"-Dlog4j2.configurationFile=file:{log4j}",
    }
    if master.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if re.fullmatch(r"local(\[.*\])?", master):
        # The driver is the executor too. Its default of 1 GiB is little to sort in. Python reads
        # the logs and writes the tables; for the rest the slower of Java's compilers costs more
        # than it saves.
        settings[_JAVA_OPTIONS] += " -XX:TieredStopAtLevel=1"
        settings |= {
            "spark.driver.memory": "2g",
            "spark.sql.shuffle.partitions": str(4 * available_cpus()),
        }
    return settings


def _check_java() -> None:
    found = java.find()
    if found is None:
        raise SparkError(f"Spark needs Java {OLDEST_JAVA} or newer: {java.missing()}")
    if found.major and found.major < OLDEST_JAVA:
        raise SparkError(
            f"Spark needs Java {OLDEST_JAVA} or newer: {found.program} is Java {found.major}"
        )


def check_master(master: str) -> None:
    """Raise SparkError for a master that Spark does not know, or that takes no connection.

    All connections together take at most `_MASTER_SECONDS`. Kubernetes is not tried behind a proxy,
    through which its client may reach it.
    """
    if master.startswith("spark://"):
        found = [_host_and_port(master, one) for one in master.removeprefix("spark://").split(",")]
        _check_connection(found)
    elif master.startswith("k8s://"):
        place = _api_server(master)
        if not any(name.lower() in _PROXIES for name in os.environ):
            _check_connection([place])
    elif master == "yarn":
        if not any(os.environ.get(name) for name in _OF_YARN):
            raise SparkError(
                f"--master yarn needs the configuration of the cluster: set {' or '.join(_OF_YARN)}"
            )
    elif not _LOCAL.fullmatch(master):
        raise SparkError(
            f"--master {master}: expected local, local[N], local[N,FAILURES], "
            "local-cluster[N,CORES,MEMORY], spark://HOST:PORT, k8s://HOST:PORT or yarn"
        )


def _host_and_port(master: str, place: str) -> tuple[str, int]:
    host, _, port = place.rpartition(":")
    if not (host and port.isdecimal() and int(port) < 2**16):
        raise SparkError(f"--master {master}: expected spark://HOST:PORT")
    return host.strip("[]"), int(port)


def _api_server(master: str) -> tuple[str, int]:
    """Return host and port of the API server of Kubernetes, whose scheme is https by default."""
    text = master.removeprefix("k8s://")
    try:
        url = urlsplit(text if "://" in text else f"https://{text}")
        usual = _PORTS[url.scheme]
        port = url.port or usual
    except (KeyError, ValueError):
        url, port = urlsplit(""), 0
    if not url.hostname:
        raise SparkError(f"--master {master}: expected k8s://HOST:PORT")
    return url.hostname, port


def _check_connection(places: Sequence[tuple[str, int]]) -> None:
    """Raise SparkError if none of the hosts and ports takes a connection."""
    problems = []
    for host, port in places:
        try:
            socket.create_connection((host, port), _MASTER_SECONDS / len(places)).close()
        except OSError as error:
            problems.append(f"{host}:{port}: {error.strerror or error}")
        else:
            return
    raise SparkError(f"no Spark master answers: {'; '.join(problems)}")


@contextmanager
def _interrupts_delayed() -> Iterator[Callable[[], KeyboardInterrupt | None]]:
    """Hold back Ctrl-C, SIGTERM and SIGHUP: a JVM whose start is interrupted would keep running.

    Yields a function that returns the exception to raise for the signal that came, or None without
    one; a second signal is raised at once. At the end the handlers from before are set again, in
    place of Spark's.
    """
    before = {number: signal.getsignal(number) for number in _ENDING}
    seen: list[KeyboardInterrupt] = []

    def hold(number: int, frame: FrameType | None) -> None:
        seen.append(ending(number))
        if len(seen) > 1:
            raise seen[-1]

    with suppress(ValueError):  # not in the main thread: none arrive here
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, hold)
    try:
        yield lambda: seen[0] if seen else None
    finally:
        with suppress(ValueError):
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def _quiet() -> Iterator[Callable[[], str]]:
    """Capture stderr, that of the JVM too, and yield a function that returns the text."""
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:

        def said() -> str:
            return (
                ""
                if file.closed
                else os.pread(file.fileno(), 1 << 20, 0).decode("utf-8", "replace")
            )

        os.dup2(file.fileno(), 2)
        try:
            yield said
        finally:
            os.dup2(kept, 2)
            os.close(kept)
