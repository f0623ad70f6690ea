"""The DAG of the guide logtool-fleets, run by Apache Airflow: ``make airflow``.

Airflow has an environment of its own. The bucket is a server on 127.0.0.1 with three real brokers.
In place of ``jupyter execute`` this program runs the cells of the notebook, in this environment.
"""

import json
import os
import re
import sys
import tarfile
import time
from pathlib import Path

import fsspec
from packages.building import ROOT, environment, run
from s3_server import serving, settings

from logtool.spark.scan import manifest

GUIDE = ROOT / "man" / "logtool-fleets.md"
NOTEBOOK = ROOT / "tests" / "pipeline" / "notebooks" / "who-diverges.ipynb"
REPORT = ROOT / "tests" / "bench" / "reports" / "airflow.md"
_WORK = ROOT / "build" / "airflow"
_BROKERS = ROOT / "tests" / "data" / "4.3.1" / "replicas.tar.xz"
_AIRFLOW = "apache-airflow>=3,<4"
_FOLDER = "/opt/fleet"
"""Folder of the notebook in the guide."""
_DAY = "2026-11-28"


def block() -> str:
    """Return the DAG of the guide."""
    found = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    (text,) = (one for one in found if "airflow" in one)
    return str(text)


def execute(notebook: Path) -> None:
    """Run the code of a notebook, cell by cell."""
    names: dict[str, object] = {}
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    sys.stdout.write(f"diverging: {names['diverging']}\n")


def upload(bucket: str) -> None:
    """Put the log dirs of three brokers into a bucket, as node-1 to node-3."""
    s3 = fsspec.filesystem("s3")
    s3.mkdir(bucket)
    with tarfile.open(_BROKERS) as tar:
        tar.extractall(_WORK / "brokers", filter="data")
    homes = sorted(path.parent for path in (_WORK / "brokers").rglob("meta.properties"))
    for number, home in enumerate(homes, 1):
        s3.put(f"{home}/", f"{bucket}/night/node-{number}/", recursive=True)


def main() -> None:
    """Run the DAG for one day, and write the report."""
    bin_dir = environment(sys.executable, _WORK / "env", _AIRFLOW)
    (_WORK / "dags").mkdir(exist_ok=True)
    (_WORK / "bin").mkdir(exist_ok=True)
    dag = _WORK / "dags" / "who_diverges.py"
    dag.write_text(block().replace(_FOLDER, str(NOTEBOOK.parent)))
    jupyter = _WORK / "bin" / "jupyter"
    jupyter.write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} "$2"\n')
    jupyter.chmod(0o755)
    with serving() as address:
        os.environ |= settings(address, _WORK) | {
            "AIRFLOW_HOME": str(_WORK / "home"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_FOLDER": str(dag.parent),
            "PATH": f"{jupyter.parent}:{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}",
        }
        upload("bucket")
        airflow = bin_dir / "airflow"
        run(airflow, "db", "migrate")
        begin = time.monotonic()
        said = run(airflow, "dags", "test", "who_diverges", _DAY, "-f", dag)
        seconds = time.monotonic() - begin
        (_WORK / "said.txt").write_text(said)
        (scanned,) = manifest.complete("s3://bucket/tables")
        (diverging,) = re.findall(r"diverging: (\[\(.*?\)\])", said)
        release = run(airflow, "version").strip().splitlines()[-1]
        REPORT.write_text(_report(release, seconds, scanned, diverging))


def _report(release: str, seconds: float, scanned: manifest.Manifest, diverging: str) -> str:
    rows = "\n".join(f"| {name} | {count:,} |" for name, count in scanned.rows.items())
    return f"""# The DAG of logtool-fleets in Airflow

`make airflow` wrote this with Airflow {release}. Airflow parsed the DAG of the guide and ran it for
{_DAY} (`airflow dags test`) in {seconds:.0f} s, with three brokers in a bucket of a server on
127.0.0.1. The notebook scanned them as run {scanned.run_id}, and found these partitions with their
diverging brokers:

    {diverging}

| table | rows |
| --- | --- |
{rows}

The cells of the notebook were run without Jupyter.
"""


if __name__ == "__main__":
    if len(sys.argv) > 1:
        execute(Path(sys.argv[1]))
    else:
        main()
