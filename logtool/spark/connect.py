"""Spark Connect: the data source works through a server; `scan` and `verify` need more than it has.

The engine makes RDDs, and follows and cancels their jobs. Of these a session of Spark Connect has
none (Spark 4.0 to 4.3: ``sparkContext`` raises JVM_ATTRIBUTE_NOT_SUPPORTED).
"""

import os
from collections.abc import Mapping
from typing import Any, Final

REFUSAL: Final = (
    "scan and --engine spark need a session that is not one of Spark Connect, which has no RDDs: "
    "name the cluster with --master; the data source kafka-log works through Spark Connect"
)
_ENVIRONMENT: Final = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
"""Variables with which pyspark makes sessions of Spark Connect."""


def is_connect(spark: Any) -> bool:
    """Return whether a session is one of Spark Connect; paths are then those of its server."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def asked(master: str | None, settings: Mapping[str, str]) -> str | None:
    """Return the setting that asks pyspark for Spark Connect; None without one."""
    if (master or "").startswith("sc://"):
        return f"--master {master}"
    if "spark.remote" in settings:
        return "spark.remote is set"
    found = [name for name in _ENVIRONMENT if name in os.environ]
    mode = settings.get("spark.api.mode", os.environ.get("SPARK_API_MODE", ""))
    if mode.lower() == "connect":
        found.append("the API mode connect")
    return f"{found[0]} is set" if found else None
