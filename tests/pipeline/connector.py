"""Fetches jars for Spark from Maven Central, as brokers are fetched.

They are kept under ``~/.cache/logtool``: those of Spark's own source ``kafka`` in ``spark-kafka``,
one folder for each release of Spark, those of Delta Lake and Iceberg in ``spark-lake``.
"""

import subprocess
import tempfile
from pathlib import Path

from broker.install import HarnessError, cache_root

HERE = Path(__file__).parent
KAFKA, LAKE = "spark-kafka", "spark-lake"
"""Names of the files that name the jars."""


def jars(version: str, kind: str = KAFKA) -> list[Path]:
    """Return the jars for a release of Spark, fetched the first time; HarnessError without them."""
    target = cache_root().parent / kind / version
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as temporary:
            made = Path(temporary) / "jars"
            _copy(version, kind, made)
            try:
                made.rename(target)
            except OSError:
                if not target.is_dir():  # else another process was faster
                    raise
    return sorted(target.glob("*.jar"))


def _copy(version: str, kind: str, made: Path) -> None:
    command = [
        "mvn", "--batch-mode", "--quiet", f"--file={HERE / kind}.xml", f"-Dspark.version={version}",
        f"-DoutputDirectory={made}", "dependency:copy-dependencies",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode != 0 or not any(made.glob("*.jar")):
        raise HarnessError(f"mvn could not fetch {version}:\n{done.stdout}{done.stderr}")
