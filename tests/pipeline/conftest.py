"""One Spark session for all tests of the pipeline: it takes seconds to start."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from logtool.spark.session import session

# `make test` installs no Spark and runs none of these; `make test-spark` fails where it finds none.
# `make lint` alone brings pyspark without what the tests read its tables with.
_INSTALLED = find_spec("pyspark") and find_spec("duckdb")
_OF_SPARK = ("batch_memory", "cluster", "kafka_view", "notebooks", "s3", "scan", "since")
collect_ignore = [] if _INSTALLED else [f"test_{name}.py" for name in _OF_SPARK]
QUICK = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    # Spark 4.3 does not reach the Python process that plans a stream by such sockets.
    "spark.python.unix.domain.socket.enabled": "false",
    # A short life: the better of two compilers would not pay.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """Return a session on two cores of this machine, where a task is tried four times."""
    with session("local[2,4]", QUICK) as found:
        yield found
