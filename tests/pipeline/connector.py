"""Fetches the jars of Spark's own source ``kafka`` from Maven Central, as brokers are fetched.

They are kept under ``~/.cache/logtool/spark-kafka``, one folder for each release of Spark.
"""

import subprocess
import tempfile
from pathlib import Path

from broker.install import HarnessError, cache_root

POM = Path(__file__).parent / "spark-kafka.xml"


def jars(version: str) -> list[Path]:
    """Return the jars for a release of Spark, fetched the first time; HarnessError without them."""
    target = cache_root().parent / "spark-kafka" / version
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as temporary:
            made = Path(temporary) / "jars"
            _copy(version, made)
            try:
                made.rename(target)
            except OSError:
                if not target.is_dir():  # else another process was faster
                    raise
    return sorted(target.glob("*.jar"))


def _copy(version: str, made: Path) -> None:
    command = [
        "mvn", "--batch-mode", "--quiet", f"--file={POM}", f"-Dspark.version={version}",
        f"-DoutputDirectory={made}", "dependency:copy-dependencies",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode != 0 or not any(made.glob("spark-sql-kafka*.jar")):
        raise HarnessError(f"mvn could not fetch {version}:\n{done.stdout}{done.stderr}")
